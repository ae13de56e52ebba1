"""How much the cache holds, and how to make it smaller. Builds may go on meanwhile: what they need, they make again."""

import fcntl
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from . import cache

_LONGEST_BUILD = 3600.0
"""Seconds. What is older and not complete was left by a build that was killed."""


@dataclass(frozen=True)
class Held:
    """A part of the cache: a library, what is linked to all libraries, or all crates that Rust plugins depend on.

    used: when, in seconds since 1970.
    """

    path: Path
    bytes: int
    used: float

    @property
    def is_library(self) -> bool:
        return any(self.path.glob("lib*.so"))


def parts() -> list[Held]:
    """The built libraries, and what is linked to all of them; the one that was used longest ago first."""
    folder = cache.folder()
    paths = [path.parent for path in folder.glob(f"*/*/{cache.DIGEST}")]
    paths += (folder / cache.PLACED).glob("*")
    forgotten = time.time() - _LONGEST_BUILD
    paths += [path for path in folder.glob("*/building-*") if path.stat().st_mtime < forgotten]
    return sorted((_held(path) for path in paths), key=lambda held: held.used)


def crates() -> Held:
    """The compiled crates, and the files that their builds need."""
    return _held(cache.folder() / "rust")


def shrink(limit: int) -> int:
    """Deletes what was used longest ago, until at most `limit` bytes are left; the crates last, because they take
    longest to make. Returns the number of deleted bytes. Raises OSError."""
    held = [*parts(), crates()]
    too_much = sum(part.bytes for part in held) - limit
    deleted = 0
    for part in held:
        if deleted >= too_much:
            break
        _delete_crates(part.path) if part.path.name == "rust" else shutil.rmtree(part.path)
        deleted += part.bytes
    return deleted


def _delete_crates(folder: Path) -> None:
    """Waits for the build that uses them, if there is one."""
    if not folder.is_dir():
        return
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _held(path: Path) -> Held:
    files = [file.lstat() for file in path.rglob("*") if file.is_file()]
    used = path.stat().st_mtime if path.exists() else 0.0
    return Held(path, sum(file.st_size for file in files), used)
