"""The items and the condition of a SELECT, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal

import pyarrow as pa

from ....host.policy import Policy
from ...connectors.described import Several
from ...datafusion.query import Query, Select, WrongQuery
from ...datafusion.tokens import tokens
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.queried import QueryPlan
from ..queries import wrong_parts
from .kind import Building, DescribedOperator, type_text


class Sql(DescribedOperator):
    """An operator: the items and the condition of a SELECT, in DataFusion's SQL."""

    is_query: ClassVar[bool] = True

    type: Literal["sql"] = "sql"
    select: dict[str, str] | None = None
    """The columns of the result: an expression for each name; otherwise all columns as they are."""
    where: str | None = None
    """Rows pass for which it is true."""
    table: str = "input"
    """The name by which expressions may call the rows, as in input.column."""
    required: Several[str] = ()
    """Columns that must not be null: a row fails in which one is."""
    on_error: Literal["fail", "drop", "dead_letter"] = "fail"
    """What happens to a row that fails, also because an expression does, such as 1 / 0."""

    @property
    def makes_several(self) -> bool:
        return any("unnest" in text.lower() for text in (self.select or {}).values())

    @property
    def policy(self) -> Policy:
        return Policy(self.on_error)

    def asked(self, data: Mapping[str, Any]) -> Any:
        return {name: data[name] for name in ("select", "where", "table", "required", "after")}

    def names_taken(self) -> set[str] | None:
        if self.select is None:
            return None
        texts = [*self.select.values(), self.where or ""]
        return {token.name for text in texts for token in tokens(text) if token.name is not None} | set(self.required)

    def build(self, building: Building, place: int) -> None:
        columns = building.before(place)
        if columns is None:
            return
        select = Select(self.select, self.where, self.table, self.required)
        try:
            schema = Query(select, columns.schema).schema
        except WrongQuery as error:
            for at, text in wrong_parts(select, columns.schema, error):
                building.problems.add(("operators", place, *at), text)
            return
        given = Given(columns.schema, columns.origin)
        building.add(place, [QueryPlan(building.name(place), select, given, building.later_key(place))], schema)

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        assert schema is not None
        items = self.select or {name: name for name in schema.names}
        width = max(map(len, items), default=0)
        for (name, text), type_ in zip(items.items(), schema.types, strict=True):
            yield f"    {name:{width}}  {type_text(type_)} = {' '.join(text.split())}"
        if self.where is not None:
            yield f"    where {' '.join(self.where.split())}"

    def node(self, calls: Iterable[Call]) -> str:
        return "Projection"

    def label(self, name: str) -> str:
        return name if self.where is None else f"{name} where {self.where}"
