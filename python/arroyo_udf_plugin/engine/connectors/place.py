"""Where an output's bytes go, and how the file appears when it is complete.

A file is written without a name (O_TMPFILE) and linked into its folder at the end, so that nothing remains of it even
after SIGKILL. A file system that cannot do this gets a hidden `.partial` file, which is renamed at the end and removed
after a failure or a signal. Standard output, FIFOs and devices are written directly. An object is written to a file
without a name on this machine, and put into its store at the end. A `MemoryPlace` is for bytes that others keep.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from ..._native import keep_at_exit, remove_at_exit
from ...errors import InvalidArgument
from . import object_store
from .disk import Disk, current, proc
from .formats import FileKind, has_ending, kind_of
from .location import location_of


def place_of(path: str, inputs: Sequence[Path | str], force: bool, disk: Disk | None = None) -> Place | ObjectPlace:
    """path: "-" is standard output. inputs: local files, and URLs of objects. disk: None: the current one.

    Raises InvalidArgument if the output is one of `inputs` and `force` is not set, or is no file; and OSError.
    """
    where = location_of(path)
    if where.path is None:
        if not force and object_store.plain_url(path) in {object_store.plain_url(str(source)) for source in inputs}:
            raise _is_input(path, "an input")
        return ObjectPlace(path, disk or current())
    return Place(where.text, [source for source in inputs if isinstance(source, Path)], force, disk or current())


class _Written:
    """What is written to one file object."""

    _file: IO[bytes]
    closed = False  # as long as a stream above may write

    def write(self, data: Any) -> None:
        """After `give_up` it does nothing, because pyarrow's writers end their files when they are destroyed."""
        if not self._file.closed:
            self._file.write(data)

    @property
    def n_bytes(self) -> int:
        """Written so far; of a file."""
        return self._file.tell()

    def close(self) -> None:
        """Called by a stream above when it ends; the file is closed when it appears."""


class ObjectPlace(_Written):
    """An object that is written, and a file object for pyarrow."""

    is_live = False

    def __init__(self, url: str, disk: Disk) -> None:
        self._url = url
        folder, _, self._name = url.rpartition("/")
        if not self._name:
            raise InvalidArgument(f"{url} is a folder; name an object in it")
        self._store = object_store.open_patient(folder)
        self._obstore = disk.objects()  # after the store, which says what to install
        self._ask(self._answers)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (`appear` and `give_up` close it)

    def _answers(self) -> None:
        """Lists what is there, which a bucket's writers need not be allowed to."""
        try:
            next(iter(self._obstore.list(self._store, prefix=self._name)), None)
        except Exception as error:
            if not object_store.is_denied(error):
                raise

    def flush(self) -> None:
        """Nothing is out before it appears."""

    def appear(self, durable: bool) -> None:
        """Puts the complete object into the store."""

        def put() -> None:
            self._file.seek(0)
            self._obstore.put(self._store, self._name, self._file)

        self._ask(put)
        self._file.close()

    def give_up(self) -> None:
        self._file.close()

    def _ask(self, ask: Callable[[], object]) -> None:
        try:
            object_store.patiently(ask, self._url)
        except FileNotFoundError:
            raise InvalidArgument(f"cannot write {self._url}: there is no such bucket") from None


class MemoryPlace(_Written):
    """A file in memory, and a file object for pyarrow."""

    is_live = False
    _file: io.BytesIO

    def __init__(self) -> None:
        self._file = io.BytesIO()

    def flush(self) -> None:
        """Nothing is out before it is taken."""

    def appear(self, durable: bool) -> None:
        """Whoever has made the place takes its bytes."""

    def value(self) -> bytes:
        """What was written."""
        return self._file.getvalue()

    def give_up(self) -> None:
        self._file.close()


class Place(_Written):
    """An open output, and a file object for pyarrow. is_live: bytes are out when flushed, and cannot be taken back.

    path: as `place_of` has it. A symbolic link stays, and the file behind it is replaced.
    """

    def __init__(self, path: str, inputs: Sequence[Path], force: bool, disk: Disk) -> None:
        self._disk = disk
        self._partial: str | None = None
        self._target = path if path == "-" else os.path.realpath(path)
        self.is_live = path == "-" or is_stream(path)
        if self.is_live:
            fd = _standard_output() if path == "-" else os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            self._file = io.BufferedWriter(io.FileIO(fd, "w"))
            return
        if not force:
            _refuse_inputs(path, self._target, inputs)
        folder = os.path.dirname(self._target)
        if not os.path.isdir(folder):
            raise InvalidArgument(f"{path}: the folder {os.path.dirname(path) or folder} does not exist")
        self._hidden_path = os.path.join(folder, f".arroyo-udf-{secrets.token_hex(12)}.partial")
        self._file = io.BufferedWriter(self._disk.file(self._unnamed(folder)))

    def _unnamed(self, folder: str) -> int:
        fd = self._disk.unnamed(folder)
        if fd is not None:
            return fd
        remove_at_exit(os.fsencode(self._hidden_path))
        fd = self._disk.create(self._hidden_path)
        self._partial = self._hidden_path
        return fd

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def appear(self, durable: bool) -> None:
        """Gives the complete file its name. durable: neither is lost with the power then."""
        if self.is_live:
            self._file.close()
            return
        self._file.flush()
        if self._partial is None:
            self._name_it()
        self._file.close()
        if durable:
            self._disk.sync(self._hidden_path)
        self._disk.replace(self._hidden_path, self._target)
        if durable:
            self._disk.sync(os.path.dirname(self._target))
        self._partial = None
        keep_at_exit(os.fsencode(self._hidden_path))

    def _name_it(self) -> None:
        """Gives the file a hidden name, because a name that exists cannot be linked over."""
        self._partial = self._hidden_path
        remove_at_exit(os.fsencode(self._hidden_path))
        self._unname()
        try:
            self._disk.link(self._file.fileno(), self._hidden_path)
        except OSError:  # a file system that knows unnamed files may still not link them
            self._unname()  # or it has, and says that it has not: then it is this file that would be emptied
            with (
                open(proc(self._file.fileno()), "rb") as written,
                self._disk.file(self._disk.create(self._hidden_path)) as named,
            ):
                shutil.copyfileobj(written, named, 1 << 20)

    def _unname(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._disk.unlink(self._hidden_path)

    def give_up(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        if self._partial is not None:
            with contextlib.suppress(FileNotFoundError):
                self._disk.unlink(self._partial)
            keep_at_exit(os.fsencode(self._hidden_path))


def _standard_output() -> int:
    """A descriptor of it; from now on, what functions print there goes to standard error."""
    fd = os.dup(1)
    os.dup2(2, 1)
    return fd


def is_stream(path: str) -> bool:
    """Whether the output is a FIFO, a device or the like. Raises InvalidArgument for a folder and for no path."""
    local = location_of(path).path
    if local is None:
        return False
    try:
        mode = os.stat(local).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidArgument(f"cannot write {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidArgument(f"cannot write {path!r}: {error}") from error
    if stat.S_ISDIR(mode):
        raise InvalidArgument(f"{path} is a folder; name a file in it")
    return not stat.S_ISREG(mode)


def kind_of_output(path: str, chosen: str | None) -> FileKind:
    """The kind of an output. A stream whose ending does not say it is CSV. Raises InvalidArgument as `kind_of` does,
    and for a folder."""
    if chosen is None and path != "-" and is_stream(path) and not has_ending(path):
        chosen = "csv"
    return kind_of(path, chosen, "--out-format")


def _refuse_inputs(path: str, file: str, inputs: Sequence[Path]) -> None:
    with contextlib.suppress(FileNotFoundError):
        target = os.stat(file)
        for given in inputs:
            if os.path.samestat(target, os.stat(given)):
                which = "an input" if os.path.abspath(given) == os.path.abspath(path) else f"the input {given}"
                raise _is_input(path, which)


def _is_input(path: str, which: str) -> InvalidArgument:
    return InvalidArgument(f"{path} is {which}, too: name another output, or replace it with --force")
