"""What a table source asks: the columns of a table or a query with their types, and pages of rows in the order of keys.

    SELECT columns, keys FROM table WHERE keys > last ORDER BY keys LIMIT rows

Guarantees: a column, type or key that does not fit is an InvalidArgument before the first row. A row without a key, two
rows with one, and rows that are not in order are an InvalidArgument, because some would never be read. The database
itself compares keys, and gets back what it has given: so its collations decide, and no value changes on the way.

Assumes: of a view or a query: no two rows have the same key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .database import FoundTable, ReadDatabase, Transaction, quoted
from .lookup_table import CheckedColumns
from .lookup_types import values

Key = tuple[int | str, ...]
"""The values of a row's key: whole numbers, and texts."""

_is = pa.types


@dataclasses.dataclass(frozen=True)
class KeyColumn:
    """name: for people. sql: as statements have it. at: its place in what is selected. type: in which it is read.
    declared: by the database. may_be_null: as far as its declaration says."""

    name: str
    sql: str
    at: int
    type: pa.DataType
    declared: str
    may_be_null: bool


@dataclasses.dataclass(frozen=True)
class Page:
    """Rows in the order of their keys. keys: their key columns. is_last: there are no more. is_new: of each, whether it
    is behind a given key; None: all are."""

    rows: pa.RecordBatch
    keys: pa.RecordBatch
    is_last: bool
    is_new: pa.Array | None = None

    def slice(self, start: int, most: int) -> Page:
        is_new = None if self.is_new is None else self.is_new.slice(start, most)
        return Page(self.rows.slice(start, most), self.keys.slice(start, most), self.is_last, is_new)

    def filter(self, mask: pa.Array) -> Page:
        return Page(self.rows.filter(mask), self.keys.filter(mask), self.is_last)


@dataclasses.dataclass(frozen=True)
class TableQuery:
    """look: what the table is like now, within some seconds. place: what follows FROM. items: what is selected, with
    its types: first the columns of `schema`. declared: of all columns that matter, by name, as the database has it.
    types: in which those of the schema and `updated_at` are read. name: for error texts.
    """

    database: ReadDatabase
    name: str
    look: Callable[[ReadDatabase, float], FoundTable]
    place: str
    schema: pa.Schema
    items: Sequence[tuple[str, pa.DataType]]
    keys: Sequence[KeyColumn]
    declared: Mapping[str, str]
    types: Mapping[str, pa.DataType]

    def everything(self) -> tuple[str, int]:
        """A statement for all rows, and how many rows come before them in its answer."""
        items = ", ".join(sql for sql, _ in self.items)
        return self.database.typed([type_ for _, type_ in self.items], f"SELECT {items} FROM {self.place} AS t")

    def page(self, transaction: Transaction, after: Key | None, known: Key | None, most: int) -> Page:
        """Rows with greater keys than `after`. known: rows with greater ones are new; None: all are. most: rows, at
        least 2."""
        items = list(self.items)
        if known is not None:
            items.append((f"CASE WHEN {self._greater_than(known)} THEN 1 ELSE 0 END", pa.int64()))
        where = "" if after is None else f" WHERE {self._greater_than(after)}"
        order = ", ".join(key.sql for key in self.keys)
        query = (
            f"SELECT {', '.join(sql for sql, _ in items)} FROM {self.place} AS t{where} ORDER BY {order} LIMIT {most}"
        )
        statement, before = self.database.typed([type_ for _, type_ in items], query)
        found = transaction.table(statement).slice(before)
        is_new = None if known is None else values(found.column(len(self.items)), pa.int64()).cast(pa.bool_())
        page = Page(self.typed(found), self._keys(found), len(found) < most, is_new)
        # The next page begins with the last row, so that another one with the same key is seen.
        return page if page.is_last else page.slice(0, len(found) - 1)

    def _greater_than(self, key: Key) -> str:
        return self.database.greater(
            [column.sql for column in self.keys], key, [column.declared for column in self.keys]
        )

    def typed(self, found: pa.Table) -> pa.RecordBatch:
        """The columns of the schema. Raises InvalidArgument."""
        columns = [self._values(found, at, field.type, field.name) for at, field in enumerate(self.schema)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _values(self, found: pa.Table, at: int, type_: pa.DataType, name: str) -> pa.Array:
        try:
            return values(found.column(at), type_)
        except (ValueError, pa.ArrowException) as error:
            raise InvalidArgument(
                f"{self.name}: {name!r} is no {type_}: {error}. Read it as another type, such as text"
            ) from None

    def _keys(self, found: pa.Table) -> pa.RecordBatch:
        columns = []
        for key in self.keys:
            column = self._values(found, key.at, key.type, key.name)
            if column.null_count:
                raise self._without_key(key)
            columns.append(column)
        keys = pa.RecordBatch.from_arrays(columns, names=[key.name for key in self.keys])
        self._check_order(keys)
        return keys

    def _check_order(self, keys: pa.RecordBatch) -> None:
        if keys.num_rows < 2:
            return
        before, after = keys.slice(0, keys.num_rows - 1), keys.slice(1)
        first = self.keys[0]
        if not _is.is_string(first.type):  # the order of texts is the database's
            falls = pc.less(after.column(0), before.column(0))
            if pc.any(falls).as_py():
                raise InvalidArgument(
                    f"{self.name}: rows do not come in the order of {first.name!r}: it is no good key"
                )
        same = pc.equal(after.column(0), before.column(0))
        for mine, other in list(zip(after.columns, before.columns, strict=True))[1:]:
            same = pc.and_(same, pc.equal(mine, other))
        at = pc.index(same, True).as_py()
        if at >= 0:
            value = ", ".join(
                f"{name} = {column[at]}" for name, column in zip(keys.schema.names, keys.columns, strict=True)
            )
            raise InvalidArgument(
                f"{self.name}: several rows have the key {value}, so some might be passed over: add columns to the "
                "key, until it is unique"
            )

    def _without_key(self, key: KeyColumn) -> InvalidArgument:
        return InvalidArgument(
            f"{self.name}: {key.name!r} is null in some rows, which would never be read: fill it and declare it NOT "
            "NULL, or read a query that leaves them out"
        )

    def check(self) -> None:
        """Raises InvalidArgument if columns have changed since, or a row has no key."""
        found = self.look(self.database, 0).columns
        for name, declared in self.declared.items():
            column = found.get(self.database.folded(name))
            if column is None or column.declared != declared:
                now = "is gone" if column is None else f"is {column.declared} now"
                raise InvalidArgument(
                    f"{self.name}: column {name!r} was {declared}, and {now}: start again, so that the table is read "
                    "as it is"
                )
        if unsure := [key for key in self.keys if key.may_be_null]:
            self.database.run(lambda transaction: self._check_nulls(transaction, unsure), 0)

    def _check_nulls(self, transaction: Transaction, unsure: Sequence[KeyColumn]) -> None:
        asked = ", ".join(
            f"CASE WHEN EXISTS (SELECT 1 FROM {self.place} AS t WHERE {key.sql} IS NULL) THEN 1 ELSE 0 END"
            for key in unsure
        )
        for key, found in zip(unsure, transaction.rows(f"SELECT {asked}")[0], strict=True):
            if found:
                raise self._without_key(key)


def table_query(
    database: ReadDatabase,
    table: str | None,
    query: str | None,
    columns: Sequence[str] | None,
    types: Mapping[str, pa.DataType],
    key: Sequence[str],
    updated_at: str | None,
    name: str,
    patience: float,
) -> TableQuery:
    """table: its name; None: `query` is asked. columns: those to read; None: all. types: in which they are read; others
    have those of the database. key: columns that are unique together. updated_at: the column by which rows are ordered
    first. patience: seconds to wait for a server.

    Raises InvalidArgument, Unreachable.
    """

    def look(database: ReadDatabase, patience: float) -> FoundTable:
        if query is not None:
            return database.find_query(query, patience)
        existing = None if table is None else database.find(table, patience, views=True)
        if existing is None:
            raise InvalidArgument(f"{name}: there is no such table in the database: make it, or name another one")
        return existing

    found = look(database, patience)
    place = f"({query}\n)" if table is None else quoted(table)
    if found.schema is not None:
        place = f"{quoted(found.schema)}.{place}"
    checked = CheckedColumns(database, found, types, name)
    chosen = list(found.columns) if columns is None else list(columns)
    schema = pa.schema([(column, checked.type(column)) for column in chosen])
    items = [(checked.expression(column), schema.field(at).type) for at, column in enumerate(chosen)]
    order = [*([] if updated_at is None else [updated_at]), *key]
    folded = database.folded
    if key and not found.is_view and not any(own and own <= {*map(folded, key)} for own in found.keys):
        raise InvalidArgument(
            f"{name}: the table has no unique index on {', '.join(key)}, so rows with equal keys might be passed over: "
            "name the columns of its primary key, or make such an index"
        )
    keys = []
    for column in order:
        declared = checked.declared(column)
        type_ = database.reading.ordered(declared)
        if type_ is None:
            raise InvalidArgument(
                f"{name}: column {column!r} is {declared or 'without a type'} in the database, and rows are read in "
                "the order of whole numbers, decimals, texts, dates or times: name another column"
            )
        sql = database.reading.expression(f"t.{quoted(column)}", declared, type_) or f"t.{quoted(column)}::text"
        item = (sql, type_)
        if item not in items:
            items.append(item)
        not_null = found.columns[folded(column)].not_null
        keys.append(KeyColumn(column, f"t.{quoted(column)}", items.index(item), type_, declared, not not_null))
    names = dict.fromkeys([*chosen, *order])
    declared_types = {column: checked.declared(column) for column in names}
    read_as = {column: checked.type(column) for column in [*chosen, *([] if updated_at is None else [updated_at])]}
    return TableQuery(database, name, look, place, schema, items, keys, declared_types, read_as)
