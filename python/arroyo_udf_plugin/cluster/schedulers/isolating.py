"""Pipelines in threads of this process; and in workers those that may be the reason why it dies.

If the process has died twice in a row, nobody knows which of the jobs that ran was the reason. So each of them starts
in a worker of its own, where a crash costs only itself, and counts as its restart.

Guarantees: a worker of a process before is found, and goes on or ends as any worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from ..configuration import Settings
from ..states import Event
from ..task import Report, Task, Tell
from . import protocol
from .embedded import EmbeddedScheduler
from .interface import How
from .process import ProcessScheduler


class IsolatingScheduler:
    """heard: called with what the threads report."""

    def __init__(self, tell: Tell, settings: Settings, heard: Callable[[Report], None] = lambda report: None) -> None:
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
        for each in (self._threads, self._workers):
            each.let_go()

    def close(self) -> None:
        closing = threading.Thread(target=self._workers.close)
        closing.start()
        self._threads.close()
        closing.join()

    def _of(self, job_id: str) -> EmbeddedScheduler | ProcessScheduler:
        return self._workers if job_id in self._isolated else self._threads

    def _hear(self, report: Report) -> None:
        if report.event is Event.READY and self._has_worker(report.job_id):
            self._workers.clear(report.job_id, report.generation)
            return
        self._heard(report)
        self._tell(report)

    def _has_worker(self, job_id: str) -> bool:
        return job_id in self._isolated or any(self._folder.glob(f"{job_id}-*"))
