"""Of the rows with the same keys, the first one within a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import pydantic

from ...connectors.described import Period, Several
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...windows.first_rows import FirstRows
from ...windows.opened import opened
from .kind import Building, WaitingOperator


class Deduplicate(WaitingOperator):
    """An operator: of the rows with the same keys, the first one within a time. Each slice has some of
    the keys. Rows leave when the watermark has passed them; those of a slice in the order of their event times."""

    type: Literal["deduplicate"] = "deduplicate"
    time: str
    """The column of event times."""
    keys: Annotated[Several[str], pydantic.Field(min_length=1)]
    """Columns: rows with the same values in all of them are the same."""
    ttl: Period
    """How long after a row no other one with its keys passes, by event time."""

    def first_rows(self) -> FirstRows:
        return FirstRows(self.time, tuple(self.keys), round(self.ttl * 1e9))

    def build(self, building: Building, place: int) -> None:
        columns = building.before(place)
        if columns is None:
            return
        building.needs_time(place, "keys are forgotten by the event time")
        asked = self.first_rows()
        try:
            opened(asked, columns.schema)
        except WrongQuery as error:
            key = "time" if error.item == self.time else "keys"
            building.problems.add(("operators", place, key), str(error))
            return
        self.build_waiting(building, place, asked, Given(columns.schema, columns.origin), columns.schema)

    def node(self, calls: Iterable[Call]) -> str:
        return "Deduplicate"
