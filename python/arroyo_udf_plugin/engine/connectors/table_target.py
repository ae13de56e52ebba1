"""The table that rows are inserted into: what it must be like, and how rows get in.

Rows with an operation (`table_changes`) also remove others.

Guarantees: a table or column that does not fit is refused before anything is written, and a value before its rows are
committed. With a key, a row replaces the one with the same key; of several in one transaction, the last one stays.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .database import PATIENCE, FoundTable, SqlDatabase, TableColumn, Transaction, quoted
from .schemas import index_of
from .table_changes import ChangedRows, TableChanges, folded
from .table_types import plain, sent_as, values_of

EPOCHS = "arroyo_udf_epochs"
_ROWS = "arroyo_udf_rows"  # a temporary table
_KINDS, _UNSENT = "arroyo_udf_kinds", "arroyo_udf_unsent"  # of rows with an operation, until they are in the table
_MADE_BY_ANOTHER = ("42P07", "23505")  # SQL states of two that make a table at once


class Target:
    """A table, and its columns as the database has them.

    key: columns of a unique index, if rows are to replace others. create: make the table if it does not exist.
    changes: what rows say, if they have an operation. name: for error texts. Raises InvalidArgument if the table cannot
    hold rows of the schema; changes nothing yet.
    """

    def __init__(
        self,
        database: SqlDatabase,
        table: str,
        schema: pa.Schema,
        key: tuple[str, ...],
        create: bool,
        name: str,
        changes: TableChanges | None = None,
    ) -> None:
        self.database, self.table, self.name, self.key = database, table, name, key
        self._changes = changes
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
        if self._changes is None:
            return self._sent(batch, None)
        changed = self._changes.of(batch)
        rows = self._sent(changed.rows, changed)
        return rows.append_column(_KINDS, changed.kinds).append_column(_UNSENT, changed.unsent)

    def _sent(self, rows: pa.RecordBatch, changed: ChangedRows | None) -> pa.Table:
        columns = []
        for field in self.schema:
            values = values_of(rows.column(field.name))
            trouble = self._types.trouble(values)
            if trouble is None and values.null_count and self._lacks(field.name, values, changed):
                trouble = "the table may not have null there"
            if trouble is None:
                try:
                    columns.append(sent_as(values, field.type))
                except pa.ArrowException as error:
                    trouble = str(error)
            if trouble is not None:
                raise InvalidArgument(f"{self.name}: column {field.name!r}: {trouble}")
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _lacks(self, column: str, values: pa.Array, changed: ChangedRows | None) -> bool:
        """Whether a value is null that must not be."""
        if column not in self._required:
            return False
        if changed is None:
            return True
        may_lack = changed.is_emptied if column in self.key else changed.lacks_of(column)
        return bool(pc.any(pc.and_(values.is_null(), pc.invert(may_lack))).as_py())

    def insert(self, transaction: Transaction, rows: pa.Table) -> None:
        if self._changes is not None:
            self._change(transaction, rows)
        elif self.key:
            self._put(transaction, rows)
        else:
            transaction.append(self.table, rows, self._place)

    def _change(self, transaction: Transaction, rows: pa.Table) -> None:
        table, own = quoted(self.table), rows.select(self.schema.names)
        changed = folded(own, self.key, rows.column(_KINDS), rows.column(_UNSENT))
        if changed.emptied:
            transaction.rows(f"DELETE FROM {table}")
        if len(changed.removed):
            key = ", ".join(map(quoted, self.key))
            self._bring(transaction, changed.removed)
            transaction.rows(f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {_ROWS})")
            transaction.rows(f"DROP TABLE {_ROWS}")
        for kept, some in changed.put.items():
            if kept:
                self._update(transaction, some, kept)
            else:
                self._put(transaction, some)

    def _bring(self, transaction: Transaction, rows: pa.Table) -> None:
        """Makes the temporary table."""
        columns = ", ".join(map(quoted, rows.column_names))
        transaction.rows(f"CREATE TEMPORARY TABLE {_ROWS} AS SELECT {columns} FROM {quoted(self.table)} LIMIT 0")
        transaction.append(_ROWS, rows, temporary=True)

    def _update(self, transaction: Transaction, rows: pa.Table, kept: frozenset[str]) -> None:
        """Changes rows that are there. kept: columns that keep what they have."""
        changed = ", ".join(
            f"{quoted(column)} = r.{quoted(column)}" for column in rows.column_names if column not in self.key
        )
        first = quoted(self.key[0])
        same = " AND ".join(f"t.{quoted(column)} = r.{quoted(column)}" for column in self.key)
        self._bring(transaction, rows)
        found = transaction.rows(
            f"UPDATE {quoted(self.table)} AS t SET {changed or f'{first} = r.{first}'} FROM {_ROWS} AS r WHERE {same} "
            "RETURNING 1"
        )
        transaction.rows(f"DROP TABLE {_ROWS}")
        if len(found) < len(rows):
            raise InvalidArgument(
                f"{self.name}: {len(rows) - len(found)} rows were changed whose columns {', '.join(sorted(kept))} were "
                "not sent, because the table is to have their values, and it does not have these rows: begin with a "
                "snapshot of all rows"
            )

    def _put(self, transaction: Transaction, rows: pa.Table) -> None:
        table, columns = quoted(self.table), ", ".join(map(quoted, self.schema.names))
        key = ", ".join(map(quoted, self.key))
        changed = ", ".join(
            f"{quoted(column)} = excluded.{quoted(column)}" for column in self.schema.names if column not in self.key
        )
        self._bring(transaction, rows)
        transaction.rows(
            f"INSERT INTO {table} ({columns}) {self.database.last_of_each(columns, _ROWS, key)} "
            f"ON CONFLICT ({key}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
        )
        transaction.rows(f"DROP TABLE {_ROWS}")

    def close(self) -> None:
        self.database.close()
