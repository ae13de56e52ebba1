"""The open windows: what is kept of each pane.

Rows wait until there are enough for a query. Rows of one window come out of one query, and windows that are small come
out of one query together.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from .grouping import Grouping, GroupingPlan
from .kept import KeptRows, PartPlace
from .pane_rows import PANE, by_pane, together, with_pane, with_panes, without_panes
from .results import Results, Step
from .spans import WindowSteps, before, later, nanoseconds
from .storage import Some, Storage, StorageLimits
from .tiers import Tiers

WAITING_ROWS = 131_072  # for a query: it costs as much as some ten thousand rows
_FEW_ROWS = 16_384  # of parts: they need not be merged
_MANY = 4  # times as many: results of one window leave in several steps
_ENDS = 64  # of windows that are looked at together


@dataclasses.dataclass
class _Pane:
    """kept: rows, or parts. given: how many of its batches have left in results. rows: of the others. merged: rows that
    there were after the latest merge. is_one: nothing has come since then: each key is there once."""

    kept: Some
    given: int = 0
    rows: int = 0
    merged: int = 0
    is_one: bool = False

    def add(self, batch: pa.RecordBatch, place: PartPlace | None = None) -> None:
        self.is_one = False
        self.kept.add(batch, place)
        self.rows += batch.num_rows


class WindowPanes:
    """schema: of the results. kept_schema: of what `kept` gives. meanings: see `GroupingPlan`.

    watermark: the latest; None: there was none yet. closed: windows are that end up to then, and no others.
    """

    def __init__(self, grouping: Grouping, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of the rows. Raises WrongQuery."""
        assert isinstance(grouping.window, WindowSteps)
        self._window = grouping.window
        self._plan = GroupingPlan(grouping, given, [PANE])
        self._is_by_row = grouping.by_row
        self._time = given.get_field_index(grouping.time)
        self._needed = [given.get_field_index(name) for name in self._plan.needed]
        self._of_windows = Results(grouping, self._plan.schema, given.field(self._time).type)
        self.schema = self._of_windows.schema
        self.kept_schema, self.meanings = with_pane(self._plan.kept), self._plan.meanings
        self.watermark: int | None = None
        self.closed: int | None = None
        self._first: int | None = None  # the earliest pane
        self._panes: dict[int, _Pane] = {}
        self._storage = Storage(limits)
        self._tiers: Tiers | None = None
        if self._plan.in_parts and self._window.count > 1:
            self._tiers = Tiers(self._window, self._plan.merged, self._storage, self._parts_of)
        self._waiting: list[tuple[int | pa.Int64Array, pa.RecordBatch]] = []  # rows that are no parts yet, with panes
        self._waiting_rows = 0

    # ---- Rows ----

    @property
    def are_parts(self) -> bool:
        """Whether it keeps parts of aggregates."""
        return self._plan.in_parts

    @property
    def first(self) -> int | None:
        """The earliest pane."""
        return self._first

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """Which of these rows are late: the watermark has passed all their windows. None: none of them."""
        first = None if self.watermark is None else self._window.first_open(self.watermark)
        return before(rows.column(self._time), first)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: at least one, none of them late."""
        times = nanoseconds(rows.column(self._time))
        bounds = pc.min_max(times)
        first, last = self._window.pane(bounds["min"].as_py()), self._window.pane(bounds["max"].as_py())
        self._keep(rows, first if first == last else self._window.panes(times, first))

    def add_parts(self, parts: pa.RecordBatch) -> None:
        """parts: what others have kept of rows, none of which are late, in `kept_schema`."""
        own, panes = without_panes(parts)
        first = pc.min(panes).as_py()
        self._first = first if self._first is None else min(first, self._first)
        changed = self._put(own, panes)
        if self._plan.in_parts:
            self._merge(changed)

    def _keep(self, rows: pa.RecordBatch, panes: int | pa.Int64Array) -> None:
        """panes: that of all rows, or one for each."""
        first = panes if isinstance(panes, int) else pc.min(panes).as_py()
        self._first = first if self._first is None else min(first, self._first)
        batch = pa.RecordBatch.from_arrays([rows.column(place) for place in self._needed], schema=self._plan.fed)
        if not self._plan.in_parts:
            self._put(batch, panes)
            return
        self._waiting.append((panes, batch))
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= WAITING_ROWS:
            self._take_parts()

    def _take_parts(self) -> None:
        """Makes parts of the rows that wait."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if not waiting:
            return
        (pane, _), *others = waiting
        if isinstance(pane, int) and all(isinstance(other, int) and other == pane for other, _ in others):
            for parts in self._plan.parts.of_one([batch for _, batch in waiting]):
                self._merge(self._put(parts, pane))
            return
        for parts in self._plan.parts.of_several([with_panes(batch, panes) for panes, batch in waiting]):
            self._merge(self._put(*without_panes(parts)))

    def _merge(self, panes: Sequence[_Pane]) -> None:
        """Puts parts together, if there are many."""
        for pane in panes:
            if pane.rows > _FEW_ROWS + 2 * pane.merged:
                self._put_together(pane)

    def _put_together(self, pane: _Pane) -> None:
        merged = self._plan.merged.of_one(pane.kept.batches)
        pane.kept.replace(merged)
        pane.rows = pane.merged = sum(batch.num_rows for batch in merged)
        pane.is_one = True

    def _parts_of(self, pane: int) -> list[pa.RecordBatch]:
        return self._panes[pane].kept.batches if pane in self._panes else []

    def _put(self, batch: pa.RecordBatch, panes: int | pa.Int64Array, place: PartPlace | None = None) -> list[_Pane]:
        """Into its panes. place: where a checkpoint has the batch."""
        changed = []
        for number, part in [(panes, batch)] if isinstance(panes, int) else by_pane(batch, panes):
            if (pane := self._panes.get(number)) is None:
                pane = self._panes[number] = _Pane(Some(self._storage))
            pane.add(part, place if part is batch else None)
            if self._tiers is not None:
                self._tiers.changed(number)
            changed.append(pane)
        return changed

    # ---- Results ----

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results of the windows that the watermark has passed, or of all. It has passed all of them then."""
        if self.watermark is None and not all_of_them:
            return
        upto = None if all_of_them else self.watermark
        if self._has_closing(upto):
            yield from self._closing(upto)
        if upto is not None:
            self.closed = upto
        self._forget()

    def _closing(self, upto: int | None) -> Iterator[Step]:
        self._take_parts()
        panes = sorted(self._panes)
        ends = self._window.ends(panes, self.closed, upto)
        asked: dict[int, list[pa.RecordBatch]] = {}
        n_rows = 0
        while some := list(itertools.islice(ends, _ENDS)):
            for end, kept in zip(some, self._kept_of(panes, some), strict=True):
                asked[end] = kept
                own_rows = sum(batch.num_rows for batch in kept)
                n_rows += own_rows
                if self._window.count == 1 and self._plan.in_parts and own_rows > _MANY * WAITING_ROWS:
                    del asked[end]
                    if asked:
                        yield self._step(asked, panes)
                    yield from self._in_steps(end, self._panes[self._window.moved(end, -1)], panes)
                elif n_rows < WAITING_ROWS:
                    continue
                else:
                    yield self._step(asked, panes)
                asked, n_rows = {}, 0
        if asked:
            yield self._step(asked, panes)

    def _kept_of(self, panes: Sequence[int], ends: Sequence[int]) -> list[list[pa.RecordBatch]]:
        """What there is of the windows with these ends. panes: all, sorted."""
        if self._tiers is not None:
            return self._tiers.of(panes, ends)
        return [
            [batch for pane in self._window.of(panes, end) for batch in self._panes[pane].kept.batches] for end in ends
        ]

    def _step(self, asked: Mapping[int, Sequence[pa.RecordBatch]], panes: Sequence[int]) -> Step:
        """The results of these windows, which are closed then."""
        results = list(self._results(asked))
        self._has_closed(max(asked), panes)
        return results

    def _in_steps(self, end: int, pane: _Pane, panes: Sequence[int]) -> Iterator[Step]:
        """The results of a window of one pane with many keys, which are given out one after the other."""
        if not pane.is_one:
            self._put_together(pane)
        waiting = pane.kept.batches
        while waiting:
            some: list[pa.RecordBatch] = []
            while waiting and sum(batch.num_rows for batch in some) < WAITING_ROWS:
                some.append(waiting.pop(0))
            results = [self._result(batch, _ends(end, batch.num_rows)) for batch in self._plan.result.of_one(some)]
            pane.given += len(some)
            pane.rows -= sum(batch.num_rows for batch in some)
            if not waiting:
                self._has_closed(end, panes)
            yield results

    def _has_closed(self, end: int, panes: Sequence[int]) -> None:
        self.closed = end
        self.watermark = later(self.watermark, end)
        self._forget(panes)

    def _forget(self, panes: Sequence[int] | None = None) -> None:
        """What no window needs that is open. panes: all, sorted, and maybe others that were before them."""
        open_from = None if self.closed is None else self._window.first_open(self.closed)
        if self._first is None or open_from is None or self._first >= open_from:
            return
        panes = sorted(self._panes) if panes is None else panes
        start, stop = (bisect.bisect_left(panes, pane) for pane in (self._first, open_from))
        for pane in panes[start:stop]:
            self._panes.pop(pane).kept.clear()
        self._first = panes[stop] if stop < len(panes) else None
        if self._tiers is not None:
            self._tiers.forget(open_from)

    def _has_closing(self, upto: int | None) -> bool:
        """Whether a window with rows ends up to this time."""
        if self._first is None or upto is None:
            return self._first is not None
        return next(self._window.ends([self._first], self.closed, upto), None) is not None

    def _results(self, asked: Mapping[int, Sequence[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """asked: what is kept, by the ends of windows."""
        if self._is_by_row or (len(asked) == 1 and len(self._plan.schema)):
            for end, kept in asked.items():
                for batch in self._plan.result.of_one(kept):
                    yield self._result(batch, _ends(end, batch.num_rows))
            return
        batches = [with_panes(batch, end) for end, kept in asked.items() for batch in together(kept)]
        results = pa.Table.from_batches(self._plan.result.of_several(batches), with_pane(self._plan.schema))
        for batch in results.take(pc.sort_indices(results.column(0))).to_batches():
            yield self._result(*without_panes(batch))

    def _result(self, batch: pa.RecordBatch, ends: pa.Int64Array) -> pa.RecordBatch:
        """Results of windows with these ends."""
        return self._of_windows.of(batch, self._window.starts(ends), ends)

    def take(self) -> list[pa.RecordBatch]:
        """All that is open, in `kept_schema`. Nothing is kept of it."""
        parts = [part.rows for part in self.kept()]
        for pane in self._panes.values():
            pane.kept.clear()
        self._panes, self._first = {}, None
        return parts

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """What is open."""
        self._take_parts()
        for number, pane in sorted(self._panes.items()):
            form = partial(with_panes, panes=number)
            for part in pane.kept.parts[pane.given :]:
                yield KeptRows(part, form)

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: `closed` of the moment when they were kept."""
        self.watermark = self.closed = watermark
        for one in kept:
            self._put(*without_panes(one.rows), one.part.place)
        for pane in self._panes.values():
            pane.merged = pane.rows  # or the next rows would write all parts anew
        self._first = min(self._panes, default=None)

    @property
    def size(self) -> int:
        """The bytes of what is open, in memory and in files."""
        return self._storage.memory + self._storage.disk + sum(int(batch.nbytes) for _, batch in self._waiting)


def _ends(end: int, n_rows: int) -> pa.Int64Array:
    return pa.repeat(pa.scalar(end, PANE.type), n_rows)
