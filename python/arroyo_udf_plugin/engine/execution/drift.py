"""Sources that run ahead wait for the others, by event time.

Windows and joins keep the rows of whatever is ahead until the slowest has come so far: that may be all of a source.

    drift = Drift(planned.drifts, slices)      of a pipeline, for the sources in all slices
    reader = drift.reader(0)                   of one partition, or of several in turn
    reader.begin(time); drift.begun()          in each slice, before it reads
    with reader.reading(time):
        reader.reached(time)
        await reader.near()

Guarantees: a reader goes on only while its watermark is no further ahead of the lowest one than the bound. So it is
ahead by the bound and one batch at most. Whoever has the lowest watermark waits for nobody. Nothing polls: those that
wait are woken when the slowest advances.

A reader holds others back while it reads, and its source is not idle. Before its first event time it does so for
`_PATIENCE` seconds at most: there may never be one. A slice that has not begun holds all of them back.

Assumes: rows that wait in a window or join do not hold back the source that is behind: those never refuse rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator, Sequence

from ..operators.watermarks import DriftBound

_PATIENCE = 1.0  # seconds for the first event time


class Drift:
    """Any thread."""

    def __init__(self, bounds: Sequence[DriftBound], slices: int) -> None:
        self._bounds = bounds
        self._lock = threading.Lock()  # guards all below, and the times of readers
        self._to_begin = slices
        self._reading: set[DriftReader] = set()  # those that hold others back
        self._ahead: set[DriftReader] = set()  # those that wait

    def reader(self, source: int) -> DriftReader:
        """source: its number."""
        return DriftReader(self, source)

    def begun(self) -> None:
        """Another slice has begun, and so have its readers."""
        with self._lock:
            self._to_begin -= 1
            self._wake()

    def reads(self, reader: DriftReader, time: float) -> None:
        """Its watermark is this one. -inf: it has none yet."""
        with self._lock:
            reader.time = time
            self._reading.add(reader)
            self._wake()

    def leaves(self, reader: DriftReader) -> None:
        """It holds nobody back."""
        with self._lock:
            self._reading.discard(reader)
            self._wake()

    def puts_off(self, reader: DriftReader) -> bool:
        """Whether it is ahead, and so is woken when it may go on."""
        with self._lock:
            if not self._is_ahead(reader, self._limits()):
                return False
            reader.woken.clear()
            self._ahead.add(reader)
            return True

    def gives_up(self, reader: DriftReader) -> None:
        """It waits no more."""
        with self._lock:
            self._ahead.discard(reader)

    def _wake(self) -> None:
        limits = self._limits() if self._ahead else ()
        for reader in self._ahead:
            if not self._is_ahead(reader, limits):
                reader.wake()

    def _limits(self) -> Sequence[float]:
        """Of each bound: the time up to which its sources may go on."""
        if self._to_begin:
            return [-math.inf] * len(self._bounds)
        return [
            min((reader.time for reader in self._reading if reader.source in bound.sources), default=math.inf)
            + bound.nanoseconds
            for bound in self._bounds
        ]

    def _is_ahead(self, reader: DriftReader, limits: Sequence[float]) -> bool:
        return any(
            reader.source in bound.sources and reader.time > limit
            for bound, limit in zip(self._bounds, limits, strict=True)
        )


class DriftReader:
    """time: its watermark, or -inf. woken: set when it may go on. Used in one event loop."""

    def __init__(self, drift: Drift, source: int) -> None:
        self.source = source
        self.time = -math.inf  # an integer otherwise
        self.woken = asyncio.Event()
        self._drift = drift
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, time: int | None) -> None:
        """It is to read, from this watermark on; None: it has had none."""
        self._loop = asyncio.get_running_loop()
        self._drift.reads(self, -math.inf if time is None else time)
        if time is None:
            self._loop.call_later(_PATIENCE, self._end_patience)

    def _end_patience(self) -> None:
        if self.time == -math.inf:
            self.rest()

    @contextlib.contextmanager
    def reading(self, time: int | None) -> Iterator[None]:
        """While it reads. time: as of `begin`."""
        self.begin(time)
        try:
            yield
        finally:
            self.rest()

    def reached(self, time: int | None) -> None:
        """Rows have come, and this is the watermark behind them."""
        if time is not None:
            self._drift.reads(self, time)

    def rest(self) -> None:
        """It holds nobody back, until it reaches the next watermark."""
        self._drift.leaves(self)

    async def near(self) -> None:
        """Waits until it is no more ahead than it may be."""
        while self._drift.puts_off(self):
            try:
                await self.woken.wait()
            finally:
                self._drift.gives_up(self)

    def wake(self) -> None:
        """Any thread."""
        assert self._loop is not None, "who waits reads"
        self._loop.call_soon_threadsafe(self.woken.set)
