"""How a worker is found again, and ended: by a file that is locked as long as it lives.

    workers/job_4fGh7Kx9Qz-3        of generation 3; its process id is in it, and when that process has started
    workers/job_4fGh7Kx9Qz-3.sock   its metrics (see `worker.py`)

    started = started_at(pid)               None: there is no such process
    kill(pid, started)                      this one, or nobody
    kill_family("job_1-3@2049:77", 4711)    what a worker has left: by its marker, or its session

The controller takes the lock, and the worker inherits it: so there is no moment at which a worker lives and is not
found.

A function may leave processes behind, which hold the lock although the worker has ended. They are no worker: whoever
looks for workers sees by the start of the process that it is another one or none, and they are killed.

Guarantees: whether a worker lives is a fact about its lock and its process, not about what a controller remembers. The
files of a worker that has ended are removed by whoever finds them. A signal reaches a process only if it is the one
that was looked at, for an id is another process's as soon as the first one has gone; a worker's children are found
although they have left its process group and session, as daemons do, unless they have also given up its environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"(.+)-(\d+)")
_PATIENCE = 30.0  # seconds for a worker whose controller was killed as it started it: soon it has an id, or has ended
_SOCKET = ".sock"
_SIGNED = 40  # bytes


@dataclass(frozen=True)
class Living:
    """started: see `processes.started_at`."""

    job_id: str
    generation: int
    pid: int
    started: int = field(compare=False)

    def kill(self) -> None:
        """Its children are ended with it by whoever notices that it has ended (see `end_family`)."""
        kill(self.pid, self.started)


def name_of(job_id: str, generation: int) -> str:
    return f"{job_id}-{generation}"


def socket_name(job_id: str, generation: int) -> str:
    return name_of(job_id, generation) + _SOCKET


def claim(folder: Path, job_id: str, generation: int) -> int:
    """Returns a descriptor with the lock: for the worker, which inherits it and keeps it open. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / name_of(job_id, generation)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(file), path.stat()):
                os.pwrite(file, _signature(""), 0)  # room on the disk, before anything runs
                return file
        except FileNotFoundError:  # whoever looks for workers was faster, and has removed it
            pass
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def sign(file: int, pid: int) -> None:
    """The process that has inherited the lock. Its controller signs, and the process itself, whoever is first."""
    started = started_at(pid)
    if started is not None:
        os.pwrite(file, _signature(f"{pid} {started}"), 0)


def _signature(process: str) -> bytes:
    return f"{process:<{_SIGNED}}".encode()


def marker_of(folder: Path, job_id: str, generation: int) -> str:
    """Of a worker's processes: the same by whatever path one comes to the folder."""
    status = folder.stat()
    return f"{name_of(job_id, generation)}@{status.st_dev}:{status.st_ino}"


def mark(marker: str) -> None:
    """This process, which was started with UNMARKED, and each child that it will have.

    The system shows the environment with which a process was started, and the same for children that only fork. So the
    marker is written into that memory.
    """
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place, text = libc.getenv(MARKER.encode()), marker.ljust(len(UNMARKED)).encode()
    if place is not None and os.environ.get(MARKER) == UNMARKED and len(text) == len(UNMARKED):
        ctypes.memmove(place, text, len(text))
    os.environ[MARKER] = marker


def end_family(folder: Path, job_id: str, generation: int, pid: int | None) -> None:
    """Of a worker that has ended: what it has left behind."""
    with contextlib.suppress(FileNotFoundError):
        kill_family(marker_of(folder, job_id, generation), pid)


def generation_of(name: str) -> tuple[str, int] | None:
    """The job and the generation of a file. None: it is of something else."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def remove_ended(folder: Path, name: str) -> None:
    """The files of a worker, unless it lives. Does not wait."""
    path = folder / name
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        _socket_of(path).unlink(missing_ok=True)
        return
    try:
        if not _has_ended(path, file) and (worker := generation_of(name)) is not None:
            process = _signed(file)
            if process is not None and started_at(process[0]) != process[1]:
                end_family(folder, *worker, process[0])
                _has_ended(path, file)
    finally:
        os.close(file)


def living(folder: Path, job_id: str) -> Iterator[Living]:
    """The workers of a job that live."""
    for path in sorted(folder.glob(f"{job_id}-*")):
        worker = generation_of(path.name)
        if worker is None or worker[0] != job_id:
            continue
        process = _holder(path)
        if process is not None:
            yield Living(job_id, worker[1], *process)


def _holder(path: Path) -> tuple[int, int] | None:
    """The worker's process, and when it has started. None: it has ended, even if what it has left holds the lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        patience = time.monotonic() + _PATIENCE
        while not _has_ended(path, file) and time.monotonic() < patience:
            process = _signed(file)
            if process is not None:
                return process if started_at(process[0]) == process[1] else None
            time.sleep(0.01)
        return None
    finally:
        os.close(file)


def _signed(file: int) -> tuple[int, int] | None:
    pid, *started = os.pread(file, _SIGNED, 0).split() or [b""]
    if not pid:
        return None
    if started:
        return int(pid), int(started[0])
    return int(pid), started_at(int(pid)) or -1  # signed by a program before this one


def _has_ended(path: Path, file: int) -> bool:
    """Whether nobody holds the lock of a worker; then its files are gone."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    _socket_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    return True


def _socket_of(path: Path) -> Path:
    return path.with_name(path.name + _SOCKET)


MARKER = "ARROYO_UDF_WORKER"
"""A variable of a worker, which its children inherit: see `marker_of`."""
UNMARKED = " " * 128
"""Its value in a process that has no generation yet: room for a marker."""

_SWEEPS = 100  # of a family that goes on to fork


class _Seen(NamedTuple):
    pid: int
    started: int
    group: int
    session: int


def started_at(pid: int) -> int | None:
    """In ticks since the machine has started. None: there is no such process, or it has ended and nobody has asked."""
    process = _look(pid)
    return None if process is None else process.started


def kill(pid: int, started: int) -> None:
    """Does nothing if that process is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        process = os.pidfd_open(pid)
        try:
            if started_at(pid) == started:
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def kill_family(marker: str, leader: int | None) -> bool:
    """Those that have the marker, or are in the session or group that the worker has led. Returns whether none is left;
    what this user may not kill stays."""
    for _ in range(_SWEEPS):
        processes = list(_family(f"{MARKER}={marker}".encode(), leader))
        if not processes:
            return True
        for process in processes:
            kill(process.pid, process.started)
        time.sleep(0.01)
    return False


def has_family(marker: str) -> bool:
    """Whether a process has the marker."""
    return any(_family(f"{MARKER}={marker}".encode(), None))


def _family(mark: bytes, leader: int | None) -> Iterator[_Seen]:
    # As long as somebody is in a session or group, no new process gets its id. So if one has it, nobody was left there.
    if leader is not None and started_at(leader) is not None:
        leader = None
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        seen = _look(int(entry.name))
        if seen is not None and (leader in (seen.session, seen.group) or mark in _environment(seen.pid)):
            yield seen


def _environment(pid: int) -> list[bytes]:
    try:
        return [variable.rstrip() for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
    except OSError:  # it has ended, or is another user's
        return []


def _look(pid: int) -> _Seen | None:
    try:
        state, _, group, session, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else _Seen(pid, int(others[15]), int(group), int(session))
