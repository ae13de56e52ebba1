"""Two inputs joined: rows of the same event time, which are results of the same window.

    rows of both ──► kept by their event time ──► a watermark passes it: JOIN ON time = time AND ... ──► results

Rows of both sides come in one stream. Such a row says which side it is of, and the columns of the other side are null.

Guarantees: rows of different times never meet, so a time that is over is joined once, whatever comes later. Results
leave in the order of their times.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import CellType, decoded
from ..sql.feed import FeedOfTwo, planned_tables
from ..sql.native_calls import Written, with_native
from ..sql.query import WrongQuery, settled, told
from ..sql.tokens import quoted, tokens, with_now
from .panes import WAITING_ROWS
from .spans import Hop, before, is_time, later, nanoseconds
from .storage import Limits, Some, Storage

_IS_RIGHT = pa.field("__right", pa.bool_())
_SIDES = ("left.", "right.")
_TABLES = ("__left", "__right")


@dataclasses.dataclass(frozen=True)
class Joining:
    """time: the column of event times, of both sides and the results. on: the condition. select: the results' columns,
    expressions by their names. tables: what the condition and the columns call the two sides."""

    time: str
    kind: Literal["inner", "left", "right", "full"]
    on: str
    select: Mapping[str, str]
    tables: tuple[str, str]

    @property
    def window(self) -> Hop:
        """In which rows are joined: a moment, the last one of the windows that they are results of."""
        return Hop(1, 1)

    @property
    def needed(self) -> set[str | None]:
        """The names of columns that it takes, and other words."""
        return {self.time} | {token.name for text in (self.on, *self.select.values()) for token in tokens(text)}


KEY = pa.field("$key", pa.binary())
"""A further column of both sides, if results need the keys of their rows."""


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
            pa.schema([_without_cell(side.field(place)) for place in places])
            for side, places in zip(sides, self._places, strict=True)
        ]
        self.times = [side.get_field_index(time) for side in self.sides]
        fields = [
            field.with_name(prefix + field.name).with_nullable(True)
            for prefix, side in zip(_SIDES, self.sides, strict=True)
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
            for prefix in _SIDES
        ]
        return cls([pa.schema(one) for one in own], time)

    def together(self, rows: pa.RecordBatch, side: int) -> pa.RecordBatch:
        """Rows of one side, as the stream has them."""
        n_rows = rows.num_rows
        chosen = [rows.column(place) for place in self._places[side]]
        own = [decoded(one) if isinstance(one.type, CellType) else one for one in chosen]
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

    watermark: the latest; None: there was none yet. kept_rows: of what `kept` gives.
    """

    def __init__(self, joining: Joining, given: pa.Schema, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        """given: of `Sides`. Raises WrongQuery."""
        self._joining = joining
        self._sides = Sides.of(given, joining.time)
        self.kept_schema = given
        self.meanings: dict[str, str] = {}  # all columns have names of their own
        self.schema = self._planned()
        self._has_keys = all(KEY.name in side.names for side in self._sides.sides)
        keys = [KEY.with_name(side + KEY.name) for side in _SIDES] if self._has_keys else []
        self._answers = pa.schema([*self.schema, *keys])
        self._query: FeedOfTwo | None = None
        self.watermark: int | None = None
        self._storage = Storage(limits)
        self._open: dict[int, tuple[Some, Some]] = {}  # the two sides of each time

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of `panes.Windows`."""
        return before(rows.column(self._joining.time), self.watermark)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: with usable times, none of them late."""
        for side, own in self._sides.apart(rows):
            times = nanoseconds(own.column(self._sides.times[side]))
            for time in pc.unique(times).to_pylist():
                self._sides_of(time)[side].add(own.filter(pc.equal(times, time)))

    def _sides_of(self, time: int) -> tuple[Some, Some]:
        if time not in self._open:
            self._open[time] = (Some(self._storage), Some(self._storage))
        return self._open[time]

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results of the times that the watermark has passed, or of all. It has passed all of them then."""
        watermark = self.watermark
        over = sorted(time for time in self._open if all_of_them or (watermark is not None and time < watermark))
        if all_of_them and over:
            self.watermark = later(watermark, over[-1] + 1)
        asked: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
        for time in over:
            for own, some in zip(asked, self._open.pop(time), strict=True):
                own += some.batches
                some.clear()
            if sum(batch.num_rows for own in asked for batch in own) >= WAITING_ROWS or time == over[-1]:
                yield from self._results(*asked)
                asked = ([], [])

    def _results(self, left: Sequence[pa.RecordBatch], right: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self._query is None:
            self._query = FeedOfTwo(self._asked(), self._named_sides())
        answers = self._query.run([left, right])
        batches = [self._settled(answer) for answer in answers if answer.num_rows]
        found = pa.Table.from_batches(batches, self._answers)
        order = pc.sort_indices(found.column(self._joining.time))
        yield from found.take(order).combine_chunks().to_batches()

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            one if one.type == type_ else one.cast(type_)
            for one, type_ in zip(rows.columns, self._answers.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._answers)

    # ---- Checkpoints ----

    def kept(self) -> Iterator[pa.RecordBatch]:
        """What is open."""
        for _, sides in sorted(self._open.items()):
            for side, some in enumerate(sides):
                for batch in some.batches:
                    yield self._sides.together(batch, side)

    @property
    def kept_rows(self) -> int:
        """As of `panes.Windows`."""
        return sum(batch.num_rows for sides in self._open.values() for some in sides for batch in some.batches)

    def restore(self, kept: Iterable[pa.RecordBatch], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept; what it closes has left."""
        for batch in kept:
            self.add(batch)
        self.watermark = watermark

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        return self._storage.memory + self._storage.disk

    # ---- The query ----

    def _planned(self) -> pa.Schema:
        """The schema of the results. Raises WrongQuery."""
        joining = self._joining
        if with_now(joining.on) != joining.on:
            raise WrongQuery("now() is another time for each row: compute it before the join", "on")
        try:
            types = self._types(joining.select, joining.on)
        except Exception as error:
            raise self._wrong(error) from None
        own = [settled(text, type_)[1] for text, type_ in zip(self._items(joining.select), types, strict=True)]
        return pa.schema(zip([*joining.select, joining.time], own, strict=True))

    def _wrong(self, error: Exception) -> WrongQuery:
        """Which column is wrong; none: the condition."""
        for name, text in self._joining.select.items():
            try:
                self._types({name: text}, "true")
            except Exception as found:
                return WrongQuery(told(found), name)
        return WrongQuery(told(error), "on")

    def _types(self, items: Mapping[str, str], on: str) -> list[pa.DataType]:
        """Of the columns, and the time. Raises what DataFusion raises."""
        query = planned_tables(self._written(self._text(items, on)), self._named_sides())
        query.execution_plan()  # finds types that do not go together
        return list(query.schema().types)

    def _asked(self) -> Written:
        tables = self._joining.tables if self._has_keys else ()
        keys = [f"{quoted(table)}.{quoted(KEY.name)}" for table in tables]
        return self._written(self._text(self._joining.select, self._joining.on, keys))

    def _written(self, text: str) -> Written:
        """With functions that DataFusion lacks."""
        left, right = (quoted(table) for table in self._joining.tables)

        def type_of(expression: Written) -> pa.DataType:
            relation = f"{_TABLES[0]} AS {left} CROSS JOIN {_TABLES[1]} AS {right}"
            asked = Written(f"SELECT {expression.text}\nFROM {relation}", expression.functions)
            return planned_tables(asked, self._named_sides()).schema().types[0]

        return with_native(text, type_of)

    def _items(self, items: Mapping[str, str]) -> list[str]:
        left, right = (f"{quoted(table)}.{quoted(self._joining.time)}" for table in self._joining.tables)
        return [*items.values(), f"coalesce({left}, {right})"]

    def _text(self, items: Mapping[str, str], on: str, keys: Sequence[str] = ()) -> str:
        left, right = (quoted(table) for table in self._joining.tables)
        time = quoted(self._joining.time)
        named = [f"{text}\nAS {quoted(f'__{place}')}" for place, text in enumerate([*self._items(items), *keys])]
        return (
            f"SELECT {', '.join(named)}\nFROM {_TABLES[0]} AS {left} {self._joining.kind.upper()} JOIN {_TABLES[1]} AS "
            f"{right}\nON {left}.{time} = {right}.{time} AND ({on}\n)"
        )

    def _named_sides(self) -> dict[str, pa.Schema]:
        return dict(zip(_TABLES, self._sides.sides, strict=True))


def _without_cell(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if isinstance(field.type, CellType) else field
