"""The fields of a JSON schema: an object whose properties are columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .shapes.connections import SourceField

_DEEPEST = 20
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "int64"},
    "number": {"type": "float64"},
    "boolean": {"type": "bool"},
}
_AS_JSON: Mapping[str, Any] = {"type": "json"}


def fields_of(text: str) -> list[SourceField]:
    """Raises ValueError."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"json_schema: this is not JSON: {error}") from None
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict) or not schema["properties"]:
        raise ValueError("json_schema: it describes an object: write its properties")
    return _fields(schema, 0)


def _fields(schema: Mapping[str, Any], depth: int) -> list[SourceField]:
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise ValueError("json_schema: required is a list of names")
    return [_field(name, told, name in required, depth) for name, told in schema["properties"].items()]


def _field(name: str, told: Any, required: bool, depth: int) -> SourceField:
    """What has no column type is JSON."""
    if not name or len(name) > 200:
        raise ValueError("json_schema: a property has a name of up to 200 characters")
    if depth > _DEEPEST:
        raise ValueError("json_schema: it is nested too deeply")
    if not isinstance(told, dict):
        return SourceField(name=name, required=required, **_AS_JSON)
    types = told.get("type")
    named = [one for one in (types if isinstance(types, list) else [types]) if one != "null"]
    nullable = isinstance(types, list) and "null" in types
    required = required and not nullable
    kind = named[0] if len(named) == 1 else None
    if kind == "string" and told.get("format") == "date-time":
        return SourceField(name=name, required=required, type="timestamp", unit="nanosecond")
    if isinstance(kind, str) and kind in _TYPES:
        return SourceField(name=name, required=required, **_TYPES[kind])
    if kind == "object" and isinstance(told.get("properties"), dict) and told["properties"]:
        return SourceField(name=name, required=required, type="struct", fields=_fields(told, depth + 1))
    if kind == "array" and isinstance(told.get("items"), dict):
        items = _field("item", told["items"], False, depth + 1)
        return SourceField(name=name, required=required, type="list", items=items)
    return SourceField(name=name, required=required, **_AS_JSON)
