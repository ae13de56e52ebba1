"""What a join asks of the rows of two sides, as queries of DataFusion.

Guarantees: names and types are checked when it is made. Results of all its queries have the same columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from ...errors import InvalidArgument
from ..datafusion.feed import FeedOfTwo, planned_tables
from ..datafusion.native_calls import RewrittenText, with_native
from ..datafusion.query import WrongQuery, error_message, settled
from ..datafusion.tokens import quoted, tokens, with_now
from .spans import Hop

SIDES = ("left.", "right.")
KEY = pa.field("$key", pa.binary())
"""A further column of both sides, if results need the keys of their rows."""

Kind = Literal["inner", "left", "right", "full"]
Asked = Callable[[Sequence[Sequence[pa.RecordBatch]]], pa.Table]
"""Of the rows of both sides: the results."""

_TABLES = ("__left", "__right")


@dataclasses.dataclass(frozen=True)
class Within:
    """How far the right row's event time may be behind the left one's, in nanoseconds, bounds included."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise InvalidArgument("no row is within this interval: its first bound is above the second one")

    @property
    def after_left(self) -> int:
        """How long after a left row it may meet others."""
        return max(self.upper, 0)

    @property
    def after_right(self) -> int:
        """The same of a right row."""
        return max(-self.lower, 0)

    @property
    def length(self) -> int:
        """How far from a row's time others count, and a moment."""
        return max(abs(self.lower), abs(self.upper)) + 1


@dataclasses.dataclass(frozen=True)
class Joining:
    """time: the column of event times, of both sides and the results. on: the condition. select: the results' columns,
    expressions by their names. tables: what the condition and the columns call the two sides. within: rows whose event
    times are so near meet; None: those with the same."""

    time: str
    kind: Kind
    on: str
    select: Mapping[str, str]
    tables: tuple[str, str]
    within: Within | None = None

    @property
    def window(self) -> Hop | Within:
        """In which rows are joined; of windows, a moment, the last one of the windows that they are results of."""
        return Hop(1, 1) if self.within is None else self.within

    @property
    def delay(self) -> int:
        """How far results' event times may be behind the watermark when they leave: rows that have met nobody have
        waited."""
        if self.within is None:
            return 0
        keeps = {"left": (True, False), "right": (False, True), "full": (True, True)}.get(self.kind, (False, False))
        return max(keeps[0] * self.within.after_left, keeps[1] * self.within.after_right)

    @property
    def needed(self) -> set[str | None]:
        """The names of columns that it takes, and other words."""
        return {self.time} | {token.name for text in (self.on, *self.select.values()) for token in tokens(text)}


class JoinQuery:
    """schema: of the results: columns and event time. If sides have keys of their rows, these are behind it."""

    def __init__(self, joining: Joining, sides: Sequence[pa.Schema], meeting: str, time: str) -> None:
        """meeting: the condition that both rows' times meet. time: the result's. Raises WrongQuery."""
        self._joining, self._sides, self._meeting, self._time = joining, sides, meeting, time
        self._tables = [quoted(table) for table in joining.tables]
        self.schema = self._planned()
        has_keys = all(KEY.name in side.names for side in sides)
        self._keys = [f"{table}.{quoted(KEY.name)}" for table in self._tables] if has_keys else []
        self._answers = pa.schema([*self.schema, *(KEY.with_name(side + KEY.name) for side in SIDES if has_keys)])

    def asked(self, kind: Kind, on: str | None = None, others: Mapping[str, str] = {}, first: int = 0) -> Asked:
        """on: instead of the condition. others: integers behind the results, expressions by name. first: the side that
        DataFusion remembers while it reads the other one."""
        on = f"{self._meeting} AND ({self._joining.on}\n)" if on is None else on
        items = [*self._items(self._joining.select), *self._keys, *others.values()]
        feed = FeedOfTwo(self._written(self._text(items, on, kind, first)), self._named_sides())
        schema = pa.schema([*self._answers, *(pa.field(name, pa.int64()) for name in others)])

        def run(rows: Sequence[Sequence[pa.RecordBatch]]) -> pa.Table:
            answers = [_settled(answer, schema) for answer in feed.run(rows) if answer.num_rows]
            return pa.Table.from_batches(answers, schema)

        return run

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
            except Exception as cause:
                return WrongQuery(error_message(cause), name)
        return WrongQuery(error_message(error), "on")

    def _types(self, items: Mapping[str, str], on: str) -> list[pa.DataType]:
        """Of the columns, and the time. Raises what DataFusion raises."""
        text = self._text(self._items(items), f"{self._meeting} AND ({on}\n)", self._joining.kind)
        query = planned_tables(self._written(text), self._named_sides())
        query.execution_plan()  # finds types that do not go together
        return list(query.schema().types)

    def _written(self, text: str) -> RewrittenText:
        """With functions that DataFusion lacks."""
        left, right = self._tables

        def type_of(expression: RewrittenText) -> pa.DataType:
            relation = f"{_TABLES[0]} AS {left} CROSS JOIN {_TABLES[1]} AS {right}"
            asked = RewrittenText(f"SELECT {expression.text}\nFROM {relation}", expression.functions)
            return planned_tables(asked, self._named_sides()).schema().types[0]

        return with_native(text, type_of)

    def _items(self, items: Mapping[str, str]) -> list[str]:
        return [*items.values(), self._time]

    def _text(self, items: Sequence[str], on: str, kind: Kind, first: int = 0) -> str:
        named = [f"{text}\nAS {quoted(f'__{place}')}" for place, text in enumerate(items)]
        left, other = (f"{_TABLES[side]} AS {self._tables[side]}" for side in (first, 1 - first))
        return f"SELECT {', '.join(named)}\nFROM {left} {kind.upper()} JOIN {other}\nON {on}"

    def _named_sides(self) -> dict[str, pa.Schema]:
        return dict(zip(_TABLES, self._sides, strict=True))


def _settled(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == type_ else column.cast(type_)
        for column, type_ in zip(rows.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
