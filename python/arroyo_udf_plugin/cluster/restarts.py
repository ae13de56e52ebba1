"""Whether a lost job is started again, and when.

    is_exhausted(limits, job, restarts=3, outage="")      it is not
    backoff(limits, 3)                                    seconds
    Outages(limits).next_try("s3://state", now)           when all who wait for it try it again

A job that is lost because something outside does not answer (an object store, a database) does not use up its restarts:
the next one would fail, too, and would not be the job's fault. All jobs that wait for the same thing try it again
together, so that it is asked as often as by one job.

Assumes: whoever counts restarts does not count those after an outage.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .configuration import PipelineSettings
from .database.models import Job


def is_exhausted(limits: PipelineSettings, job: Job, restarts: int, outage: str) -> bool:
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
        self._all = {name: each for name, each in self._all.items() if each.until > over}
        found = self._all.setdefault(outage, _Outage(1, now))
        if found.until <= now:
            found.rounds += 1
            found.until = now + backoff(self._limits, found.rounds)
        return found.until
