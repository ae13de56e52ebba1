"""A disk that forgets: what was not made durable may be lost, torn or kept when the power fails.

    disk = SimulatedDisk(folder)                  a real folder, and what of it is durable
    engine = disk.process(stop_at=3)              takes three steps, and stops before the fourth
    with using(engine): ...                       whatever is opened here; raises Stopped
    disk.lose_power(random)                       the folder is as it might be after that

A step is an operation of `connectors.disk.Disk`: a write, a fsync, a rename, a commit, a request that changes an object
store. A process can be stopped before each, or held there while another one goes on.

Guarantees: a stopped process changes nothing any more, whatever its threads still do. What POSIX calls durable stays: a
file's bytes after a fsync of the file, a folder's names after a fsync of the folder. Anything else may be lost, each
change by itself; a rename happens as a whole.
Assumes: nobody else writes in the folder while a process does; what is written past `Disk` (a SQLite database) is
durable at once. Folders are not renamed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from ..engine.connectors import disk
from ..engine.connectors.disk import Disk

OF_OBJECTS = ("put", "conditional put", "copy", "delete")
"""The operations of object stores."""

_Result = TypeVar("_Result")
_HERE = (__file__, disk.__file__)
_Path = str | os.PathLike[str]


class Crashed(BaseException):
    """The process ends here, as by SIGKILL."""


@dataclasses.dataclass(frozen=True, order=True)
class Step:
    """operation: such as "fsync". caller: file and line. number: how often this place has been reached before."""

    operation: str
    caller: str
    number: int


@dataclasses.dataclass
class _File:
    """durable: its bytes that survive; None: nothing ever did. last: its bytes when its last name was removed."""

    durable: bytes | None = None
    last: bytes | None = None


_Entry = _File | None  # None: a folder


@dataclasses.dataclass(frozen=True)
class _Change:
    """Of a folder's names, in one step. gone: a name that it removes. name, entry: what it adds."""

    gone: str | None = None
    name: str | None = None
    entry: _Entry = None

    def apply(self, names: dict[str, _Entry]) -> None:
        if self.gone is not None:
            if self.gone not in names:
                return  # what it builds on was lost
            names.pop(self.gone)
        if self.name is not None:
            names[self.name] = self.entry


class SimulatedDisk:
    """folder: a real one. What is there already is durable."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._lock = threading.RLock()
        self._files: dict[int, _File] = {}  # by their inodes
        self._names: dict[str, dict[str, _Entry]] = {}  # durable ones of each folder, as far as a step has changed them
        self._changes: dict[str, list[_Change]] = {}  # of these folders, not durable yet

    def process(
        self,
        stop_at: int | Step | None = None,
        after: bool = False,
        hold: Callable[[], None] | None = None,
        error: Exception | None = None,
    ) -> ProcessDisk:
        """The disk as one process has it. stop_at: the step before which it stops, or after which; a number counts from
        0. hold: called there instead of a stop, in the thread that takes the step. error: raised there instead."""
        return ProcessDisk(self, stop_at, after, hold, error)

    # ---- What steps do ----

    def wrote(self, fd: int) -> None:
        """A new file was begun."""
        self._files[os.fstat(fd).st_ino] = _File()

    def _file(self, path: _Path) -> _File:
        status = os.stat(path)
        if status.st_ino not in self._files:  # it was there before
            self._files[status.st_ino] = _File(Path(path).read_bytes())
        return self._files[status.st_ino]

    def made_durable(self, fd: int) -> None:
        path = f"/proc/self/fd/{fd}"
        if os.path.isdir(path):
            folder = os.path.realpath(path)
            if not f"{folder}/".startswith(f"{self.folder}/"):
                return  # of somebody else
            names = self._known(folder)
            for change in self._changes.pop(folder, []):
                change.apply(names)
        else:
            self._file(path).durable = Path(path).read_bytes()

    def look(self, path: _Path) -> None:
        """A name there is about to change."""
        self._known(_split(path)[0])

    def _known(self, folder: str) -> dict[str, _Entry]:
        if folder not in self._names:
            self._names[folder] = {child.name: None for child in Path(folder).iterdir() if child.is_dir()}
        return self._names[folder]

    def _change(self, folder: str, change: _Change) -> None:
        self._known(folder)
        self._changes.setdefault(folder, []).append(change)

    def named(self, path: _Path) -> None:
        """There is a new name for a file or a folder."""
        folder, name = _split(path)
        self._change(folder, _Change(name=name, entry=None if os.path.isdir(path) else self._file(path)))

    def made(self, folder: Path) -> None:
        """A new folder, which is lost whole."""
        self._known(os.path.realpath(folder))
        self.named(folder)

    def _note_existing(self, path: _Path) -> None:
        """What was there before this disk was."""
        folder, name = _split(path)
        touched = any(name in (change.name, change.gone) for change in self._changes.get(folder, []))
        if os.path.exists(path) and name not in self._known(folder) and not touched:
            self._known(folder)[name] = self._file(path)

    def leaving(self, path: _Path) -> _File | None:
        """A file is about to lose a name. None: there is none."""
        if not os.path.exists(path):
            return None
        self._note_existing(path)
        file = self._file(path)
        file.last = Path(path).read_bytes()
        return file

    def unlinked(self, path: _Path) -> None:
        folder, name = _split(path)
        self._change(folder, _Change(gone=name))

    def renamed(self, path: _Path, to: _Path, file: _File) -> None:
        (folder, name), (other, new) = _split(path), _split(to)
        assert folder == other, "a rename to another folder is not simulated"
        self._change(folder, _Change(gone=name, name=new, entry=file))

    # ---- Faults ----

    def lose_power(self, chance: random.Random | None = None) -> None:
        """The folder becomes what is left. chance: what is not durable may be left, too, each change by itself, and
        files may be torn; None: nothing of it is left."""
        with self._lock:
            for folder, names in self._names.items():
                for change in self._changes.get(folder, []):
                    if chance is not None and chance.random() < 0.5:
                        change.apply(names)
            self._changes.clear()
            bytes_ = {path: self._left(path, file, chance) for path, file in self._all_files()}
            for folder in sorted(self._names):
                self._restore(Path(folder), bytes_)
            self._files = {os.stat(path).st_ino: _File(data) for path, data in bytes_.items()}
            for folder, names in self._names.items():
                for name, entry in names.items():
                    if entry is not None:
                        names[name] = self._file(os.path.join(folder, name))

    def _all_files(self) -> Iterator[tuple[str, _File]]:
        lost: set[str] = set()
        for folder in sorted(self._names):
            parent, own = _split(folder)
            if parent in self._names and own not in self._names[parent]:
                lost.add(folder)
            if any(f"{folder}/".startswith(f"{lost_folder}/") for lost_folder in lost):
                continue
            for name, entry in self._names[folder].items():
                if entry is not None:
                    yield os.path.join(folder, name), entry

    def _left(self, path: str, file: _File, chance: random.Random | None) -> bytes:
        durable = file.durable or b""
        if chance is None:
            return durable
        inode = {id(entry): number for number, entry in self._files.items()}.get(id(file))
        last = file.last
        if os.path.exists(path) and os.stat(path).st_ino == inode:
            last = Path(path).read_bytes()
        if last is None or last == durable:
            return durable
        left = chance.choice(("durable", "whole", "torn", "zeros"))
        if left == "torn":
            return last[: chance.randrange(len(last) + 1)]
        return {"durable": durable, "whole": last, "zeros": bytes(len(last))}[left]

    def _restore(self, folder: Path, bytes_: dict[str, bytes]) -> None:
        names = self._names[str(folder)]
        touched = set(names)
        if folder.is_dir():
            touched |= {child.name for child in folder.iterdir() if self._is_ours(child)}
        for name in touched:
            path = folder / name
            if name not in names:
                if path.is_dir():
                    shutil.rmtree(path)
                    for lost in [
                        known_folder
                        for known_folder in self._names
                        if known_folder == str(path) or known_folder.startswith(f"{path}/")
                    ]:
                        self._names[lost].clear()
                else:
                    path.unlink()
            elif names[name] is None:
                path.mkdir(exist_ok=True)
            elif str(path) in bytes_:
                data = bytes_[str(path)]
                if not path.exists() or path.read_bytes() != data:
                    path.unlink(missing_ok=True)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)

    def _is_ours(self, path: Path) -> bool:
        """Whether a step has made it."""
        return str(path) in self._names if path.is_dir() else path.stat().st_ino in self._files

    def settle(self) -> None:
        """All that is there now is durable: somebody else has changed files."""
        with self._lock:
            self._files.clear()
            self._names.clear()
            self._changes.clear()


class ProcessDisk(Disk):
    """See `SimulatedDisk.process`. steps: those that were taken. reached: it stopped, or was held."""

    def __init__(
        self,
        simulated: SimulatedDisk,
        stop_at: int | Step | None,
        after: bool,
        hold: Callable[[], None] | None,
        error: Exception | None,
    ) -> None:
        self._disk, self._stop_at, self._after, self._hold, self._error = simulated, stop_at, after, hold, error
        self.steps: list[Step] = []
        self.reached: Step | None = None
        self.is_stopped = False
        self._numbers: dict[tuple[str, str], int] = {}

    def stop(self) -> None:
        """From now on it changes nothing."""
        with self._disk._lock:
            self.is_stopped = True

    def _step(self, operation: str, act: Callable[[], _Result]) -> _Result:
        with self._disk._lock:
            if self.is_stopped:
                raise Crashed
            caller = _caller()
            number = self._numbers[operation, caller] = self._numbers.get((operation, caller), -1) + 1
            step = Step(operation, caller, number)
            is_here = self.reached is None and self._stop_at in (step, len(self.steps))
            self.steps.append(step)
            if is_here and not self._after:
                self._stop(step)
        if is_here and not self._after and self._hold is not None:
            self._hold()
        with self._disk._lock:
            if self.is_stopped:
                raise Crashed
            result = act()
            if is_here and self._after:
                self._stop(step)
        if is_here and self._after and self._hold is not None:
            self._hold()
        return result

    def _stop(self, step: Step) -> None:
        self.reached = step
        if self._error is not None:
            raise self._error
        if self._hold is None:
            self.is_stopped = True
            raise Crashed

    # ---- The steps ----

    def unnamed(self, folder: _Path) -> int | None:
        if self.is_stopped:
            raise Crashed
        fd = super().unnamed(folder)
        if fd is not None:
            with self._disk._lock:
                self._disk.wrote(fd)
        return fd

    def create(self, path: _Path) -> int:
        def act() -> int:
            self._disk.look(path)
            fd = super(ProcessDisk, self).create(path)
            self._disk.wrote(fd)
            self._disk.named(path)
            return fd

        return self._step("create", act)

    def file(self, fd: int) -> io.FileIO:
        return _Written(self, fd)

    def write(self, write: Callable[[], int], size: int) -> int:
        if self.is_stopped:
            return size  # a file that is closed later has nothing to complain about
        return self._step("write", write)

    def fsync(self, fd: int) -> None:
        self._step("fsync", lambda: self._disk.made_durable(fd))

    def sync(self, path: _Path) -> None:
        def act() -> None:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._disk.made_durable(fd)
            finally:
                os.close(fd)

        self._step("fsync", act)

    def mkdir(self, folder: Path) -> None:
        def act() -> None:
            self._disk.look(folder)
            if not folder.is_dir():
                super(ProcessDisk, self).mkdir(folder)
                self._disk.made(folder)

        self._step("mkdir", act)

    def link(self, fd: int, path: _Path) -> None:
        def act() -> None:
            self._disk.look(path)
            super(ProcessDisk, self).link(fd, path)
            self._disk.named(path)

        self._step("link", act)

    def replace(self, path: _Path, to: _Path) -> None:
        def act() -> None:
            file = self._disk.leaving(path)
            self._disk.leaving(to)
            super(ProcessDisk, self).replace(path, to)
            if file is not None:
                self._disk.renamed(path, to, file)

        self._step("rename", act)

    def unlink(self, path: _Path) -> None:
        def act() -> None:
            self._disk.leaving(path)
            super(ProcessDisk, self).unlink(path)
            self._disk.unlinked(path)

        self._step("unlink", act)

    def commit(self, connection: Any) -> None:
        self._step("commit", lambda: super(ProcessDisk, self).commit(connection))

    def objects(self) -> Any:
        """The module `obstore`, whose changing requests are steps."""
        obstore = super().objects()

        def step(name: str, kind: str) -> Callable[..., Any]:
            request = getattr(obstore, name)
            return lambda *args, **named: self._step(
                "conditional put" if named.get("mode") == "create" else kind, lambda: request(*args, **named)
            )

        reads = {name: getattr(obstore, name) for name in ("get", "head", "list", "list_with_delimiter", "exceptions")}
        changes = {name: step(name, name) for name in ("put", "copy", "delete")}
        return SimpleNamespace(**reads, **changes)


class _Written(io.FileIO):
    """A file whose writes are steps."""

    def __init__(self, process: ProcessDisk, fd: int) -> None:
        super().__init__(fd, "w")
        self._process = process

    def write(self, data: Any) -> int:
        write = super().write
        return self._process.write(lambda: write(data), memoryview(data).nbytes)


def _split(path: _Path) -> tuple[str, str]:
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.realpath(folder), name


def _caller() -> str:
    """The file and line that take a step."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename in _HERE:
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path(__file__).parents[1])
    return f"{path}:{frame.f_lineno}"
