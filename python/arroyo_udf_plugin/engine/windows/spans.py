"""Which windows a time belongs to.

Times are integers, nanoseconds since 1970 in UTC, in 64 bits. A window includes its start, but not its end.
"""

from __future__ import annotations

import abc
import bisect
import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument

_LAST = (1 << 63) - 1
_DAY = 86_400_000_000_000
_EPOCH = datetime.date(1970, 1, 1)
_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class WindowSteps(abc.ABC):
    """Windows of so many steps (`count`), one of which begins with each step. With one step they follow each other
    (tumble), with several they overlap (hop). How long a step is depends on where it is."""

    @property
    @abc.abstractmethod
    def count(self) -> int: ...

    @property
    @abc.abstractmethod
    def length(self) -> int:
        """How far the windows of a time reach, at most."""

    @abc.abstractmethod
    def pane(self, time: int) -> int:
        """The start of the pane, which is a step, that a time belongs to."""

    @abc.abstractmethod
    def panes(self, times: pa.Int64Array, first: int) -> pa.Int64Array:
        """The same, for each; first: a pane that is not behind any of them."""

    @abc.abstractmethod
    def moved(self, pane: int, steps: int) -> int:
        """The start of the pane so many steps later; below 0: earlier."""

    @abc.abstractmethod
    def step(self, pane: int) -> int:
        """The number of this step. `pane`: its start."""

    @abc.abstractmethod
    def begin(self, step: int) -> int:
        """The start of the step with this number."""

    @abc.abstractmethod
    def starts(self, ends: pa.Int64Array) -> pa.Int64Array:
        """Of windows with these ends."""

    def last_end(self, pane: int) -> int:
        """Of the windows that have this pane."""
        return self.moved(pane, self.count)

    def first_open(self, watermark: int) -> int:
        """The first pane with a window that a watermark has not closed."""
        return self.moved(self.pane(watermark), 1 - self.count)

    def ends(self, panes: Sequence[int], after: int | None, upto: int | None) -> Iterator[int]:
        """The ends of the windows that have one of these panes, if they are `after` that time and not behind `upto`.

        panes: sorted. None: no limit.
        """
        at = None if after is None else self.pane(after)
        for pane in panes:
            at = pane if at is None else max(at, pane)
            last = self.last_end(pane)
            while at < last:
                at = self.moved(at, 1)
                if upto is not None and at > upto:
                    return
                yield at

    def of(self, panes: Sequence[int], end: int) -> Sequence[int]:
        """Those of the panes that the window with this end consists of. panes: sorted."""
        return panes[bisect.bisect_left(panes, self.moved(end, -self.count)) : bisect.bisect_left(panes, end)]


@dataclasses.dataclass(frozen=True)
class Hop(WindowSteps):
    """Windows of one width, which begin every `slide` since 1970."""

    width: int
    slide: int

    def __post_init__(self) -> None:
        _check(self.width, self.slide)

    @property
    def count(self) -> int:
        return self.width // self.slide

    @property
    def length(self) -> int:
        return self.width

    def pane(self, time: int) -> int:
        return time - time % self.slide

    def panes(self, times: pa.Int64Array, first: int) -> pa.Int64Array:
        try:
            steps = pc.divide(pc.subtract_checked(times, first), self.slide)
        except pa.ArrowInvalid:  # there are centuries between them
            return pc.multiply(_divided(times, self.slide), self.slide)
        return pc.add(pc.multiply(steps, self.slide), first)

    def moved(self, pane: int, steps: int) -> int:
        return pane + steps * self.slide

    def step(self, pane: int) -> int:
        return pane // self.slide

    def begin(self, step: int) -> int:
        return step * self.slide

    def starts(self, ends: pa.Int64Array) -> pa.Int64Array:
        return pc.subtract(ends, self.width)


@dataclasses.dataclass(frozen=True)
class Months(WindowSteps):
    """Windows of so many months of the calendar in UTC, which begin every `slide_months` since January 1970."""

    months: int
    slide_months: int

    def __post_init__(self) -> None:
        _check(self.months, self.slide_months)

    @property
    def count(self) -> int:
        return self.months // self.slide_months

    @property
    def length(self) -> int:
        return self.months * 31 * _DAY

    def pane(self, time: int) -> int:
        month = _month(time)
        return _begin(month - month % self.slide_months)

    def panes(self, times: pa.Int64Array, first: int) -> pa.Int64Array:
        starts = pc.floor_temporal(times.view(pa.timestamp("ns")), self.slide_months, "month")
        return starts.view(pa.int64())

    def moved(self, pane: int, steps: int) -> int:
        return _begin(_month(pane) + steps * self.slide_months)

    def step(self, pane: int) -> int:
        return _month(pane) // self.slide_months

    def begin(self, step: int) -> int:
        return _begin(step * self.slide_months)

    def starts(self, ends: pa.Int64Array) -> pa.Int64Array:
        several = ends.dictionary_encode()
        starts = [self.moved(end, -self.count) for end in several.dictionary.to_pylist()]
        return pa.array(starts, pa.int64()).take(several.indices)


@dataclasses.dataclass(frozen=True)
class Session:
    """Windows without a gap of that length: each begins with a row, and ends so long after its last one."""

    gap: int

    def __post_init__(self) -> None:
        if self.gap <= 0:
            raise InvalidArgument("the gap between sessions has no length: write a time above 0")

    @property
    def length(self) -> int:
        """As of `WindowSteps`, of a row alone."""
        return self.gap


Window = WindowSteps | Session


def nanoseconds(column: pa.Array) -> pa.Int64Array:
    """Usable times as integers."""
    numbers, factor = _counted(column)
    return numbers if factor == 1 else pc.multiply(numbers, factor)


class Spanned(Protocol):
    """length: how far from a time others count."""

    @property
    def length(self) -> int: ...


def unusable(column: pa.Array, window: Spanned) -> pa.BooleanArray | None:
    """Which times have no windows: null, or the windows around them do not fit into 64 bits. None: all have."""
    numbers, factor = _counted(column)
    limit = (_LAST - window.length) // factor
    bounds = pc.min_max(numbers)
    if not numbers.null_count and -limit <= bounds["min"].as_py() and bounds["max"].as_py() <= limit:
        return None
    is_known = pc.and_(pc.greater_equal(numbers, -limit), pc.less_equal(numbers, limit))
    return pc.invert(pc.fill_null(is_known, False))


def bounded(watermark: int, window: Spanned) -> int:
    """A watermark that lies where usable times do, and says the same of them."""
    return max(window.length - _LAST, min(watermark, _LAST))


def before(times: pa.Array, first: int | None) -> pa.BooleanArray | None:
    """Which usable times are before this one; None: none of them, as with None."""
    numbers = nanoseconds(times)
    if first is None or pc.min(numbers).as_py() >= first:
        return None
    return pc.less(numbers, first)


def later(watermark: int | None, other: int | None) -> int | None:
    """The later one of two watermarks. None: there was none yet."""
    return max((time for time in (watermark, other) if time is not None), default=None)


def _counted(column: pa.Array) -> tuple[pa.Int64Array, int]:
    """Times as integers, and how many nanoseconds one is."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    return column.view(pa.int64()), _PER_UNIT[column.type.unit]


def times_of(numbers: pa.Int64Array, type_: pa.DataType) -> pa.Array:
    """Integers as times of a type, rounded down. numbers: not below 1678."""
    if pa.types.is_date(type_):
        return pc.floor_temporal(numbers.view(pa.timestamp("ns")), 1, "day").cast(type_)
    factor = _PER_UNIT[type_.unit]
    return numbers.view(type_) if factor == 1 else _divided(numbers, factor).view(type_)


def _month(time: int) -> int:
    """The number of a time's month; January 1970 is 0."""
    day = _EPOCH + datetime.timedelta(days=time // _DAY)
    return (day.year - _EPOCH.year) * 12 + day.month - 1


def _begin(month: int) -> int:
    """When a month begins."""
    years, in_year = divmod(month, 12)
    return (datetime.date(_EPOCH.year + years, in_year + 1, 1) - _EPOCH).days * _DAY


def _check(width: int, slide: int) -> None:
    """Raises InvalidArgument for windows that cannot be."""
    if slide <= 0 or width <= 0:
        raise InvalidArgument("a window has no length: write a time above 0")
    if width % slide:
        raise InvalidArgument("the width of a window must be a multiple of its slide: write one that is")


def _divided(numbers: pa.Int64Array, by: int) -> pa.Int64Array:
    """Rounded down, also below 0."""
    down = pc.divide(numbers, by)
    is_above = pc.greater(pc.multiply(down, by), numbers)
    return pc.subtract(down, is_above.cast(pa.int64()))


def is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))
