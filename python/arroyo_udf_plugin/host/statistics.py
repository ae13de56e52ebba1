"""The counters of a started function (R16): `Runtime.statistics()`.

The native runtime counts; this module reads a snapshot into immutable objects.
"""

from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any, Self

from ..abi import ffi

_UNIT = 1024e-9  # seconds


@dataclass(frozen=True)
class Latency:
    """How long rows took, from the start of their first call to their end, with all calls and pauses.

    Cancelled rows are not counted. Nothing is counted unless a timeout, deadline, rate, max_wait or error retry is set,
    because otherwise the runtime does not read the clock.

    counts: rows per bucket; bucket i begins at `bound(i)` seconds, and each is at most a quarter wider than its start.
    max: the longest time in seconds; 0.0 without rows.
    """

    counts: tuple[int, ...] = field(repr=False)
    max: float

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return sum(self.counts)

    @property
    def p50(self) -> float | None:
        """The median in seconds; None without rows."""
        return self.percentile(50)

    @property
    def p90(self) -> float | None:
        """The 90th percentile in seconds; None without rows."""
        return self.percentile(90)

    @property
    def p99(self) -> float | None:
        """The 99th percentile in seconds; None without rows."""
        return self.percentile(99)

    def percentile(self, percent: float) -> float | None:
        """The seconds within which `percent` of the rows ended; None without rows.

        This is the upper bound of a bucket: never too short, and at most a quarter too long (1 us below 4 us). Raises
        ValueError unless 0 < percent <= 100.
        """
        if not 0 < percent <= 100:
            raise ValueError(f"percent={percent!r}; pass a number above 0, up to 100")
        wanted = self.rows * percent / 100
        for index, so_far in enumerate(accumulate(self.counts)):
            if so_far and so_far >= wanted:
                last = index == len(self.counts) - 1
                return self.max if last else min(self.bound(index + 1), self.max)
        return None

    @staticmethod
    def bound(index: int) -> float:
        """The seconds at which bucket `index` begins (the first is 0)."""
        octave, quarter = divmod(index, 4)
        return _UNIT * (quarter if octave == 0 else (4 + quarter) << (octave - 1))


@dataclass(frozen=True)
class Statistics:
    """Counts of rows and calls. Some count from the start, others count the present state.

    accepted, drained: rows sent and rows taken, from the start.
    values, errors, timed_out, cancelled: ended rows by outcome, from the start.
    queued: rows before their first call, now. running: calls that have not ended, now; also cancelled and stuck ones.
    backing_off: rows before their next call, now. held: ended rows that wait for an earlier row (ordered), now.
    ready: ended rows that can be drained, now. stuck: calls that ignore their cancellation, now.
    retries: calls after a row's first. wake_ups: how often the executor was woken.
    blocked: how often the event loop was found blocked. left_behind: Tasks of calls, cancelled at the stop.
    paced: calls that had to wait for the function's `rate`.
    limit: the most calls at once, now; with `allowed_in_flight="auto"` it moves between 1 and limit_most.
    overloads: how often such a limit has fallen because calls timed out, or were errors that are retried.
    discarded: results that came after their row had ended, or a second time.
    latency: how long rows took.

    Of functions that are deterministic=True:
    waiting: rows that wait for the call of a row with equal arguments, now.
    cache_hits: rows that got a value that was kept. cache_shared: rows that have waited for another row's call.
    cache_misses: rows with arguments for which there was neither, so that a call was made. All from the start.
    cache_entries, cache_bytes: values that are kept, and what they take with their arguments, now.
    cache_evictions: values that left to make room, from the start.
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
    paced: int
    limit: int
    limit_most: int
    overloads: int
    latency: Latency
    waiting: int
    cache_hits: int
    cache_shared: int
    cache_misses: int
    cache_evictions: int
    cache_entries: int
    cache_bytes: int

    @classmethod
    def from_abi(cls, counters: Any) -> Self:
        """Reads an `arroyo_udf_statistics` that a plugin has filled in."""
        counts = tuple(memoryview(ffi.buffer(counters.latency)).cast("Q"))
        numbers = {member.name: getattr(counters, member.name) for member in fields(cls) if member.name != "latency"}
        return cls(**numbers, latency=Latency(counts, counters.latency_max_ns / 1e9))
