"""The open sessions.

What is kept are pieces of sessions, each with its first and last time. If aggregates are kept in parts, a piece has
those of its rows. Otherwise it has a number, and the rows with this number are its own. Pieces of one session are
joined (numbering.py) when the watermark may have passed the end of a session, and when many rows wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..datafusion.feed import TABLE
from ..datafusion.tokens import quoted
from .grouping import BatchQuery, Grouping, GroupingPlan
from .kept import KeptPart, KeptRows
from .numbering import Numbered, numbered
from .panes import WAITING_ROWS
from .results import Results
from .session_rows import SESSION, Chosen, SessionRows
from .spans import Session, before, later, nanoseconds
from .storage import Storage, StorageLimits

FIRST, LAST = pa.field("__first", pa.int64()), pa.field("__last", pa.int64())


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
        self._rows = SessionRows(plan.fed, self._storage)
        self.watermark: int | None = None
        self._pieces: list[pa.RecordBatch] = []
        self._waiting: list[pa.RecordBatch] = []  # rows, each with its time twice
        self._waiting_rows = 0
        self._first_end: int | None = None  # no session ends before it

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
        end = pc.min(times).as_py() + self._gap
        self._first_end = end if self._first_end is None else min(end, self._first_end)
        if self._waiting_rows >= WAITING_ROWS:
            self._take_in()

    def _take_in(self) -> None:
        """Rows that wait become pieces of sessions."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if waiting:
            rows = _concatenated(waiting)
            self._add_pieces(rows, self._numbered(rows, are_moments=True))

    def _add_pieces(self, rows: pa.RecordBatch, numbers: Numbered) -> None:
        columns = [column.take(numbers.order) for column in rows.columns[2:]]
        if self._plan.in_parts:
            parts = self._answered(self._parts, [(numbers.session, columns)])
        else:
            parts = [self._rows.add(numbers.session, columns, len(numbers.starts))]
        keys = [key.take(numbers.order).take(numbers.starts) for key in self._keys(rows)]
        self._pieces.append(
            pa.RecordBatch.from_arrays([numbers.firsts, numbers.lasts, *keys, *parts], schema=self._piece)
        )

    def _numbered(self, rows: pa.RecordBatch, are_moments: bool = False) -> Numbered:
        firsts = rows.column(0)
        return numbered(self._keys(rows), firsts, firsts if are_moments else rows.column(1), self._gap)

    def _keys(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return [rows.column(name) for name in self._piece.names[2 : 2 + self._n_keys]]

    def _answered(
        self, asked: BatchQuery | None, given: Sequence[tuple[pa.Int64Array, Sequence[pa.Array]]]
    ) -> list[pa.Array]:
        """The answer's columns, in the order of the sessions. given: these, and other columns."""
        if asked is None:
            return []
        rows = [pa.RecordBatch.from_arrays([session, *columns], schema=asked.given) for session, columns in given]
        answer = _concatenated(asked.of(rows))
        return list(answer.take(pc.sort_indices(answer.column(0))).columns[1:])

    # ---- Results ----

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results of the sessions that the watermark has passed, or of all. It has passed all of them then."""
        if self._first_end is None:
            return
        if not all_of_them and (self.watermark is None or self._first_end > self.watermark):
            return
        self._join()
        (piece,) = self._pieces
        is_open = pa.repeat(False, len(piece))
        if not all_of_them and self.watermark is not None:
            is_open = pc.greater(piece.column(LAST.name), self.watermark - self._gap)
        over, open_ = piece.filter(pc.invert(is_open)), piece.filter(is_open)
        self._pieces = [open_] if len(open_) else []
        last = pc.min(open_.column(LAST.name)).as_py()
        self._first_end = None if last is None else last + self._gap
        if all_of_them:
            self.watermark = later(self.watermark, pc.max(over.column(LAST.name)).as_py() + self._gap)
        if len(over):
            over = over.take(pc.sort_indices(over.column(LAST.name)))
            some = len(over) // self._storage.times + 1  # so that their rows fit into memory
            for start in range(0, len(over), some):
                left = pa.concat_arrays([over.column(-1)[start + some :], open_.column(-1)])
                yield self._results(over.slice(start, some), left)

    def _results(self, over: pa.RecordBatch, left: pa.Array) -> pa.RecordBatch:
        """left: the numbers of sessions that stay."""
        keys, parts = over.columns[2 : 2 + self._n_keys], over.columns[2 + self._n_keys :]
        if self._plan.in_parts:
            session = pa.array(range(len(over)), SESSION.type)
            columns = self._answered(self._result, [(session, [*keys, *parts])])
        else:
            rows = self._rows.take_out(parts[0], left)
            columns = self._answered(self._result, [(session, some.columns) for session, some in rows])
        results = pa.RecordBatch.from_arrays([*keys, *columns], schema=self._plan.schema)
        return self._of_windows.of(results, over.column(0), pc.add(over.column(1), self._gap))

    def _join(self) -> None:
        """Makes one piece of each session."""
        self._take_in()
        if len(self._pieces) < 2:
            return
        pieces = _concatenated(self._pieces)
        numbers = self._numbered(pieces)
        columns = [column.take(numbers.order) for column in pieces.columns[2:]]
        keys = [column.take(numbers.starts) for column in columns[: self._n_keys]]
        if self._plan.in_parts:
            parts = self._answered(self._merged, [(numbers.session, columns)])
        else:
            own = columns[-1].take(numbers.starts)
            self._rows.join(columns[-1], own.take(numbers.session))
            parts = [own]
        self._pieces = [pa.RecordBatch.from_arrays([numbers.firsts, numbers.lasts, *keys, *parts], schema=self._piece)]

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """As `panes.Windows.kept`. Sessions grow and become one, so each checkpoint writes all of them."""
        self._take_in()
        if self._plan.in_parts:
            yield from (KeptRows(KeptPart(piece)) for piece in self._pieces)
            return
        self._join()
        for pieces in self._pieces:
            batches, choose = self._rows.asked(pieces.column(-1))
            form = partial(self._form, pieces, choose)
            yield from (KeptRows(KeptPart(batch), form) for batch in batches)

    @property
    def kept_rows(self) -> int:
        """As of `panes.Windows`."""
        self._take_in()
        return sum(map(len, self._pieces)) if self._plan.in_parts else self._rows.open

    def _form(
        self, pieces: pa.RecordBatch, choose: Callable[[pa.RecordBatch], Chosen], batch: pa.RecordBatch
    ) -> pa.RecordBatch:
        """Rows with the first and last time of their sessions."""
        at, rows = choose(batch)
        bounds = [pieces.column(place).take(at) for place in (0, 1)]
        return pa.RecordBatch.from_arrays([*bounds, *rows.columns], schema=self.kept_schema)

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept."""
        self.watermark = watermark
        for batch in (one.rows for one in kept):
            if self._plan.in_parts:
                self._pieces.append(batch)
            elif batch.num_rows:
                self._add_pieces(batch, self._numbered(batch))
        lasts = [pc.min(batch.column(1)).as_py() for batch in self._pieces if batch.num_rows]
        self._first_end = min(lasts) + self._gap if lasts else None

    @property
    def size(self) -> int:
        """The bytes of what is open, in memory and in files."""
        own = sum(int(batch.nbytes) for batch in [*self._pieces, *self._waiting])
        return self._storage.memory + self._storage.disk + own


def _concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """At least one, as one. Raises ArrowInvalid if its texts are more than 2 GiB."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(column) for column in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
