"""Where checkpoints are kept: a folder, or a place in an object store, as named bytes.

    store = open_store("s3://bucket/checkpoints")      or a folder
    store.create("epochs/000000012.json", manifest)    AlreadyThere: another engine was first

Guarantees: when `put` or `create` returns, the bytes are durable. A name has all of its bytes or does not exist. Of
several that create one name, exactly one returns; the others raise AlreadyThere.

Assumes: those that create one name give different bytes; so an object store's answer that got lost can be told from
another's success. A killed process may leave a hidden file, which nobody reads; after an hour the next one that writes
there removes it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeVar

from ...errors import ArroyoUdfError, InvalidArgument
from ..connectors import disk, object_store
from ..connectors.location import Location, location_of
from ..connectors.unnamed import LARGE, Data, mapped

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Opened

_Result = TypeVar("_Result")
_FORGOTTEN = 3600.0  # seconds; nobody takes as long to write a file
_HIDDEN = re.compile(r"\.[0-9a-f]{16}\.partial")
_MANY = 1000  # names in one request, as many as S3 takes


class AlreadyThere(ArroyoUdfError):
    """The name exists: another process created it."""


class Store(Protocol):
    """place: for people. Names are relative, with "/" between folders. Raises InvalidArgument if the place fails."""

    place: str

    def put(self, name: str, data: Data) -> None:
        """Writes, or replaces."""

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        """As `put`, of what `write` writes, at least a byte. It is not in memory as a whole."""

    def create(self, name: str, data: bytes) -> None:
        """Writes what is not there. Raises AlreadyThere."""

    def get(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def load(self, name: str) -> Data:
        """As `get`; what is large is not in memory, but in a file of its own, which nobody takes away."""

    def names(self, prefix: str) -> list[str]:
        """Those that begin with `prefix`, sorted."""

    def delete(self, name: str) -> None:
        """Does nothing if it is not there."""

    def clear(self) -> None:
        """Removes everything, of an object store many names with one request. It can be repeated."""


def open_store(place: Location | str, patience: float = object_store.PATIENCE) -> Store:
    """The store at a folder's path or an object store's URL. The folder need not exist.

    patience: seconds for an object store that does not answer. Raises InvalidArgument.
    """
    where = location_of(place) if isinstance(place, str) else place
    if where.path is not None:
        return LocalStore(where.path)
    return ObjectStore(where.text, object_store.open_patient(where.text), patience)


class LocalStore:
    """Files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder, self._disk = folder, disk.current()
        self._made: set[Path] = set()

    def put(self, name: str, data: Data) -> None:
        self.write(name, lambda file: _write_all(file, data))

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        path = self._folder / name
        with self._errors("write", name), self._file(path.parent, write) as written:
            try:
                self._disk.link(written, path)
            except FileExistsError:  # a name cannot be linked over
                temporary = path.parent / _hidden()
                self._disk.link(written, temporary)
                self._disk.replace(temporary, path)
            self._disk.sync(path.parent)

    def create(self, name: str, data: bytes) -> None:
        path = self._folder / name
        with self._errors("write", name), self._file(path.parent, lambda file: _write_all(file, data)) as written:
            try:
                self._disk.link(written, path)
            except FileExistsError:
                raise AlreadyThere(f"{self.place}: {name} is there already") from None
            self._disk.sync(path.parent)

    def get(self, name: str) -> bytes:
        with self._errors("read", name):
            return (self._folder / name).read_bytes()

    def load(self, name: str) -> Data:
        with self._errors("read", name), open(self._folder / name, "rb") as file:
            if os.fstat(file.fileno()).st_size < LARGE:
                return file.read()
            return mapped(partial(shutil.copyfileobj, file), f"a copy of {name}")

    def names(self, prefix: str) -> list[str]:
        with self._errors("read", prefix):
            below = self._folder / prefix.rpartition("/")[0]
            paths = (path.relative_to(self._folder) for path in below.rglob("*") if path.is_file())
            return sorted(str(path) for path in paths if str(path).startswith(prefix) and path.name[0] != ".")

    def delete(self, name: str) -> None:
        with self._errors("remove", name), contextlib.suppress(FileNotFoundError):
            self._disk.unlink(self._folder / name)

    def clear(self) -> None:
        with self._errors("remove", ""), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder)

    @contextlib.contextmanager
    def _file(self, folder: Path, write: Callable[[IO[bytes]], None]) -> Iterator[int]:
        """A durable file without a name, or with a hidden one meanwhile. Yields a descriptor that can be linked."""
        if folder not in self._made or not folder.is_dir():
            self._disk.make(folder)
            self._tidy(folder)
            self._made.add(folder)
        fd, temporary = self._disk.unnamed(folder), None
        if fd is None:
            temporary = folder / _hidden()
            fd = self._disk.create(temporary)
        try:
            with io.BufferedWriter(self._disk.file(fd)) as file:
                write(file)
                file.flush()
                self._disk.fsync(fd)
                yield fd
        finally:
            if temporary is not None:
                self._disk.unlink(temporary)

    def _tidy(self, folder: Path) -> None:
        """Removes what killed processes have left."""
        for path in folder.glob(".*.partial"):
            with contextlib.suppress(OSError):
                if _HIDDEN.fullmatch(path.name) and time.time() - path.stat().st_mtime > _FORGOTTEN:
                    self._disk.unlink(path)

    @contextlib.contextmanager
    def _errors(self, verb: str, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InvalidArgument(f"cannot {verb} {self.place}/{name}: {error.strerror or error}") from error


def _write_all(file: IO[bytes], data: Data) -> None:
    file.write(data)


def _hidden() -> str:
    return f".{secrets.token_hex(8)}.partial"


class ObjectStore:
    """Objects below a URL. store: of obstore."""

    def __init__(self, url: str, store: Opened, patience: float) -> None:
        self.place = url.rstrip("/")
        self._store, self._obstore, self._patience = store, disk.current().objects(), patience

    def put(self, name: str, data: Data) -> None:
        self._write(name, lambda: self._obstore.put(self._store, name, data))

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        self.put(name, mapped(write, f"a copy of {name}"))

    def create(self, name: str, data: bytes) -> None:
        def created() -> bool:
            try:
                self._obstore.put(self._store, name, data, mode="create")
            except self._obstore.exceptions.AlreadyExistsError:
                return False
            return True

        # When an answer has got lost after the object was written, the next attempt finds our own bytes.
        if not self._write(name, created) and self.get(name) != data:
            raise AlreadyThere(f"{self.place}: {name} is there already")

    def get(self, name: str) -> bytes:
        return self._do(name, lambda: bytes(self._obstore.get(self._store, name).bytes()))

    def load(self, name: str) -> Data:
        def loaded() -> Data:
            result = self._obstore.get(self._store, name)
            if result.meta["size"] < LARGE:
                return bytes(result.bytes())
            return mapped(lambda file: file.writelines(result.stream()), f"a copy of {name}")

        return self._do(name, loaded)

    def names(self, prefix: str) -> list[str]:
        folder = prefix.rpartition("/")[0] or None  # an object store lists whole folders
        groups = self._do(prefix, lambda: list(self._obstore.list(self._store, folder)))
        return sorted(entry["path"] for group in groups for entry in group if entry["path"].startswith(prefix))

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._do(name, lambda: self._obstore.delete(self._store, name))

    def clear(self) -> None:
        def cleared() -> None:
            for group in self._obstore.list(self._store, chunk_size=_MANY):
                self._obstore.delete(self._store, [entry["path"] for entry in group])

        self._do("", cleared)

    def _write(self, name: str, call: Callable[[], _Result]) -> _Result:
        try:
            return self._do(name, call)
        except FileNotFoundError as error:  # of an object that is to be written
            raise InvalidArgument(f"{self.place}: there is no such bucket: make it, or name another one") from error

    def _do(self, name: str, call: Callable[[], _Result]) -> _Result:
        return object_store.patiently(call, f"{self.place}/{name}", self._patience)
