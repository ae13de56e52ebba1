"""Rows that come and go: those of a table, out of its changes; and the table that they make, as changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

import pydantic

from ....host.policy import Policy
from ...connectors.described import Bytes, Several
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.group_stage import GroupPlan
from ...windows.opened import opened
from ...windows.storage import StorageLimits
from ...windows.updating_rows import FollowedRows, NetRows
from .kind import Building, DescribedOperator


class _OfKeys(DescribedOperator):
    exchanges: ClassVar[bool] = True

    keys: Annotated[Several[str], pydantic.Field(min_length=1)]
    """The columns that tell rows apart."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory the rows that are there may use, such as "1GiB"; the rest is in files without a name, in
    TMPDIR."""
    disk_limit: Bytes = StorageLimits.disk
    """How large these files may be; above that the pipeline fails."""

    def rows(self) -> FollowedRows | NetRows:
        raise NotImplementedError

    def build(self, building: Building, place: int) -> None:
        columns = building.before(place)
        if columns is None:
            return
        asked = self.rows()
        try:
            schema = opened(asked, columns.schema).schema
        except WrongQuery as error:
            building.problems.add(("operators", place, "keys"), str(error))
            return
        given = Given(columns.schema, columns.origin)
        limits = StorageLimits(self.memory_limit, self.disk_limit)
        plan = GroupPlan(building.name(place), asked, given, Policy(), limits, building.later_key(place))
        building.add(place, plan, schema)


class FollowTable(_OfKeys):
    """An operator: the rows of a table, out of its changes. Rows that come have 1 in the column `__s`, and rows that go
    have -1 there. All rows of the table are kept."""

    type: Literal["follow_table"] = "follow_table"
    operation: str
    """The column that says what became of a row: "c", "r" or "u", it is there; "d", it has gone."""
    unsent: str | None = None
    """A column with the names of those columns that have no value, because they have kept theirs."""

    def rows(self) -> FollowedRows:
        return FollowedRows(tuple(self.keys), self.operation, self.unsent)

    def node(self, calls: Iterable[Call]) -> str:
        return "DebeziumUnrolling"


class LatestRows(_OfKeys):
    """An operator: rows that come and go, as the changes of a table that has the latest row of each key. Its rows are
    `op`, which is "c" (create), "u" (update) or "d" (delete), and the rows `before` and `after`, as structs."""

    type: Literal["latest_rows"] = "latest_rows"

    def rows(self) -> NetRows:
        return NetRows(tuple(self.keys))

    def node(self, calls: Iterable[Call]) -> str:
        return "ToDebezium"
