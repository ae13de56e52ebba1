"""Processes, without mistaking one for another: an id is another process's as soon as the first one has gone.

    started = started_at(pid)               None: there is no such process
    kill(pid, started)                      this one, or nobody
    kill_family("job_1-3@2049:77", 4711)    what a worker has left: by its marker, or its session

Guarantees: a signal reaches a process only if it is the one that was looked at; a worker's children are found although
they have left its process group and session, as daemons do, unless they have also given up its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MARKER = "ARROYO_UDF_WORKER"
"""A variable of a worker, which its children inherit: see `worker_files.marker_of`."""

_SWEEPS = 100  # of a family that goes on to fork


class _Seen(NamedTuple):
    pid: int
    started: int
    group: int
    session: int


def started_at(pid: int) -> int | None:
    """In ticks since the machine has started. None: there is no such process, or it has ended and nobody has asked."""
    found = _look(pid)
    return None if found is None else found.started


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
        found = list(_family(f"{MARKER}={marker}".encode(), leader))
        if not found:
            return True
        for each in found:
            kill(each.pid, each.started)
        time.sleep(0.01)
    return False


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
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return []


def _look(pid: int) -> _Seen | None:
    try:
        state, _, group, session, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else _Seen(pid, int(others[15]), int(group), int(session))
