"""The steps by which what a process has written becomes durable, or others see it.

    disk = current()                        when a place is opened; all of its threads use this one
    disk.replace(aside, path)

Places, folders, stores and databases take these steps here and nowhere else, so that a test can stop a process before
each of them: `arroyo_udf_plugin.testing` has a disk that does. What they only read, they read as they like.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_Path = str | os.PathLike[str]


class Disk:
    """The disk of this machine. Raises OSError."""

    def unnamed(self, folder: _Path) -> int | None:
        """A descriptor of a new file without a name, which `link` can name; None: this file system has none, or there
        is other trouble, which comes again with `create`."""
        try:
            fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError:
            return None
        if os.path.exists(proc(fd)):
            return fd
        os.close(fd)
        return None

    def create(self, path: _Path) -> int:
        """A descriptor of a new file, or of an emptied one."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)

    def file(self, fd: int) -> io.FileIO:
        """To write what is open."""
        return io.FileIO(fd, "w")

    def fsync(self, fd: int) -> None:
        """Makes an open file's bytes durable."""
        os.fsync(fd)

    def sync(self, path: _Path) -> None:
        """Makes a file's bytes or a folder's names durable."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def make(self, folder: Path) -> None:
        """Makes the folder and those above it, durably. Of those that are there, a killed process may have made the
        last one, and not durably."""
        if folder.is_dir():
            with contextlib.suppress(PermissionError):  # then nobody like us has made it
                self.sync(folder.parent)
        else:
            self.make(folder.parent)
            self.mkdir(folder)
            self.sync(folder.parent)

    def mkdir(self, folder: Path) -> None:
        """The folder may be there already."""
        folder.mkdir(exist_ok=True)

    def link(self, fd: int, path: _Path) -> None:
        """Names an open file. Raises FileExistsError."""
        root = os.open("/", os.O_PATH | os.O_CLOEXEC)  # makes `link` follow the link in /proc
        try:
            os.link(proc(fd), path, src_dir_fd=root, follow_symlinks=True)
        finally:
            os.close(root)

    def replace(self, path: _Path, to: _Path) -> None:
        """Renames; what has the new name is gone."""
        os.replace(path, to)

    def unlink(self, path: _Path) -> None:
        os.unlink(path)

    def commit(self, connection: Any) -> None:
        """Of a database."""
        connection.commit()

    def objects(self) -> Any:
        """The module `obstore`."""
        import obstore

        return obstore


_current: contextvars.ContextVar[Disk] = contextvars.ContextVar("disk", default=Disk())  # noqa: B039 (it has no state)


def current() -> Disk:
    """The one that this context uses. A thread has a context of its own, so ask when a place is opened."""
    return _current.get()


@contextlib.contextmanager
def using(disk: Disk) -> Iterator[None]:
    """What is opened in the block uses this one."""
    token = _current.set(disk)
    try:
        yield
    finally:
        _current.reset(token)


def proc(fd: int) -> str:
    return f"/proc/self/fd/{fd}"
