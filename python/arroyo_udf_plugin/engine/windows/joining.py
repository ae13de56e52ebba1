"""Two inputs joined: rows of the same event time, which are results of the same window.

    rows of both ──► sorted by event time ──► a watermark passes it: JOIN ON time = time AND ... ──► results

Rows of both sides come in one stream. Such a row says which side it is of, and the columns of the other side are null.

Guarantees: rows of different times never meet, so a time that is over is joined once, whatever comes later. Results
leave in the order of their times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import decoded, plain_field
from ..datafusion.query import WrongQuery
from ..datafusion.tokens import quoted
from .join_query import KEY, SIDES, Asked, Joining, JoinQuery
from .kept import KeptRows
from .results import Step
from .runs import SortedRuns, cuts
from .spans import before, is_time, later, nanoseconds
from .storage import Storage, StorageLimits

_IS_RIGHT = pa.field("__right", pa.bool_())


class Sides:
    """Rows of two sides in one stream. schema: of it. time: the column of event times, of both sides and the stream.
    needed: the stream has only these columns; None: all."""

    def __init__(self, sides: Sequence[pa.Schema], time: str, needed: Collection[str | None] | None = None) -> None:
        """Raises WrongQuery."""
        for side in sides:
            if len(side.get_all_field_indices(time)) != 1 or not is_time(side.field(time).type):
                raise WrongQuery(f"a side has no column {time} of times, or several", "time")
        self._places = [
            [place for place, name in enumerate(side.names) if needed is None or name in needed or name == KEY.name]
            for side in sides
        ]
        self.sides = [
            pa.schema([plain_field(side.field(place)) for place in places])
            for side, places in zip(sides, self._places, strict=True)
        ]
        self.times = [side.get_field_index(time) for side in self.sides]
        fields = [
            field.with_name(prefix + field.name).with_nullable(True)
            for prefix, side in zip(SIDES, self.sides, strict=True)
            for field in side
        ]
        self._time = pa.field(time, sides[0].field(time).type)
        self.schema = pa.schema([_IS_RIGHT, self._time, *fields])

    @classmethod
    def of(cls, schema: pa.Schema, time: str) -> Sides:
        """schema: of the stream."""
        fields = list(schema)[2:]
        own = [
            [field.with_name(field.name.removeprefix(prefix)) for field in fields if field.name.startswith(prefix)]
            for prefix in SIDES
        ]
        return cls([pa.schema(own_fields) for own_fields in own], time)

    def together(self, rows: pa.RecordBatch, side: int) -> pa.RecordBatch:
        """Rows of one side, as the stream has them."""
        n_rows = rows.num_rows
        chosen = [rows.column(place) for place in self._places[side]]
        own = [decoded(column) for column in chosen]
        columns = [pa.repeat(pa.scalar(bool(side)), n_rows), own[self.times[side]].cast(self._time.type)]
        for number, schema in enumerate(self.sides):
            columns += own if number == side else [pa.nulls(n_rows, type_) for type_ in schema.types]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def apart(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of the stream, by their sides."""
        is_right = rows.column(0)
        for side, mask in enumerate((pc.invert(is_right), is_right)):
            chosen = rows.filter(mask)
            start = 2 + (len(self.sides[0]) if side else 0)
            columns = chosen.columns[start : start + len(self.sides[side])]
            if chosen.num_rows:
                yield side, pa.RecordBatch.from_arrays(columns, schema=self.sides[side])


class Joined:
    """schema: of the results, without the keys of both sides' rows, which are behind them if the sides have them.
    kept_schema: of what `kept` gives.

    watermark: the latest; None: there was none yet. closed: up to where results have left.
    """

    def __init__(self, joining: Joining, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of `Sides`. Raises WrongQuery."""
        self._joining = joining
        self._sides = Sides.of(given, joining.time)
        self.kept_schema = given
        self.meanings: dict[str, str] = {}  # all columns have names of their own
        left, right = (f"{quoted(table)}.{quoted(joining.time)}" for table in joining.tables)
        self._query = JoinQuery(joining, self._sides.sides, f"{left} = {right}", f"coalesce({left}, {right})")
        self.schema = self._query.schema
        self._asked: Asked | None = None
        self.watermark: int | None = None
        self.closed: int | None = None
        self._storage = Storage(limits)
        self._rows = [SortedRuns(self._storage, partial(_times, place=place)) for place in self._sides.times]

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of `panes.Windows`."""
        return before(rows.column(self._joining.time), self.watermark)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: with usable times, none of them late."""
        for side, own in self._sides.apart(rows):
            self._rows[side].add(own)

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results of the times that the watermark has passed, or of all. It has passed all of them then."""
        if all_of_them:
            last = max((side.last for side in self._rows if side.last is not None), default=None)
            self.watermark = later(self.watermark, None if last is None else last + 1)
        if self.watermark is None:
            return
        for until in cuts([run for side in self._rows for run in side.before(self.watermark)], self.watermark):
            left, right = (side.take(until) for side in self._rows)
            results = list(self._results(left, right)) if left or right else []
            self.closed = until
            yield results

    def _results(self, left: Sequence[pa.RecordBatch], right: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self._asked is None:
            self._asked = self._query.asked(self._joining.kind)
        joined = self._asked([left, right])
        order = pc.sort_indices(joined.column(self._joining.time))
        yield from joined.take(order).combine_chunks().to_batches()

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """What is open."""
        for side, rows in enumerate(self._rows):
            form = partial(self._sides.together, side=side)
            yield from (KeptRows(part, form, notes) for part, notes in rows.parts())

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: `closed` of the moment when they were kept."""
        for one in kept:
            for side, own in self._sides.apart(one.rows):
                self._rows[side].restore(own, one.n_gone, one.place_of(own))
        self.watermark = self.closed = watermark

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        return self._storage.memory + self._storage.disk


def _times(rows: pa.RecordBatch, place: int) -> pa.Int64Array:
    return nanoseconds(rows.column(place))
