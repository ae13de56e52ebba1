"""The open sessions.

What is kept are pieces of sessions, each with its first and last time. If aggregates are kept in parts, a piece has
those of its rows. Otherwise it has a number, by which session_rows.py finds its rows. session_pieces.py says which
sessions are over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..datafusion.feed import TABLE
from ..datafusion.tokens import quoted
from .grouping import BatchQuery, Grouping, GroupingPlan
from .kept import KeptRows
from .numbering import Numbered, numbered
from .panes import WAITING_ROWS
from .results import Results, Step
from .session_pieces import FIRST, LAST, OverSessions, SessionPieces, concatenated
from .session_rows import SESSION, SessionRows
from .spans import Session, before, later, nanoseconds
from .storage import Storage, StorageLimits


class Sessions:
    """As `panes.Windows`. A row is late if a session that begins with it would be over."""

    def __init__(self, grouping: Grouping, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        assert isinstance(grouping.window, Session)
        self._gap, self._table = grouping.window.gap, grouping.table
        plan = self._plan = GroupingPlan(grouping, given, [FIRST, LAST, SESSION])
        self._time = given.get_field_index(grouping.time)
        self._needed = [given.get_field_index(name) for name in plan.needed]
        self._of_windows = Results(grouping, plan.schema, given.field(self._time).type)
        self.schema = self._of_windows.schema
        self.kept_schema, self.meanings = pa.schema([FIRST, LAST, *plan.kept]), plan.meanings
        self._fed = pa.schema([FIRST, LAST, *plan.fed])
        self._n_keys = len(grouping.keys)
        keys = [pa.field(name, given.field(name).type) for name in grouping.keys]
        parts = list(plan.kept)[self._n_keys :] if plan.in_parts else [SESSION]
        self._piece = pa.schema([FIRST, LAST, *keys, *parts])
        if plan.in_parts:
            self._parts = self._by_session(plan.part_texts, plan.fed, parts)
            self._merged = self._by_session(plan.merge_texts, plan.kept, parts)
        self._result = self._by_session(plan.result_texts, plan.kept, list(plan.schema)[self._n_keys :])
        self._storage = Storage(limits)
        self._rows = SessionRows(self._storage)
        join = (lambda pieces, numbers: self._joined(pieces, numbers, self._merged)) if plan.in_parts else None
        self._pieces = SessionPieces(self._storage, self._n_keys, self._gap, join)
        self.watermark: int | None = None
        self.closed: int | None = None
        self._waiting: list[pa.RecordBatch] = []  # rows, each with its time twice
        self._waiting_rows = 0
        self._first: int | None = None  # no session has an earlier last time

    def _by_session(self, texts: Sequence[str], given: pa.Schema, results: Sequence[pa.Field]) -> BatchQuery | None:
        """A query over rows with the numbers of their sessions. None: it asks nothing."""
        items = ", ".join([SESSION.name, *(f"{text}\nAS {quoted(f'__{n}')}" for n, text in enumerate(texts))])
        text = f"SELECT {items}\nFROM {TABLE} AS {quoted(self._table)}\nGROUP BY {SESSION.name}"
        functions = self._plan.functions
        return (
            BatchQuery(text, pa.schema([SESSION, *given]), pa.schema([SESSION, *results]), self._table, functions)
            if texts
            else None
        )

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of `panes.Windows`."""
        first = None if self.watermark is None else self.watermark - self._gap + 1
        return before(rows.column(self._time), first)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: at least one, none of them late."""
        times = nanoseconds(rows.column(self._time))
        columns = [times, times, *(rows.column(place) for place in self._needed)]
        self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=self._fed))
        self._waiting_rows += len(times)
        first = pc.min(times).as_py()
        self._first = first if self._first is None else min(first, self._first)
        if self._waiting_rows >= WAITING_ROWS:
            self._take_in()

    def _take_in(self) -> None:
        """Rows that wait become pieces of sessions."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if waiting:
            rows = concatenated(waiting)
            firsts = rows.column(0)
            self._add_pieces(rows, numbered(self._keys(rows), firsts, firsts, self._gap))

    def _add_pieces(self, rows: pa.RecordBatch, numbers: Numbered) -> None:
        if self._plan.in_parts:
            self._pieces.add(self._joined(rows, numbers, self._parts))
            return
        rows = rows.take(numbers.order)
        ends = pa.concat_arrays([numbers.starts[1:], pa.array([len(rows)], numbers.starts.type)])
        parts = self._rows.add(rows, pc.subtract(ends, numbers.starts).cast(pa.int64()))
        keys = [key.take(numbers.starts) for key in self._keys(rows)]
        self._pieces.add(pa.RecordBatch.from_arrays([numbers.firsts, numbers.lasts, *keys, parts], schema=self._piece))

    def _joined(self, rows: pa.RecordBatch, numbers: Numbered, asked: BatchQuery | None) -> pa.RecordBatch:
        """A piece with the parts of each session."""
        columns = [column.take(numbers.order) for column in rows.columns[2:]]
        keys = [key.take(numbers.order.take(numbers.starts)) for key in self._keys(rows)]
        parts = self._answered(asked, [(numbers.session, columns)])
        return pa.RecordBatch.from_arrays([numbers.firsts, numbers.lasts, *keys, *parts], schema=self._piece)

    def _keys(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return [rows.column(name) for name in self._piece.names[2 : 2 + self._n_keys]]

    def _answered(
        self, asked: BatchQuery | None, given: Iterable[tuple[pa.Int64Array, Sequence[pa.Array]]]
    ) -> list[pa.Array]:
        """The answer's columns, in the order of the sessions. given: these, and other columns."""
        if asked is None:
            return []
        rows = [pa.RecordBatch.from_arrays([session, *columns], schema=asked.given) for session, columns in given]
        answer = concatenated(asked.of(rows))
        return list(answer.take(pc.sort_indices(answer.column(0))).columns[1:])

    # ---- Results ----

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results of the sessions that the watermark has passed, or of all. It has passed all of them then."""
        if all_of_them:
            self._take_in()
            last = self._pieces.last
            self.watermark = later(self.watermark, None if last is None else last + self._gap)
        if self.watermark is None:
            return
        until = self.watermark - self._gap + 1
        if self._first is not None and self._first < until:
            self._take_in()
            for cut in self._pieces.cuts(until):
                over = self._pieces.take(cut)
                results = [] if over is None else list(self._results(over))
                self.closed = cut - 1 + self._gap
                yield results
            self._first = self._pieces.first
        self.closed = self.watermark

    def _results(self, over: OverSessions) -> Iterator[pa.RecordBatch]:
        if self._plan.in_parts:
            yield self._result_of(over, 0, self._answered(self._result, [(over.session, over.pieces.columns[2:])]))
            return
        numbers = over.pieces.column(SESSION.name)
        some = len(over.firsts) // self._storage.times + 1  # so that their rows fit into memory
        for start in range(0, len(over.firsts), some):
            is_asked = pc.and_(pc.greater_equal(over.session, start), pc.less(over.session, start + some))
            session = pc.subtract(over.session.filter(is_asked), start)
            taken = self._rows.take_out(numbers.filter(is_asked))
            columns = self._answered(self._result, ((session.take(which), rows.columns[2:]) for which, rows in taken))
            yield self._result_of(over, start, columns)

    def _result_of(self, over: OverSessions, start: int, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """columns: of the sessions from that one on."""
        n_rows = len(columns[0]) if columns else len(over.firsts)
        keys, firsts, lasts = (
            [array.slice(start, n_rows) for array in arrays] for arrays in (over.keys, [over.firsts], [over.lasts])
        )
        results = pa.RecordBatch.from_arrays([*keys, *columns], schema=self._plan.schema)
        return self._of_windows.of(results, firsts[0], pc.add(lasts[0], self._gap))

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """As `panes.Windows.kept`. A piece is written once, with all its rows."""
        self._take_in()
        parts = self._pieces.parts() if self._plan.in_parts else self._rows.parts()
        return (KeptRows(part, notes=notes) for part, notes in parts)

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: `closed` of the moment when they were kept."""
        self.watermark = self.closed = watermark
        for batch in (one.left for one in kept):
            if not batch.num_rows:
                continue  # all of them have left
            if self._plan.in_parts:
                self._pieces.add(batch)
            else:
                self._add_pieces(batch, numbered(self._keys(batch), batch.column(0), batch.column(1), self._gap))
        self._first = self._pieces.first

    @property
    def size(self) -> int:
        """The bytes of what is open, in memory and in files."""
        own = sum(int(batch.nbytes) for batch in self._waiting)
        return self._storage.memory + self._storage.disk + own
