"""Two inputs joined: rows of the same event time, which are results of the same window.

    rows of both ──► kept by their event time ──► a watermark passes it: JOIN ON time = time AND ... ──► results

Rows of both sides come in one stream. Such a row says which side it is of, and the columns of the other side are null.

Guarantees: rows of different times never meet, so a time that is over is joined once, whatever comes later. Results
leave in the order of their times.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import CellType, decoded
from ..sql.feed import FeedOfTwo, planned_tables
from ..sql.native_calls import Written, with_native
from ..sql.query import WrongQuery, settled, told
from ..sql.tokens import quoted, with_now
from .panes import WAITING_ROWS
from .spans import bounded, is_time, nanoseconds, unusable

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

    def has_time(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """rows: of `Sides`."""
        left, right = (time.is_valid() for time in self._times(rows))
        return pc.or_(left, right)

    def unusable(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """Which rows have no event time, or one too far from 1970. None: none. rows: of `Sides`."""
        left, right = (_failed(time) for time in self._times(rows))
        failed = pc.if_else(rows.column(0), right, left)
        return failed if pc.any(failed).as_py() else None

    def bounded(self, watermark: int) -> int:
        """A watermark that lies where usable times do, and says the same of them."""
        return bounded(watermark, 0)

    def _times(self, rows: pa.RecordBatch) -> Iterator[pa.Array]:
        """Of the left side, and of the right one."""
        return (rows.column(prefix + self.time) for prefix in _SIDES)


class Sides:
    """Rows of two sides in one stream. schema: of it."""

    def __init__(self, sides: Sequence[pa.Schema]) -> None:
        self.sides = [pa.schema(map(_without_cell, side)) for side in sides]
        fields = [
            field.with_name(prefix + field.name).with_nullable(True)
            for prefix, side in zip(_SIDES, self.sides, strict=True)
            for field in side
        ]
        self.schema = pa.schema([_IS_RIGHT, *fields])

    @classmethod
    def of(cls, schema: pa.Schema) -> Sides:
        """schema: of the stream."""
        return cls(
            [
                pa.schema([field.with_name(field.name.removeprefix(p)) for field in schema if field.name.startswith(p)])
                for p in _SIDES
            ]
        )

    def together(self, rows: pa.RecordBatch, side: int) -> pa.RecordBatch:
        """Rows of one side, as the stream has them."""
        n_rows = rows.num_rows
        own = [decoded(one) if isinstance(one.type, CellType) else one for one in rows.columns]
        columns = [pa.repeat(pa.scalar(bool(side)), n_rows)]
        for number, schema in enumerate(self.sides):
            columns += own if number == side else [pa.nulls(n_rows, type_) for type_ in schema.types]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def apart(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of the stream, by their sides."""
        is_right = rows.column(0)
        for side, mask in enumerate((pc.invert(is_right), is_right)):
            chosen = rows.filter(mask)
            start = 1 + (len(self.sides[0]) if side else 0)
            columns = chosen.columns[start : start + len(self.sides[side])]
            if chosen.num_rows:
                yield side, pa.RecordBatch.from_arrays(columns, schema=self.sides[side])


class Joined:
    """schema: of the results. kept_schema: of what `kept` gives.

    watermark: the latest; None: there was none yet.
    """

    def __init__(self, joining: Joining, given: pa.Schema) -> None:
        """given: of `Sides`. Raises WrongQuery."""
        self._joining = joining
        self._sides = Sides.of(given)
        self.kept_schema = given
        for side in self._sides.sides:
            if len(side.get_all_field_indices(joining.time)) != 1 or not is_time(side.field(joining.time).type):
                raise WrongQuery(f"a side has no column {joining.time} of times, or several", "time")
        self._times = [side.get_field_index(joining.time) for side in self._sides.sides]
        self.schema = self._planned()
        self._query: FeedOfTwo | None = None
        self.watermark: int | None = None
        self._open: dict[int, tuple[list[pa.RecordBatch], list[pa.RecordBatch]]] = {}

    # ---- Rows ----

    def add(self, rows: pa.RecordBatch) -> int:
        """Returns how many of them are late."""
        late = 0
        for side, own in self._sides.apart(rows):
            times = nanoseconds(own.column(self._times[side]))
            for time in pc.unique(times).to_pylist():
                part = own.filter(pc.equal(times, time))
                if self.watermark is not None and time < self.watermark:
                    late += part.num_rows
                else:
                    self._open.setdefault(time, ([], []))[side].append(part)
        return late

    def close(self, all_of_them: bool = False) -> Iterator[pa.RecordBatch]:
        """The results of the times that the watermark has passed, or of all."""
        watermark = self.watermark
        over = sorted(time for time in self._open if all_of_them or (watermark is not None and time < watermark))
        asked: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
        n_rows = 0
        for time in over:
            for own, batches in zip(asked, self._open.pop(time), strict=True):
                own += batches
                n_rows += sum(batch.num_rows for batch in batches)
            if n_rows >= WAITING_ROWS or time == over[-1]:
                yield from self._results(*asked)
                asked, n_rows = ([], []), 0

    def _results(self, left: Sequence[pa.RecordBatch], right: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self._query is None:
            self._query = FeedOfTwo(self._asked(), self._named_sides())
        answers = self._query.run([left, right])
        batches = [self._settled(answer) for answer in answers if answer.num_rows]
        found = pa.Table.from_batches(batches, self.schema)
        order = pc.sort_indices(found.column(self._joining.time))
        yield from found.take(order).combine_chunks().to_batches()

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            one if one.type == type_ else one.cast(type_)
            for one, type_ in zip(rows.columns, self.schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    # ---- Checkpoints ----

    def kept(self) -> list[pa.RecordBatch]:
        """What is open."""
        return [
            self._sides.together(batch, side)
            for _, sides in sorted(self._open.items())
            for side, batches in enumerate(sides)
            for batch in batches
        ]

    def restore(self, kept: Sequence[pa.RecordBatch], watermark: int | None) -> None:
        """Before all rows. watermark: of the moment when they were kept; what it closes has left."""
        for batch in kept:
            self.add(batch)
        self.watermark = watermark

    @property
    def size(self) -> int:
        """The bytes of what is open."""
        return sum(batch.nbytes for sides in self._open.values() for batches in sides for batch in batches)

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
        return self._written(self._text(self._joining.select, self._joining.on))

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

    def _text(self, items: Mapping[str, str], on: str) -> str:
        left, right = (quoted(table) for table in self._joining.tables)
        time = quoted(self._joining.time)
        named = [f"{text}\nAS {quoted(f'__{place}')}" for place, text in enumerate(self._items(items))]
        return (
            f"SELECT {', '.join(named)}\nFROM {_TABLES[0]} AS {left} {self._joining.kind.upper()} JOIN {_TABLES[1]} AS "
            f"{right}\nON {left}.{time} = {right}.{time} AND ({on}\n)"
        )

    def _named_sides(self) -> dict[str, pa.Schema]:
        return dict(zip(_TABLES, self._sides.sides, strict=True))


def _failed(times: pa.Array) -> pa.BooleanArray:
    failed = unusable(times, 0)
    return pa.repeat(pa.scalar(False), len(times)) if failed is None else failed


def _without_cell(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if isinstance(field.type, CellType) else field
