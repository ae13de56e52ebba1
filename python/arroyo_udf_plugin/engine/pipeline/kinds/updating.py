"""The latest result of each key, as changes: aggregates over rows that never end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal

import pyarrow as pa
import pydantic

from ....host.aggregate import Aggregate
from ....host.isolation import Isolation
from ....host.policy import Policy
from ...connectors.described import Bytes, Described, Period, Several
from ...datafusion.query import Select, WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.group_stage import GroupPlan
from ...windows.opened import opened
from ...windows.storage import StorageLimits
from ...windows.updating_rows import UpdatingRows
from ..queries import in_words
from .functions import Workers
from .kind import Building, DescribedOperator, lines_of_aggregates, lines_of_columns
from .windows import NONE

TTL = 86_400.0
"""Arroyo's, in seconds."""


class OverResults(Described):
    """The items and the condition of a SELECT over results."""

    select: dict[str, str] | None = None
    """The columns: an expression for each name; otherwise all columns as they are."""
    where: str | None = None
    """Results are there for which it is true. One for which it no longer is, is deleted."""
    table: str = "input"
    """The name by which expressions may call the results, as in input.column."""
    required: Several[str] = ()
    """Columns that must not be null: a result in which one is ends the pipeline."""

    def query(self) -> Select:
        return Select(self.select, self.where, self.table, tuple(self.required))


class Updating(DescribedOperator):
    """An operator: aggregates of each key over all rows so far. Its rows are changes: `op`, which is "c" (create), "u"
    (update) or "d" (delete), and the results `before` and `after`, as structs.

    With `keys`, each slice has some of them; without, the first slice has all. A change leaves as soon as rows that
    came together have changed a result.
    """

    later: ClassVar[frozenset[str]] = frozenset({"signed", "as_rows"})
    exchanges: ClassVar[bool] = True
    called_kinds: ClassVar[frozenset[str]] = frozenset({"aggregate"})
    """Of the functions that it may call."""

    type: Literal["updating"] = "updating"
    keys: Several[str] = ()
    """Columns: there is a result for each of their values."""
    aggregates: dict[str, str] = pydantic.Field(default_factory=dict)
    """An aggregate in DataFusion's SQL for each name of a result, such as n = "count(*)": count, sum, min, max, avg of
    numbers, bool_and, bool_or, bit_and, bit_or, bit_xor, and those of plugins, without DISTINCT and ORDER BY; with
    `signed`, all that DataFusion has, and none of plugins."""
    over: Several[OverResults] = ()
    """What a result is made of: queries over keys and aggregates, each over the one before it."""
    ttl: Period | None = TTL
    """How long a key is known without a row. Then its result is deleted, as soon as rows of any key come, and its next
    row begins anew. null: as long as it has rows. With `signed`, only aggregates that keep no rows have it."""
    signed: bool = False
    """Rows come and go: their column `__s` is 1 or -1. A key without rows has no result."""
    as_rows: bool = False
    """So do results, in place of changes."""
    table: str = "input"
    """The name by which aggregates may call the rows, as in input.column."""
    functions: dict[str, str] = pydantic.Field(default_factory=dict)
    """Aggregates of plugins that `aggregates` call: the plugin, or the source (.py, .rs or .c), for each name. A group
    that fails ends the pipeline."""
    isolation: Isolation | None = None
    """Where these run: "thread", "subinterpreter" or "process"; default: "thread"."""
    workers: Workers | None = None
    """How many interpreters or processes there are; "auto": one per core; default: 1."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory what is kept of keys may use, such as "1GiB"; the rest is in files without a name, in TMPDIR."""
    disk_limit: Bytes = StorageLimits.disk
    """How large these files may be; above that the pipeline fails."""

    @property
    def gathers(self) -> bool:
        return not self.keys

    def rows(self, functions: Mapping[str, Aggregate] = NONE) -> UpdatingRows:
        """functions: those of the same name."""
        return UpdatingRows(
            keys=tuple(self.keys),
            aggregates=dict(self.aggregates),
            selects=tuple(over.query() for over in self.over),
            ttl=None if self.ttl is None else round(self.ttl * 1e9),
            table=self.table,
            functions=functions,
            is_signed=self.signed,
            as_rows=self.as_rows,
        )

    def build(self, building: Building, place: int) -> None:
        columns = building.before(place)
        functions = building.functions_of(place, self)
        if columns is None or functions is None:
            return
        asked = self.rows({name: own for name, own in functions.items() if isinstance(own, Aggregate)})
        try:
            schema = opened(asked, columns.schema).schema
        except WrongQuery as error:
            at = (
                ("aggregates", error.item)
                if error.item in self.aggregates
                else ("keys",)
                if error.item in self.keys
                else ()
            )
            building.problems.add(("operators", place, *map(str, at)), in_words(error, columns.schema))
            return
        limits = StorageLimits(self.memory_limit, self.disk_limit)
        given = Given(columns.schema, columns.origin)
        plan = GroupPlan(building.name(place), asked, given, Policy(), limits, building.later_key(place))
        building.add(place, plan, schema)

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        assert schema is not None
        results = schema if self.as_rows else pa.schema(list(schema.field("after").type))
        yield from lines_of_columns(schema) if self.over else lines_of_aggregates(self.aggregates, results)

    def node(self, calls: Iterable[Call]) -> str:
        return "UpdatingAggregate"
