"""The rows of two operators that have the same event time, or event times near each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

import pydantic

from ....errors import InvalidArgument
from ...connectors.described import Several
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...windows.join_query import KEY, Joining, Within
from ...windows.joining import Sides
from ...windows.opened import opened
from ..lines import Key
from .kind import Building, WaitingOperator


class Join(WaitingOperator):
    """An operator: the rows of two others that have the same event time, which are results of the same window, or event
    times near each other. Where `on` says that columns are equal, each slice has some of their values."""

    inputs_key: ClassVar[str] = "`left` and `right`"
    edges: ClassVar[Sequence[str] | None] = ("LeftJoin", "RightJoin")

    type: Literal["join"] = "join"
    left: str
    """The operator, or source, whose rows are on the left."""
    right: str
    """The one whose rows are on the right."""
    kind: Literal["inner", "left", "right", "full"] = "inner"
    """Which sides keep rows without a match, with nulls for the other side."""
    on: str = "true"
    """A further condition besides that of the event times, in DataFusion's SQL."""
    within: Annotated[Several[float], pydantic.Field(min_length=2, max_length=2)] | None = None
    """The least and the most seconds that the right row's event time may be after the left one's, such as [-300, 3600]
    for five minutes before to an hour after; default: both are the same."""
    select: dict[str, str]
    """The columns of the result: an expression for each name."""
    time: str
    """The column of event times, of both sides and the result."""
    tables: Annotated[Several[str], pydantic.Field(min_length=2, max_length=2)] = ("a", "b")
    """The names by which expressions may call the two sides, as in a.column = b.column."""

    def named_inputs(self) -> Sequence[tuple[Key, str]]:
        return [(("left",), self.left), (("right",), self.right)]

    @property
    def is_of_one_time(self) -> bool:
        return self.within is None

    def joining(self) -> Joining:
        """Raises InvalidArgument for bounds that leave no time between them."""
        left, right = self.tables
        within = None
        if self.within is not None:
            lower, upper = (round(bound * 1e9) for bound in self.within)
            within = Within(lower, upper)
        return Joining(self.time, self.kind, self.on, dict(self.select), (left, right), within)

    def build(self, building: Building, place: int) -> None:
        problems = building.problems
        building.needs_time(place, "a join needs the event time")
        columns = building.inputs(place)
        schemas = [own.schema for own in columns if own is not None]
        if len(schemas) < len(columns):
            return
        try:
            joining = self.joining()
        except InvalidArgument as error:
            problems.add(("operators", place, "within"), str(error))
            return
        try:
            if building.later_key(place) is not None:
                schemas = [schema.append(KEY) for schema in schemas]
            sides = Sides(schemas, joining.time, joining.needed)
            schema = opened(joining, sides.schema).schema
        except WrongQuery as error:
            at = ("select", error.item) if error.item in self.select else (error.item or "on",)
            problems.add(("operators", place, *map(str, at)), str(error))
            return
        building.merges(place, sides.together)
        self.build_waiting(building, place, joining, Given(sides.schema, building.origin), schema)

    def node(self, calls: Iterable[Call]) -> str:
        return "InstantJoin" if self.within is None else "JoinWithExpiration"
