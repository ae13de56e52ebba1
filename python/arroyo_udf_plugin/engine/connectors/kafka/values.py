"""Values of messages as columns: what each format has to do, and the formats that need nothing else.

    reader.schema                         of the columns
    reader.preparation(values)            what must be asked elsewhere first, in another thread; None: nothing
    reader.read(values)                   the columns, and the messages that were refused, by position: why

Guarantees: each value is a row. A message without a value (a tombstone) has nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from ..json_rows import JsonRows
from ..message_rows import Refused, Values, json_objects, json_schema, plain, plain_schema
from .schema_registry import id_of, payload_of

Columns = tuple[list[pa.Array], Refused]


class ValueReader(Protocol):
    """schema: of the columns. keeps_tombstones: whether a message without a value is a row."""

    schema: pa.Schema
    keeps_tombstones: bool

    def preparation(self, values: Values) -> Callable[[], None] | None:
        """What `read` needs for these values, and others have: it may take a while. Raises Unreachable, and may be
        called again; InvalidArgument."""

    def read(self, values: Values) -> Columns: ...


class PlainValues:
    """Texts, or bytes: the only column."""

    keeps_tombstones = True

    def __init__(self, format: str, types: Mapping[str, pa.DataType]) -> None:
        self.schema = plain_schema(format, types)

    def preparation(self, values: Values) -> None:
        """Nothing."""

    def read(self, values: Values) -> Columns:
        column, refused = plain(values, self.schema.types[0], "message")
        return [column], refused


class JsonColumns:
    """Objects. json_columns, timestamps: see `options.Reading`."""

    keeps_tombstones = True

    def __init__(self, types: Mapping[str, pa.DataType], json_columns: Sequence[str], timestamps: str | None) -> None:
        self.schema = json_schema(types, json_columns)
        self._rows = JsonRows(self.schema, types, json_columns, timestamps, None, "message")

    def preparation(self, values: Values) -> None:
        """Nothing."""

    def read(self, values: Values) -> Columns:
        return json_objects(self._rows, values)


class FramedValues:
    """Values in the framing of a schema registry. Their format needs no schema."""

    def __init__(self, values: ValueReader) -> None:
        self._values = values
        self.schema, self.keeps_tombstones = values.schema, values.keeps_tombstones

    def preparation(self, values: Values) -> None:
        """Nothing."""

    def read(self, values: Values) -> Columns:
        ids = [None if value is None else id_of(value) for value in values]
        wrong = {at: f"the message {id}" for at, id in enumerate(ids) if isinstance(id, str)}
        own = [None if value is None or at in wrong else payload_of(value) for at, value in enumerate(values)]
        columns, refused = self._values.read(own)
        return columns, refused | wrong


def has_bytes(type_: pa.DataType) -> bool:
    """Whether it is one of bytes, or has them somewhere. JSON has them in base64."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    inner = [type_.field(at).type for at in range(type_.num_fields)] if pa.types.is_nested(type_) else []
    return any(kind(type_) for kind in kinds) or any(map(has_bytes, inner))
