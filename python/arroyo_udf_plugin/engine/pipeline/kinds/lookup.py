"""Columns of a table in a database, or in Redis, which rows look up by a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import pyarrow as pa
import pydantic

from ....errors import nearest
from ....host.policy import Policy
from ...connectors.described import Bytes, Seconds
from ...connectors.lookups import keyed_table
from ...connectors.type_names import type_named
from ...datafusion.query import Select, WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.lookup import LookupPlan
from .kind import Building, DescribedOperator, lines_of_columns


class Lookup(DescribedOperator):
    """An operator: columns of a table in SQLite, PostgreSQL or Redis, which rows look up by a key.

    Rows stay in their order. With several matches a row becomes several rows; a null in a key matches nothing.
    """

    type: Literal["lookup"] = "lookup"
    uri: str
    """The database: `sqlite:PATH`, `postgresql://USER:${PASSWORD}@HOST/DATABASE` or `redis://HOST:PORT/DATABASE`."""
    table: str
    """The name of a table or a view. In Redis, how keys are made of columns: `planes:{tail}`."""
    keys: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """The table's columns that must be equal to columns of the rows: the row's column for each of them."""
    columns: dict[str, str] | None = None
    """What is added: the table's column for each name of a result; default: all but the keys."""
    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The table's columns as types, such as at = "timestamp[us]"; others have those of the database."""
    unmatched: Literal["drop", "null"] = "drop"
    """What happens to rows without a match: they are left out, or stay with nulls."""
    where: str | None = None
    """A match counts if this is true: a condition over columns of the row and of the table, in DataFusion's SQL."""
    cache_bytes: Bytes = 8 << 20
    """About how large the cache of each slice may be."""
    cache_seconds: Seconds = 60.0
    """How old an entry of the cache may be: changes of the table are seen after this time. 0: no cache."""
    on_error: Literal["fail", "drop", "dead_letter"] = "fail"
    """What happens to a row that cannot be looked up, for example because the database does not answer."""

    @property
    def makes_several(self) -> bool:
        return True

    @property
    def policy(self) -> Policy:
        return Policy(self.on_error)

    def asked(self, data: Mapping[str, Any]) -> Any:
        names = ("type", "table", "keys", "columns", "types", "unmatched", "where", "after")
        return {name: data[name] for name in names}

    def plan(self, name: str, given: Given, hidden: Callable[[str], str] = str, key: bytes | None = None) -> LookupPlan:
        """given: has the columns of the keys. Looks at the table. Raises InvalidArgument."""
        types = {column: type_named(type_) for column, type_ in self.types.items()}
        keys = {column: given.schema.field(own).type for column, own in self.keys.items()}
        table = keyed_table(self.uri, self.table, keys, self.columns, types, name)
        condition = None if self.where is None else Select({"kept": "true"}, self.where)
        return LookupPlan(
            name=name,
            table=table,
            keys=tuple(self.keys.values()),
            condition=condition,
            keeps_unmatched=self.unmatched == "null",
            cache_bytes=self.cache_bytes,
            cache_seconds=self.cache_seconds,
            given=given,
            hidden=hidden,
            key=key,
        )

    def build(self, building: Building, place: int) -> None:
        columns, problems = building.before(place), building.problems
        if columns is None:
            return
        missing = {column: name for column, name in self.keys.items() if name not in columns.schema.names}
        for column, name in missing.items():
            instead = nearest(name, columns.schema.names)
            problems.add(("operators", place, "keys", column), f"there is no column {name!r}: {instead}")
        if missing:
            return
        with problems.at("operators", place):
            given = Given(columns.schema, columns.origin)
            plan = self.plan(building.name(place), given, problems.hidden, building.later_key(place))
            try:
                building.add(place, [plan], plan.schema)
            except WrongQuery as error:
                problems.add(("operators", place, "where"), str(error))

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        assert schema is not None
        yield from lines_of_columns(schema)
        if self.where is not None:
            yield f"    where {' '.join(self.where.split())}"

    def node(self, calls: Iterable[Call]) -> str:
        return "LookupJoin"
