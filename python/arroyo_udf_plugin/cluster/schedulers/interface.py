"""What the controller asks of a scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from ..task import How as SoftHow
from ..task import Task

How = SoftHow | Literal["kill"]


class Scheduler(Protocol):
    """Runs generations of jobs, one of each job at a time. Its words come through `tell` (see `task.Report`), in any
    thread; the methods do not wait. refused: how many messages of workers were not understood."""

    @property
    def refused(self) -> int: ...

    def start(self, task: Task) -> None:
        """Nothing of this job runs."""

    def stop(self, job_id: str, generation: int, how: How) -> None:
        """If nothing of this job runs, it tells `lost` at once."""

    def rescale(self, task: Task) -> None:
        """Tells `rescaled` as soon as this generation runs with the parallelism of the task. If that is not possible
        in place, it does what `stop` does with `save`."""

    def clear(self, job_id: str, generation: int) -> None:
        """Kills what runs of this generation, and of older ones; tells `ready` as soon as nothing does."""

    def take_over(self, task: Task) -> bool:
        """Whether this generation runs, and goes on under this scheduler. Called for each job that may run, when the
        controller has become the leader."""

    def isolate(self, job_ids: Iterable[str]) -> None:
        """One of these jobs may be the reason why this program has died more than once: a crash of it must cost no
        other."""

    def workers(self) -> Sequence[tuple[str, int]]:
        """Processes that run: the job and the generation of each. Any thread."""

    def let_go(self) -> None:
        """Another controller leads: what runs is that one's, and `take_over` begins anew."""

    def close(self) -> None:
        """Lets everything on this machine end with a checkpoint, and waits for it. What runs elsewhere goes on."""
