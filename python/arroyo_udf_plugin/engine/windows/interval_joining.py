"""Two inputs joined: rows whose event times are near each other.

    rows of both ──► kept by their time ──► a watermark passes them: JOIN ON right.time - left.time BETWEEN ...: pairs
                                            it passes their interval: those that have met nobody, with nulls

A pair is there when the watermark has passed the later one of its rows; that is its event time. A row that an outer
join keeps leaves alone, with its own event time, when nobody can come that it may meet. So results may be behind the
watermark by `Joining.delay`, and those that follow are told one that is as much behind.

New rows are what a query remembers; the kept ones of the other side pass it.

Guarantees: two rows meet once, whatever comes when. Results leave in the order in which the event times decide them,
whatever the batches and watermarks. Of rows whose interval the watermark has passed, only those are kept that share a
bucket with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..datafusion.query import WrongQuery
from ..datafusion.tokens import quoted
from .join_query import Asked, Joining, JoinQuery, Within
from .joining import Sides
from .kept import KeptRows
from .results import Step
from .spans import before, later
from .storage import Storage, StorageLimits
from .timed_rows import AT, ROW, TimedRows, steps

_HAS_MET = pa.field("__met", pa.bool_())
_BUCKETS = 8  # of an interval
_SHORTEST = 1_000_000_000  # of a bucket


class IntervalJoined:
    """As `joining.Joined`."""

    def __init__(self, joining: Joining, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of `Sides`. Raises WrongQuery."""
        assert joining.within is not None
        self._joining, self._within = joining, joining.within
        self._stream = Sides.of(given, joining.time)
        self.kept_schema = given.append(_HAS_MET)
        self.meanings: dict[str, str] = {}
        self.watermark: int | None = None
        self.closed: int | None = None  # what is before has been joined
        self._storage = Storage(limits)
        width = max(self._within.length // _BUCKETS, _SHORTEST)
        self._sides = [
            TimedRows(self._storage, schema, time, width, after)
            for schema, time, after in zip(
                self._stream.sides,
                self._stream.times,
                (self._within.after_left, self._within.after_right),
                strict=True,
            )
        ]
        types = {side.schema.field(joining.time).type for side in self._sides}
        if len(types) > 1:
            type_names = " and ".join(sorted(map(str, types)))
            raise WrongQuery(
                f"the event times of both sides have one type, and these are {type_names}: cast one", "time"
            )
        self._query = self._planned(joining, self._within)
        self.schema = self._query.schema
        self._pairs: list[Asked] = []  # by the side whose rows are new
        self._alone: dict[int, Asked] = {}
        self._keeps = [joining.kind in (own, "full") for own in ("left", "right")]

    def _planned(self, joining: Joining, within: Within) -> JoinQuery:
        left, right = map(quoted, joining.tables)
        time = quoted(joining.time)
        left_at, right_at = (f"{table}.{quoted(AT.name)}" for table in (left, right))
        meeting = f"({right_at} - {left_at} BETWEEN {within.lower} AND {within.upper})"
        own = f"{left}.{time}, {right}.{time}"
        later_one = f"CASE WHEN {right_at} > {left_at} THEN {right}.{time} ELSE coalesce({own}) END"
        return JoinQuery(joining, [side.schema for side in self._sides], meeting, later_one)

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of `panes.Windows`."""
        return before(rows.column(self._joining.time), self.watermark)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: with usable times, none of them late."""
        for side, own in self._stream.apart(rows):
            self._sides[side].add(own)

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results up to the watermark, or all. It has passed all of them then."""
        if all_of_them:
            last = max((side.last for side in self._sides if side.last is not None), default=None)
            if last is None:
                return
            self.watermark = later(self.watermark, last + self._within.length)
        if self.watermark is not None:
            for until in steps(self._sides, self.closed, self.watermark):
                results = list(self._join(until))
                for side in self._sides:
                    side.forget(until)
                self.closed = until
                yield results
        for side in self._sides if all_of_them else ():
            side.forget()

    def _join(self, until: int) -> Iterator[pa.RecordBatch]:
        """The results that event times before this one decide, and no earlier ones."""
        left, right = self._sides
        new = [side.between(self.closed, until) for side in self._sides]
        tables = []
        if new[0]:
            tables.append(self._met(0, new[0], right.between(self._first_for(0, new[0]), until)))
        if new[1] and self.closed is not None:
            tables.append(self._met(1, new[1], left.between(self._first_for(1, new[1]), self.closed)))
        for side, rows in enumerate(self._waited(until)):
            if rows:
                tables.append(self._left_alone(side, rows))
        results = [table for table in tables if table is not None and table.num_rows]
        if results:
            whole = pa.concat_tables(results)
            sorted_ = whole.take(pc.sort_indices(whole.column(whole.num_columns - 1)))
            yield from sorted_.select(range(whole.num_columns - 1)).combine_chunks().to_batches()

    def _first_for(self, side: int, rows: Sequence[pa.RecordBatch]) -> int:
        """The first time of the other side that these may meet."""
        first = min(pc.min(batch.column(AT.name)).as_py() for batch in rows)
        return int(first + self._within.lower if side == 0 else first - self._within.upper)

    def _met(self, side: int, new: Sequence[pa.RecordBatch], others: Sequence[pa.RecordBatch]) -> pa.Table | None:
        """Pairs of new rows of a side and these of the other one, with the moment that decides them behind them."""
        if not others:
            return None
        if not self._pairs:
            tables = list(map(quoted, self._joining.tables))
            own = {f"{table}.{name}": f"{table}.{quoted(name)}" for table in tables for name in (AT.name, ROW.name)}
            self._pairs = [self._query.asked("inner", None, own, first) for first in (0, 1)]
        pairs = self._pairs[side]([others, new] if side else [new, others])
        width = pairs.num_columns - 4
        for number, timed_rows in enumerate(self._sides):
            if self._keeps[number]:
                timed_rows.note(*pairs.columns[width + 2 * number : width + 2 * number + 2])
        decided = pc.max_element_wise(pairs.column(width), pairs.column(width + 2))
        return pairs.select(range(width)).append_column(AT, decided)

    def _waited(self, until: int) -> Iterator[list[pa.RecordBatch]]:
        """Of each side: the rows that have met nobody, and will not."""
        for side, keeps in zip(self._sides, self._keeps, strict=True):
            first = None if self.closed is None else self.closed - side.after
            yield side.between(first, until - side.after, without_noted=True) if keeps else []

    def _left_alone(self, side: int, rows: Sequence[pa.RecordBatch]) -> pa.Table:
        if side not in self._alone:
            at = f"{quoted(self._joining.tables[side])}.{quoted(AT.name)} + {self._sides[side].after}"
            self._alone[side] = self._query.asked("right" if side else "left", "false", {AT.name: at})
        return self._alone[side]([[], rows] if side else [rows, []])

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """What is open. Which rows have met changes, so it is in the notes, and the column says nothing."""
        for number, side in enumerate(self._sides):
            form = partial(self._form, side=number)
            for part, has_met in side.kept():
                yield KeptRows(part, form, has_met)

    def _form(self, batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
        columns = [*self._stream.together(batch, side).columns, pa.repeat(pa.scalar(False), batch.num_rows)]
        return pa.RecordBatch.from_arrays(columns, schema=self.kept_schema)

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept; what it decides has left."""
        for one in kept:
            batch = one.rows
            has_met = batch.column(_HAS_MET.name).cast(pa.uint8())  # of states that have no notes
            if one.notes is not None:
                has_met = pa.Array.from_buffers(pa.uint8(), batch.num_rows, [None, pa.py_buffer(one.notes)])
            is_right = batch.column(0)
            for side, part in self._stream.apart(batch.select(range(batch.num_columns - 1))):
                own = has_met.filter(pc.equal(is_right, bool(side)))
                self._sides[side].restore(part, own, one.place_of(part))
        self.watermark = self.closed = watermark

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        return self._storage.memory + self._storage.disk
