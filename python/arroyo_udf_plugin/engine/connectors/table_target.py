"""The table that rows are inserted into: what it must be like, and how rows get in.

Guarantees: a table or column that does not fit is refused before anything is written, and a value before its rows are
committed. With a key, a row replaces the one with the same key; of several in one transaction, the last one stays.
"""

from __future__ import annotations

import pyarrow as pa

from ...errors import InvalidArgument
from .database import PATIENCE, FoundTable, SqlDatabase, TableColumn, Transaction, quoted
from .schemas import index_of
from .table_types import plain, sent_as, values_of

EPOCHS = "arroyo_udf_epochs"
_ROWS = "arroyo_udf_rows"  # a temporary table
_MADE_BY_ANOTHER = ("42P07", "23505")  # SQL states of two that make a table at once


class Target:
    """A table, and its columns as the database has them.

    key: columns of a unique index, if rows are to replace others. create: make the table if it does not exist.
    name: for error texts. Raises InvalidArgument if the table cannot hold rows of the schema; changes nothing yet.
    """

    def __init__(
        self, database: SqlDatabase, table: str, schema: pa.Schema, key: tuple[str, ...], create: bool, name: str
    ) -> None:
        self.database, self.table, self.name, self.key = database, table, name, key
        self._types = database.types
        self._check_names(schema)
        for column in key:
            index_of(schema, column, f"{name}: key: ")
        existing = database.find(table)
        self._place = None if existing is None else existing.schema
        if existing is None and not create:
            raise InvalidArgument(f"{name}: there is no such table: make it, or set create = true")
        self._declared: dict[str, str] = {}
        self._required = set(key)
        self.schema = pa.schema([self._field(field, existing) for field in schema])
        if existing is not None:
            self._check_others(existing, schema)

    def _check_names(self, schema: pa.Schema) -> None:
        database = self.database
        if database.folded(self.table) in (EPOCHS, _ROWS):
            raise InvalidArgument(f"{self.name}: the engine itself uses a table of this name; name another one")
        for identifier in [self.table, *schema.names]:
            quoted(identifier)
            if database.longest_name is not None and len(identifier.encode()) > database.longest_name:
                raise InvalidArgument(
                    f"{self.name}: {identifier!r} is longer than {database.longest_name} bytes, which {database.kind} "
                    "would cut off: give it a shorter name"
                )
        seen: dict[str, str] = {}
        for identifier in schema.names:
            if (other := seen.get(database.folded(identifier))) is not None:
                raise InvalidArgument(
                    f"{self.name}: the columns {other!r} and {identifier!r} are one for {database.kind}"
                )
            seen[database.folded(identifier)] = identifier

    def _field(self, field: pa.Field, existing: FoundTable | None) -> pa.Field:
        """The column as it is sent."""
        type_, kind = plain(field.type), self.database.kind
        try:
            declared = self._types.declared(type_)
            if existing is not None:
                column = existing.columns.get(self.database.folded(field.name))
                if column is None:
                    raise ValueError("the table does not have it: add it there, or leave it out with `columns`")
                declared = self._fitting(type_, column, declared)
                if column.not_null:
                    self._required.add(field.name)
            sent = self._types.sent(type_, declared)
        except ValueError as error:
            raise InvalidArgument(f"{self.name}: column {field.name!r} of type {field.type}: {error}") from None
        assert sent is not None, (kind, type_, declared)
        self._declared[field.name] = declared
        return pa.field(field.name, sent)

    def _fitting(self, type_: pa.DataType, column: TableColumn, wanted: str) -> str:
        if column.generated:
            raise ValueError("the table computes it itself: leave it out with `columns`")
        if self._types.sent(type_, column.declared) is None:
            raise ValueError(f"the table has {column.declared or 'no type'} there, and it must be {wanted}")
        return column.declared

    def _check_others(self, existing: FoundTable, schema: pa.Schema) -> None:
        folded = self.database.folded
        given = {folded(name) for name in schema.names}
        for name, column in existing.columns.items():
            if name not in given and not column.optional and not column.generated:
                raise InvalidArgument(
                    f"{self.name}: the table's column {name!r} may not be null and has no default: write it, too"
                )
        if self.key and frozenset(map(folded, self.key)) not in existing.keys:
            raise InvalidArgument(
                f"{self.name}: the table has no unique index on the key: CREATE UNIQUE INDEX "
                f"{quoted(f'{self.table} by key')} ON {quoted(self.table)} ({', '.join(map(quoted, self.key))})"
            )

    def prepare(self, with_epochs: bool) -> None:
        """Makes the tables that are missing."""
        if self.database.find(self.table, PATIENCE) is None:
            columns = [
                f"{quoted(name)} {declared}{' NOT NULL' if name in self.key else ''}"
                for name, declared in self._declared.items()
            ]
            if self.key:
                columns.append(f"PRIMARY KEY ({', '.join(map(quoted, self.key))})")
            self._make(self.table, ", ".join(columns))
        if with_epochs and self.database.find(EPOCHS, PATIENCE) is None:
            self._make(
                EPOCHS,
                "pipeline text NOT NULL, history text NOT NULL, sink text NOT NULL, slice bigint NOT NULL, "
                "epoch bigint NOT NULL, PRIMARY KEY (pipeline, history, sink, slice)",
            )

    def has_rows(self) -> bool:
        """Whether the table is there, and not empty."""
        if self.database.find(self.table, PATIENCE) is None:
            return False
        statement = f"SELECT 1 FROM {quoted(self.table)} LIMIT 1"
        return bool(self.database.run(lambda transaction: transaction.rows(statement), PATIENCE))

    def _make(self, table: str, columns: str) -> None:
        statement = f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({columns})"
        self.database.run(lambda transaction: transaction.rows(statement), PATIENCE, again=_MADE_BY_ANOTHER)

    def converted(self, batch: pa.RecordBatch) -> pa.Table:
        """Rows as they are sent. Raises InvalidArgument for values that the table cannot hold."""
        columns = []
        for field in self.schema:
            values = values_of(batch.column(field.name))
            trouble = self._types.trouble(values)
            if trouble is None and field.name in self._required and values.null_count:
                trouble = "the table may not have null there"
            if trouble is None:
                try:
                    columns.append(sent_as(values, field.type))
                except pa.ArrowException as error:
                    trouble = str(error)
            if trouble is not None:
                raise InvalidArgument(f"{self.name}: column {field.name!r}: {trouble}")
        return pa.Table.from_arrays(columns, schema=self.schema)

    def insert(self, transaction: Transaction, rows: pa.Table) -> None:
        if not self.key:
            transaction.append(self.table, rows, self._place)
            return
        table, columns = quoted(self.table), ", ".join(map(quoted, self.schema.names))
        key = ", ".join(map(quoted, self.key))
        changed = ", ".join(
            f"{quoted(column)} = excluded.{quoted(column)}" for column in self.schema.names if column not in self.key
        )
        transaction.rows(f"CREATE TEMPORARY TABLE {_ROWS} AS SELECT {columns} FROM {table} LIMIT 0")
        transaction.append(_ROWS, rows, temporary=True)
        transaction.rows(
            f"INSERT INTO {table} ({columns}) {self.database.last_of_each(columns, _ROWS, key)} "
            f"ON CONFLICT ({key}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
        )
        transaction.rows(f"DROP TABLE {_ROWS}")

    def close(self) -> None:
        self.database.close()
