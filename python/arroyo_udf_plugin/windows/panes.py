"""The open windows: what is kept of each pane.

Rows wait until there are enough for a query. Rows of one window come out of one query, and windows that are small come
out of one query together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument
from .grouping import PANE, Grouping, Plan
from .spans import nanoseconds, times_of

_WAITING_ROWS = 65_536
_FEW_ROWS = 16_384  # of parts: they need not be merged


@dataclasses.dataclass
class _Pane:
    """kept: rows, or parts. rows: of them. merged: rows that there were after the latest merge."""

    kept: list[pa.RecordBatch] = dataclasses.field(default_factory=list)
    rows: int = 0
    merged: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.kept.append(batch)
        self.rows += batch.num_rows


class Windows:
    """schema: of the results. kept_schema: of what `kept` gives.

    watermark: the latest; None: there was none yet. late: rows so far that were late.
    """

    def __init__(self, grouping: Grouping, given: pa.Schema) -> None:
        """given: of the rows. Raises WrongQuery."""
        self._window = grouping.window
        self._plan = Plan(grouping, given)
        self._time = given.get_field_index(grouping.time)
        self._needed = [given.get_field_index(name) for name in self._plan.needed]
        self._fed = pa.schema([PANE, *(given.field(place) for place in self._needed)])
        ends = pa.struct([("start", pa.timestamp("ns")), ("end", pa.timestamp("ns"))])
        self._n_keys = len(grouping.keys)
        fields = list(self._plan.schema)[1:]
        self.schema = pa.schema(
            [
                *fields[: self._n_keys],
                pa.field(grouping.column, ends),
                *fields[self._n_keys :],
                pa.field(grouping.time, given.field(self._time).type),
            ]
        )
        self.kept_schema = self._plan.kept
        self.watermark: int | None = None
        self.late = 0
        self._closed: int | None = None  # windows are, whose ends are not behind it
        self._first: int | None = None  # the earliest pane
        self._panes: dict[int, _Pane] = {}
        self._waiting: list[pa.RecordBatch] = []  # rows that are no parts yet
        self._waiting_rows = 0
        self._waiting_pane: int | None = None  # of all of them; None: there are several

    # ---- Rows ----

    def add(self, rows: pa.RecordBatch) -> int:
        """Returns how many of them are late."""
        times = nanoseconds(rows.column(self._time))
        if times.null_count:
            raise InvalidArgument("an event time is null: leave such rows out before windows")
        bounds = pc.min_max(times)
        first, last = self._window.pane(bounds["min"].as_py()), self._window.pane(bounds["max"].as_py())
        if first == last:
            late = rows.num_rows if self._is_over(first) else 0
            if not late:
                self._keep(rows, pa.repeat(pa.scalar(first, PANE.type), rows.num_rows), first)
        else:
            late = self._add_some(rows, self._window.panes(times, first), first)
        self.late += late
        return late

    def _add_some(self, rows: pa.RecordBatch, panes: pa.Int64Array, first: int) -> int:
        """Rows of several panes. first: the earliest of them."""
        late = 0
        if self.watermark is not None and self._is_over(first):
            open_ = pc.greater(panes, self.watermark - self._window.width)
            late = rows.num_rows - pc.sum(open_).as_py()
            rows, panes = rows.filter(open_), panes.filter(open_)
        if rows.num_rows:
            self._keep(rows, panes, None)
        return int(late)

    def _is_over(self, pane: int) -> bool:
        """Whether the watermark has passed all windows of a pane."""
        return self.watermark is not None and pane + self._window.width <= self.watermark

    def _keep(self, rows: pa.RecordBatch, panes: pa.Int64Array, pane: int | None) -> None:
        """pane: of all rows, if they have the same."""
        first = pc.min(panes).as_py() if pane is None else pane
        self._first = first if self._first is None else min(first, self._first)
        columns = [panes, *(rows.column(place) for place in self._needed)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._fed)
        if not self._plan.in_parts:
            self._put(batch)
            return
        self._waiting_pane = pane if not self._waiting or pane == self._waiting_pane else None
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= _WAITING_ROWS:
            self._take_parts()

    def _take_parts(self) -> None:
        """Makes parts of the rows that wait."""
        if not self._waiting:
            return
        parts = self._plan.parts.of(self._waiting, self._waiting_pane)
        self._waiting, self._waiting_rows = [], 0
        for batch in parts:
            for number, pane in self._put(batch):
                if pane.rows > _FEW_ROWS + 2 * pane.merged:
                    merged = self._plan.merged.of(pane.kept, number)
                    pane.kept, pane.rows = merged, sum(one.num_rows for one in merged)
                    pane.merged = pane.rows

    def _put(self, batch: pa.RecordBatch) -> list[tuple[int, _Pane]]:
        """Into its panes."""
        found = []
        for number, part in _by_pane(batch):
            pane = self._panes.setdefault(number, _Pane())
            pane.add(part)
            found.append((number, pane))
        return found

    # ---- Results ----

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results of the windows that the watermark has passed, or of all."""
        upto = None if all_of_them else self.watermark
        if self._has_closing(upto):
            yield from self._closing(upto)
        if upto is not None:
            self._closed = upto
        if self._first is not None and self._closed is not None and self._first + self._window.width <= self._closed:
            self._panes = {n: pane for n, pane in self._panes.items() if n + self._window.width > self._closed}
            self._first = min(self._panes, default=None)

    def _closing(self, upto: int | None) -> Iterator[pa.RecordBatch]:
        self._take_parts()
        panes = sorted(self._panes)
        asked: dict[int, list[pa.RecordBatch]] = {}
        n_rows = 0
        for end in self._window.ends(panes, self._closed, upto):
            own = [self._panes[pane] for pane in self._window.of(panes, end)]
            asked[end] = [_with_pane(batch, end) for pane in own for batch in pane.kept]
            n_rows += sum(pane.rows for pane in own)
            self._closed = end
            if n_rows >= _WAITING_ROWS:
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
        """asked: by the ends of windows."""
        batches = [batch for own in asked.values() for batch in own]
        if len(asked) == 1:
            (end,) = asked
            yield from map(self._result, self._plan.result.of(batches, end))
            return
        found = pa.Table.from_batches(self._plan.result.of(batches, None), self._plan.schema)
        yield from map(self._result, found.take(pc.sort_indices(found.column(0))).to_batches())

    def _result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ends = batch.column(0)
        window = self.schema.field(self._n_keys)
        starts = pc.subtract(ends, self._window.width)
        bounds = [one.view(pa.timestamp("ns")) for one in (starts, ends)]
        time = times_of(pc.subtract(ends, 1), self.schema.types[-1])
        keys, aggregates = batch.columns[1 : 1 + self._n_keys], batch.columns[1 + self._n_keys :]
        columns = [*keys, pa.StructArray.from_arrays(bounds, fields=list(window.type)), *aggregates, time]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    # ---- Checkpoints ----

    def kept(self) -> list[pa.RecordBatch]:
        """What is open."""
        self._take_parts()
        return [batch for _, pane in sorted(self._panes.items()) for batch in pane.kept]

    def restore(self, kept: Sequence[pa.RecordBatch], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept; what it closes has left."""
        self.watermark = self._closed = watermark
        for batch in kept:
            self._put(batch)
        self._first = min(self._panes, default=None)

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        batches = [*self._waiting, *(batch for pane in self._panes.values() for batch in pane.kept)]
        return sum(batch.nbytes for batch in batches)


def _by_pane(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    bounds = pc.min_max(batch.column(0))
    if bounds["min"] == bounds["max"]:
        yield bounds["min"].as_py(), batch
        return
    batch = batch.take(pc.sort_indices(batch.column(0)))
    start = 0
    runs = pc.run_end_encode(batch.column(0), pa.int64())
    for pane, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield pane, batch.slice(start, stop - start)
        start = stop


def _with_pane(batch: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """The same rows, of the window with this end."""
    ends = pa.repeat(pa.scalar(end, PANE.type), batch.num_rows)
    return pa.RecordBatch.from_arrays([ends, *batch.columns[1:]], schema=batch.schema)
