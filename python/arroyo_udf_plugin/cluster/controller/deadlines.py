"""When a state of a job ends by itself, and when a job that was lost is started again.

    deadlines = Deadlines(limits)
    deadlines.of(whole, since, now)                       (1234.5, Event.LATE); None: it may last
    is_exhausted(limits, job, restarts=3, outage="")      whether it is not started again
    backoff(limits, 3)                                    seconds
    Outages(limits).next_try("s3://state", now)           when all who wait for it try it again

A job that is lost because something outside does not answer (an object store, a database) does not use up its restarts:
the next one would fail, too, and would not be the job's fault. All jobs that wait for the same thing try it again
together, so that it is asked as often as by one job.

Guarantees: every state that a job is to leave has a deadline, but for Created, which waits for a wish. Times are those
of the controller's clock, which goes forward whatever the wall clock does.
Assumes: whoever counts restarts does not count those after an outage.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ..configuration import PipelineSettings
from ..database.models import JobRow
from ..database.pipelines import WholeJob
from ..states import SETTLED, Event, State


class Deadlines:
    def __init__(self, limits: PipelineSettings) -> None:
        self._limits = limits
        self._outages = Outages(limits)

    def of(self, whole: WholeJob, since: float, now: float, outage: str = "") -> tuple[float, Event] | None:
        """since: when it came into its state. outage: see `Report`."""
        limits, state = self._limits, State(whole.status.state)
        if state is State.RUNNING and whole.job.ttl_micros is not None:
            return since + whole.job.ttl_micros / 1e6, Event.EXPIRED
        if state in SETTLED or state is State.CREATED:
            return None
        if state is State.RECOVERING:
            pause_ends = since + backoff(limits, whole.status.restarts)
            return (self._outages.next_try(outage, now) if outage else pause_ends), Event.RETRY
        return since + (limits.worker_startup_time if state is State.SCHEDULING else limits.stop_time), Event.LATE


def is_exhausted(limits: PipelineSettings, job: JobRow, restarts: int, outage: str) -> bool:
    """restarts: so far, in a row. outage: see `Report`. A preview is tried once."""
    allowed = 0 if job.ttl_micros is not None else -1 if outage else limits.allowed_restarts
    return 0 <= allowed <= restarts


def backoff(limits: PipelineSettings, restarts: int) -> float:
    """Seconds before restart number `restarts`: half of them fixed, half random. None before the first."""
    if restarts <= 1:
        return 0.0
    whole = min(limits.max_backoff, limits.initial_backoff * 2.0 ** min(restarts - 2, 30))
    return whole / 2 + random.random() * whole / 2


@dataclass
class _Outage:
    """rounds: tries so far. until: when the next one is."""

    rounds: int
    until: float


class Outages:
    """What does not answer, and when it is tried again."""

    def __init__(self, limits: PipelineSettings) -> None:
        self._limits = limits
        self._all: dict[str, _Outage] = {}

    def next_try(self, outage: str, now: float) -> float:
        """For a job that has failed by it just now. Whoever fails before the next try waits for that."""
        over = now - self._limits.max_backoff - self._limits.healthy_duration
        self._all = {name: entry for name, entry in self._all.items() if entry.until > over}
        record = self._all.setdefault(outage, _Outage(1, now))
        if record.until <= now:
            record.rounds += 1
            record.until = now + backoff(self._limits, record.rounds)
        return record.until
