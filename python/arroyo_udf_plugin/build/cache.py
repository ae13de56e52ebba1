"""The cache of built libraries: each is kept under the hash of everything that it depends on.

Guarantees: an entry is complete or absent, because it is written in a private folder and then renamed; so concurrent
builds do not disturb each other. A library that is replaced stays intact for processes that have it open.
The folder is `arroyo-udf` in $XDG_CACHE_HOME or ~/.cache; it may be deleted at any time.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..abi import ABI_VERSION
from ..errors import BuildError
from ..version import __version__


@dataclass(frozen=True)
class Identity:
    """The identity in a plugin's descriptor: name (stem of the source), hash (hexadecimal), version of the toolkit."""

    name: str
    hash: str
    toolkit_version: str


@dataclass(frozen=True)
class Resolution:
    """How the dependencies of a source are found.

    locked: use exactly the versions of the lock file beside the source, which must exist and fit.
    offline: use only what is on this machine.
    """

    locked: bool = False
    offline: bool = False

    def former_lock(self, file: Path, source: Path, line: int | None) -> str | None:
        """The text of the lock file beside a source whose dependencies are declared at `line`; None if it is missing.

        Raises BuildError: it is missing, and `locked`.
        """
        if file.exists():
            return file.read_text("utf-8")
        if self.locked:
            raise BuildError(
                f"--locked needs {file.name} beside the source, and there is none: build once without --locked, and "
                "keep that file with the source",
                str(source),
                line,
            )
        return None


@dataclass(frozen=True)
class Arroyo:
    """The symbols that a plugin exports for the Arroyo engine, beside its table.

    function: the exported function; None: the source's only function, if Arroyo can call it.
    on_error: the result of a failed row: "fail" ends the job, "null" is null.
    """

    function: str | None = None
    on_error: str = "fail"

    def choose(self, functions: list[str], callable: list[str], source: Path) -> str | None:
        """The function to export, of the source's `functions`; `callable`: those that Arroyo can call.

        Raises BuildError if `function` is not among them.
        """
        if self.function is None:
            return callable[0] if len(functions) == 1 and callable else None
        if self.function not in functions:
            raise BuildError(f"--arroyo {self.function}: its functions are {', '.join(functions)}", str(source))
        if self.function not in callable:
            without = f"--arroyo {self.function}: a sync function without arguments cannot say how many rows it has"
            raise BuildError(f"{without}, for Arroyo; give it one", str(source))
        return self.function


BY_DEFAULT = Arroyo()


class Toolchain(Protocol):
    """The interface of a language's module."""

    def inputs(self, source: Path, how: Resolution) -> list[str]:
        """What the library depends on, apart from source, toolkit, ABI and target: compiler, flags, dependencies."""
        ...

    def compile(
        self, source: Path, output: Path, identity: Identity, how: Resolution, arroyo: Arroyo = BY_DEFAULT
    ) -> None:
        """Writes the library to `output`, in a private folder that exists. Raises BuildError."""
        ...


def artifact(source: Path, toolchain: Toolchain, how: Resolution, arroyo: Arroyo = BY_DEFAULT) -> Path:
    """The library of a source in the cache; built first if it is missing."""
    name = source.stem
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BuildError(
            "the file's name becomes the plugin's: use letters, digits and underscores, and no digit first", str(source)
        )
    parts = [name, source.read_bytes().hex(), __version__, str(ABI_VERSION), *platform.uname()[::4]]
    parts += [arroyo.function or "", arroyo.on_error]
    key = hashlib.sha256(json.dumps([*parts, *toolchain.inputs(source, how)]).encode()).hexdigest()
    entry = folder() / key[:2] / key
    library = entry / f"{name}.so"
    if library.exists():
        return library
    entry.parent.mkdir(parents=True, exist_ok=True)
    private = Path(tempfile.mkdtemp(prefix="building-", dir=entry.parent))
    try:
        toolchain.compile(source, private / library.name, Identity(name, key, __version__), how, arroyo)
        for left in private.iterdir():
            if left.name != library.name:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            private.rename(entry)
        except OSError:
            if not library.exists():  # else another build was faster, with the same library
                raise
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return library


def place(library: Path, out: Path) -> None:
    """Copies a library to the user's path, atomically."""
    write(out, library.read_bytes(), 0o755)


def write(out: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes a file atomically: readers see the old content or the new."""
    out.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(mode)
        os.replace(name, out)
    except BaseException:
        os.unlink(name)
        raise


def folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arroyo-udf"
