"""Which files the inputs of a run are: names, folders and patterns as a list of files, each opened once."""

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

from ..errors import InvalidArgument
from .formats import Kind, has_ending, kind_of


@dataclasses.dataclass(frozen=True)
class Input:
    """name: for people. path: None is standard input. regular: it can be opened more than once."""

    name: str
    path: Path | None
    kind: Kind
    regular: bool


def found(inputs: Sequence[str | os.PathLike[str]], chosen: str | None) -> list[Input]:
    """The files that `inputs` name. Raises InvalidArgument for none, and for files of several formats."""
    files = [
        dataclasses.replace(file, name=os.fsencode(file.name).decode(errors="backslashreplace"))
        for given in inputs
        for file in _found(os.fspath(given), chosen)
    ]
    if not files:
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


def _found(name: str, chosen: str | None) -> Iterator[Input]:
    if name == "-":
        yield Input(name, None, kind_of(name, chosen, "--in-format"), False)
        return
    try:
        mode = os.stat(name).st_mode
    except (FileNotFoundError, NotADirectoryError):
        names = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
        if not names:
            what = "no file has such a name" if glob.has_magic(name) else "there is no such file"
            raise InvalidArgument(f"{name}: {what}") from None
        for each in names:
            if not os.path.isdir(each):
                yield from _found(each, chosen)
        return
    except OSError as error:
        raise InvalidArgument(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidArgument(f"cannot read {name!r}: {error}") from error
    if stat.S_ISDIR(mode):
        yield from _in_folder(name, chosen)
    elif chosen is None and not stat.S_ISREG(mode) and not has_ending(name):
        yield Input(name, Path(name), Kind("csv", None), False)
    else:
        yield Input(name, Path(name), kind_of(name, chosen, "--in-format"), stat.S_ISREG(mode))


def _in_folder(folder: str, chosen: str | None) -> Iterator[Input]:
    """The files of a folder by name. Hidden ones and those like `_SUCCESS` do not count, as elsewhere."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.is_file() and not e.name.startswith((".", "_")))
    except OSError as error:
        raise InvalidArgument(f"cannot read the folder {folder}: {error.strerror}") from error
    if not names:
        raise InvalidArgument(f"{folder}: the folder has no files")
    for name in names:
        yield from _found(os.path.join(folder, name), chosen)


def opened(file: Input, open_: contextlib.ExitStack) -> IO[bytes]:
    """The file's bytes, decompressed. A read returns what a pipe has so far. Raises OSError."""
    fd = os.dup(0) if file.path is None else os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    stream: Any = open_.enter_context(io.FileIO(fd))
    if file.kind.compression is not None:
        stream = open_.enter_context(pa.CompressedInputStream(pa.PythonFile(stream, "r"), file.kind.compression))
    return cast(IO[bytes], stream)


@contextlib.contextmanager
def readable(file: Input) -> Iterator[None]:
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
