"""A query over all rows, once they have ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pydantic

from ....host.isolation import Isolation
from ....host.policy import Policy
from ...connectors.described import Bytes
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.group_stage import GroupPlan
from ...operators.keys import of_calls
from ...windows.collecting import Collecting, Inputs
from ...windows.opened import opened
from ...windows.storage import StorageLimits
from ..lines import Key
from .functions import Workers
from .kind import Building, DescribedOperator, lines_of_columns


class WholeQuery(DescribedOperator):
    """An operator: a query over all rows of its inputs, once they have ended, in DataFusion's SQL.

    It works in the first slice, for all slices.

    Rows wait on disk beyond `memory_limit`, and so does what the query itself needs.
    """

    inputs_key: ClassVar[str] = "`tables`"
    exchanges: ClassVar[bool] = True
    is_query: ClassVar[bool] = True
    is_over_all_rows: ClassVar[bool] = True
    called_kinds: ClassVar[frozenset[str]] = frozenset({"sync", "async", "table", "aggregate"})
    """Of the functions that it may call."""

    type: Literal["query"] = "query"
    tables: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """The operator, or source, whose rows each table has, by the table's name in the query."""
    sql: str
    """The query: one SELECT, with everything that DataFusion knows."""
    functions: dict[str, str] = pydantic.Field(default_factory=dict)
    """Functions that the query calls: the plugin, or the source (.py, .rs or .c), for each name. A row that fails ends
    the pipeline."""
    isolation: Isolation = "thread"
    """Where the functions run: "thread", "subinterpreter" or "process"."""
    workers: Workers = 1
    """How many interpreters or processes there are; "auto": one per core."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory the rows that wait may use, and as much again, at least 64 MiB, what the query keeps."""
    disk_limit: Bytes = StorageLimits.disk
    """How large the rows may be that wait on disk; above that the pipeline fails."""

    @property
    def gathers(self) -> bool:
        return True

    def named_inputs(self) -> Sequence[tuple[Key, str]]:
        return [(("tables", table), name) for table, name in self.tables.items()]

    def build(self, building: Building, place: int) -> None:
        columns = building.inputs(place)
        schemas = [own.schema for own in columns if own is not None]
        functions = building.functions_of(place, self)
        if len(schemas) < len(columns) or functions is None:
            return
        inputs = Inputs(dict(zip(self.tables, schemas, strict=True)))
        plugins = {name: function.plugin_hash for name, function in functions.items()}
        keys = partial(of_calls, building.key_of_calls(place))
        collecting = Collecting(self.sql, tuple(self.tables), plugins, functions, keys)
        try:
            schema = opened(collecting, inputs.schema).schema
        except WrongQuery as error:
            building.problems.add(("operators", place, "sql"), str(error))
            return
        building.merges(place, inputs.together)
        limits = StorageLimits(self.memory_limit, self.disk_limit)
        given = Given(inputs.schema, building.origin)
        plan = GroupPlan(building.name(place), collecting, given, Policy(), limits, building.later_key(place))
        building.add(place, plan, schema)

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        assert schema is not None
        yield f"    {' '.join(self.sql.split())}"
        yield from lines_of_columns(schema)

    def node(self, calls: Iterable[Call]) -> str:
        return "Query"
