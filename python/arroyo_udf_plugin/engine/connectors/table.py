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
import dataclasses
import hashlib
import itertools
import re
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
from .table_options import TableOptions, chosen, period_seconds
from .table_target import EPOCHS, Target

_CHUNK_BYTES = 64 << 20
_CHUNK = re.compile(r"(\d+)-\d+-\d+\.arrows")


class Table(Output):
    """A table in SQLite or PostgreSQL."""

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

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(
            uri=options.need("uri", "sqlite:flights.db"),
            table=options.text("table") or options.table,
            key=options.primary_key,
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
        if self.columns is not None:
            schema = pa.schema([schema.field(index_of(schema, column, f"{name}: ")) for column in self.columns])
        database = open_database(self.uri, name)
        try:
            return Target(database, self.table, schema, tuple(self.key), self.create, name)
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


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"table": "rows"}

    table: Annotated[_Text | None, pydantic.Field(min_length=1, title="Table, if it has another name")] = None

    def options(self) -> dict[str, str]:
        return {} if self.table is None else {"table": self.table}


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
    return Connector(name, sink=Table, lookup=_lookup, entry=entry)


CONNECTORS = (
    _of_database("postgres", "PostgreSQL", _PostgresAddress),
    _of_database("sqlite", "SQLite", _SqliteAddress),
)


class TableSink:
    """slice: of this engine's rows. stage: None: without checkpoints."""

    def __init__(self, target: Target, slice: int, stage: Stage | None, pipeline: str, name: str) -> None:
        self.name = name
        self._target, self._slice, self._stage, self._pipeline = target, slice, stage, pipeline
        self._folder = f"table-{urllib.parse.quote(name, safe='')}/"
        self._numbers = itertools.count()
        self._generation = 0
        self._staged: list[Json] = []
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._prepared = False

    def write(self, batch: pa.RecordBatch) -> None:
        rows = self._target.converted(batch)
        if self._stage is None:
            self._prepare()
            self._target.database.run(
                lambda transaction: self._target.insert(transaction, rows), PATIENCE, repeatable=False
            )
            return
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _CHUNK_BYTES:
            self._staged.append(self._chunk().stored(self._stage))

    def _chunk(self) -> _Chunk:
        """The rows that wait."""
        rows, self._waiting, self._waiting_bytes = self._waiting, [], 0
        name = f"{self._folder}{self._generation:09}-{self._slice:03}-{next(self._numbers):06}.arrows"
        return _Chunk(name, rows)

    def seal(self, epoch: int) -> Sealed | None:
        assert self._stage is not None
        staged, self._staged = self._staged, []
        last = self._chunk() if self._waiting else None
        return _SealedRows(self._stage, self._slice, staged, last) if staged or last else None

    def apply(self, epoch: int, stored: Json) -> None:
        assert self._stage is not None
        stage = self._stage
        try:
            self._target.database.run(lambda transaction: self._apply(transaction, stage, epoch, stored), PATIENCE)
        except InvalidArgument as error:
            error.add_note(f"epoch {epoch} is committed: mend the table, then resume")
            raise
        for chunk in map(_StoredChunk.read, stored["chunks"]):
            stage.delete(chunk.name)

    def _apply(self, transaction: Transaction, stage: Stage, epoch: int, stored: Json) -> None:
        noted = transaction.rows(
            f"INSERT INTO {EPOCHS} (pipeline, history, sink, slice, epoch) VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (pipeline, history, sink, slice) DO UPDATE SET epoch = excluded.epoch "
            f"WHERE {EPOCHS}.epoch < excluded.epoch RETURNING epoch",
            *(self._pipeline, stage.history, self.name, stored["slice"], epoch),
        )
        if not noted:
            return  # applied before
        for chunk in map(_StoredChunk.read, stored["chunks"]):
            self._target.insert(transaction, self._read(stage, chunk, epoch))

    def _read(self, stage: Stage, chunk: _StoredChunk, epoch: int) -> pa.Table:
        """Raises InvalidArgument if these are not the rows that were stored."""
        what = f"{self._target.name}: rows of epoch {epoch} in the checkpoints' store"
        try:
            data = stage.get(chunk.name)
            if chunk.sha256 not in (None, hashlib.sha256(data).hexdigest()):
                raise pa.ArrowInvalid("its checksum is another one")
            with pa.ipc.open_stream(data) as reader:
                return reader.read_all()
        except FileNotFoundError:
            raise InvalidArgument(f"{what} are gone: put rows/{chunk.name} back, and resume") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidArgument(
                f"{what} are damaged: rows/{chunk.name}: {error}: restore it from a copy, and resume"
            ) from error

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        assert self._stage is not None
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
                for chunk in map(_StoredChunk.read, stored["chunks"]):
                    self._read(self._stage, chunk, epoch)

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
        assert self._stage is not None
        self._generation = committed
        self._prepare()
        for name in self._stage.names(self._folder):
            if (chunk := _CHUNK.fullmatch(name.removeprefix(self._folder))) and int(chunk[1]) < committed:
                self._stage.delete(name)

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


@dataclasses.dataclass(frozen=True)
class _Chunk:
    """Rows on their way. name: in the stage."""

    name: str
    rows: list[pa.Table]

    def stored(self, stage: Stage) -> Json:
        """Puts them there. Returns how they are found again."""
        target = pa.BufferOutputStream()
        with pa.ipc.new_stream(target, self.rows[0].schema) as writer:
            for rows in self.rows:
                writer.write_table(rows)
        data = bytes(target.getvalue())
        stage.put(self.name, data)
        return {"name": self.name, "sha256": hashlib.sha256(data).hexdigest()}


@dataclasses.dataclass(frozen=True)
class _StoredChunk:
    """sha256: None: an earlier program has stored it."""

    name: str
    sha256: str | None

    @classmethod
    def read(cls, stored: Any) -> _StoredChunk:
        return cls(stored, None) if isinstance(stored, str) else cls(stored["name"], stored["sha256"])


@dataclasses.dataclass(frozen=True)
class _SealedRows:
    """staged: chunks in the stage. last: one that is still to be put there."""

    stage: Stage
    slice: int
    staged: list[Json]
    last: _Chunk | None

    def store(self) -> Json:
        chunks = list(self.staged)
        if self.last is not None:
            chunks.append(self.last.stored(self.stage))
        return {"slice": self.slice, "chunks": chunks}

    def discard(self) -> None:
        names = [chunk["name"] for chunk in self.staged] + ([] if self.last is None else [self.last.name])
        for name in names:
            self.stage.delete(name)
