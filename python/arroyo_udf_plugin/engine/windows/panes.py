"""The open windows: what is kept of each pane.

Rows wait until there are enough for a query. Rows of one window come out of one query, and windows that are small come
out of one query together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from .grouping import Grouping, GroupingPlan
from .kept import KeptRows, PartPlace
from .results import Results
from .spans import WindowSteps, before, later, nanoseconds
from .storage import Some, Storage, StorageLimits

PANE = pa.field("__pane", pa.int64())
WAITING_ROWS = 131_072  # for a query: it costs as much as some ten thousand rows
_FEW_ROWS = 16_384  # of parts: they need not be merged


@dataclasses.dataclass
class _Pane:
    """kept: rows, or parts. rows: of them. merged: rows that there were after the latest merge."""

    kept: Some
    rows: int = 0
    merged: int = 0

    def add(self, batch: pa.RecordBatch, place: PartPlace | None = None) -> None:
        self.kept.add(batch, place)
        self.rows += batch.num_rows


class WindowPanes:
    """schema: of the results. kept_schema: of what `kept` gives. meanings: see `GroupingPlan`.

    watermark: the latest; None: there was none yet.
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
        self.kept_schema, self.meanings = _with_pane(self._plan.kept), self._plan.meanings
        self.watermark: int | None = None
        self._closed: int | None = None  # windows are, whose ends are not behind it
        self._first: int | None = None  # the earliest pane
        self._panes: dict[int, _Pane] = {}
        self._storage = Storage(limits)
        self._waiting: list[tuple[int | pa.Int64Array, pa.RecordBatch]] = []  # rows that are no parts yet, with panes
        self._waiting_rows = 0

    # ---- Rows ----

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
        for parts in self._plan.parts.of_several([_with_panes(batch, panes) for panes, batch in waiting]):
            self._merge(self._put(*_without_panes(parts)))

    def _merge(self, panes: Sequence[_Pane]) -> None:
        """Puts parts together, if there are many."""
        for pane in panes:
            if pane.rows > _FEW_ROWS + 2 * pane.merged:
                merged = self._plan.merged.of_one(pane.kept.batches)
                pane.kept.replace(merged)
                pane.rows = pane.merged = sum(batch.num_rows for batch in merged)

    def _put(self, batch: pa.RecordBatch, panes: int | pa.Int64Array, place: PartPlace | None = None) -> list[_Pane]:
        """Into its panes. place: where a checkpoint has the batch."""
        changed = []
        for number, part in [(panes, batch)] if isinstance(panes, int) else by_pane(batch, panes):
            if (pane := self._panes.get(number)) is None:
                pane = self._panes[number] = _Pane(Some(self._storage))
            pane.add(part, place if part is batch else None)
            changed.append(pane)
        return changed

    # ---- Results ----

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results of the windows that the watermark has passed, or of all. It has passed all of them then."""
        upto = None if all_of_them else self.watermark
        if self._has_closing(upto):
            yield from self._closing(upto)
            if upto is None and self._closed is not None:
                self.watermark = later(self.watermark, self._closed)
        if upto is not None:
            self._closed = upto
        if self._first is not None and self._closed is not None:
            open_from = self._window.first_open(self._closed)
            if self._first < open_from:
                for number in [pane for pane in self._panes if pane < open_from]:
                    self._panes.pop(number).kept.clear()
                self._first = min(self._panes, default=None)

    def _closing(self, upto: int | None) -> Iterator[pa.RecordBatch]:
        self._take_parts()
        panes = sorted(self._panes)
        asked: dict[int, list[pa.RecordBatch]] = {}
        n_rows = 0
        for end in self._window.ends(panes, self._closed, upto):
            own = [self._panes[pane] for pane in self._window.of(panes, end)]
            asked[end] = [batch for pane in own for batch in pane.kept.batches]
            n_rows += sum(pane.rows for pane in own)
            self._closed = end
            if n_rows >= WAITING_ROWS:
                yield from self._results(asked)
                asked, n_rows = {}, 0
        if asked:
            yield from self._results(asked)

    def _has_closing(self, upto: int | None) -> bool:
        """Whether a window with rows ends up to this time."""
        if self._first is None or upto is None:
            return self._first is not None
        return next(self._window.ends([self._first], self._closed, upto), None) is not None

    def _results(self, asked: Mapping[int, Sequence[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """asked: what is kept, by the ends of windows."""
        if self._is_by_row or (len(asked) == 1 and len(self._plan.schema)):
            for end, kept in asked.items():
                for batch in self._plan.result.of_one(kept):
                    yield self._result(batch, pa.repeat(pa.scalar(end, PANE.type), batch.num_rows))
            return
        batches = [_with_panes(batch, end) for end, kept in asked.items() for batch in kept]
        results = pa.Table.from_batches(self._plan.result.of_several(batches), _with_pane(self._plan.schema))
        for batch in results.take(pc.sort_indices(results.column(0))).to_batches():
            yield self._result(*_without_panes(batch))

    def _result(self, batch: pa.RecordBatch, ends: pa.Int64Array) -> pa.RecordBatch:
        """Results of windows with these ends."""
        return self._of_windows.of(batch, self._window.starts(ends), ends)

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """What is open."""
        self._take_parts()
        for number, pane in sorted(self._panes.items()):
            form = partial(_with_panes, panes=number)
            for part in pane.kept.parts:
                yield KeptRows(part, form)

    @property
    def kept_rows(self) -> int:
        """Of what `kept` gives."""
        self._take_parts()
        return sum(pane.rows for pane in self._panes.values())

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept; what it closes has left."""
        self.watermark = self._closed = watermark
        for one in kept:
            self._put(*_without_panes(one.rows), one.part.place)
        for pane in self._panes.values():
            pane.merged = pane.rows  # or the next rows would write all parts anew
        self._first = min(self._panes, default=None)

    @property
    def size(self) -> int:
        """The bytes of what is open, in memory and in files."""
        return self._storage.memory + self._storage.disk + sum(int(batch.nbytes) for _, batch in self._waiting)


def by_pane(batch: pa.RecordBatch, panes: pa.Int64Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each pane, which come in their order."""
    bounds = pc.min_max(panes)
    if bounds["min"] == bounds["max"]:
        yield bounds["min"].as_py(), batch
        return
    order = pc.sort_indices(panes)
    runs = pc.run_end_encode(panes.take(order), pa.int64())
    start = 0
    for pane, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield pane, batch.take(order.slice(start, stop - start))
        start = stop


def _with_panes(batch: pa.RecordBatch, panes: int | pa.Int64Array) -> pa.RecordBatch:
    """With the first column of `kept_schema`."""
    if isinstance(panes, int):
        panes = pa.repeat(pa.scalar(panes, PANE.type), batch.num_rows)
    return pa.RecordBatch.from_arrays([panes, *batch.columns], schema=_with_pane(batch.schema))


def _without_panes(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Int64Array]:
    return batch.remove_column(0), batch.column(0)


def _with_pane(schema: pa.Schema) -> pa.Schema:
    return pa.schema([PANE, *schema])
