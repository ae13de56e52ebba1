"""Window functions over the rows of each key, which look back at a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import pyarrow as pa
import pydantic

from ...connectors.described import Period, Several
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...windows.look_back import LookBackRows
from ...windows.opened import opened
from ..queries import in_words
from .kind import Building, WaitingOperator, lines_of_aggregates


class LookBack(WaitingOperator):
    """An operator: window functions over the rows of each key, which look back at a few of them. With `keys`, each
    slice has some of them; without, the first slice has all. Rows leave when the watermark has passed them; those of a
    slice in the order of their event times."""

    type: Literal["look_back"] = "look_back"
    time: str
    """The column of event times."""
    aggregates: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """A window function in DataFusion's SQL for each name of a further column, such as
    before = "lag(n) OVER (PARTITION BY k ORDER BY at)"."""
    keys: Several[str] = ()
    """What is in their PARTITION BY."""
    order: str
    """What is in their ORDER BY; the event time comes first."""
    rows: Annotated[int, pydantic.Field(ge=0)]
    """How many rows they look back, at most."""
    ttl: Period
    """How long a key is known without a row, by event time. Then its next row is its first one."""
    table: str = "input"
    """The name by which functions may call the rows, as in input.column."""

    @property
    def gathers(self) -> bool:
        return not self.keys

    def looking(self) -> LookBackRows:
        return LookBackRows(
            time=self.time,
            functions=dict(self.aggregates),
            keys=tuple(self.keys),
            order=self.order,
            rows=self.rows,
            ttl=round(self.ttl * 1e9),
            table=self.table,
        )

    def build(self, building: Building, place: int) -> None:
        columns = building.before(place)
        if columns is None:
            return
        building.needs_time(place, "rows are in the order of their event time")
        asked = self.looking()
        try:
            schema = opened(asked, columns.schema).schema
        except WrongQuery as error:
            at = ("aggregates", error.item) if error.item in self.aggregates else (error.item or "aggregates",)
            building.problems.add(("operators", place, *map(str, at)), in_words(error, columns.schema))
            return
        self.build_waiting(building, place, asked, Given(columns.schema, columns.origin), schema)

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        assert schema is not None
        yield from lines_of_aggregates(self.aggregates, schema)

    def node(self, calls: Iterable[Call]) -> str:
        return "WindowFunction"
