"""When a state of a job ends by itself, and by which event.

    deadlines = Deadlines(limits)
    deadlines.of(whole, since, now)         (1234.5, Event.LATE); None: it may last

Guarantees: every state that a job is to leave has a deadline, but for Created, which waits for a wish. Times are those
of the controller's clock, which goes forward whatever the wall clock does.
"""

from __future__ import annotations

from .configuration import PipelineSettings
from .database.opened import now as wall_clock
from .database.pipelines import Whole
from .restarts import Outages, backoff
from .states import SETTLED, Event, State


class Deadlines:
    def __init__(self, limits: PipelineSettings) -> None:
        self._limits = limits
        self._outages = Outages(limits)

    def of(self, whole: Whole, since: float, now: float, outage: str = "") -> tuple[float, Event] | None:
        """since: when it came into its state. outage: see `Report`."""
        limits, state = self._limits, State(whole.status.state)
        ttl, started = whole.job.ttl_micros, whole.status.start_time
        if state is State.RUNNING and ttl is not None and started is not None:
            left = min(ttl, started + ttl - wall_clock())
            return now + max(0.0, left / 1e6), Event.EXPIRED
        if state in SETTLED or state is State.CREATED:
            return None
        if state is State.RECOVERING:
            pause_ends = since + backoff(limits, whole.status.restarts)
            return (self._outages.next_try(outage, now) if outage else pause_ends), Event.RETRY
        return since + (limits.worker_startup_time if state is State.SCHEDULING else limits.stop_time), Event.LATE
