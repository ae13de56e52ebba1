"""The open windows of a slice's key groups, which may differ in how far they are.

    portions = Portions(open_windows, groups, range_)
    portions.restore(kept)                          of all slices before: what each had passed, and kept
    portions.watermark = time; portions.close()     as of windows

Before a restart, slices had not closed the same windows. So key groups that were equally far are a portion: windows of
their own. As soon as all portions have taken the same watermark and closed what it closes, they become one.

Guarantees: a window that had left does not leave again, and what was late stays late, however key groups are shared
out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .group_ranges import GroupRange, Passed
from .kept import KeptRows
from .key_groups import KeyGroups
from .opened import OpenWindows
from .panes import WindowPanes
from .results import Step
from .spans import later


@dataclasses.dataclass
class _Portion:
    ranges: list[GroupRange]
    windows: OpenWindows

    def mask(self, groups: pa.UInt8Array) -> pa.BooleanArray:
        first, *others = (range_.mask(groups) for range_ in self.ranges)
        for other in others:
            first = pc.or_(first, other)
        return first


class Portions:
    """range_: the key groups of the slice; none: it keeps nothing. schema, kept_schema, meanings: of the windows."""

    def __init__(self, open_windows: Callable[[], OpenWindows], groups: KeyGroups, range_: GroupRange) -> None:
        """groups: of rows. Raises WrongQuery."""
        self._open, self._groups, self._range = open_windows, groups, range_
        windows = open_windows()
        self.schema, self.kept_schema, self.meanings = windows.schema, windows.kept_schema, windows.meanings
        self._portions = [_Portion([range_], windows)]

    @property
    def watermark(self) -> int | None:
        """The lowest."""
        return lowest(portion.windows.watermark for portion in self._portions)

    @watermark.setter
    def watermark(self, time: int) -> None:
        for portion in self._portions:
            portion.windows.watermark = later(portion.windows.watermark, time)

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of windows."""
        if len(self._portions) == 1:
            return self._portions[0].windows.late(rows)
        groups, late = self._groups_of(rows), pa.repeat(False, rows.num_rows)
        for portion in self._portions:
            if (by_it := portion.windows.late(rows)) is not None:
                late = pc.or_(late, pc.and_(by_it, portion.mask(groups)))
        return late if late.true_count else None

    def add(self, rows: pa.RecordBatch) -> None:
        """As of windows."""
        if len(self._portions) == 1:
            self._portions[0].windows.add(rows)
            return
        groups = self._groups_of(rows)
        for portion in self._portions:
            own = rows.filter(portion.mask(groups))
            if own.num_rows:
                portion.windows.add(own)

    def add_parts(self, parts: pa.RecordBatch) -> None:
        """As of `WindowPanes`."""
        groups = KeyGroups(self._groups.asked, self.kept_schema) if len(self._portions) > 1 else None
        for portion in self._portions:
            own = parts if groups is None else parts.filter(portion.mask(_or_first(groups.of(parts), parts)))
            if own.num_rows:
                assert isinstance(portion.windows, WindowPanes), "parts are made for these alone"
                portion.windows.add_parts(own)

    def _groups_of(self, rows: pa.RecordBatch) -> pa.UInt8Array:
        return _or_first(self._groups.of(rows), rows)

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """As of windows. Between two steps, `kept` and `passed` say what has not left."""
        for portion in self._portions if self._range else ():
            yield from portion.windows.close(all_of_them)
        self._unite()

    def _unite(self) -> None:
        """Makes one portion of all, if they are equally far."""
        if len({(portion.windows.watermark, portion.windows.closed) for portion in self._portions}) > 1:
            return
        first, *others = self._portions
        if others:
            kept = [part.restored() for portion in self._portions for part in portion.windows.kept()]
            windows = self._open()
            windows.restore(kept, first.windows.closed)
            self._portions = [_Portion([self._range], windows)]

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        return (part for portion in self._portions for part in portion.windows.kept())

    @property
    def passed(self) -> list[Passed]:
        """None, if no key group is its own."""
        return [
            Passed(range_, portion.windows.watermark, portion.windows.closed)
            for portion in self._portions
            for range_ in portion.ranges
            if range_
        ]

    def restore(
        self, kept: Sequence[tuple[Sequence[Passed], Sequence[KeptRows]]], on_their_way: Sequence[KeptRows] = ()
    ) -> int | None:
        """Before all rows. kept: of each slice before, what its key groups had passed, and what it kept of them.
        on_their_way: of any key groups.

        Returns the highest watermark that a key group of any slice had taken: all were told it, behind the rows on
        their way.
        """
        portions: dict[tuple[int | None, int | None], list[tuple[GroupRange, Sequence[KeptRows]]]] = {}
        groups = KeyGroups(self._groups.asked, self.kept_schema)
        for passed, parts in kept:
            for entry in passed:
                own = entry.within(self._range).range
                if own:
                    is_whole = own == entry.range and len(passed) == 1
                    mine = parts if is_whole else [groups.within(part, own) for part in parts]
                    others = [groups.within(part, own) for part in on_their_way]
                    portions.setdefault((entry.watermark, entry.closed), []).append((own, [*mine, *others]))
        if portions:
            self._portions = []
        for (watermark, closed), entries in portions.items():
            windows = self._open()
            windows.restore([part for _, mine in entries for part in mine if part.num_rows], closed)
            windows.watermark = later(watermark, closed)
            self._portions.append(_Portion(list(dict.fromkeys(range_ for range_, _ in entries)), windows))
        times = [entry.watermark for passed, _ in kept for entry in passed if entry.watermark is not None]
        return max(times, default=None)


def _or_first(groups: pa.UInt8Array | None, rows: pa.RecordBatch) -> pa.UInt8Array:
    """None: all are in the first group."""
    return pa.repeat(pa.scalar(0, pa.uint8()), rows.num_rows) if groups is None else groups


def lowest(times: Iterable[int | None]) -> int | None:
    """None: some have not begun, or there are none."""
    every = list(times)
    return None if None in every else min((time for time in every if time is not None), default=None)
