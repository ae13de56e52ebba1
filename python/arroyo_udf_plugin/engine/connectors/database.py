"""SQLite and PostgreSQL through ADBC: transactions that outlast a restart of the server, and what tables look like.

    database = open_database("postgresql://user@host/flights", "sinks[0]")
    database.run(lambda transaction: transaction.append("delays", rows), patience=60)

Guarantees: `run` commits all that the function did, or nothing. While the server cannot be reached or is busy, `run`
waits and calls the function again. Names and texts are data: they cannot end a statement.

Assumes: one thread at a time.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from ...errors import InvalidArgument, Unreachable
from .disk import current
from .location import database_of
from .lookup_types import ColumnReading, PostgresqlReading, SqliteReading, compared, example
from .table_types import PostgresqlTypes, SqliteTypes, Types

PATIENCE = 120.0  # seconds for a server that restarts
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_BUSY_MS = 10_000  # SQLite itself waits so long for another writer
_KEYS = "arroyo_udf_keys"  # a temporary table
_QUERY = "arroyo_udf_query"  # a temporary view
_Result = TypeVar("_Result")


def quoted(name: str) -> str:
    """A name in a statement."""
    if not name or "\0" in name:
        raise InvalidArgument(f"{name!r} cannot be a name in a database")
    return '"' + name.replace('"', '""') + '"'


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """declared: its type, as the database shows it. optional: a row may leave it out. generated: a row must."""

    declared: str
    not_null: bool
    optional: bool
    generated: bool


@dataclasses.dataclass(frozen=True)
class FoundTable:
    """A table. schema: where it is; None: SQLite. columns: by their name as `SqlDatabase.folded` has it. keys: the
    columns of its unique indexes, in the same way. is_view: of which no index is known."""

    schema: str | None
    columns: dict[str, TableColumn]
    keys: list[frozenset[str]]
    is_view: bool = False


class Transaction:
    """What is open within `SqlDatabase.run`."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self._cursor.execute(statement, parameters or None)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def table(self, statement: str, parameters: pa.RecordBatch | None = None) -> pa.Table:
        """What a query answers."""
        self._cursor.execute(statement, parameters)
        try:
            return self._cursor.fetch_arrow_table()
        except (OSError, pa.ArrowException) as error:  # of a driver that tells Arrow alone
            from adbc_driver_manager import AdbcStatusCode, OperationalError

            raise OperationalError(str(error), status_code=AdbcStatusCode.IO) from error

    def append(self, table: str, rows: pa.Table, schema: str | None = None, temporary: bool = False) -> None:
        self._cursor.adbc_ingest(table, rows, mode="append", db_schema_name=schema, temporary=temporary)


class WrongValue(InvalidArgument):
    """A value that a query was given, or has found, is the reason why it failed."""


class ReadDatabase(Protocol):
    """What rows are read from. kind: for people. reading: of its columns."""

    kind: str
    reading: ColumnReading

    def folded(self, name: str) -> str:
        """Equal for names that are the same column."""

    def find(self, table: str, patience: float = 0, views: bool = False) -> FoundTable | None:
        """views: whether a view is a table, too. Raises InvalidArgument for what is no table."""

    def find_query(self, query: str, patience: float = 0) -> FoundTable:
        """What a query answers, as if it were a view. Raises InvalidArgument for what is no query."""

    def typed(self, types: Sequence[pa.DataType], query: str) -> tuple[str, int]:
        """A query that selects what `reading.expression` says, so that columns have their types whatever is in them.
        Its order stays if it has a LIMIT. The second: how many rows come before its own."""

    def greater(self, columns: Sequence[str], values: Sequence[int | str], declared: Sequence[str]) -> str:
        """A condition: that columns, as statements have them, come behind values in their order."""

    def run(
        self,
        work: Callable[[Transaction], _Result],
        patience: float,
        repeatable: bool = True,
        again: Sequence[str] = (),
    ) -> _Result:
        """Runs a transaction. patience: seconds to try, from the first failure on.

        repeatable: the function itself sees when its work has been committed before. Otherwise a connection that was
        lost during the commit is an error. again: further SQL states after which to try again.
        Raises InvalidArgument; WrongValue if other values might succeed; Unreachable.
        """

    def batches(self, statement: str) -> Generator[pa.RecordBatch, None, None]:
        """What a query answers, as it comes. Raises InvalidArgument, Unreachable."""

    def cancel(self) -> None:
        """Ends what is under way, if the database can do that. From any thread."""

    def close(self) -> None: ...


class SqlDatabase(ReadDatabase, Protocol):
    """types: of its columns. longest_name: in bytes."""

    types: Types
    longest_name: int | None

    def matches(
        self,
        transaction: Transaction,
        table: str,
        columns: Sequence[tuple[str, pa.DataType]],
        keys: Mapping[str, str],
        wanted: pa.Table,
    ) -> pa.Table:
        """Rows of a table whose columns equal one of the wanted keys.

        table, columns: as statements have them, each of these with its type; "t" is the table. keys: its columns, with
        their declared types. wanted: a column for each of `keys`, without nulls. Of the result the last column is the
        key's place there.
        """

    def last_of_each(self, columns: str, table: str, key: str) -> str:
        """A query for rows of a temporary table: those that no later row replaces."""


def open_database(uri: str, name: str, only_reads: bool = False) -> SqlDatabase:
    """Without a connection yet. name: for error texts, because a URI may have a password. only_reads: nothing is
    written, so `run` begins no transaction: each statement has its own.

    Raises InvalidArgument for a URI that is none, and for a driver that is not installed.
    """
    where = database_of(uri, name)
    if where.path is None:
        return _Postgresql(uri, name, only_reads)
    path = os.path.abspath(where.admitted().path or "")
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidArgument(f"{name}: the folder {os.path.dirname(path)} does not exist")
    return _Sqlite(path, name, only_reads)


class Connected(abc.ABC):
    """The part that all databases share. driver: a module of ADBC."""

    kind: str

    def __init__(self, address: str, name: str, driver: str, extra: str, only_reads: bool) -> None:
        import importlib

        self._address, self._name, self._only_reads = address, name, only_reads
        self._server = address.rpartition("@")[2].partition("?")[0]  # without a password
        try:
            self._driver = importlib.import_module(driver)
        except ModuleNotFoundError as error:
            raise InvalidArgument(
                f"{name}: {self.kind} needs its driver: pip install 'arroyo_udf_plugin[{extra}]'"
            ) from error
        self._connection: Any = None
        self._disk = current()
        self._committing = False
        self._guard = threading.Lock()
        self._cursor: Any = None  # that can be cancelled

    def run(
        self,
        work: Callable[[Transaction], _Result],
        patience: float,
        repeatable: bool = True,
        again: Sequence[str] = (),
    ) -> _Result:
        failed: float | None = None
        wait = _FIRST_WAIT
        while True:
            self._committing = False
            try:
                return self._once(work)
            except self._driver.Error as error:
                self.close()
                text = str(error).partition("\n")[0]
                if self._committing and not repeatable and not self._is_undone(error):
                    raise InvalidArgument(
                        f"{self._name}: the connection was lost during a commit, so nobody knows whether its rows are "
                        f"in the table; with checkpoints this does no harm: {text}"
                    ) from error
                failed = failed or time.monotonic()
                message = f"{self._name}: {self.kind}: {text}"
                if not self._passes(error) and error.sqlstate not in again:
                    raise (WrongValue if self._is_of_value(error) else InvalidArgument)(message) from error
                if time.monotonic() + wait > failed + patience:
                    raise Unreachable(message, f"{self.kind} {self._server}") from error
            except BaseException:
                self.close()
                raise
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def batches(self, statement: str) -> Generator[pa.RecordBatch, None, None]:
        try:
            self._connect()
            with self._cancellable() as cursor:
                cursor.execute(statement)
                yield from cursor.fetch_record_batch()
        except (self._driver.Error, OSError, pa.ArrowException) as error:
            self.close()
            text = str(error).partition("\n")[0]
            message = f"{self._name}: {self.kind}: {text}"
            if isinstance(error, self._driver.Error) and self._passes(error):
                raise Unreachable(message, f"{self.kind} {self._server}") from error
            raise InvalidArgument(message) from error

    @contextlib.contextmanager
    def _cancellable(self) -> Iterator[Any]:
        """A cursor."""
        with self._connection.cursor() as cursor:
            with self._guard:
                self._cursor = cursor
            try:
                yield cursor
            finally:
                with self._guard:
                    self._cursor = None

    def cancel(self) -> None:
        with self._guard, contextlib.suppress(self._driver.Error):
            if self._cursor is not None:
                self._cursor.adbc_cancel()

    def _connect(self) -> None:
        if self._connection is None:
            self._connection = self._opened()
            with self._connection.cursor() as cursor:
                self._begun(Transaction(cursor))

    def _once(self, work: Callable[[Transaction], _Result]) -> _Result:
        self._connect()
        if self._only_reads:
            with self._cancellable() as cursor:
                return work(Transaction(cursor))
        connection = self._connection.adbc_connection
        connection.set_autocommit(False)  # begins a transaction
        with self._cancellable() as cursor:
            result = work(Transaction(cursor))
        self._committing = True
        self._disk.commit(connection)
        connection.set_autocommit(True)
        return result

    def _opened(self) -> Any:
        return self._driver.connect(self._address, autocommit=True)

    def _begun(self, transaction: Transaction) -> None:  # noqa: B027 (most databases need nothing)
        """Called for each connection."""

    @abc.abstractmethod
    def _passes(self, error: Any) -> bool:
        """Whether the same may succeed later."""

    @abc.abstractmethod
    def _is_of_value(self, error: Any) -> bool:
        """Whether it is an error of a value."""

    @abc.abstractmethod
    def _is_undone(self, error: Any) -> bool:
        """Whether a commit that failed has not happened for certain."""

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(self._driver.Error):  # it may be lost already
                connection.close()


class _Sqlite(Connected):
    kind = "SQLite"
    longest_name: int | None = None

    def __init__(self, path: str, name: str, only_reads: bool) -> None:
        self.types: Types = SqliteTypes()
        self.reading: ColumnReading = SqliteReading()
        super().__init__(path, name, "adbc_driver_sqlite.dbapi", "engine", only_reads)

    def folded(self, name: str) -> str:
        return name.encode().lower().decode()  # ASCII letters only

    def find(self, table: str, patience: float = 0, views: bool = False) -> FoundTable | None:
        if not Path(self._address).exists():
            return None  # a connection would make it
        return self.run(lambda transaction: self._catalog_entry(transaction, table, views), patience)

    def _catalog_entry(self, transaction: Transaction, table: str, views: bool) -> FoundTable | None:
        kinds = transaction.rows("SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE", table)
        if not kinds:
            return None
        kind = kinds[0][0]
        if kind != "table" and not (views and kind == "view"):
            raise InvalidArgument(f"{self._name}: {table!r} is no table, but has another kind: {kind}")
        return self._columns_and_keys(transaction, table, kind == "view")

    def find_query(self, query: str, patience: float = 0) -> FoundTable:
        def work(transaction: Transaction) -> FoundTable:
            transaction.rows(f"CREATE TEMPORARY VIEW {_QUERY} AS {query}")
            found = self._columns_and_keys(transaction, _QUERY, is_view=True)
            transaction.rows(f"DROP VIEW temp.{_QUERY}")
            return found

        if not Path(self._address).exists():
            raise InvalidArgument(f"{self._name}: there is no file {self._address}")
        return self.run(work, patience)

    def _columns_and_keys(self, transaction: Transaction, table: str, is_view: bool) -> FoundTable:
        columns, primary = {}, set()
        for name, declared, not_null, filled, key, hidden in transaction.rows(
            'SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?)', table
        ):
            columns[self.folded(name)] = TableColumn(
                declared, bool(not_null), bool(filled or not not_null), hidden in (2, 3)
            )
            if key:
                primary.add(self.folded(name))
        indexes: dict[str, set[str | None]] = {}
        for index, name in transaction.rows(
            "SELECT list.name, info.name FROM pragma_index_list(?) AS list, pragma_index_info(list.name) AS info "
            'WHERE list."unique" AND NOT list.partial',
            table,
        ):
            indexes.setdefault(index, set()).add(name and self.folded(name))
        keys = [frozenset(index_columns) for index_columns in indexes.values() if None not in index_columns]
        return FoundTable(None, columns, [frozenset(primary), *keys], is_view)  # type: ignore[list-item]

    def typed(self, types: Sequence[pa.DataType], query: str) -> tuple[str, int]:
        # The driver takes the type of a column from the first rows, and in them there may be nulls alone.
        return f"SELECT {', '.join(map(example, types))} UNION ALL SELECT * FROM ({query})", 1

    def greater(self, columns: Sequence[str], values: Sequence[int | str], declared: Sequence[str]) -> str:
        literals = (
            str(value) if isinstance(value, int) else f"CAST(x'{value.encode().hex()}' AS TEXT)" for value in values
        )
        return f"({', '.join(columns)}) > ({', '.join(literals)})"

    def matches(
        self,
        transaction: Transaction,
        table: str,
        columns: Sequence[tuple[str, pa.DataType]],
        keys: Mapping[str, str],
        wanted: pa.Table,
    ) -> pa.Table:
        names = [f"k{place}" for place in range(len(keys))]
        transaction.rows(f"CREATE TEMPORARY TABLE IF NOT EXISTS {_KEYS} ({', '.join([*names, 'place'])})")
        transaction.rows(f"DELETE FROM temp.{_KEYS}")
        places = pa.array(range(len(wanted)), pa.int64())
        rows = pa.Table.from_arrays([*wanted.columns, places], names=[*names, "place"])
        transaction.append(_KEYS, rows, temporary=True)
        equal = " AND ".join(f"t.{quoted(key)} = k.{name}" for key, name in zip(keys, names, strict=True))
        # The driver takes the type of a column from the first rows, and in them there may be nulls alone.
        first = ", ".join([*(example(type_) for _, type_ in columns), "0"])
        items = ", ".join([*(column for column, _ in columns), "k.place"])
        # CROSS: it goes through the keys, not through the table.
        query = f"SELECT {items} FROM temp.{_KEYS} AS k CROSS JOIN {table} AS t ON {equal}"
        return transaction.table(f"SELECT {first} UNION ALL {query}").slice(1)

    def last_of_each(self, columns: str, table: str, key: str) -> str:
        return f"SELECT {columns} FROM temp.{table} WHERE true"  # one after another, so the last one wins

    def _begun(self, transaction: Transaction) -> None:
        transaction.rows(f"PRAGMA busy_timeout = {_BUSY_MS}")

    def _passes(self, error: Any) -> bool:
        return "is locked" in str(error)

    def _is_of_value(self, error: Any) -> bool:
        return "Type mismatch in column" in str(error)  # the driver's: a value of another type than those before it

    def _is_undone(self, error: Any) -> bool:
        return True


class _Postgresql(Connected):
    kind = "PostgreSQL"
    longest_name: int | None = 63  # bytes; it would cut the rest off

    def __init__(self, uri: str, name: str, only_reads: bool) -> None:
        self.types: Types = PostgresqlTypes()
        self.reading: ColumnReading = PostgresqlReading()
        super().__init__(uri, name, "adbc_driver_postgresql.dbapi", "postgresql", only_reads)

    def folded(self, name: str) -> str:
        return name

    def find(self, table: str, patience: float = 0, views: bool = False) -> FoundTable | None:
        return self.run(lambda transaction: self._catalog_entry(transaction, table, views), patience)

    def _catalog_entry(self, transaction: Transaction, table: str, views: bool) -> FoundTable | None:
        rows = transaction.rows(
            "SELECT c.oid::bigint, n.nspname::text, c.relkind::text FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
            quoted(table),
        )
        if not rows:
            return None
        oid, schema, kind = rows[0]
        if kind not in ("r", "p", *(("v", "m", "f") if views else ())):
            raise InvalidArgument(f"{self._name}: {table!r} is no table, but a view, an index or the like")
        columns = transaction.rows(
            "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull, "
            "atthasdef OR attidentity <> '' OR NOT attnotnull, attgenerated <> '' "
            "FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            oid,
        )
        keys: dict[int, set[str]] = {}
        for index, name in transaction.rows(
            "SELECT i.indexrelid::bigint, a.attname::text FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]) "
            "WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indimmediate "
            "AND i.indpred IS NULL AND i.indexprs IS NULL",
            oid,
        ):
            keys.setdefault(index, set()).add(name)
        return FoundTable(
            schema,
            {name: TableColumn(*rest) for name, *rest in columns},
            [*map(frozenset, keys.values())],
            kind not in ("r", "p"),
        )

    def find_query(self, query: str, patience: float = 0) -> FoundTable:
        def work(transaction: Transaction) -> FoundTable:
            names = transaction.table(f"SELECT * FROM ({query}\n) AS t LIMIT 0").schema.names
            types = ", ".join(f"pg_typeof(t.{quoted(name)})::text" for name in names)
            declared = transaction.rows(
                f"SELECT {types} FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM ({query}\n) AS q LIMIT 0) AS t ON true"
            )[0]
            columns = {
                name: TableColumn(type_, not_null=False, optional=True, generated=False)
                for name, type_ in zip(names, declared, strict=True)
            }
            return FoundTable(None, columns, [], is_view=True)

        return self.run(work, patience)

    def typed(self, types: Sequence[pa.DataType], query: str) -> tuple[str, int]:
        return query, 0

    def greater(self, columns: Sequence[str], values: Sequence[int | str], declared: Sequence[str]) -> str:
        literals = (_literal(value, type_) for value, type_ in zip(values, declared, strict=True))
        return f"({', '.join(columns)}) > ({', '.join(literals)})"

    def matches(
        self,
        transaction: Transaction,
        table: str,
        columns: Sequence[tuple[str, pa.DataType]],
        keys: Mapping[str, str],
        wanted: pa.Table,
    ) -> pa.Table:
        names = [f"k{place}" for place in range(len(keys))]
        given = ", ".join(f"${place + 1}" for place in range(len(keys)))
        equal = " AND ".join(
            f"t.{quoted(key)} = {compared(f'k.{name}', declared)}"
            for (key, declared), name in zip(keys.items(), names, strict=True)
        )
        lists = [
            pa.ListArray.from_arrays(pa.array([0, len(wanted)], pa.int32()), column.chunk(0))
            for column in wanted.columns
        ]
        items = ", ".join([*(column for column, _ in columns), "k.place - 1"])
        return transaction.table(
            f"SELECT {items} FROM unnest({given}) WITH ORDINALITY AS k({', '.join([*names, 'place'])}) "
            f"JOIN {table} AS t ON {equal}",
            pa.RecordBatch.from_arrays(lists, names=names),
        )

    def last_of_each(self, columns: str, table: str, key: str) -> str:
        # It refuses to change a row twice in one statement. `ctid` rises in the order in which rows were added.
        return f"SELECT DISTINCT ON ({key}) {columns} FROM pg_temp.{table} ORDER BY {key}, ctid DESC"

    def _passes(self, error: Any) -> bool:
        if not error.sqlstate:  # the connection was lost or refused
            return bool(error.status_code == self._driver.adbc_driver_manager.AdbcStatusCode.IO)
        # Connection, conflicts with others, resources, the operator's stop. 08P01 is a mistake.
        return error.sqlstate != "08P01" and error.sqlstate[:2] in ("08", "40", "53", "55", "57")

    def _is_of_value(self, error: Any) -> bool:
        return bool(error.sqlstate) and error.sqlstate[:2] == "22"

    def _is_undone(self, error: Any) -> bool:
        return bool(error.sqlstate)


def _literal(value: int | str, declared: str) -> str:
    text = str(value).replace("\\", "\\\\").replace("'", "''")  # E: whatever standard_conforming_strings says
    return f"CAST(E'{text}' AS {declared})"
