"""A table or view in SQLite or PostgreSQL, or what a query finds there, as a source: once, or again every so often.

Guarantees: with a key, each row is read once: checkpoints have the key behind which reading goes on. Without one, all
rows come in one query, and checkpoints are refused by name.

Assumes: rows are added with greater keys than those that are there (late by no more than the overlap), and keys do not
change. Deletions are not seen, and changes only with `updated_at`.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pydantic

from ...errors import InvalidArgument
from .database import ReadDatabase, open_database
from .described import Input, Period, Seconds, Several
from .interface import Json, Partition, Source, has_ended
from .table_options import A_TIME, TableOptions, chosen, period_seconds
from .table_partition import KeyedPartition, WholePartition
from .table_position import Overlap, TablePosition
from .table_query import TableQuery, table_query
from .type_names import type_named

PATIENCE = 15.0
"""Seconds at the start for a server that does not answer."""
_PARTITION = "rows"


class TableReading(Input):
    """What all sources of tables have."""

    uri: str
    """The database."""

    table: str | None = None
    """The name of the table or view."""

    query: str | None = None
    """A SELECT whose rows are read, in place of `table`."""

    columns: Several[str] | None = None
    """Those to read; otherwise all."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """Types in which columns are read, such as "int", "str" or "timestamp[us, UTC]"; others have those of the
    database."""

    key: Several[str] = ()
    """Columns that are unique together, such as `id`: rows are read in their order, and checkpoints have the last one.
    Needed for checkpoints, and for `every`."""

    updated_at: str | None = None
    """A column that rises whenever a row is changed: such rows are read again. Needs `key`."""

    every: Period | None = None
    """Time between two looks for further rows; otherwise there is one look, and the run ends."""

    overlap: Seconds | None = None
    """How much smaller than the greatest `updated_at` that of a row may be when it appears: rows within this time are
    looked at again, and each is read once."""

    overlap_keys: Annotated[int, pydantic.Field(ge=1)] | None = None
    """The same of a key that is one whole number: how much smaller than the greatest one a new one may be."""

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("write table or query, one of them")
        if not self.key:
            for name in ("every", "updated_at", "overlap", "overlap_keys"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} needs key: columns that are unique together, such as key = ['id']")
        if self.overlap is not None and self.updated_at is None:
            raise ValueError("overlap needs updated_at; of a key that is a whole number, write overlap_keys")
        if self.overlap_keys is not None and (self.updated_at is not None or len(self.key) > 1):
            raise ValueError("overlap_keys is of one key without updated_at; with updated_at, write overlap")
        if self.every is None and (self.overlap is not None or self.overlap_keys is not None):
            raise ValueError("an overlap needs every: rows are looked at again when there is a next look")
        return self

    @property
    def ends(self) -> bool:
        return self.every is None

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(**cls._keys(options))

    @staticmethod
    def _keys(options: TableOptions, needs_uri: bool = True) -> dict[str, Any]:
        query = options.text("query")
        names = None if options.columns is None else [column.name for column in options.columns]
        keys = {
            "uri": options.need("uri", "sqlite:flights.db") if needs_uri else options.text("uri"),
            "table": options.text("table") or (options.table if query is None else None),
            "query": query,
            "columns": names,
            "types": {column.name: str(column.type) for column in options.columns or ()},
            "key": options.read("key", _names, "columns, such as id, or day, number") or options.primary_key,
            "updated_at": options.text("updated_at"),
            "every": options.read("every", period_seconds, A_TIME),
            "overlap": options.read("overlap", period_seconds, A_TIME),
            "overlap_keys": options.read("overlap_keys", int, "a whole number"),
        }
        return chosen(keys)

    def source(self, parallelism: int) -> Source:
        return TableSource(self)

    @property
    def place(self) -> str:
        """For people."""
        return "the query" if self.table is None else f"table {self.table}"

    @abc.abstractmethod
    def database(self) -> ReadDatabase:
        """Without a connection yet. Raises InvalidArgument."""


class TableInput(TableReading):
    """The rows of a table or view in SQLite or PostgreSQL, or of a query."""

    type: Literal["table"] = "table"

    uri: str
    """The database: `sqlite:PATH` or `postgresql://USER:${PASSWORD}@HOST/DATABASE`."""

    @property
    def connector(self) -> str:
        return "sqlite" if urllib.parse.urlsplit(self.uri).scheme == "sqlite" else "postgres"

    def database(self) -> ReadDatabase:
        return open_database(self.uri, self.place, only_reads=True)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError
    return names


class TableSource:
    """One partition. It connects at once, because the database has the columns."""

    side_by_side = True
    watch: float | None = None
    rows: int | None = None

    def __init__(self, described: TableReading) -> None:
        self._described = described
        self.resumable = bool(described.key)
        self.name = described.place if self.resumable else f"{described.place}, which has no key here,"
        types = {name: type_named(type_) for name, type_ in described.types.items()}
        with contextlib.closing(described.database()) as database:
            self._query = table_query(
                database,
                described.table,
                described.query,
                described.columns,
                types,
                described.key,
                described.updated_at,
                described.place,
                PATIENCE,
            )
        self.schema = self._query.schema
        self._types = {key.name: key.type for key in self._query.keys}
        self._overlap = self._checked_overlap(self._query)

    def _checked_overlap(self, query: TableQuery) -> Overlap | None:
        described, name = self._described, f"{query.name}: the overlap"
        if described.overlap_keys is not None:
            if not pa.types.is_integer(query.keys[0].type):
                raise InvalidArgument(f"{name}: {query.keys[0].name!r} is no whole number: leave overlap_keys out")
            return Overlap(name, described.overlap_keys, None)
        if described.overlap is None:
            return None
        assert described.updated_at is not None
        times = query.types[described.updated_at]
        if not (pa.types.is_timestamp(times) or pa.types.is_date(times)):
            raise InvalidArgument(
                f"{name}: {described.updated_at!r} is read as {times}, which is no time: write its type, such as "
                "timestamp[us], or leave overlap out"
            )
        return Overlap(name, described.overlap, times)

    def partitions(self) -> Sequence[str]:
        return [_PARTITION]

    def check(self, positions: Mapping[str, Json]) -> None:
        for position in positions.values():
            if not has_ended(position):
                self._position(position)

    def _position(self, position: Json | None) -> TablePosition:
        if position is None:
            return TablePosition()
        at = position["at"]
        if at is not None and len(at) != len(self._types):
            raise InvalidArgument(
                f"{self.name} was read by {len(at)} columns of a key, and now by {len(self._types)}: begin anew, with "
                "other checkpoints, or name the key that it had"
            )
        return TablePosition.of_json(position, self._types, self._overlap is not None)

    def open(self, partition: str, position: Json | None) -> Partition:
        at = self._position(position)
        query = dataclasses.replace(self._query, database=self._described.database())
        if not self.resumable:
            return WholePartition(query, at)
        return KeyedPartition(query, at, self._described.every, self._overlap)

    def close(self) -> None: ...
