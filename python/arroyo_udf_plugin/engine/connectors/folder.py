"""A folder that files appear in: on this machine, or in an object store.

    place = open_folder("s3://bucket/flights")      or a folder's path
    with FileSink(place.path("hidden"), ...): ...
    place.keep("hidden")
    place.show({"hidden": "part-1.parquet"})

Guarantees: after `keep`, a file is durable under its name. `show` renames, can be repeated by anybody at any time after
`keep`, and never replaces another file of a local folder. In an object store, where a rename is a copy and a removal, a
reader that takes a file between these two, before a crash, may see it again.

Assumes: hidden names are used once, and nobody else removes the files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from ... import failpoints
from ...errors import InvalidArgument
from . import object_store
from .disk import Disk, current
from .location import Location, location_of
from .scratch import scratch

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_Result = TypeVar("_Result")


class Folder(Protocol):
    """place: for people. disk: of files at `path`. keeps_again: whether `keep` can be repeated after it has failed.
    Raises InvalidArgument for what fails."""

    place: str
    disk: Disk
    keeps_again: bool

    def check(self) -> None:
        """Whether it can be made and written into, as far as this can be known without writing."""

    def path(self, name: str) -> str:
        """Where the file is to be written."""

    def keep(self, name: str) -> None:
        """Makes the file durable, which is complete at its `path`."""

    def forget(self, name: str) -> None:
        """Removes the file from its `path`, instead of `keep`."""

    def show(self, names: Mapping[str, str]) -> None:
        """Renames kept files."""

    def move(self, name: str, to: str) -> None:
        """Renames a hidden file, durably, to another hidden name. Does nothing if it is not there."""

    def load(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def check_kept(self, names: Mapping[str, str]) -> None:
        """Raises what `show` would raise for files that are gone, or in the way. Changes nothing."""

    def names(self) -> list[str]:
        """Of all files in the folder itself; none if there is no folder."""

    def remove(self, name: str) -> None:
        """Does nothing if it is not there."""


def open_folder(place: Location | str) -> Folder:
    """The folder need not exist. Raises InvalidArgument."""
    where = location_of(place) if isinstance(place, str) else place
    if where.path is not None:
        return LocalFolder(where.path)
    return ObjectFolder(where.text, object_store.open_patient(where.text))


class LocalFolder:
    """It is made when something is written."""

    keeps_again = False  # who knows what of a file is there whose sync has failed

    def __init__(self, folder: Path) -> None:
        self.place, self.disk = str(folder), current()
        self._folder, self._is_made = folder, False
        if folder.exists() and not folder.is_dir():
            raise InvalidArgument(f"{folder} is a file; name a folder")

    def check(self) -> None:
        with self._errors("write into"):
            above = next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())
            if not above.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{above} is a file")
            if not os.access(above, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, f"no permission to write into {above}")

    def path(self, name: str) -> str:
        with self._errors("write into"):
            if not self._is_made or not self._folder.is_dir():
                self.disk.make(self._folder)
                self._is_made = True
        return str(self._folder / name)

    def keep(self, name: str) -> None:
        with self._errors("write into"):
            self.disk.sync(self._folder / name)
            self.disk.sync(self._folder)

    def forget(self, name: str) -> None:
        self.remove(name)

    def show(self, names: Mapping[str, str]) -> None:
        with self._errors("write into"):
            for hidden, name in names.items():
                self._rename(self._folder / hidden, self._folder / name)
                failpoints.reached("renamed")
            self.disk.sync(self._folder)

    def move(self, name: str, to: str) -> None:
        with self._errors("write into"), contextlib.suppress(FileNotFoundError):
            self.disk.replace(self._folder / name, self._folder / to)
            failpoints.reached("renamed")
            self.disk.sync(self._folder)

    def load(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InvalidArgument(f"cannot read {self.place}: {error.strerror or error}") from error

    def check_kept(self, names: Mapping[str, str]) -> None:
        for hidden, name in names.items():
            self._check(self._folder / hidden, self._folder / name)

    def _check(self, hidden: Path, path: Path) -> None:
        if hidden.exists() and path.exists():
            raise _foreign(self.place, path.name)
        if not hidden.exists() and not path.exists():  # else it was shown before
            raise _gone(self.place, hidden.name, path.name)

    def _rename(self, hidden: Path, path: Path) -> None:
        self._check(hidden, path)
        with contextlib.suppress(FileNotFoundError):
            self.disk.replace(hidden, path)

    def names(self) -> list[str]:
        with self._errors("read"), contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self._folder))
        return []

    def remove(self, name: str) -> None:
        with self._errors("write into"), contextlib.suppress(FileNotFoundError):
            self.disk.unlink(self._folder / name)

    @contextlib.contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidArgument(f"cannot {verb} {self.place}: {error.strerror or error}") from error


class ObjectFolder:
    """Files are written to a temporary one on this machine first. store: of obstore."""

    keeps_again = True

    def __init__(self, url: str, store: ObjectStore) -> None:
        self.place, self.disk = url.rstrip("/"), Disk()
        self._store, self._obstore = store, current().objects()
        self._prefix = secrets.token_hex(8)

    def check(self) -> None:
        """Only a write could tell."""

    def path(self, name: str) -> str:
        try:
            return str(scratch() / f"{self._prefix}-{name}")
        except OSError as error:
            raise InvalidArgument(f"cannot write files for {self.place} into TMPDIR: {error.strerror}") from error

    def keep(self, name: str) -> None:
        with open(self.path(name), "rb") as file:

            def upload() -> None:
                file.seek(0)
                self._obstore.put(self._store, name, file)

            self._do(upload)
        self.forget(name)

    def forget(self, name: str) -> None:
        Path(self.path(name)).unlink(missing_ok=True)

    def show(self, names: Mapping[str, str]) -> None:
        for hidden, name in names.items():
            self._copy(hidden, name)
            failpoints.reached("renamed")
            self.remove(hidden)

    def move(self, name: str, to: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._do(partial(self._obstore.copy, self._store, name, to))
            failpoints.reached("renamed")
            self.remove(name)

    def load(self, name: str) -> bytes:
        return self._do(lambda: bytes(self._obstore.get(self._store, name).bytes()))

    def check_kept(self, names: Mapping[str, str]) -> None:
        for hidden, name in names.items():
            if not self._has(hidden):
                self._check_shown(hidden, name)

    def _copy(self, hidden: str, name: str) -> None:
        try:
            self._do(partial(self._obstore.copy, self._store, hidden, name))
        except FileNotFoundError:
            self._check_shown(hidden, name)

    def _check_shown(self, hidden: str, name: str) -> None:
        if not self._has(name):
            raise _gone(self.place, hidden, name)

    def _has(self, name: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            self._do(partial(self._obstore.head, self._store, name))
            return True
        return False

    def names(self) -> list[str]:
        listing = self._do(lambda: self._obstore.list_with_delimiter(self._store))
        return sorted(entry["path"] for entry in listing["objects"])

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._do(lambda: self._obstore.delete(self._store, name))

    def _do(self, call: Callable[[], _Result]) -> _Result:
        return object_store.patiently(call, self.place)


def _gone(place: str, hidden: str, name: str) -> InvalidArgument:
    return InvalidArgument(
        f"{place}: {name}, which has rows of the last checkpoint, is gone, and so is {hidden}, its name before: if a "
        "reader has taken it, put an empty file of that name in its place and resume; else bring it back"
    )


def _foreign(place: str, name: str) -> InvalidArgument:
    return InvalidArgument(f"{place}: {name} is there already, from another run; move it away and resume")
