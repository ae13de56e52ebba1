"""Two inputs joined: rows whose event times are near each other.

    rows of both ──► kept by their time ──► a watermark passes them: JOIN ON right.time - left.time BETWEEN ...: pairs
                                            it passes their interval: those that have met nobody, with nulls

A pair is there when the watermark has passed the later one of its rows; that is its event time. A row that an outer
join keeps leaves alone, with its own event time, when nobody can come that it may meet. So results may be behind the
watermark by `Joining.delay`, and those that follow are told one that is as much behind.

Rows are kept in buckets, each of which has the rows of some time, so that what is over goes as a whole. New rows are
what a query remembers; the kept ones of the other side pass it.

Guarantees: two rows meet once, whatever comes when. Results leave in the order in which the event times decide them,
whatever the batches and watermarks. Of rows whose interval the watermark has passed, only those are kept that share a
bucket with others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..host.answers import count
from ..sql.query import WrongQuery
from ..sql.tokens import quoted
from .join_query import Asked, Joining, JoinQuery, Within
from .joining import Sides
from .panes import WAITING_ROWS
from .spans import Hop, later, nanoseconds
from .storage import Limits, Some, Storage

_AT, _ROW = pa.field("$at", pa.int64()), pa.field("$row", pa.int64())
"""Of rows in queries: the event time in nanoseconds, and which one of its bucket it is."""
_HAS_MET = pa.field("__met", pa.bool_())
_BUCKETS = 8  # of an interval
_SHORTEST = 1_000_000_000  # of a bucket


class _Bucket:
    """Rows of some time. has_met: for each whether it is part of a result."""

    def __init__(self, storage: Storage) -> None:
        self.some = Some(storage)
        self.has_met = bytearray()

    def add(self, rows: pa.RecordBatch, has_met: bool) -> None:
        self.some.add(rows)
        self.has_met += bytes([has_met]) * rows.num_rows

    def met(self, first: int, n_rows: int) -> pa.BooleanArray:
        """Of these rows."""
        data = pa.py_buffer(bytes(self.has_met[first : first + n_rows]))
        return pa.Array.from_buffers(pa.uint8(), n_rows, [None, data]).cast(pa.bool_())

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Each with the number of its first row."""
        first = 0
        for batch in self.some.batches:
            yield first, batch
            first += batch.num_rows


class _Side:
    """The rows of one side. after: how long after a row's time others may meet it."""

    def __init__(self, storage: Storage, schema: pa.Schema, time: int, width: int, after: int) -> None:
        self._storage, self._time, self.after = storage, time, after
        self._hop = Hop(width, width)
        self.schema = pa.schema([*schema, _AT, _ROW])
        self.buckets: dict[int, _Bucket] = {}

    def at(self, rows: pa.RecordBatch) -> pa.Int64Array:
        return nanoseconds(rows.column(self._time))

    def add(self, rows: pa.RecordBatch, has_met: bool = False) -> None:
        times = self.at(rows)
        bounds = pc.min_max(times)
        first, last = (self._hop.pane(bounds[name].as_py()) for name in ("min", "max"))
        if first == last:
            self._bucket(first).add(rows, has_met)
            return
        starts = self._hop.panes(times, first)
        for start in pc.unique(starts).to_pylist():
            self._bucket(start).add(rows.filter(pc.equal(starts, start)), has_met)

    def _bucket(self, start: int) -> _Bucket:
        if start not in self.buckets:
            self.buckets[start] = _Bucket(self._storage)
        return self.buckets[start]

    def between(self, first: int | None, until: int, alone: bool = False) -> list[pa.RecordBatch]:
        """The rows of these times, without the end, as queries take them. first: None: from the beginning. alone: only
        those that have met nobody."""
        found = []
        for start, bucket in sorted(self.buckets.items()):
            if start >= until or (first is not None and start + self._hop.width <= first):
                continue
            is_inside = start + self._hop.width <= until and (first is None or start >= first)
            for number, batch in bucket.batches():
                at = self.at(batch)
                place = count(batch.num_rows, number).cast(pa.int64())
                rows = pa.RecordBatch.from_arrays([*batch.columns, at, place], schema=self.schema)
                if not is_inside:
                    mask = pc.less(at, until)
                    rows = rows.filter(mask if first is None else pc.and_(mask, pc.greater_equal(at, first)))
                if alone and rows.num_rows:
                    has_met = bucket.met(number, batch.num_rows).take(pc.subtract(rows.column(_ROW.name), number))
                    rows = rows.filter(pc.invert(has_met))
                if rows.num_rows:
                    found.append(rows)
        return found

    def note(self, times: pa.Int64Array, rows: pa.Int64Array) -> None:
        """These have met others."""
        width = self._hop.width
        for time, row in zip(times.to_pylist(), rows.to_pylist(), strict=True):
            self.buckets[time - time % width].has_met[row] = 1

    def forget(self, watermark: int | None = None) -> None:
        """The rows whose interval it has passed. None: all."""
        reach = self._hop.width + self.after
        for start in [one for one in self.buckets if watermark is None or one + reach <= watermark]:
            self.buckets.pop(start).some.clear()

    @property
    def ends(self) -> dict[int, int]:
        """Where buckets end, and how many rows each has."""
        return {start + self._hop.width: len(bucket.has_met) for start, bucket in self.buckets.items()}

    @property
    def last(self) -> int | None:
        """The latest time of a row."""
        if not self.buckets:
            return None
        latest = self.buckets[max(self.buckets)].some.batches
        return max(int(pc.max(self.at(batch)).as_py()) for batch in latest)


class IntervalJoined:
    """As `joining.Joined`."""

    def __init__(self, joining: Joining, given: pa.Schema, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        """given: of `Sides`. Raises WrongQuery."""
        assert joining.within is not None
        self._joining, self._within = joining, joining.within
        self._stream = Sides.of(given, joining.time)
        self.kept_schema = given.append(_HAS_MET)
        self.meanings: dict[str, str] = {}
        self.watermark: int | None = None
        self._done: int | None = None  # what is before has been joined
        self._storage = Storage(limits)
        width = max(self._within.length // _BUCKETS, _SHORTEST)
        self._sides = [
            _Side(self._storage, schema, time, width, after)
            for schema, time, after in zip(
                self._stream.sides,
                self._stream.times,
                (self._within.after_left, self._within.after_right),
                strict=True,
            )
        ]
        types = {side.schema.field(joining.time).type for side in self._sides}
        if len(types) > 1:
            told = " and ".join(sorted(map(str, types)))
            raise WrongQuery(f"the event times of both sides have one type, and these are {told}: cast one", "time")
        self._query = self._planned(joining, self._within)
        self.schema = self._query.schema
        self._pairs: list[Asked] = []  # by the side whose rows are new
        self._alone: dict[int, Asked] = {}
        self._keeps = [joining.kind in (own, "full") for own in ("left", "right")]

    def _planned(self, joining: Joining, within: Within) -> JoinQuery:
        left, right = map(quoted, joining.tables)
        time = quoted(joining.time)
        left_at, right_at = (f"{table}.{quoted(_AT.name)}" for table in (left, right))
        meeting = f"({right_at} - {left_at} BETWEEN {within.lower} AND {within.upper})"
        own = f"{left}.{time}, {right}.{time}"
        later_one = f"CASE WHEN {right_at} > {left_at} THEN {right}.{time} ELSE coalesce({own}) END"
        return JoinQuery(joining, [side.schema for side in self._sides], meeting, later_one)

    # ---- Rows ----

    def add(self, rows: pa.RecordBatch) -> int:
        """rows: with usable times. Returns how many of them are late."""
        late = 0
        for side, own in self._stream.apart(rows):
            if self.watermark is not None:
                in_time = own.filter(pc.greater_equal(self._sides[side].at(own), self.watermark))
                late += own.num_rows - in_time.num_rows
                own = in_time
            if own.num_rows:
                self._sides[side].add(own)
        return late

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results up to the watermark, or all. It has passed all of them then."""
        if all_of_them:
            last = max((side.last for side in self._sides if side.last is not None), default=None)
            if last is None:
                return
            self.watermark = later(self.watermark, last + self._within.length)
        if self.watermark is not None:
            for until in self._steps(self.watermark):
                yield from self._join(until)
                for side in self._sides:
                    side.forget(until)
                self._done = until
        for side in self._sides if all_of_them else ():
            side.forget()

    def _steps(self, watermark: int) -> Iterator[int]:
        """Up to the watermark, with not many more new rows between two steps than a query needs to pay."""
        counts: dict[int, int] = {}
        for end, n_rows in itertools.chain.from_iterable(side.ends.items() for side in self._sides):
            counts[end] = counts.get(end, 0) + n_rows
        n_rows = 0
        for end in sorted(counts):
            if self._done is None or end > self._done:
                n_rows += counts[end]
            if n_rows >= WAITING_ROWS and end < watermark:
                yield end
                n_rows = 0
        yield watermark

    def _join(self, until: int) -> Iterator[pa.RecordBatch]:
        """The results that event times before this one decide, and no earlier ones."""
        left, right = self._sides
        new = [side.between(self._done, until) for side in self._sides]
        found = []
        if new[0]:
            found.append(self._met(0, new[0], right.between(self._first_for(0, new[0]), until)))
        if new[1] and self._done is not None:
            found.append(self._met(1, new[1], left.between(self._first_for(1, new[1]), self._done)))
        for side, rows in enumerate(self._waited(until)):
            if rows:
                found.append(self._left_alone(side, rows))
        results = [one for one in found if one is not None and one.num_rows]
        if results:
            whole = pa.concat_tables(results)
            sorted_ = whole.take(pc.sort_indices(whole.column(whole.num_columns - 1)))
            yield from sorted_.select(range(whole.num_columns - 1)).combine_chunks().to_batches()

    def _first_for(self, side: int, rows: Sequence[pa.RecordBatch]) -> int:
        """The first time of the other side that these may meet."""
        first = min(pc.min(batch.column(_AT.name)).as_py() for batch in rows)
        return int(first + self._within.lower if side == 0 else first - self._within.upper)

    def _met(self, side: int, new: Sequence[pa.RecordBatch], others: Sequence[pa.RecordBatch]) -> pa.Table | None:
        """Pairs of new rows of a side and these of the other one, with the moment that decides them behind them."""
        if not others:
            return None
        if not self._pairs:
            tables = list(map(quoted, self._joining.tables))
            own = {f"{table}.{name}": f"{table}.{quoted(name)}" for table in tables for name in (_AT.name, _ROW.name)}
            self._pairs = [self._query.asked("inner", None, own, first) for first in (0, 1)]
        found = self._pairs[side]([others, new] if side else [new, others])
        width = found.num_columns - 4
        for number, one in enumerate(self._sides):
            if self._keeps[number]:
                one.note(*found.columns[width + 2 * number : width + 2 * number + 2])
        decided = pc.max_element_wise(found.column(width), found.column(width + 2))
        return found.select(range(width)).append_column(_AT, decided)

    def _waited(self, until: int) -> Iterator[list[pa.RecordBatch]]:
        """Of each side: the rows that have met nobody, and will not."""
        for side, keeps in zip(self._sides, self._keeps, strict=True):
            first = None if self._done is None else self._done - side.after
            yield side.between(first, until - side.after, alone=True) if keeps else []

    def _left_alone(self, side: int, rows: Sequence[pa.RecordBatch]) -> pa.Table:
        if side not in self._alone:
            at = f"{quoted(self._joining.tables[side])}.{quoted(_AT.name)} + {self._sides[side].after}"
            self._alone[side] = self._query.asked("right" if side else "left", "false", {_AT.name: at})
        return self._alone[side]([[], rows] if side else [rows, []])

    # ---- Checkpoints ----

    def kept(self) -> Iterator[pa.RecordBatch]:
        """What is open."""
        for number, side in enumerate(self._sides):
            for _, bucket in sorted(side.buckets.items()):
                for first, batch in bucket.batches():
                    columns = [*self._stream.together(batch, number).columns, bucket.met(first, batch.num_rows)]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.kept_schema)

    @property
    def kept_rows(self) -> int:
        """Of what `kept` gives."""
        return sum(len(bucket.has_met) for side in self._sides for bucket in side.buckets.values())

    def restore(self, kept: Iterable[pa.RecordBatch], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept; what it decides has left."""
        for batch in kept:
            own = batch.column(batch.num_columns - 1)
            for has_met in (False, True):
                rows = batch.filter(pc.equal(own, has_met)).select(range(batch.num_columns - 1))
                for side, part in self._stream.apart(rows):
                    self._sides[side].add(part, has_met)
        self.watermark = self._done = watermark

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        return self._storage.memory + self._storage.disk
