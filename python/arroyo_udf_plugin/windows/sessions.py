"""The open sessions.

What is kept are pieces of sessions, each with its first and last time: rows, or parts of sessions. A query finds out
which pieces of a key belong together: those between which there is no gap. It is asked when the watermark may have
passed the end of a session, and when many rows wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..sql.feed import TABLE
from ..sql.tokens import quoted
from .grouping import Answers, Grouping, Plan
from .panes import WAITING_ROWS
from .results import Results
from .spans import Session, nanoseconds

FIRST, LAST = pa.field("__first", pa.int64()), pa.field("__last", pa.int64())


class Sessions:
    """As `panes.Windows`. A row is late if a session that begins with it would be over."""

    def __init__(self, grouping: Grouping, given: pa.Schema) -> None:
        assert isinstance(grouping.window, Session)
        self._gap, self._table = grouping.window.gap, grouping.table
        self._plan = Plan(grouping, given, [FIRST, LAST])
        self._time = given.get_field_index(grouping.time)
        self._needed = [given.get_field_index(name) for name in self._plan.needed]
        self._of_windows = Results(grouping, self._plan.schema, given.field(self._time).type)
        self.schema = self._of_windows.schema
        self.kept_schema = pa.schema([FIRST, LAST, *self._plan.kept])
        self._fed = pa.schema([FIRST, LAST, *self._plan.fed])
        self._n_keys = len(grouping.keys)
        self._numbered = _numbered(grouping.keys, self._gap)
        if self._plan.in_parts:
            self._parts = self._joining(self._fed, self._plan.part_texts)
            self._joined = self._joining(self.kept_schema, self._plan.merge_texts)
        else:
            bounds = self._numbered + _bounds(self.kept_schema, grouping.keys)
            self._joined = Answers(bounds, self._fed, self._fed, self._table).of
        self.watermark: int | None = None
        self.late = 0
        self._kept: list[pa.RecordBatch] = []
        self._waiting: list[pa.RecordBatch] = []  # rows
        self._waiting_rows = 0
        self._first_end: int | None = None  # no session ends before it

    def add(self, rows: pa.RecordBatch) -> int:
        """Returns how many of them are late."""
        times = nanoseconds(rows.column(self._time))
        first, late = pc.min(times).as_py(), 0
        if self.watermark is not None and first + self._gap <= self.watermark:
            in_time = pc.greater(times, self.watermark - self._gap)
            rows, times = rows.filter(in_time), times.filter(in_time)
            late = len(in_time) - len(times)
            first = pc.min(times).as_py()
        self.late += late
        if first is not None:
            columns = [times, times, *(rows.column(place) for place in self._needed)]
            self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=self._fed))
            self._waiting_rows += len(times)
            end = first + self._gap
            self._first_end = end if self._first_end is None else min(end, self._first_end)
            if self._waiting_rows >= WAITING_ROWS:
                self._take_parts()
        return late

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results of the sessions that the watermark has passed, or of all."""
        if self._first_end is None:
            return
        if not all_of_them and (self.watermark is None or self._first_end > self.watermark):
            return
        self._take_parts()
        found = pa.Table.from_batches(self._joined(self._kept), self.kept_schema).combine_chunks()
        is_open = pa.nulls(len(found), pa.bool_()).fill_null(False)
        if not all_of_them and self.watermark is not None:
            is_open = pc.greater(found.column(LAST.name), self.watermark - self._gap)
        over, open_ = found.filter(pc.invert(is_open)).to_batches(), found.filter(is_open)
        self._kept = open_.to_batches()
        last = pc.min(open_.column(LAST.name)).as_py()
        self._first_end = None if last is None else last + self._gap
        if over:
            yield from self._results(over)

    def _results(self, over: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([FIRST, LAST, *self._plan.schema])
        found = pa.Table.from_batches(self._plan.result.of_several(over), schema)
        for batch in found.take(pc.sort_indices(found.column(LAST.name))).to_batches():
            ends = pc.add(batch.column(1), self._gap)
            yield self._of_windows.of(batch.remove_column(0).remove_column(0), batch.column(0), ends)

    def _take_parts(self) -> None:
        """Rows that wait become pieces of sessions."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if waiting and self._plan.in_parts:
            waiting = self._parts(waiting)
        self._kept += waiting

    def _joining(
        self, given: pa.Schema, texts: Sequence[str]
    ) -> Callable[[Sequence[pa.RecordBatch]], list[pa.RecordBatch]]:
        """Makes one piece of each session. given: of pieces, or of rows. texts: their parts."""
        items = ["min(__first)", "max(__last)", *texts]
        keys, parts = list(self._plan.kept)[: self._n_keys], list(self._plan.kept)[self._n_keys :]
        found = pa.schema([pa.field("__session", pa.int64()), *keys, FIRST, LAST, *parts])
        text = self._numbered + self._plan.text(items, ["__session"], "__numbered")
        answers = Answers(text, given, found, self._table)
        order = [*self.kept_schema.names]
        return lambda pieces: [answer.select(order) for answer in answers.of(pieces)]

    def kept(self) -> list[pa.RecordBatch]:
        """What is open."""
        self._take_parts()
        return list(self._kept)

    def restore(self, kept: Sequence[pa.RecordBatch], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept."""
        self.watermark, self._kept = watermark, list(kept)
        lasts = [pc.min(batch.column(1)).as_py() for batch in kept if batch.num_rows]
        self._first_end = min(lasts) + self._gap if lasts else None

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        return sum(batch.nbytes for batch in [*self._kept, *self._waiting])


def _numbered(keys: Sequence[str], gap: int) -> str:
    """The beginning of a query: pieces with the numbers of their sessions, which each key counts for itself."""
    partition = f"PARTITION BY {', '.join(map(quoted, keys))} " if keys else ""
    return f"""
        WITH __before AS (
            SELECT *, max(__last) OVER (
                {partition}ORDER BY __first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS __until
            FROM {TABLE}
        ), __numbered AS (
            SELECT *, sum(CASE WHEN __first - __until < {gap} THEN 0 ELSE 1 END) OVER (
                {partition}ORDER BY __first ROWS UNBOUNDED PRECEDING) AS __session
            FROM __before
        )
    """


def _bounds(schema: pa.Schema, keys: Sequence[str]) -> str:
    """Its end, for rows: each with the first and last time of its session."""
    session = f"PARTITION BY {', '.join([*map(quoted, keys), '__session'])}"
    others = ", ".join(quoted(name) for name in schema.names[2:])
    return f"SELECT min(__first) OVER ({session}), max(__last) OVER ({session}), {others} FROM __numbered"
