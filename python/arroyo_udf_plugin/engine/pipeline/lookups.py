"""A lookup of a description, checked against its table."""

from __future__ import annotations

from collections.abc import Callable

from ..connectors.lookup_table import lookup_table
from ..connectors.type_names import type_named
from ..datafusion.query import Select
from ..operators.blocks import Given
from ..operators.lookup import LookupPlan
from .description import Lookup


def lookup_plan(
    operator: Lookup, name: str, given: Given, hidden: Callable[[str], str] = str, key: bytes | None = None
) -> LookupPlan:
    """given: has the columns of the keys. Looks at the table. Raises InvalidArgument."""
    types = {column: type_named(type_) for column, type_ in operator.types.items()}
    keys = {column: given.schema.field(own).type for column, own in operator.keys.items()}
    table = lookup_table(operator.uri, operator.table, keys, operator.columns, types, name)
    condition = None if operator.where is None else Select({"kept": "true"}, operator.where)
    return LookupPlan(
        name=name,
        table=table,
        keys=tuple(operator.keys.values()),
        condition=condition,
        keeps_unmatched=operator.unmatched == "null",
        cache_bytes=operator.cache_bytes,
        cache_seconds=operator.cache_seconds,
        given=given,
        hidden=hidden,
        key=key,
    )
