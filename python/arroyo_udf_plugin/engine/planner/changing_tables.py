"""Tables whose source is changes, as tables: a query sees the rows that are there, and they come and go.

    CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT) WITH (connector = 'postgresql_cdc', ...)
    CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT) WITH (connector = 'kafka', format = 'debezium_json', ...)

    op, before, after ──► op, id, name, unsent ──► the rows of the table, which come and go

The PRIMARY KEY says it: without one, such a table has a row for each change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyarrow as pa

from ..connectors.connector import Connector
from ..connectors.registry import connectors
from ..connectors.table_options import Option
from ..datafusion.query import Select, WrongQuery
from ..pipeline.kinds.followed import FollowTable
from .flow import Flow, Node
from .statements import CreateTable, DeclaredColumn
from .tables import takes_changes
from .text import Wrong

_OP, _UNSENT, _CHANGE = "__op", "__unsent", "__change"
_QUOTE = "'"


def is_followed(table: CreateTable) -> bool:
    """Whether a table that is read has the rows of one that changes. Raises Wrong for one that does not say which."""
    names = {column.name for column in table.columns or ()}
    if takes_changes(table) and table.columns is not None and not {"op", "before", "after"} & names:
        if not table.primary_key:
            raise Wrong(
                f"{table.name} has changes: name the PRIMARY KEY of the table that changes, or, for a row of each "
                "change, the columns op, before and after",
                table.at,
            )
        return True
    return bool(table.primary_key) and not takes_changes(table) and _has_changes(_connector(table))


def read_as(table: CreateTable) -> CreateTable:
    """The table of its changes. Raises Wrong."""
    if table.watermark is not None:
        raise Wrong(f"the rows of {table.name} change, and have no event time: leave WATERMARK FOR out", table.at)
    columns = list(table.columns or ())
    for column in columns:
        if column.generated or column.metadata is not None:
            raise Wrong(
                f"{table.name} has the columns of the table that changes: compute {column.name} in a view, or leave "
                "PRIMARY KEY out for a row of each change",
                column.at,
            )
    if not takes_changes(table):
        beside = [
            DeclaredColumn(name, type_, False, (), table.at, Option(key, table.at))
            for name, type_, key in ((_OP, pa.string(), "op"), (_UNSENT, pa.list_(pa.string()), "unsent"))
        ]
        nullable = [dataclasses.replace(column, not_null=False) for column in columns]  # deletions have the key alone
        return dataclasses.replace(table, columns=[*nullable, *beside], primary_key=())
    row = pa.struct([(column.name, column.type) for column in columns])
    own = [
        DeclaredColumn(name, type_, False, (), table.at)
        for name, type_ in (("op", pa.string()), ("before", row), ("after", row))
    ]
    options = dict(table.options)
    if not _has_messages(_connector(table)):
        options["format"] = dataclasses.replace(options["format"], value="json")
    return dataclasses.replace(table, columns=own, primary_key=(), options=options)


def followed(flow: Flow, table: CreateTable, changes: Node) -> Node:
    """The rows of the table. changes: those of `read_as`. Raises Wrong."""
    columns = [column.name for column in table.columns or ()]
    if takes_changes(table):
        changes = _flat(flow, table, columns, changes)
    operator = FollowTable(
        name=f"{table.name}_rows",
        keys=tuple(table.primary_key),
        operation=_OP,
        unsent=_UNSENT if _UNSENT in changes.schema.names else None,
    )
    try:
        node = flow.of_keys(changes, operator, table.at)
    except WrongQuery as error:
        raise Wrong(f"table {table.name}: {error}", table.at) from None
    return flow.required(node, [column.name for column in table.columns or () if column.not_null], table.name, table.at)


def _flat(flow: Flow, table: CreateTable, columns: Sequence[str], changes: Node) -> Node:
    """Changes with the columns beside the operation. One that has another key than before is two."""
    before, after = (_struct(columns, side) for side in ("before", "after"))
    moved = " OR ".join(f"before[{_text(name)}] <> after[{_text(name)}]" for name in table.primary_key)
    one = f"CASE WHEN op = 'd' THEN {before} ELSE {after} END"
    item = (
        f"unnest(CASE WHEN op = 'u' AND ({moved})\n"
        f"THEN make_array({{'op': 'd', 'row': {before}}}, {{'op': op, 'row': {after}}})\n"
        f"ELSE make_array({{'op': op, 'row': {one}}}) END)"
    )
    node = flow.query(changes, Select({_CHANGE: item}, None, table.name), f"{table.name}_changes", table.at)
    items = {name: f"{_CHANGE}['row'][{_text(name)}]" for name in columns} | {_OP: f"{_CHANGE}['op']"}
    return flow.query(node, Select(items, None, table.name), f"{table.name}_columns", table.at)


def _struct(columns: Sequence[str], side: str) -> str:
    return f"named_struct({', '.join(f'{_text(name)}, {side}[{_text(name)}]' for name in columns)})"


def _text(name: str) -> str:
    """A name as a text in SQL."""
    return f"'{name.replace(_QUOTE, 2 * _QUOTE)}'"


def _connector(table: CreateTable) -> Connector:
    return connectors()[table.options["connector"].value]


def _has_changes(connector: Connector) -> bool:
    """Whether its rows are changes: they can say what became of a row, and what was not sent of it."""
    return connector.source is not None and {"op", "unsent"} <= set(connector.source.metadata_keys)


def _has_messages(connector: Connector) -> bool:
    """Whether it knows the format itself."""
    return connector.source is not None and "decimals" in connector.source.model_fields
