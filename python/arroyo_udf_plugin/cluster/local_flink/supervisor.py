"""Runs the programs of a session cluster: the JobManager, its TaskManagers, ZooKeeper where jobs outlive a JobManager.

Guarantees: a program that ends is started again, and what it has left (Python workers) is killed first. When `run`
returns, by a signal or an error, all of them have ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import Unreachable
from .distribution import Distribution
from .session_conf import LOOPBACK, Ports, SessionOptions
from .session_folder import SessionFolder

_LOOK = 0.1  # seconds between two looks at the programs
_START = 120.0  # seconds until the cluster is ready
_END = 5.0  # seconds for programs that are asked to end
_TAIL = 20  # lines of a log that an error shows
_LIVED = 5.0  # seconds after which a program that ends is started again at once


class _Program:
    """In a session of its own: Ctrl-C reaches the supervisor alone."""

    def __init__(self, role: str, argv: list[str], folder: SessionFolder) -> None:
        self.role, self._argv, self._folder = role, argv, folder
        self.start()

    def start(self) -> None:
        self.started = time.monotonic()
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._folder.environment(self.role),
                start_new_session=True,
            )

    @property
    def log(self) -> Path:
        return self._folder.logs / f"{self.role}.out"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """As long as nobody has waited for it, its group is its own."""
        if self._process.returncode is not None:
            return True
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        self.end(signal.SIGKILL)
        return True

    def end(self, number: signal.Signals) -> None:
        """It, and all of its group. SIGKILL: waits for it."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            if number == signal.SIGKILL:
                self._process.wait()

    def last_lines(self) -> str:
        """Of its newest log."""
        logs = [self.log, *self._folder.logs.glob(f"flink-{self.role}-*.log")]
        written = [log for log in logs if log.exists() and log.stat().st_size]
        if not written:
            return f"nothing in {self._folder.logs}"
        newest = max(written, key=lambda log: log.stat().st_mtime)
        return f"{newest}:\n" + "\n".join(newest.read_text(errors="replace").splitlines()[-_TAIL:])


class Supervisor:
    """tell: a line for people."""

    def __init__(
        self,
        folder: SessionFolder,
        flink: Distribution,
        ports: Ports,
        options: SessionOptions,
        tell: Callable[[str], None],
    ) -> None:
        self._folder, self._flink, self._options, self._tell = folder, flink, options, tell
        self.url = f"http://{LOOPBACK}:{ports.rest}"
        self._programs: list[_Program] = []

    def run(self, stopped: queue.SimpleQueue[None]) -> None:
        """Until `stopped` has an item. Raises Unreachable: the cluster does not start."""
        patience = 0.0
        try:
            if self._start(stopped):
                self._supervise(stopped)
            patience = _END
        finally:
            self._end(patience)

    def _start(self, stopped: queue.SimpleQueue[None]) -> bool:
        """Returns whether the cluster is ready. False: it is to stop."""
        late = time.monotonic() + _START
        wanted = self._options.taskmanagers * self._options.slots
        if self._options.is_available:
            self._program("zookeeper", "zookeeper.sh", "start-foreground", "1")
        self._program("jobmanager", "jobmanager.sh", "start-foreground")
        for number in range(self._options.taskmanagers):
            self._program(f"taskmanager-{number}", "taskmanager.sh", "start-foreground")
        while self._slots() < wanted:
            if _has_item(stopped):
                return False
            for program in self._programs:
                if program.has_ended or time.monotonic() > late:
                    raise Unreachable(f"the cluster does not start; {program.last_lines()}", "Flink")
        self._note()
        self._tell(f"{self.url}, {wanted} {'slot' if wanted == 1 else 'slots'}, folder {self._folder.path}")
        return True

    def _supervise(self, stopped: queue.SimpleQueue[None]) -> None:
        while not _has_item(stopped):
            for program in self._programs:
                if program.has_ended and self._may_start(program):
                    program.start()
                    self._note()
                    self._tell(f"{program.role} had ended; started again")

    def _may_start(self, program: _Program) -> bool:
        return time.monotonic() - program.started > _LIVED

    def _program(self, role: str, script: str, *arguments: str) -> None:
        argv = [str(self._flink.home / "bin" / script), *arguments]
        self._programs.append(_Program(role, argv, self._folder))

    def _slots(self) -> int:
        answer = _asked(f"{self.url}/overview")
        slots = answer.get("slots-total")
        return slots if isinstance(slots, int) else 0

    def _note(self) -> None:
        self._folder.tell(
            {
                "url": self.url,
                "python_jar": str(self._flink.python_jar),
                "runner": str(self._flink.runner),
                "python": str(self._flink.python),
                "pids": {"supervisor": os.getpid()} | {program.role: program.pid for program in self._programs},
            }
        )

    def _end(self, patience: float) -> None:
        late = time.monotonic() + patience
        # TaskManagers first: they tell the JobManager. ZooKeeper last.
        for program in reversed(self._programs):
            program.end(signal.SIGTERM)
        while time.monotonic() < late and not all(program.has_ended for program in self._programs):
            time.sleep(_LOOK)
        for program in self._programs:
            program.end(signal.SIGKILL)
        self._folder.sweep()


def _has_item(stopped: queue.SimpleQueue[None]) -> bool:
    try:
        stopped.get(timeout=_LOOK)
    except queue.Empty:
        return False
    return True


def _asked(url: str) -> Mapping[str, Any]:
    """{}: there is no answer yet, or it is not Flink's."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as response:
            answer = json.load(response)
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
