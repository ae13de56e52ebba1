"""How a worker is found again: by a file that it keeps locked as long as it lives.

    workers/job_4fGh7Kx9Qz-3        of generation 3; its process id is in it
    workers/job_4fGh7Kx9Qz-3.sock   its metrics (see `worker_port.py`)

Guarantees: whether a worker lives is a fact about its lock, not about what a controller remembers. The files of a
worker that has ended are removed by whoever finds them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"(.+)-(\d+)")
_SOCKET = ".sock"


@dataclass(frozen=True)
class Living:
    job_id: str
    generation: int
    pid: int

    def kill(self) -> None:
        """With its children: it leads a process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def name_of(job_id: str, generation: int) -> str:
    return f"{job_id}-{generation}"


def socket_name(job_id: str, generation: int) -> str:
    return name_of(job_id, generation) + _SOCKET


def hold(folder: Path, job_id: str, generation: int) -> int:
    """Of this process, until it ends. Returns the descriptor, which must stay open."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(folder / name_of(job_id, generation), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.ftruncate(file, 0)
    os.pwrite(file, str(os.getpid()).encode(), 0)
    return file


def living(folder: Path, job_id: str) -> Iterator[Living]:
    """The workers of a job that live."""
    for path in sorted(folder.glob(f"{job_id}-*")):
        found = _NAME.fullmatch(path.name)
        if found is None or found[1] != job_id:
            continue
        pid = _holder(path)
        if pid is not None:
            yield Living(job_id, int(found[2]), pid)


def _holder(path: Path) -> int | None:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(file, 20, 0)
        return int(text) if text else None
    else:
        path.with_name(path.name + _SOCKET).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(file)
