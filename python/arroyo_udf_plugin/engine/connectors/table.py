"""A table in SQLite or PostgreSQL.

With checkpoints, an epoch's rows wait in the checkpoints' store. `apply` inserts them in one transaction, which also
notes the epoch in the table `arroyo_udf_epochs`, by pipeline, history, sink and slice; a noted epoch is not inserted
again. Without checkpoints, each batch is a transaction of its own.

Guarantees: a table or a column that cannot hold the rows is an InvalidArgument before the first row, and a value that
it cannot hold is one before its rows are committed. Names cannot end a statement.

Assumes: nobody changes the table's columns meanwhile, nor a row of `arroyo_udf_epochs`.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ...author.options import bytes_of
from ...errors import InvalidArgument, WrongCheckpoints
from .connector import CatalogueEntry, Connector, Form
from .database import PATIENCE, Transaction, open_database
from .described import Output, Several
from .interface import Fate, Json, LaterRows, Sealed, Stage, later_epochs
from .lookup_table import lookup_table
from .schemas import index_of
from .staged_rows import StagedRows
from .table_changes import TableChanges
from .table_options import TableOptions, chosen, period_seconds
from .table_source import TableInput
from .table_target import EPOCHS, Target


class Table(Output):
    """A table in SQLite or PostgreSQL."""

    later: ClassVar[frozenset[str]] = frozenset({"operation"})

    type: Literal["table"] = "table"

    uri: str
    """The database: `sqlite:PATH` or `postgresql://USER:${PASSWORD}@HOST/DATABASE`."""

    table: str
    """The table's name."""

    key: Several[str] = ()
    """Columns of a unique index: a row replaces the one with the same key. Without them, rows are added."""

    create: bool = True
    """Make the table if it does not exist."""

    columns: Several[str] | None = None
    """Those to write; otherwise all."""

    operation: str | None = None
    """A column that says what becomes of the row with the same key: `c`, `r` or `u` put the row there, `d` removes it,
    and `t` removes all rows. Needs `key`."""

    @pydantic.model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.operation is not None and not self.key:
            raise ValueError("operation needs key: columns of a unique index, by which rows are found")
        return self

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(
            uri=options.need("uri", "sqlite:flights.db"),
            table=options.text("table") or options.table,
            key=options.primary_key,
            operation=options.text("operation"),
        )

    @property
    def connector(self) -> str:
        return "sqlite" if urllib.parse.urlsplit(self.uri).scheme == "sqlite" else "postgres"

    @property
    def fate(self) -> Fate:
        return "overwritten" if self.key else "doubled"

    def check(self, schema: pa.Schema) -> None:
        self._opened(schema, "table").close()

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> TableSink:
        return TableSink(self._opened(schema, name), slice, stage, pipeline, name)

    def shown(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if self.operation is not None:
            raise InvalidArgument("a table whose rows have operations does not have the rows that were written")
        types = dict(zip(schema.names, schema.types, strict=True))
        name = "the table"
        with contextlib.closing(open_database(self.uri, name)) as database:
            if database.find(self.table) is None:
                return
        asked = lookup_table(self.uri, self.table, {}, {column: column for column in types}, types, name)
        with contextlib.closing(asked.open()) as opened:
            rows = opened.all_rows()
        yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)

    def _opened(self, schema: pa.Schema, name: str) -> Target:
        name = f"{name} ({self.table})"
        changes = None
        if self.operation is not None:
            changes = TableChanges(schema, self.operation, self.key, self.columns, name)
            schema = changes.schema
        elif self.columns is not None:
            schema = pa.schema([schema.field(index_of(schema, column, f"{name}: ")) for column in self.columns])
        database = open_database(self.uri, name)
        try:
            return Target(database, self.table, schema, tuple(self.key), self.create, name, changes)
        except BaseException:
            database.close()
            raise


def _lookup(options: TableOptions) -> Mapping[str, Any]:
    """The keys of `Lookup` that say where it looks."""
    size = options.read("lookup.cache.max_bytes", _size, "a number of bytes, such as 8000000 or 8 MiB; 0 for no cache")
    seconds = options.read("lookup.cache.ttl", period_seconds, "a time such as 60 s or INTERVAL '1 minute'")
    return chosen(
        {
            "uri": options.need("uri", "sqlite:planes.db"),
            "table": options.text("table") or options.table,
            "cache_bytes": size or None,
            "cache_seconds": 0.0 if size == 0 else seconds,
        }
    )


def _size(text: str) -> int:
    return 0 if text.strip() == "0" else bytes_of(text)


_Text = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4000)]


_OF_SOURCES = ("key", "updated_at", "every", "overlap")


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"type": "source", "table": "rows", "key": "id", "every": "10 s"}

    type: Literal["sink", "source"] = "sink"
    table: Annotated[_Text | None, pydantic.Field(min_length=1, title="Table, if it has another name")] = None
    key: Annotated[_Text | None, pydantic.Field(min_length=1, title="Source: columns that are unique together")] = None
    updated_at: Annotated[_Text | None, pydantic.Field(min_length=1, title="Source: column with the last change")] = (
        None
    )
    every: Annotated[_Text | None, pydantic.Field(min_length=1, title="Source: time between two looks")] = None
    overlap: Annotated[_Text | None, pydantic.Field(min_length=1, title="Source: how late rows may be")] = None

    @pydantic.model_validator(mode="after")
    def _are_of_a_source(self) -> Self:
        if self.type == "sink" and (given := [name for name in _OF_SOURCES if getattr(self, name) is not None]):
            raise ValueError(f"{given[0]} is of a source: leave it out, or write type = source")
        return self

    def table_type(self) -> Literal["source", "sink"]:
        return self.type

    def options(self) -> dict[str, str]:
        given = {name: getattr(self, name) for name in ("type", "table", *_OF_SOURCES)}
        return {name: value for name, value in given.items() if value is not None}


class _Address(Form):
    begins: ClassVar[tuple[str, ...]]

    uri: Annotated[_Text, pydantic.Field(min_length=1, title="URI", json_schema_extra={"format": "var-str"})]

    @pydantic.field_validator("uri")
    @classmethod
    def _is_of_this_database(cls, uri: str) -> str:
        if not uri.startswith((*cls.begins, "${", "{{")):  # a variable may be all of it
            raise ValueError(f"it begins with {' or '.join(cls.begins)}, such as {cls.example['uri']}")
        return uri

    def options(self) -> dict[str, str]:
        return {"uri": self.uri}


class _PostgresAddress(_Address):
    begins = ("postgresql://", "postgres://")
    example: ClassVar[Mapping[str, Any]] = {"uri": "postgresql://user:password@host/name"}


class _SqliteAddress(_Address):
    begins = ("sqlite:",)
    example: ClassVar[Mapping[str, Any]] = {"uri": "sqlite:/data/rows.db"}


def _of_database(name: str, title: str, address: type[_Address]) -> Connector:
    entry = CatalogueEntry(title, f"A table of a {title} database", _Form, profile=address, secrets=("uri",))
    return Connector(name, source=TableInput, sink=Table, lookup=_lookup, entry=entry)


CONNECTORS = (
    _of_database("postgres", "PostgreSQL", _PostgresAddress),
    _of_database("sqlite", "SQLite", _SqliteAddress),
)


class TableSink:
    """slice: of this engine's rows. stage: None: without checkpoints."""

    def __init__(self, target: Target, slice: int, stage: Stage | None, pipeline: str, name: str) -> None:
        self.name = name
        self._target, self._stage, self._pipeline = target, stage, pipeline
        self._staged = None if stage is None else StagedRows(stage, "table", name, slice, target.name)
        self._prepared = False

    def write(self, batch: pa.RecordBatch) -> None:
        rows = self._target.converted(batch)
        if self._staged is not None:
            self._staged.add(rows)
            return
        self._prepare()
        self._target.database.run(
            lambda transaction: self._target.insert(transaction, rows), PATIENCE, repeatable=False
        )

    def seal(self, epoch: int) -> Sealed | None:
        assert self._staged is not None
        return self._staged.seal()

    def apply(self, epoch: int, stored: Json) -> None:
        assert self._staged is not None
        try:
            self._target.database.run(lambda transaction: self._apply(transaction, epoch, stored), PATIENCE)
        except InvalidArgument as error:
            error.add_note(f"epoch {epoch} is committed: mend the table, then resume")
            raise
        self._staged.delete(stored)

    def _apply(self, transaction: Transaction, epoch: int, stored: Json) -> None:
        assert self._stage is not None
        assert self._staged is not None
        noted = transaction.rows(
            f"INSERT INTO {EPOCHS} (pipeline, history, sink, slice, epoch) VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (pipeline, history, sink, slice) DO UPDATE SET epoch = excluded.epoch "
            f"WHERE {EPOCHS}.epoch < excluded.epoch RETURNING epoch",
            *(self._pipeline, self._stage.history, self.name, stored["slice"], epoch),
        )
        if not noted:
            return  # applied before
        for rows in self._staged.read(stored, epoch):
            self._target.insert(transaction, rows)

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        assert self._stage is not None
        assert self._staged is not None
        place = f"{self._target.name}: the table"
        noted = self._noted()
        own = {slice: last for history, slice, last in noted if history == self._stage.history}
        last = max(own.values(), default=None)
        if last is not None and last >= committed:
            give_up = "bring back a copy of the database that is as old"
            raise WrongCheckpoints(later_epochs(place, f"epoch {last}", committed, give_up))
        if noted and not own and self._target.has_rows():
            raise WrongCheckpoints(self._of_others(place, max(last for _, _, last in noted)))
        if waiting and self._target.database.find(EPOCHS, PATIENCE) is None:
            raise InvalidArgument(
                f"{self._target.name}: the database has no table {EPOCHS} any more, which says what of epoch {epoch} "
                "is in it: bring the database back, or begin anew in another place"
            )
        for stored in waiting:
            if own.get(stored["slice"], 0) < epoch:
                self._staged.check(stored, epoch)

    def _noted(self) -> list[tuple[str, int, int]]:
        """The latest epochs of this pipeline's sink: history, slice and epoch."""
        database = self._target.database
        if database.find(EPOCHS, PATIENCE) is None:
            return []
        statement = f"SELECT history, slice, epoch FROM {EPOCHS} WHERE pipeline = $1 AND sink = $2"
        rows = database.run(lambda transaction: transaction.rows(statement, self._pipeline, self.name), PATIENCE)
        return [(str(history), int(slice), int(epoch)) for history, slice, epoch in rows]

    def _of_others(self, place: str, epoch: int) -> str:
        pipeline, sink = (text.replace("'", "''") for text in (self._pipeline, self.name))
        return (
            f"{place} has rows, and this pipeline has written here with other checkpoints, up to their epoch {epoch}: "
            "if these are in another place, or in one that is not mounted, go on from there. To begin anew, name "
            "another table, or empty this one. To add rows to those that are there, forget whose they are: "
            f"DELETE FROM {EPOCHS} WHERE pipeline = '{pipeline}' AND sink = '{sink}'"
        )

    def clear(self, committed: int) -> None:
        assert self._staged is not None
        self._prepare()
        self._staged.clear(committed)

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        assert self._stage is not None
        table, keys = self._target.name, ", ".join(self._target.key)
        own = [last for history, _, last in self._noted() if history == self._stage.history]
        if max(own, default=0) <= epoch:
            return LaterRows(self.name, "none", f"{table} has no later rows")
        if keys:
            return LaterRows(self.name, "overwritten", f"rows of {table} with the same {keys} are replaced")
        return LaterRows(self.name, "doubled", f"rows of {table} stay")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Rows stay; those that come again take the places of those with the same key."""

    def _prepare(self) -> None:
        if not self._prepared:
            self._target.prepare(with_epochs=self._stage is not None)
            self._prepared = True

    def finish(self) -> None:
        self._prepare()

    def close(self) -> None:
        self._target.close()
