"""Which files the inputs of a run are: names, folders, patterns and URLs as a list of files, each opened once."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import io
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from ...errors import InvalidArgument
from . import blocks, object_store
from .formats import FileKind, has_ending, kind_of
from .interrupt import Interrupt
from .location import Location, pattern_of

_PATIENCE = 5.0  # seconds for a store that does not answer, before anything runs


@dataclasses.dataclass(frozen=True, slots=True)
class Version:
    """What changes when a file is written: its size, and its etag, or the time of its last change."""

    size: int
    etag: str


@dataclasses.dataclass(frozen=True, slots=True)
class InputFile:
    """name: for people. path: of a local file; None is standard input, or an object. regular: it can be opened more
    than once. object: in an object store."""

    name: str
    path: Path | None
    kind: FileKind
    regular: bool
    object: object_store.Object | None = None

    @property
    def is_local(self) -> bool:
        """Whether reading never waits for others."""
        return self.regular and self.object is None

    def admitted(self) -> InputFile:
        """Itself. Raises InvalidArgument for a file that may not be read: see `Location`. Before each opening."""
        if self.path is not None:
            Location(self.name, self.path).admitted()
        return self

    def again(self, interrupt: Interrupt | None = None) -> InputFile:
        """A regular file as it is now. Raises FileNotFoundError if it is gone. interrupt: ends the wait for a store."""
        if self.object is None:
            return self
        now = object_store.look(self.object, object_store.PATIENCE, interrupt)
        return dataclasses.replace(self, object=now)

    def version(self) -> Version:
        """Of a regular file: of a local one now, of an object when it was looked at."""
        if self.object is not None:
            return Version(self.object.size, self.object.etag)
        assert self.path is not None
        status = os.stat(self.path)
        return Version(status.st_size, str(status.st_mtime_ns))


def input_files(
    inputs: Sequence[str | os.PathLike[str]],
    chosen: str | None,
    again: Interrupt | None = None,
    may_lack: bool = False,
    seen: Sequence[set[str]] | None = None,
) -> list[InputFile]:
    """The files that `inputs` name. Raises InvalidArgument for none, and for files of several formats.

    again: they have been found before, and what is gone meanwhile is no error. It ends the wait for a store.
    may_lack: what is not there yet is none, either.
    seen: the local files of folders and patterns that were found before, for each input: these are left out, and new
    ones are added. So a look costs little more than the names.
    """
    may_lack = may_lack or again is not None
    files: list[InputFile] = []
    for given, seen_there in zip(inputs, seen or [set[str]() for _ in inputs], strict=True):
        try:
            for file in _files_of(os.fspath(given), chosen, again, seen_there):
                name = os.fsencode(file.name).decode(errors="backslashreplace")
                files.append(file if name == file.name else dataclasses.replace(file, name=name))
        except NoFile:
            if not may_lack:
                raise
    if not files and not may_lack:
        raise InvalidArgument("no input is given")
    if [file.name for file in files].count("-") > 1:
        raise InvalidArgument("standard input can be read only once")
    for file in files:
        if file.kind.format != files[0].kind.format:
            raise InvalidArgument(
                f"{files[0].name} is {files[0].kind.format} and {file.name} is {file.kind.format}: "
                "all inputs of a run have one format"
            )
    return files


class NoFile(InvalidArgument):
    """An input names no file."""


def _files_of(name: str, chosen: str | None, again: Interrupt | None, seen: set[str]) -> Iterator[InputFile]:
    if name == "-":
        yield InputFile(name, None, kind_of(name, chosen, "--in-format"), False)
        return
    where = pattern_of(name)
    if where.path is None:
        yield from _objects(name, chosen, again)
        return
    name = where.text
    where.admitted()
    try:
        mode = os.stat(name).st_mode
    except (FileNotFoundError, NotADirectoryError):
        yield from _matching(name, chosen, seen)
        return
    except OSError as error:
        raise InvalidArgument(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidArgument(f"cannot read {name!r}: {error}") from error
    if stat.S_ISDIR(mode):
        yield from _in_folder(name, chosen, seen)
    elif name not in seen:
        seen.add(name)
        is_file = stat.S_ISREG(mode)
        has_kind = is_file or chosen is not None or has_ending(name)
        kind = kind_of(name, chosen, "--in-format") if has_kind else FileKind("csv", None)
        yield InputFile(name, Path(name), kind, is_file)


def _matching(pattern: str, chosen: str | None, seen: set[str]) -> Iterator[InputFile]:
    """The files that match a pattern, by name."""
    paths = set(glob.iglob(pattern, recursive=True)) if glob.has_magic(pattern) else set()
    if not paths:
        what = "no file has such a name" if glob.has_magic(pattern) else "there is no such file"
        raise NoFile(f"{pattern}: {what}")
    for path in sorted(paths - seen):
        if not os.path.isdir(path):
            yield from _files_of(path, chosen, None, seen)


def _in_folder(folder: str, chosen: str | None, seen: set[str]) -> Iterator[InputFile]:
    """The files of a folder by name. Hidden ones and those like `_SUCCESS` do not count, as elsewhere."""
    try:
        with os.scandir(folder) as entries:
            new = sorted(e.path for e in entries if e.path not in seen and e.name[0] not in "._" and e.is_file())
    except OSError as error:
        raise InvalidArgument(f"cannot read the folder {folder}: {error.strerror}") from error
    if not new and not seen:
        raise NoFile(f"{folder}: the folder has no files")
    seen.update(new)
    for path in new:
        yield InputFile(path, Path(path), kind_of(path, chosen, "--in-format"), True).admitted()


def _objects(url: str, chosen: str | None, again: Interrupt | None) -> Iterator[InputFile]:
    none = True
    for entry in object_store.objects(url, _PATIENCE if again is None else object_store.PATIENCE, again):
        none = False
        yield InputFile(entry.name, None, kind_of(entry.name, chosen, "--in-format"), True, entry)
    if none:
        raise NoFile(f"{url}: there is no such object, and no object in such a folder")


class _Rehearsed:
    """What a rehearsal has read of a stream, and a descriptor that keeps the stream open for its writer."""

    def __init__(self, fd: int) -> None:
        self.fd, self.data = fd, bytearray()


_rehearsed: dict[str, _Rehearsed] = {}  # by the input's name
_rehearses = False


@contextlib.contextmanager
def rehearsal() -> Iterator[None]:
    """What is read of pipes in it is read again afterwards: a query needs the columns before it runs."""
    global _rehearses
    _rehearses = True
    try:
        yield
    finally:
        _rehearses = False


class _Stream(io.FileIO):
    """A pipe or the like, at its end after an interrupt. interrupt: None: there is none.

    rehearsed: what it begins with.
    """

    def __init__(self, fd: int, interrupt: Interrupt | None, rehearsed: _Rehearsed | None) -> None:
        super().__init__(fd)
        self._interrupt, self._rehearsed = interrupt, rehearsed
        self._at = 0  # in what was rehearsed

    def read(self, size: int | None = -1, /) -> bytes:
        size = -1 if size is None else size
        if self._rehearsed is None:
            return self._arrived(size)
        known = bytes(self._rehearsed.data[self._at : None if size < 0 else self._at + size])
        new = b"" if known and size >= 0 else self._arrived(size)
        if _rehearses:
            self._rehearsed.data += new
        self._at += len(known) + (len(new) if _rehearses else 0)
        return known + new

    def _arrived(self, size: int) -> bytes:
        while self._interrupt is None or not self._interrupt.wait(None, self.fileno()):
            data: bytes | None = super().read(size)
            if data is not None:
                return data
        return b""


def _stream(file: InputFile, open_: contextlib.ExitStack, interrupt: Interrupt | None, flags: int) -> _Stream:
    rehearsed = _rehearsed.get(file.name)
    if rehearsed is not None:
        fd = os.dup(rehearsed.fd)
    else:
        fd = os.dup(0) if file.path is None else os.open(file.path, flags)
    stream = open_.enter_context(contextlib.closing(_Stream(fd, interrupt, rehearsed)))
    if _rehearses and rehearsed is None:
        stream._rehearsed = _rehearsed[file.name] = _Rehearsed(os.dup(fd))
    elif not _rehearses and rehearsed is not None:
        os.close(_rehearsed.pop(file.name).fd)
    return stream


def opened(file: InputFile, open_: contextlib.ExitStack, interrupt: Interrupt | None) -> IO[bytes]:
    """The file's bytes, decompressed. A read returns what a pipe has so far. Raises OSError.

    interrupt: ends reading, if a read may wait. Not for `is_local` files.
    """
    stream: Any
    if file.object is not None:
        stream = io.BufferedReader(object_store.ObjectFile(file.object, interrupt), blocks.BLOCK_BYTES)
    else:
        # Without waiting: a FIFO would wait for its writer here, and no interrupt could end that.
        flags = os.O_RDONLY | os.O_CLOEXEC | (0 if interrupt is None else os.O_NONBLOCK)
        if file.path is not None and file.is_local:
            fd = os.open(file.path, flags)
            stream = open_.enter_context(io.FileIO(fd) if interrupt is None else _Stream(fd, interrupt, None))
        else:
            stream = _stream(file, open_, interrupt, flags)
    if file.kind.compression is not None:
        stream = open_.enter_context(pa.CompressedInputStream(pa.PythonFile(stream, "r"), file.kind.compression))
    return cast(IO[bytes], stream)


@contextlib.contextmanager
def readable(file: InputFile) -> Iterator[None]:
    """Errors of reading, as InvalidArgument with the file's name."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow's own lack it
            raise InvalidArgument(f"cannot read {file.name}: {error.strerror}") from error
        what = file.kind.compression or file.kind.format
        reason = str(error).rstrip(".")
        raise InvalidArgument(
            f"cannot read {file.name}: {reason}. Is it cut off, or not {what}? (--in-format names another format)"
        ) from error
