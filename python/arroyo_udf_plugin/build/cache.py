"""The cache of built libraries: each is kept under the hash of everything that it depends on.

Guarantees: an entry is complete or absent, because it is written in a private folder and then renamed; so concurrent
builds do not disturb each other. A library that was damaged since is built again. A library that is replaced stays
intact for processes that have it open.
The folder is `arroyo-udf` in $XDG_CACHE_HOME or ~/.cache; it may be deleted at any time.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..abi import ABI_VERSION
from ..errors import BuildError
from ..plugin import origin
from ..version import __version__
from . import duckdb_file

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PluginIdentity:
    """The identity in a plugin's descriptor: name (stem of the source), hash (hexadecimal), version of the toolkit."""

    name: str
    hash: str
    toolkit_version: str


@dataclass(frozen=True)
class Resolution:
    """How the dependencies of a source are found.

    locked: use exactly the versions of the lock file beside the source, which must exist and fit.
    offline: use only what is on this machine.
    folder: where a Python source's own modules are; None: in its folder.
    """

    locked: bool = False
    offline: bool = False
    folder: Path | None = None

    def former_lock(self, file: Path, source: Path, line: int | None) -> str | None:
        """The text of the lock file beside a source whose dependencies are declared at `line`, or of the one that
        `keep_lock` has put aside; None if there is none.

        Raises BuildError: it is missing beside the source, and `locked`.
        """
        places = [file] if self.locked else [file, _cache_path(file, source)]
        lock = next((candidate for candidate in places if candidate.exists()), None)
        if lock is not None:
            return lock.read_text("utf-8")
        if self.locked:
            raise BuildError(
                f"--locked needs {file.name} beside the source, and there is none: build once without --locked, and "
                "keep that file with the source",
                str(source),
                line,
            )
        return None


@dataclass(frozen=True)
class Exports:
    """What a library has for its hosts: the symbols for engines with entry points of their own, beside its table.

    arroyo: the function for the Arroyo engine; None: the source's only function, if Arroyo can call it.
    on_error: the result of a row that failed, in all these engines: "fail" ends the query or the job, "null" is null.
    no_python: a source in Python becomes a library without Python, and without symbols for Arroyo.
    """

    arroyo: str | None = None
    on_error: str = "fail"
    no_python: bool = False

    def check(self, source: Path) -> None:
        """Raises BuildError for what does not go together."""
        if self.no_python and source.suffix != ".py":
            raise BuildError("--no-python is for sources in Python: other libraries need none", str(source))
        if self.no_python and self.arroyo is not None:
            raise BuildError(
                f"--arroyo {self.arroyo} --no-python: the symbols for Arroyo need Python; leave one out", str(source)
            )

    @property
    def flags(self) -> list[str]:
        """Of the C compiler, for the entry points of engines."""
        return ["-DARROYO_UDF_ON_ERROR_NULL"] if self.on_error == "null" else []

    def choose(self, functions: list[str], callable: list[str], source: Path) -> str | None:
        """The function to export, of the source's `functions`; `callable`: those that Arroyo can call.

        Raises BuildError if `arroyo` is not among them.
        """
        if self.arroyo is None:
            return callable[0] if len(functions) == 1 and callable else None
        if self.arroyo not in functions:
            raise BuildError(f"--arroyo {self.arroyo}: its functions are {', '.join(functions)}", str(source))
        if self.arroyo not in callable:
            without = f"--arroyo {self.arroyo}: a sync function without arguments cannot say how many rows it has"
            raise BuildError(f"{without}, for Arroyo; give it one", str(source))
        return self.arroyo


BY_DEFAULT = Exports()
DIGEST = "sha256"
"""The file beside a library of the cache."""
UNUSABLE = (
    "the build cache {folder} cannot be used; make room with `arroyo-udf cache --clear`, or name another folder in "
    "XDG_CACHE_HOME"
)
PLACED = "placed"
"""The folder of libraries with the line that names their source, for callers that choose no place."""


class Toolchain(Protocol):
    """The interface of a language's module."""

    def inputs(self, source: Path, how: Resolution) -> list[str]:
        """What the library depends on, apart from source, toolkit, ABI and target: compiler, flags, dependencies."""
        ...

    def compile(
        self, source: Path, output: Path, identity: PluginIdentity, how: Resolution, exports: Exports = BY_DEFAULT
    ) -> None:
        """Writes the library to `output`, in a private folder that exists. Raises BuildError."""
        ...


def artifact(source: Path, toolchain: Toolchain, how: Resolution, exports: Exports = BY_DEFAULT) -> Path:
    """The library of a source in the cache; built first if it is missing."""
    name = source.stem
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BuildError(
            "the file's name becomes the plugin's: use letters, digits and underscores, and no digit first", str(source)
        )
    parts = [name, source.read_bytes().hex(), __version__, str(ABI_VERSION), os.uname().sysname, os.uname().machine]
    exports.check(source)
    parts += [exports.arroyo or "", exports.on_error, "no Python" if exports.no_python else ""]
    key = hashlib.sha256(json.dumps([*parts, *toolchain.inputs(source, how)]).encode()).hexdigest()
    identity = PluginIdentity(name, key, __version__)
    return kept(key, f"lib{name}.so", lambda output: toolchain.compile(source, output, identity, how, exports))


def kept(key: str, name: str, make: Callable[[Path], None]) -> Path:
    """The file of this name in the entry of a key; made first if it is missing. make: writes it, to a private path."""
    entry = folder() / key[:2] / key
    file = entry / name
    if _is_sound(file):
        os.utime(entry)  # for `limit`
        return file
    shutil.rmtree(entry, ignore_errors=True)
    entry.parent.mkdir(parents=True, exist_ok=True)
    private = Path(tempfile.mkdtemp(prefix="building-", dir=entry.parent))
    try:
        make(private / name)
        for left in private.iterdir():
            if left.name != name:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        (private / DIGEST).write_text(_digest(private / name))
        try:
            private.rename(entry)
        except OSError:
            if not _is_sound(file):  # else another build was faster, with the same result
                raise
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return file


def place_of(source: Path) -> Path:
    """Where the library of a source is, for callers that choose no place."""
    return folder() / PLACED / hashlib.sha256(os.fsencode(source)).hexdigest()[:16] / f"lib{source.stem}.so"


def _is_sound(file: Path) -> bool:
    try:
        return _digest(file) == file.with_name(DIGEST).read_text()
    except (OSError, UnicodeDecodeError):
        return False


def _digest(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


def place(library: Path, source: Path, out: Path) -> None:
    """Copies a library to the user's path, atomically, and adds the line that names its source, and what DuckDB looks
    for: a footer, and beside it a link with a name of its own."""
    write(out, library.read_bytes() + origin.line(str(source)) + duckdb_file.footer(), 0o755)
    link = duckdb_file.link_of(out, source.stem)
    if link.is_symlink() or not link.exists():  # a file of this name is the user's
        new = link.with_name(f".{link.name}.{os.getpid()}")
        new.symlink_to(out.name)
        os.replace(new, link)


def check_source(out: Path, source: Path) -> None:
    """Raises BuildError if `out` exists and was not built from a source of this name."""
    if not out.is_file():
        return
    former = origin.read(str(out))
    if former is None or Path(former).name != source.name:
        made = "is no library of arroyo-udf build" if former is None else f"was built from {Path(former).name}"
        raise BuildError(f"{out.name} exists and {made}: name another library with -o", str(source))


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


def keep_lock(file: Path, source: Path, text: str) -> None:
    """Writes the lock file beside a source; if nobody may write there, as in a container, into the cache."""
    with build_errors(source, f"{file.name} cannot be written beside the source"):
        try:
            write(file, text.encode())
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            kept = _cache_path(file, source)
            write(kept, text.encode())
            _log.info(
                "%s cannot be written beside the source, where builds elsewhere want it; it is %s", file.name, kept
            )


def _cache_path(file: Path, source: Path) -> Path:
    return place_of(source).with_name(file.name)


@contextmanager
def build_errors(source: Path, failed: str) -> Iterator[None]:
    """Makes an OSError a BuildError. failed: what has failed, and what to do."""
    try:
        yield
    except OSError as error:
        where = "" if error.filename is None else f" ({error.filename})"
        raise BuildError(f"{failed}: {error.strerror or error}{where}", str(source)) from None


def folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arroyo-udf"
