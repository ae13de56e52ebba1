"""Worlds for sinks: where their rows are seen, and what a crash leaves behind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow as pa
import pydantic
from streams import read

from arroyo_udf_plugin.engine.connectors.blackhole import Blackhole
from arroyo_udf_plugin.engine.connectors.database import quoted
from arroyo_udf_plugin.engine.connectors.folder import open_folder
from arroyo_udf_plugin.engine.connectors.interface import TransactionalSink
from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.execution.store import Store, open_store

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
KINDS = (
    *("parts", "parts of csv", "parts that wait", "parts in memory", "parts in s3"),
    *("sqlite", "sqlite by key", "blackhole"),
)
ON_SERVERS = ("postgresql", "postgresql by key")


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([f"row {n}" for n in numbers])], schema=SCHEMA)


class StageIn:
    """A stage in a store."""

    def __init__(self, store: Store, history: str) -> None:
        self.store, self.history = store, history
        self.put, self.write, self.get = store.put, store.write, store.get
        self.names, self.delete = store.names, store.delete


@dataclasses.dataclass
class World:
    """What sinks of one model write to. model, stage: as JSON and a place, so that a child can have them, too."""

    model: Any
    stage: str
    history: str

    def sink(self, slice: int = 0, clear: int | None = None, schema: pa.Schema = SCHEMA) -> TransactionalSink:
        sink: TransactionalSink = self.model.sink(
            schema, slice, StageIn(open_store(self.stage), self.history), "pipeline", "sink"
        )
        if clear is not None:
            sink.check(clear, 0, [])
            sink.clear(clear)
        return sink

    def without_checkpoints(self, slice: int = 0, schema: pa.Schema = SCHEMA) -> TransactionalSink:
        sink: TransactionalSink = self.model.sink(schema, slice, None, "pipeline", "sink")
        return sink

    def numbers(self) -> list[int]:
        """Column `a` of all rows that can be seen."""
        return sorted(int(row[0]) for row in self.rows())

    def rows(self) -> list[tuple[Any, ...]]:
        if isinstance(self.model, Table):
            return rows_of(self.model.uri, self.model.table)
        if isinstance(self.model, Blackhole):
            return []
        return [row for name in self.names() if not name.startswith(".") for row in self._part(name)]

    def names(self) -> list[str]:
        """Of all files in the folder of parts."""
        return open_folder(self.model.path).names()

    def _part(self, name: str) -> list[tuple[Any, ...]]:
        folder: Any = open_folder(self.model.path)
        if hasattr(folder, "_store"):
            import obstore

            table = pa.parquet.read_table(pa.BufferReader(obstore.get(folder._store, name).bytes()))
        else:
            table = read(Path(self.model.path) / name, reading=Reading())
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def hidden(self) -> list[str]:
        """What is kept of rows that nobody has seen."""
        if isinstance(self.model, Parts):
            return [name for name in self.names() if name.startswith(".")]
        return open_store(self.stage).names("")

    def as_json(self) -> str:
        return json.dumps({"model": self.model.model_dump(mode="json"), "stage": self.stage, "history": self.history})

    @classmethod
    def of_json(cls, text: str) -> World:
        found = json.loads(text)
        model: Any = pydantic.TypeAdapter(Parts | Table | Blackhole).validate_python(found["model"])
        return cls(model, found["stage"], found["history"])


def world(kind: str, folder: Path, s3: str = "", postgresql: str = "") -> World:
    """A new one. s3: a bucket's URL. postgresql: a server's address."""
    stage, name = str(folder / "checkpoints"), uuid.uuid4().hex
    key = ("a",) if kind.endswith("by key") else ()
    models: dict[str, Any] = {
        "parts": lambda: Parts(path=str(folder / "out"), part_rows=2),
        "parts of csv": lambda: Parts(path=str(folder / "out"), format="csv", compression="gzip"),
        "parts that wait": lambda: Parts(path=str(folder / "out"), part_wait=0.0),  # until their epoch is applied
        "parts in memory": lambda: Parts(path=f"memory://{name}"),
        "parts in s3": lambda: Parts(path=f"{s3}/{name}", part_rows=2),
        "sqlite": lambda: Table(uri=f"sqlite:{folder / 'rows.db'}", table="rows", key=key),
        "postgresql": lambda: Table(uri=postgresql, table=name, key=key),
        "blackhole": Blackhole,
    }
    return World(models[kind.removesuffix(" by key")](), stage, name)


@contextlib.contextmanager
def connected(uri: str) -> Iterator[Any]:
    """A cursor."""
    if uri.startswith("sqlite:"):
        connection = adbc_driver_sqlite.dbapi.connect(uri.removeprefix("sqlite:"), autocommit=True)
    else:
        connection = adbc_driver_postgresql.dbapi.connect(uri, autocommit=True)
    with connection, connection.cursor() as cursor:
        if uri.startswith("sqlite:"):
            cursor.execute("PRAGMA busy_timeout = 60000")  # others may read
        yield cursor


def rows_of(uri: str, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    with connected(uri) as cursor:
        cursor.execute(f"SELECT {columns} FROM {quoted(table)}")
        return list(cursor.fetchall())


def execute(uri: str, *statements: str) -> None:
    with connected(uri) as cursor:
        for statement in statements:
            cursor.execute(statement)
