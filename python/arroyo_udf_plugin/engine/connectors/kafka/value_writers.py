"""Rows as values of messages: what each format has to do, and the formats that need little else.

    writer.check()          before a run; raises Unreachable, and what else is wrong with what others have
    writer.of(batch)        a value for each row: large_binary

Raises InvalidArgument for columns that cannot be what they are to be.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

import pyarrow as pa

from ....errors import InvalidArgument
from ..cells import decoded
from ..json_writer import JsonTexts
from .debezium import bytes_type, check_changes, check_columns, with_bytes
from .json_schema import json_schema_of
from .schema_registry import RegistryClient, framed

_BYTES = pa.large_binary()
_is = pa.types


class ValueWriter(Protocol):
    def check(self) -> None: ...

    def of(self, batch: pa.RecordBatch) -> pa.Array: ...


class PlainWriter:
    """format: raw_string or raw_bytes: the only column, as it is. A null is a message without a value."""

    def __init__(self, name: str, schema: pa.Schema, format: str) -> None:
        fits = is_text if format == "raw_string" else is_bytes
        if len(schema) != 1 or not fits(schema.field(0).type):
            shown = ", ".join(f"{field.name} {field.type}" for field in schema) or "none"
            what = "text" if format == "raw_string" else "bytes"
            raise InvalidArgument(f"{name}: {format} has one column of {what}, not {shown}: choose it with `columns`")

    def check(self) -> None:
        """Nothing."""

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        return as_bytes(batch.column(0))


class JsonValueWriter:
    """is_debezium: rows are changes. registry: gets the schema of the rows for the subject; None: messages have no
    framing. how: as `JsonTexts` has it; decimals may be "bytes", too."""

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        is_debezium: bool,
        registry: RegistryClient | None,
        subject: str,
        how: dict[str, Any],
    ) -> None:
        self._name, self._is_debezium, self._registry, self._subject = name, is_debezium, registry, subject
        self._are_bytes = how["decimals"] == "bytes"
        if is_debezium:
            check_columns(name, schema)
        if self._are_bytes:
            schema = pa.schema([field.with_type(bytes_type(field.type)) for field in schema])
            how = {**how, "decimals": "string"}
        self._texts = JsonTexts(name, schema, **how)
        self._schema = json.dumps(json_schema_of(schema, **how))
        self._id: int | None = None

    def check(self) -> None:
        if self._registry is not None:
            self._registry.check(self._subject, self._schema, "JSON")

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Raises Unreachable, too."""
        if self._is_debezium:
            check_changes(self._name, batch)
        if self._are_bytes:
            batch = pa.RecordBatch.from_arrays(list(map(with_bytes, batch.columns)), names=batch.schema.names)
        values = self._texts.of(batch).cast(_BYTES)
        if self._registry is None:
            return values
        if self._id is None:
            self._id = self._registry.register(self._subject, self._schema, "JSON")
        return pa.array(framed(self._id, values.to_pylist()), _BYTES)


def as_bytes(column: pa.Array) -> pa.Array:
    column = decoded(column)
    if _is.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(_BYTES)


def _plain(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        return type_.storage_type
    return type_.value_type if _is.is_dictionary(type_) else type_


def is_text(type_: pa.DataType) -> bool:
    return bool(_is.is_string(_plain(type_)) or _is.is_large_string(_plain(type_)))


def is_bytes(type_: pa.DataType) -> bool:
    return bool(_is.is_binary(_plain(type_)) or _is.is_large_binary(_plain(type_)))
