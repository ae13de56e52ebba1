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

from ...errors import InvalidArgument
from .cells import CellType
from .database import PATIENCE, FoundTable, ReadDatabase, SqlDatabase, Transaction, WrongValue, open_database, quoted
from .lookup_types import values


class WrongColumn(InvalidArgument):
    """A column of the table that does not fit."""

    def __init__(self, text: str, column: str) -> None:
        self.column = column
        super().__init__(text)


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
        existing = database.find(table, views=True)
        if existing is None:
            raise InvalidArgument(f"{name}: there is no such table in the database: make it, or name another one")
        checked = CheckedColumns(database, existing, types, name)
        if columns is None:
            folded = {database.folded(column) for column in keys}
            columns = {column: column for column in existing.columns if column not in folded}
        place = quoted(table) if existing.schema is None else f"{quoted(existing.schema)}.{quoted(table)}"
        return LookupTable(
            uri,
            name,
            place,
            {column: checked.declared(column) for column in keys},
            [checked.key(column, given) for column, given in keys.items()],
            [checked.expression(column) for column in columns.values()],
            pa.schema([(result, checked.type(column)) for result, column in columns.items()]),
        )
    finally:
        database.close()


class CheckedColumns:
    """A table's columns, with the types in which they are wanted; others have those of the database. Raises
    InvalidArgument."""

    def __init__(
        self, database: ReadDatabase, existing: FoundTable, types: Mapping[str, pa.DataType], name: str
    ) -> None:
        self._database, self._existing, self._types, self._name = database, existing, types, name
        self._reading = database.reading
        for column in types:
            self.expression(column)

    def declared(self, column: str) -> str:
        known = self._existing.columns.get(self._database.folded(column))
        if known is None:
            raise self._wrong(column, f"the table has no column {column!r}: it has {', '.join(self._existing.columns)}")
        return known.declared

    def type(self, column: str) -> pa.DataType:
        type_ = self._types.get(column) or self._reading.natural(self.declared(column))
        if type_ is None:
            raise self._wrong(column, f"{self._is_declared(column)}: write what it is to be read as")
        return type_

    def expression(self, column: str) -> str:
        type_ = self.type(column)
        sql = self._reading.expression(f"t.{quoted(column)}", self.declared(column), type_)
        if sql is None:
            natural = self._reading.natural(self.declared(column))
            instead = "another type" if natural is None else natural
            raise self._wrong(column, f"{self._is_declared(column)}, which is not read as {type_}: write {instead}")
        return sql

    def key(self, column: str, given: pa.DataType) -> pa.DataType:
        """The type in which keys are sent."""
        declared = self.declared(column)
        compared = pa.string() if isinstance(given, CellType) else given
        sent = self._reading.key(declared, compared)
        if sent is None and compared != given:
            sent = self._reading.key(declared, self.type(column))  # a cell is parsed
        if sent is None:
            instead = "cast what it is compared with"
            raise self._wrong(column, f"{self._is_declared(column)}, and no {compared} equals it: {instead}")
        return sent

    def _is_declared(self, column: str) -> str:
        return f"column {column!r} is {self.declared(column) or 'without a type'} in the database"

    def _wrong(self, column: str, text: str) -> WrongColumn:
        return WrongColumn(f"{self._name}: {text}", column)


class OpenLookup:
    def __init__(self, asked: LookupTable, database: SqlDatabase) -> None:
        self._asked, self._database = asked, database

    def rows(self, keys: Sequence[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
        """The rows of these keys: their columns, and the place of each one's key, which rises. One query.

        keys: in the table's `key_types`, without nulls. Raises WrongValue if one of them, or a row of it, is the
        reason; InvalidArgument if the database does not answer.
        """
        asked = self._asked
        wanted = pa.Table.from_arrays(list(keys), names=[f"k{place}" for place in range(len(keys))])

        typed = list(zip(asked.columns, asked.schema.types, strict=True))

        def work(transaction: Transaction) -> pa.Table:
            return self._database.matches(transaction, asked.table, typed, asked.keys, wanted)

        matches = self._database.run(work, PATIENCE)
        places = values(matches.column(matches.num_columns - 1), pa.int64())
        rows = self._typed(matches)
        if len(places) > 1 and not pc.all(pc.less_equal(places[:-1], places[1:])).as_py():
            order = pc.array_sort_indices(places)
            rows, places = rows.take(order), places.take(order)
        return rows, places

    def all_rows(self) -> pa.RecordBatch:
        """Of the whole table. Raises as `rows` does."""
        columns = ", ".join(self._asked.columns)
        statement = f"SELECT {columns} FROM {self._asked.table} AS t"
        return self._typed(self._database.run(lambda transaction: transaction.table(statement), PATIENCE))

    def _typed(self, table: pa.Table) -> pa.RecordBatch:
        """The table's columns, which come first."""
        columns = []
        for field, column in zip(self._asked.schema, table.columns, strict=False):
            try:
                columns.append(values(column, field.type))
            except ValueError as error:
                raise WrongValue(f"{self._asked.name}: {field.name!r} is no {field.type}: {error}") from None
        return pa.RecordBatch.from_arrays(columns, schema=self._asked.schema)

    def close(self) -> None:
        self._database.close()
