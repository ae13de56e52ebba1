"""A table in SQLite or PostgreSQL in which rows look up others by a key.

    lookup = lookup_table("sqlite:planes.db", "planes", {"tail": pa.string()}, {"maker": "maker"}, {}, "operators[0]")
    lookup.schema                              what is found
    with closing(lookup.open()) as opened:
        opened.rows([tails])                   one query

Guarantees: a table, a column or a type that does not fit is an InvalidArgument before the first row. Names cannot end
a statement. Whether a key equals a value of the table is the database's answer.

Assumes: nobody changes the table's columns meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument
from .cells import CellType
from .database import PATIENCE, Column, Database, Transaction, WrongValue, open_database, quoted
from .lookup_types import values


@dataclass(frozen=True)
class LookupTable:
    """What is asked, found to be right. name: for error texts.

    table, columns: as statements have them. keys: columns of the table with their declared types. key_types: in which
    they are sent. schema: of what is found.
    """

    uri: str
    name: str
    table: str
    keys: Mapping[str, str]
    key_types: Sequence[pa.DataType]
    columns: Sequence[str]
    schema: pa.Schema

    def open(self) -> OpenLookup:
        """For one thread at a time. It connects when it is asked first."""
        return OpenLookup(self, open_database(self.uri, self.name))


def lookup_table(
    uri: str,
    table: str,
    keys: Mapping[str, pa.DataType],
    columns: Mapping[str, str] | None,
    types: Mapping[str, pa.DataType],
    name: str,
) -> LookupTable:
    """keys: columns of the table, with the type of what they are compared with. columns: of the table, by the names of
    what is found; None: all but the keys. types: in which columns are read; others have those of the database.

    Raises InvalidArgument.
    """
    name = f"{name} ({table})"
    database = open_database(uri, name)
    try:
        return _checked(database, uri, table, keys, columns, types, name)
    finally:
        database.close()


def _checked(
    database: Database,
    uri: str,
    table: str,
    keys: Mapping[str, pa.DataType],
    columns: Mapping[str, str] | None,
    types: Mapping[str, pa.DataType],
    name: str,
) -> LookupTable:
    found = database.find(table, views=True)
    if found is None:
        raise InvalidArgument(f"{name}: there is no such table in the database: make it, or name another one")

    def declared(column: str) -> str:
        known: Column | None = found.columns.get(database.folded(column))
        if known is None:
            raise InvalidArgument(f"{name}: the table has no column {column!r}: it has {', '.join(found.columns)}")
        return known.declared

    for column, type_ in types.items():
        if database.reading.expression("", declared(column), type_) is None:
            raise InvalidArgument(
                f"{name}: column {column!r} is {declared(column) or 'without a type'} in the database, which is not "
                f"read as {type_}: {_instead(database, declared(column))}"
            )
    key_types = []
    for column, given in keys.items():
        plain = pa.string() if isinstance(given, CellType) else given
        wanted = types.get(column) or database.reading.natural(declared(column))
        sent = database.reading.key(declared(column), plain)
        if sent is None and isinstance(given, CellType) and wanted is not None:
            sent = database.reading.key(declared(column), wanted)
        if sent is None:
            raise InvalidArgument(
                f"{name}: column {column!r} is {declared(column) or 'without a type'} in the database, and no "
                f"{plain} equals it: compare it with another column, or with one that a query has cast"
            )
        key_types.append(sent)
    if columns is None:
        folded = {database.folded(column) for column in keys}
        columns = {column: column for column in found.columns if column not in folded}
    fields, items = [], []
    for result, column in columns.items():
        type_ = types.get(column) or database.reading.natural(declared(column))
        if type_ is None:
            raise InvalidArgument(f"{name}: column {column!r} is {declared(column)!r} in the database: write its type")
        expression = database.reading.expression(f"t.{quoted(column)}", declared(column), type_)
        assert expression is not None, (column, type_)
        fields.append(pa.field(result, type_))
        items.append(expression)
    place = quoted(table) if found.schema is None else f"{quoted(found.schema)}.{quoted(table)}"
    return LookupTable(
        uri, name, place, {column: declared(column) for column in keys}, key_types, items, pa.schema(fields)
    )


def _instead(database: Database, declared: str) -> str:
    natural = database.reading.natural(declared)
    return "write another type" if natural is None else f"write {natural}"


class OpenLookup:
    def __init__(self, asked: LookupTable, database: Database) -> None:
        self._asked, self._database = asked, database

    def rows(self, keys: Sequence[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
        """The rows of these keys: their columns, and the place of each one's key, which rises. One query.

        keys: in the table's `key_types`, without nulls. Raises WrongValue if one of them, or a row of it, is the
        reason; InvalidArgument if the database does not answer.
        """
        asked = self._asked
        wanted = pa.Table.from_arrays(list(keys), names=[f"k{place}" for place in range(len(keys))])

        def work(transaction: Transaction) -> pa.Table:
            return self._database.matches(transaction, asked.table, asked.columns, asked.keys, wanted)

        found = self._database.run(work, PATIENCE)
        columns = []
        for field, column in zip(asked.schema, found.columns, strict=False):
            try:
                columns.append(values(column, field.type))
            except ValueError as error:
                raise WrongValue(f"{asked.name}: {field.name!r} is no {field.type}: {error}") from None
        places = values(found.column(found.num_columns - 1), pa.int64())
        rows = pa.RecordBatch.from_arrays(columns, schema=asked.schema)
        if len(places) > 1 and not pc.all(pc.less_equal(places[:-1], places[1:])).as_py():
            order = pc.array_sort_indices(places)
            rows, places = rows.take(order), places.take(order)
        return rows, places

    def close(self) -> None:
        self._database.close()
