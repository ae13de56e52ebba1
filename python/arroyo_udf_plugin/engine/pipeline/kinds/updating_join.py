"""The rows of two operators with equal keys, for ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pydantic

from ....host.policy import Policy
from ...connectors.described import Bytes, Period, Several
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.group_stage import GroupPlan
from ...windows.collecting import Inputs
from ...windows.opened import opened
from ...windows.storage import StorageLimits
from ...windows.updated_join import SIDES
from ...windows.updating_rows import JoiningRows
from ..lines import Key
from .kind import Building, DescribedOperator
from .updating import TTL


class UpdatingJoin(DescribedOperator):
    """An operator: the rows of two others with equal keys, whenever they come. Each slice has some of the keys.

    Where rows of a side come and go (the column `__s` is 1 or -1), or a side keeps rows without a match, so do its
    rows; otherwise they come and stay.
    """

    inputs_key: ClassVar[str] = "`left` and `right`"
    edges: ClassVar[Sequence[str] | None] = ("LeftJoin", "RightJoin")
    exchanges: ClassVar[bool] = True

    type: Literal["updating_join"] = "updating_join"
    left: str
    """The operator, or source, whose rows are on the left."""
    right: str
    """The one whose rows are on the right."""
    kind: Literal["inner", "left", "right", "full"] = "inner"
    """Which sides keep rows without a match, with nulls for the other side."""
    keys: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """Columns of the left side, each with the column of the right side that is equal to it, in the same type."""
    on: str = "true"
    """A further condition, in DataFusion's SQL, if no side keeps rows without a match."""
    select: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """The columns of the result: an expression for each name."""
    tables: Annotated[Several[str], pydantic.Field(min_length=2, max_length=2)] = ("a", "b")
    """The names by which expressions may call the two sides, as in a.column = b.column."""
    ttl: Period = TTL
    """How long a row is known that comes and stays. Its results stay then, and it meets no further rows."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory the rows of both sides may use, such as "1GiB"; the rest is in files without a name, in
    TMPDIR."""
    disk_limit: Bytes = StorageLimits.disk
    """How large these files may be; above that the pipeline fails."""

    @pydantic.model_validator(mode="after")
    def _keeps_by_keys_alone(self) -> UpdatingJoin:
        if self.kind != "inner" and self.on != "true":
            raise ValueError(f"a {self.kind} join has keys alone: leave `on` out")
        return self

    def named_inputs(self) -> Sequence[tuple[Key, str]]:
        return [(("left",), self.left), (("right",), self.right)]

    def joining(self) -> JoiningRows:
        left, right = self.tables
        return JoiningRows(
            keys=tuple(self.keys.items()),
            kind=self.kind,
            on=self.on,
            select=dict(self.select),
            tables=(left, right),
            ttl=round(self.ttl * 1e9),
        )

    def inputs(self, sides: Sequence[pa.Schema]) -> Inputs:
        """sides: their schemas."""
        needed = self.joining().needed
        columns: Mapping[str, Sequence[str]] = {
            side: [name for name in schema.names if name in needed] for side, schema in zip(SIDES, sides, strict=True)
        }
        return Inputs(dict(zip(SIDES, sides, strict=True)), columns)

    def build(self, building: Building, place: int) -> None:
        columns = building.inputs(place)
        schemas = [own.schema for own in columns if own is not None]
        if len(schemas) < len(columns):
            return
        inputs, joining = self.inputs(schemas), self.joining()
        try:
            schema = opened(joining, inputs.schema).schema
        except WrongQuery as error:
            at = ("select", error.item) if error.item in self.select else ("keys",)
            building.problems.add(("operators", place, *at), str(error))
            return
        building.merges(place, inputs.together)
        limits = StorageLimits(self.memory_limit, self.disk_limit)
        given = Given(inputs.schema, building.origin)
        plan = GroupPlan(building.name(place), joining, given, Policy(), limits, building.later_key(place))
        building.add(place, plan, schema)

    def node(self, calls: Iterable[Call]) -> str:
        return "JoinWithExpiration"
