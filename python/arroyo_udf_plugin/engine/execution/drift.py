"""Sources that run ahead wait for the others, by event time.

Windows and joins keep the rows of whatever is ahead until the slowest has come so far: that may be all of a source.

    drift = Drift(planned.drifts, slices)      of a pipeline, for the sources in all slices
    reader = drift.reader(0, is_beside=True)   of one partition of several that are read side by side, or of all in turn
    reader.begin(time); drift.begun()          in each slice, before it reads
    with reader.reading(time):
        reader.reached(time)
        await reader.near()

Guarantees: a reader goes on only while its watermark is no further ahead of the lowest one than the bound. So it is
ahead by the bound and one batch at most. Whoever has the lowest watermark waits for nobody. Nothing polls: those that
wait are woken when the slowest advances.

A reader holds others back while it reads, and its source is not idle. Before its first event time it does so for
`_PATIENCE` seconds at most: there may never be one. A slice that has not begun holds all of them back. Slices that read
partitions of one source in turn, such as the files of a folder, do not wait for each other: a file may be a day.

Assumes: rows that wait in a window or join do not hold back the source that is behind: those never refuse rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator, Mapping, Sequence

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

    def reader(self, source: int, is_beside: bool) -> DriftReader:
        """source: its number. is_beside: others read the same one side by side, and it waits for these, too."""
        return DriftReader(self, source, is_beside)

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
            if not self._is_ahead(reader, self._lowest()):
                return False
            reader.woken.clear()
            self._ahead.add(reader)
            return True

    def gives_up(self, reader: DriftReader) -> None:
        """It waits no more."""
        with self._lock:
            self._ahead.discard(reader)

    def _wake(self) -> None:
        lowest = self._lowest() if self._ahead else {}
        for reader in self._ahead:
            if not self._is_ahead(reader, lowest):
                reader.wake()

    def _lowest(self) -> dict[int, float]:
        """Of each source that is read."""
        times: dict[int, float] = {}
        for reader in self._reading:
            times[reader.source] = min(reader.time, times.get(reader.source, math.inf))
        return times

    def _is_ahead(self, reader: DriftReader, lowest: Mapping[int, float]) -> bool:
        bounds = [bound for bound in self._bounds if reader.source in bound.sources]
        if self._to_begin:
            return bool(bounds)
        return any(
            reader.time > lowest.get(source, math.inf) + bound.nanoseconds
            for bound in bounds
            for source in bound.sources
            if reader.is_beside or source != reader.source
        )


class DriftReader:
    """is_beside: see `Drift.reader`. time: its watermark, or -inf. woken: set when it may go on. Used in one event loop."""

    def __init__(self, drift: Drift, source: int, is_beside: bool) -> None:
        self.source, self.is_beside = source, is_beside
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
