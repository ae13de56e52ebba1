"""Pipelines in threads of this process.

Guarantees: `close` waits for the last checkpoints.
Assumes: functions are trusted: one that crashes ends the process, and one that blocks leaves its thread behind; its
engine cannot commit any more then, because the next generation has fenced it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...engine.stopping import StopRequest
from ..states import Event
from ..task import NOTHING_RUNS, Report, Task, Tell, request, run
from .interface import How

_GIVE_UP = 5.0
"""Seconds in which a killed generation must end."""


@dataclass
class _Running:
    task: Task
    stop: StopRequest
    thread: threading.Thread
    is_clearing: bool = False


class EmbeddedScheduler:
    refused = 0

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}

    def start(self, task: Task) -> None:
        stop = StopRequest(task.drain_time)
        thread = threading.Thread(target=self._run, args=(task, stop), daemon=True, name=f"arroyo-udf-{task.job_id}")
        with self._lock:
            self._running[task.job_id] = _Running(task, stop, thread)
        thread.start()

    def stop(self, job_id: str, generation: int, how: How) -> None:
        running = self._find(job_id, generation)
        if running is None:
            self._tell(Report(job_id, generation, Event.LOST, message=NOTHING_RUNS))
            return
        request(running.stop, "cancel" if how == "kill" else how)
        if how == "kill":
            self._forget_later(running)

    def clear(self, job_id: str, generation: int) -> None:
        with self._lock:
            running = self._running.get(job_id)
            if running is not None and running.task.generation <= generation:
                running.is_clearing = True
        if running is None or running.task.generation > generation:
            self._tell(Report(job_id, generation, Event.READY))
            return
        request(running.stop, "cancel")
        self._forget_later(running)

    def take_over(self, task: Task) -> bool:
        return self._find(task.job_id, task.generation) is not None

    def isolate(self, job_ids: Iterable[str]) -> None:
        """Threads of one process cannot be (see `isolating.py`)."""

    def workers(self) -> Sequence[tuple[str, int]]:
        return ()

    def let_go(self) -> None:
        """What runs here is fenced as soon as the other controller starts it, and may not go on until then."""
        with self._lock:
            running, self._running = self._running, {}
        for each in running.values():
            request(each.stop, "cancel")

    def close(self) -> None:
        with self._lock:
            running = list(self._running.values())
        for each in running:
            request(each.stop, "save")
        patience = max((each.task.drain_time for each in running), default=0.0) + _GIVE_UP
        until = time.monotonic() + patience  # for all of them at once
        for each in running:
            each.thread.join(max(0.0, until - time.monotonic()))

    def _run(self, task: Task, stop: StopRequest) -> None:
        run(task, stop, lambda report: self._hear(task, report))

    def _hear(self, task: Task, report: Report) -> None:
        if report.event in (None, Event.STARTED):
            self._tell(report)
        else:
            self._end(task, report)

    def _end(self, task: Task, report: Report) -> None:
        with self._lock:
            running = self._running.get(task.job_id)
            if running is None or running.task is not task:
                return
            del self._running[task.job_id]
        self._tell(report)
        if running.is_clearing:
            self._tell(Report(task.job_id, task.generation, Event.READY))

    def _forget_later(self, running: _Running) -> None:
        """A function may block its thread for ever."""
        lost = Report(running.task.job_id, running.task.generation, Event.LOST, message="the job did not end in time")
        timer = threading.Timer(_GIVE_UP, self._end, (running.task, lost))
        timer.daemon = True
        timer.start()

    def _find(self, job_id: str, generation: int) -> _Running | None:
        with self._lock:
            running = self._running.get(job_id)
        return running if running is not None and running.task.generation == generation else None
