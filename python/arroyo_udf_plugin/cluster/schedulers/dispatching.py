"""The schedulers of a controller: one for jobs that run on this machine, and others by their names.

    schedulers = Schedulers(ProcessScheduler(...), {"flink": FlinkScheduler(...)})
    schedulers.of("flink").start(task)

Guarantees: a job whose scheduler is not configured does not start, and says what to set.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from ..states import Event
from ..task import LOCAL, NOTHING_RUNS, JobReport, Task, Tell
from .interface import How, Scheduler


class Schedulers:
    def __init__(self, tell: Tell, local: Scheduler, elsewhere: Mapping[str, Scheduler]) -> None:
        self._tell, self._all = tell, {LOCAL: local, **elsewhere}

    def of(self, name: str) -> Scheduler:
        return self._all.get(name) or _NotConfigured(self._tell, name)

    @property
    def refused(self) -> int:
        return sum(scheduler.refused for scheduler in self._all.values())

    def isolate(self, job_ids: Iterable[str]) -> None:
        for scheduler in self._all.values():
            scheduler.isolate(job_ids)

    def workers(self) -> Sequence[tuple[str, int]]:
        return [worker for scheduler in self._all.values() for worker in scheduler.workers()]

    def let_go(self) -> None:
        for scheduler in self._all.values():
            scheduler.let_go()

    def close(self) -> None:
        closing = [threading.Thread(target=scheduler.close) for scheduler in self._all.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


class _NotConfigured:
    refused = 0

    def __init__(self, tell: Tell, name: str) -> None:
        self._tell, self._name = tell, name

    def start(self, task: Task) -> None:
        message = f"this job runs on {self._name}, which this controller does not know: set {self._name}.url"
        self._tell(JobReport(task.job_id, task.generation, Event.LOST, message=message, domain="external"))

    def stop(self, job_id: str, generation: int, how: How) -> None:
        self._tell(JobReport(job_id, generation, Event.LOST, message=NOTHING_RUNS))

    def rescale(self, task: Task) -> None:
        self.stop(task.job_id, task.generation, "save")

    def clear(self, job_id: str, generation: int) -> None:
        self._tell(JobReport(job_id, generation, Event.READY))

    def take_over(self, task: Task) -> bool:
        return False

    def isolate(self, job_ids: Iterable[str]) -> None:
        """It has none."""

    def workers(self) -> Sequence[tuple[str, int]]:
        return ()

    def let_go(self) -> None:
        """It has none."""

    def close(self) -> None:
        """It has none."""
