"""Event time: how far a slice's rows have come.

Times are integers, nanoseconds since 1970 in UTC. A watermark of t says: rows with an earlier event time are late.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Protocol

from .blocks import Block


@dataclasses.dataclass(frozen=True)
class Watermark:
    """time: None says that the source is idle, and holds nothing back."""

    time: int | None


@dataclasses.dataclass(frozen=True)
class DriftBound:
    """Rows of some sources wait for each other. sources: their numbers. nanoseconds: of event time, by which one may be
    ahead of the slowest."""

    sources: Collection[int]
    nanoseconds: int


class Lowest:
    """The watermark of several inputs: the lowest of theirs. It never falls.

    An input that is idle or at its end holds nothing back; one that has told nothing yet holds back all. If all of them
    were idle, those that follow are told the watermark again as soon as one is not: it holds again. The end of all of
    them is no idleness: behind it come the last results, which nobody may find late.
    """

    def __init__(self, inputs: int) -> None:
        self._ended: set[int] = set()
        self._times: list[int | None] = [None] * inputs
        self._are_waited_for = [True] * inputs
        self._time: int | None = None
        self._is_idle = False

    def add(self) -> None:
        """A further input. It holds nothing back before it has told something."""
        self._times.append(None)
        self._are_waited_for.append(False)

    def after(self, input: int, time: int | None) -> Watermark | None:
        """What follows from an input's new watermark. None: nothing new."""
        self._times[input], self._are_waited_for[input] = time, time is not None
        times = [time for time, is_one in zip(self._times, self._are_waited_for, strict=True) if is_one]
        if not times:
            self._is_idle = True
            return Watermark(None)
        if None in times:
            return None
        was_idle, self._is_idle = self._is_idle, False
        lowest = min(time for time in times if time is not None)
        if self._time is not None and lowest <= self._time:
            return Watermark(self._time) if was_idle else None
        self._time = lowest
        return Watermark(lowest)

    def end(self, input: int) -> Watermark | None:
        """What follows from the end of an input. None: nothing new."""
        self._ended.add(input)
        return None if len(self._ended) == len(self._times) else self.after(input, None)


class Clock(Protocol):
    """Of a partition: see `EventClock`."""

    @property
    def time(self) -> int | None: ...
    def after(self, block: Block) -> int | None: ...
    def restore(self, times: Sequence[int | None]) -> None: ...


def in_common(times: Sequence[int | None]) -> int | None:
    """The lowest; None: some have none."""
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


class SliceTime:
    """The watermark of a slice: the lowest of the partitions that it reads side by side.

    What its methods return is new, or None. Partitions that are idle, or have ended, hold nothing back.
    time: the latest; None: there was none yet.
    """

    def __init__(self, inputs: Sequence[Clock], watermarks: Sequence[int | None] = ()) -> None:
        """inputs: of the partitions. watermarks: of all slices before a restart; none: it begins."""
        self._inputs, self._lowest = list(inputs), Lowest(len(inputs))
        for clock in inputs:
            clock.restore(watermarks)
        self._idle: set[int] = set()
        self.time = in_common(watermarks)

    def add(self, clock: Clock) -> None:
        """A further partition. It begins where the slice is."""
        clock.restore([self.time])
        self._idle.add(len(self._inputs))
        self._inputs.append(clock)
        self._lowest.add()

    def of(self, input: int) -> int | None:
        """The watermark of a partition; None: there was none yet."""
        return self._inputs[input].time

    def after(self, input: int, block: Block) -> Watermark | None:
        """Rows of a partition have come."""
        if self._inputs[input].after(block) is None and input not in self._idle:
            return None
        self._idle.discard(input)
        return self._told(self._lowest.after(input, self.of(input)))

    def after_idleness(self, input: int) -> Watermark | None:
        """Nothing has come from a partition for a while."""
        self._idle.add(input)
        return self._told(self._lowest.after(input, None))

    def after_end(self, input: int) -> Watermark | None:
        """A partition has been read."""
        return self._told(self._lowest.end(input))

    def follow(self, time: int | None) -> Watermark | None:
        """Of a slice that reads one partition at a time, and has none: the watermark of others."""
        if time is None or (self.time is not None and time <= self.time):
            return None
        self._inputs[0].restore([time])
        return self._told(self._lowest.after(0, time))

    def _told(self, lowest: Watermark | None) -> Watermark | None:
        if lowest is not None and lowest.time is not None:
            self.time = lowest.time
        return lowest
