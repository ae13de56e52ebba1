"""Objects of JSON in Redis, which rows look up by key.

    table = redis_table("redis://localhost/0", "planes:{tail}", {"tail": pa.string()}, {"maker": "maker"}, {...}, "p")

Guarantees: a value that is no such object, or a key that has no string, is an error of the rows with that key. Columns
of the key have the parts of the key that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument
from ..cells import CellType
from ..database import PATIENCE, WrongValue
from ..json_rows import JsonRows
from ..json_types import check
from ..lookup_table import WrongColumn
from .server import RedisServer

_NAME = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class RedisTable:
    """Keys of a server, as one table. name: for error texts. table: how a key is made, of the columns in braces.
    keys: these columns. columns: of the objects, with their types. schema: of what is found."""

    server: RedisServer
    name: str
    table: str
    keys: Mapping[str, str]
    key_types: Sequence[pa.DataType]
    columns: Sequence[str]
    schema: pa.Schema

    def open(self) -> OpenRedisTable:
        """For one thread at a time. It connects when it is asked first."""
        return OpenRedisTable(self)


def redis_table(
    uri: str,
    table: str,
    keys: Mapping[str, pa.DataType],
    columns: Mapping[str, str] | None,
    types: Mapping[str, pa.DataType],
    name: str,
) -> RedisTable:
    """As `lookup_table` has it. table: a key with the names of columns: "planes:{tail}". Raises InvalidArgument."""
    name = f"{name} ({table})"
    parts = _NAME.findall(table)
    if not parts or len(set(parts)) < len(parts):
        raise InvalidArgument(
            f"{name}: write how the keys are made, with each column of the key once: 'planes:{{tail}}'"
        )
    if columns is None:
        columns = {column: column for column in types if column not in keys}
    for column, given in keys.items():
        if column not in parts:
            raise WrongColumn(
                f"{name}: {column!r} is no part of the key, by which alone rows are found: compare {parts[0]!r}", column
            )
        if not isinstance(given, CellType) and given not in (pa.string(), pa.large_string()):
            raise WrongColumn(f"{name}: keys are texts, and {column!r} is compared with {given}: cast it", column)
    if keys and (missing := [part for part in parts if part not in keys]):
        raise WrongColumn(f"{name}: all parts of the key are needed: compare {missing[0]!r}, too", missing[0])
    schema = pa.schema([(result, _type(name, column, parts, types)) for result, column in columns.items()])
    server = RedisServer(address=uri)
    return RedisTable(
        server,
        name,
        table,
        dict.fromkeys(parts, "TEXT"),
        [pa.string() for _ in keys],
        [f"{column} {schema.field(result).type}" for result, column in columns.items()],
        schema,
    )


def _type(name: str, column: str, parts: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.DataType:
    type_ = types.get(column, pa.string() if column in parts else None)
    if type_ is None:
        raise WrongColumn(f"{name}: write the type of {column!r}: Redis does not know it", column)
    if column in parts and type_ != pa.string():
        raise WrongColumn(f"{name}: {column!r} is a part of the key, which is text: it is no {type_}", column)
    try:
        check(type_)
    except InvalidArgument as error:
        raise WrongColumn(f"{name}: column {column!r}: {error}", column) from None
    return type_


class OpenRedisTable:
    def __init__(self, asked: RedisTable) -> None:
        self._asked, self._client = asked, asked.server.client()
        self._parts = _NAME.findall(asked.table)
        sources = [column.rpartition(" ")[0] for column in asked.columns]
        self._sources = dict(zip(asked.schema.names, sources, strict=True))
        read = {source: asked.schema.field(name).type for name, source in self._sources.items()}
        self._types = {source: type_ for source, type_ in read.items() if source not in self._parts}
        self._json = JsonRows(pa.schema(list(self._types.items())), self._types, (), None, None, "value")

    def rows(self, keys: Sequence[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
        """As `OpenLookup.rows` has it."""
        own = dict(zip(self._asked.keys, (column.to_pylist() for column in keys), strict=True))
        names = [_NAME.sub(lambda part: own[part[1]][at], self._asked.table) for at in range(len(keys[0]))]  # noqa: B023
        values = self._asked.server.ask(self._client, lambda client: self._values(client, names), PATIENCE)
        places = [at for at, value in enumerate(values) if value is not None]
        batch, refused = self._json.of_objects([values[at] for at in places])
        for at, why in refused.items():
            raise WrongValue(f"{self._asked.name}: {names[places[at]]!r}: {why}")
        columns = [
            pa.array([own[source][at] for at in places], pa.string()) if source in self._parts else batch.column(source)
            for source in self._sources.values()
        ]
        found = pa.RecordBatch.from_arrays(columns, schema=self._asked.schema) if columns else batch
        return found, pa.array(places, pa.int64())

    def _values(self, client: Any, names: list[str]) -> list[Any]:
        values = client.mget(names)
        missing = [name for name, value in zip(names, values, strict=True) if value is None]
        if missing and client.exists(*missing):  # MGET says nothing of other types
            for name in missing:
                if (type_ := client.type(name).decode()) not in ("none", "string"):
                    raise WrongValue(
                        f"{self._asked.name}: {name!r} is a {type_}: what is looked up is a string of JSON"
                    )
        return list(values)

    def close(self) -> None:
        self._client.close()
