"""What a started function says of itself (R16): `Runtime.statistics()`.

All of it is counted by the native runtime; here it is only read, as immutable objects of one moment.
"""

from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any, Self

from ..abi import ffi

_UNIT = 1024e-9  # seconds


@dataclass(frozen=True)
class Latency:
    """How long rows took, from the start of their first call to their end: all calls, and the pauses between them.

    Rows that were cancelled are not counted; and none are, where neither timeout, deadline, max_wait nor retries of
    errors make the runtime read the clock.

    counts: rows by time, in buckets that rise by a quarter or less; `bound(i)` is where bucket number i begins.
    max: seconds that the longest took; 0.0 without rows.
    """

    counts: tuple[int, ...] = field(repr=False)
    max: float

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return sum(self.counts)

    @property
    def p50(self) -> float | None:
        """Half of the rows took so many seconds or less."""
        return self.percentile(50)

    @property
    def p90(self) -> float | None:
        """Nine of ten rows took so many seconds or less."""
        return self.percentile(90)

    @property
    def p99(self) -> float | None:
        """All but one of a hundred rows took so many seconds or less."""
        return self.percentile(99)

    def percentile(self, percent: float) -> float | None:
        """So many percent of the rows took so many seconds or less; None without rows.

        It is the upper bound of a bucket, hence at most a quarter too long (for times below 4 us: 1 us), and never too
        short. Raises ValueError unless 0 < percent <= 100.
        """
        if not 0 < percent <= 100:
            raise ValueError(f"percent={percent!r}; give a number above 0, up to 100")
        wanted = self.rows * percent / 100
        for index, so_far in enumerate(accumulate(self.counts)):
            if so_far and so_far >= wanted:
                last = index == len(self.counts) - 1
                return self.max if last else min(self.bound(index + 1), self.max)
        return None

    @staticmethod
    def bound(index: int) -> float:
        """The seconds at which bucket number `index` begins, counted from 0."""
        octave, quarter = divmod(index, 4)
        return _UNIT * (quarter if octave == 0 else (4 + quarter) << (octave - 1))


@dataclass(frozen=True)
class Statistics:
    """Rows since start (accepted, drained, and by outcome), and where they are now (queued, running, held, ready).

    queued: waiting for their first call. running: calls that have not ended, cancelled and stuck ones included.
    backing_off: waiting for their next call. held: ended, waiting for an earlier row (ordered). ready: to be drained.
    values, errors, timed_out, cancelled: rows that have ended, by outcome.
    retries: calls after a row's first. stuck: calls that ignore their cancellation, now.
    wake_ups: how often the executor was woken. blocked: how often the event loop was found blocked.
    left_behind: tasks of calls that were cancelled at the stop.
    discarded: calls that answered after their row had ended otherwise, or a second time.
    latency: how long rows took.
    """

    accepted: int
    queued: int
    running: int
    backing_off: int
    held: int
    ready: int
    drained: int
    values: int
    errors: int
    timed_out: int
    cancelled: int
    retries: int
    stuck: int
    wake_ups: int
    blocked: int
    left_behind: int
    discarded: int
    latency: Latency

    @classmethod
    def from_abi(cls, counters: Any) -> Self:
        """Of an `arroyo_udf_statistics` that a plugin has filled in."""
        counts = tuple(memoryview(ffi.buffer(counters.latency)).cast("Q"))
        numbers = {one.name: getattr(counters, one.name) for one in fields(cls) if one.name != "latency"}
        return cls(**numbers, latency=Latency(counts, counters.latency_max_ns / 1e9))
