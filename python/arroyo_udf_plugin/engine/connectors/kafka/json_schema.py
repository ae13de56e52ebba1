"""The JSON Schema of rows, as `json_writer` writes them: what a schema registry is told.

Guarantees: a row fits its schema; a number that JSON does not have (NaN, infinity), which is written as a string, is
the exception.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

_is = pa.types


def json_schema_of(
    schema: pa.Schema, timestamps: str | None, decimals: str, json_columns: Collection[str]
) -> dict[str, Any]:
    """timestamps, decimals, json_columns: as `JsonTexts` has them."""
    properties = {
        field.name: {} if field.name in json_columns else _nullable(field, timestamps, decimals) for field in schema
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Row",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _nullable(field: pa.Field, timestamps: str | None, decimals: str) -> dict[str, Any]:
    own = _of(field.type, timestamps, decimals)
    return {**own, "type": [own["type"], "null"]} if field.nullable and own.get("type") != "null" else own


def _of(type_: pa.DataType, timestamps: str | None, decimals: str) -> dict[str, Any]:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if _is.is_dictionary(type_):
        type_ = type_.value_type
    if _is.is_map(type_):
        pair = [_nullable(field, timestamps, decimals) for field in (type_.key_field, type_.item_field)]
        return {"type": "array", "items": {"type": "array", "items": pair}}
    if _is.is_struct(type_):
        properties = {field.name: _nullable(field, timestamps, decimals) for field in type_}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    if _is.is_nested(type_):
        return {"type": "array", "items": _nullable(type_.value_field, timestamps, decimals)}
    if _is.is_integer(type_) or (_is.is_timestamp(type_) and timestamps == "unix_millis"):
        return {"type": "integer"}
    if _is.is_floating(type_) or (_is.is_decimal(type_) and decimals == "number"):
        return {"type": "number"}
    if _is.is_boolean(type_) or _is.is_null(type_):
        return {"type": "boolean" if _is.is_boolean(type_) else "null"}
    return {"type": "string"}
