"""Processes that become workers. A spare one waits for the next generation, with everything imported.

    spawned = spawner.take({}, output)       the spare process, or a new one
    spawned.assign(message, output, lock)    it runs this generation now
    spawner.prepare()                        there is a spare one from now on

A worker gets what it is to run by its standard input (see `protocol.py`). So the half second in which Python imports
an engine is over before a job starts, and before one starts again whose worker was killed.

Guarantees: there is at most one spare process. It holds no lock of a worker and runs no code of users. It ends when its
controller ends, however. A generation with environment variables of its own gets a new process, because some of them
matter only at a start (LD_PRELOAD, PYTHONPATH).
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from ..configuration import PREFIX
from . import protocol, worker_files


@dataclass(frozen=True)
class Spawned:
    """A process without a generation."""

    process: subprocess.Popen[bytes]
    channel: socket.socket

    def assign(self, message: Mapping[str, Any], output: BinaryIO, lock: int) -> None:
        """If the process has ended, whoever watches it notices."""
        with self.channel, contextlib.suppress(OSError):
            protocol.assign(self.channel, message, output.fileno(), lock)

    def end(self) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()


class Spawner:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spare: Spawned | None = None
        self._is_closed = False

    def take(self, environment: Mapping[str, str], output: BinaryIO) -> Spawned:
        """environment: variables of the generation. output: of a process that ends before it has its generation.

        Raises OSError, ValueError: no process can be made.
        """
        spare = None if environment else self._taken()
        if spare is not None and spare.process.poll() is not None:
            spare.end()
            spare = None
        return spare or _spawn(environment, output)

    def prepare(self) -> None:
        """Raises OSError."""
        with self._lock:
            if self._spare is None and not self._is_closed:
                self._spare = _spawn({}, None)

    def release(self) -> None:
        """There is no spare process until the next `prepare`."""
        spare = self._taken()
        if spare is not None:
            spare.end()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        self.release()

    def _taken(self) -> Spawned | None:
        with self._lock:
            spare, self._spare = self._spare, None
        return spare


def _spawn(environment: Mapping[str, str], output: BinaryIO | None) -> Spawned:
    own, other = socket.socketpair()
    try:
        with other:
            process = subprocess.Popen(
                [sys.executable, "-m", "arroyo_udf_plugin.cli", "worker"],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL if output is None else output,
                stderr=subprocess.STDOUT,
                env={**inherited(), **environment, worker_files.MARKER: worker_files.UNMARKED},
                start_new_session=True,
            )
    except BaseException:
        own.close()
        raise
    return Spawned(process, own)


def inherited() -> dict[str, str]:
    """The environment without the settings of the cluster: functions of users would see its token."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
