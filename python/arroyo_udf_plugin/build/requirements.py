"""The packages that a Python source lists in its script block, and the file that keeps their versions.

A plugin uses the packages of the environment that it is built in, so a build installs nothing. It looks for the listed
packages and their dependencies, and writes the versions that it finds beside the source, as udf.requirements.txt for
udf.py. `pip install -r` makes the same environment elsewhere; `--locked` refuses any other.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import BuildError
from . import cache, metadata
from .cache import Resolution

_HEAD = "# Written by arroyo-udf build: what {source} was built with. pip install -r {file}\n"


def locked(source: Path, text: str, how: Resolution) -> str:
    """The lock of a source, made or renewed unless --locked forbids it; empty if the source lists no packages.

    Raises BuildError: a package is missing, or its version does not fit; or --locked, and the lock differs from the
    environment.
    """
    line, wanted = metadata.dependencies(text, str(source))
    if not wanted:
        return ""
    from . import packages  # here, because most sources list none

    file = source.with_name(f"{source.stem}.requirements.txt")
    versions = packages.versions(wanted, str(source), line)
    head = _HEAD.format(source=source.name, file=file.name)
    lock = head + "".join(f"{name}=={version}\n" for name, version in sorted(versions.items()))
    former = how.former_lock(file, source, line)
    if how.locked and former != lock:
        changed = sorted(set(lock.splitlines()) ^ set((former or "").splitlines()))
        raise BuildError(
            f"{file.name} is stale, or not what is installed here; they differ in {', '.join(changed)}: "
            f"pip install -r {file.name}, or build once without --locked",
            str(source),
            line,
        )
    if former != lock:
        cache.keep_lock(file, source, lock)
    return lock
