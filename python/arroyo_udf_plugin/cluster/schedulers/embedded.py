"""Pipelines in threads of this process; and in workers those that may be the reason why it dies.

If the process has died twice in a row, nobody knows which of the jobs that ran was the reason. So each of them starts
in a worker of its own, where a crash costs only itself, and counts as its restart.

Guarantees: `close` waits for the last checkpoints. A worker of a process before is found, and goes on or ends as any
worker.
Assumes: functions are trusted: one that crashes ends the process, and one that blocks leaves its thread behind; its
engine cannot commit any more then, because the next generation has fenced it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...engine.execution.stopping import StopRequest
from ..configuration import Settings
from ..generation import request, run
from ..states import Event
from ..task import NOTHING_RUNS, JobReport, Task, Tell
from . import protocol
from .interface import How
from .process import ProcessScheduler

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
            self._tell(JobReport(job_id, generation, Event.LOST, message=NOTHING_RUNS))
            return
        request(running.stop, "cancel" if how == "kill" else how)
        if how == "kill":
            self._forget_later(running)

    def rescale(self, task: Task) -> None:
        self.stop(task.job_id, task.generation, "save")

    def clear(self, job_id: str, generation: int) -> None:
        with self._lock:
            running = self._running.get(job_id)
            if running is not None and running.task.generation <= generation:
                running.is_clearing = True
        if running is None or running.task.generation > generation:
            self._tell(JobReport(job_id, generation, Event.READY))
            return
        request(running.stop, "cancel")
        self._forget_later(running)

    def take_over(self, task: Task) -> bool:
        return self._find(task.job_id, task.generation) is not None

    def isolate(self, job_ids: Iterable[str]) -> None:
        """Threads of one process cannot be (see `IsolatingScheduler`)."""

    def workers(self) -> Sequence[tuple[str, int]]:
        return ()

    def let_go(self) -> None:
        """What runs here is fenced as soon as the other controller starts it, and may not go on until then."""
        with self._lock:
            running, self._running = self._running, {}
        for job in running.values():
            request(job.stop, "cancel")

    def close(self) -> None:
        with self._lock:
            running = list(self._running.values())
        for job in running:
            request(job.stop, "save")
        patience = max((job.task.drain_time for job in running), default=0.0) + _GIVE_UP
        until = time.monotonic() + patience  # for all of them at once
        for job in running:
            job.thread.join(max(0.0, until - time.monotonic()))

    def _run(self, task: Task, stop: StopRequest) -> None:
        run(task, stop, lambda report: self._hear(task, report))

    def _hear(self, task: Task, report: JobReport) -> None:
        if report.event in (None, Event.STARTED):
            self._tell(report)
        else:
            self._end(task, report)

    def _end(self, task: Task, report: JobReport) -> None:
        with self._lock:
            running = self._running.get(task.job_id)
            if running is None or running.task is not task:
                return
            del self._running[task.job_id]
        self._tell(report)
        if running.is_clearing:
            self._tell(JobReport(task.job_id, task.generation, Event.READY))

    def _forget_later(self, running: _Running) -> None:
        """A function may block its thread for ever."""
        lost = JobReport(
            running.task.job_id, running.task.generation, Event.LOST, message="the job did not end in time"
        )
        timer = threading.Timer(_GIVE_UP, self._end, (running.task, lost))
        timer.daemon = True
        timer.start()

    def _find(self, job_id: str, generation: int) -> _Running | None:
        with self._lock:
            running = self._running.get(job_id)
        return running if running is not None and running.task.generation == generation else None


class IsolatingScheduler:
    """heard: called with what the threads report."""

    def __init__(
        self, tell: Tell, settings: Settings, heard: Callable[[JobReport], None] = lambda report: None
    ) -> None:
        self._tell, self._heard = tell, heard
        self._threads = EmbeddedScheduler(self._hear)
        self._workers = ProcessScheduler(tell, settings)
        self._folder = protocol.folder_of(settings.data.absolute())
        self._isolated: set[str] = set()

    @property
    def refused(self) -> int:
        return self._workers.refused

    def isolate(self, job_ids: Iterable[str]) -> None:
        self._isolated.update(job_ids)

    def start(self, task: Task) -> None:
        self._of(task.job_id).start(task)

    def stop(self, job_id: str, generation: int, how: How) -> None:
        self._of(job_id).stop(job_id, generation, how)

    def rescale(self, task: Task) -> None:
        self.stop(task.job_id, task.generation, "save")

    def clear(self, job_id: str, generation: int) -> None:
        """In threads, then in workers (see `_hear`)."""
        self._threads.clear(job_id, generation)

    def take_over(self, task: Task) -> bool:
        if self._has_worker(task.job_id) and self._workers.take_over(task):
            self._isolated.add(task.job_id)
            return True
        return self._threads.take_over(task)

    def workers(self) -> Sequence[tuple[str, int]]:
        return self._workers.workers()

    def let_go(self) -> None:
        for scheduler in (self._threads, self._workers):
            scheduler.let_go()

    def close(self) -> None:
        closing = threading.Thread(target=self._workers.close)
        closing.start()
        self._threads.close()
        closing.join()

    def _of(self, job_id: str) -> EmbeddedScheduler | ProcessScheduler:
        return self._workers if job_id in self._isolated else self._threads

    def _hear(self, report: JobReport) -> None:
        if report.event is Event.READY and self._has_worker(report.job_id):
            self._workers.clear(report.job_id, report.generation)
            return
        self._heard(report)
        self._tell(report)

    def _has_worker(self, job_id: str) -> bool:
        return job_id in self._isolated or any(self._folder.glob(f"{job_id}-*"))
