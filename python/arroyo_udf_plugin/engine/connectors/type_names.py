"""Types by name, as `--types` has them: Python's names, or Arrow's."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from .options import split_types

# As author/types.py has them.
_NAMES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timedelta": pa.duration("us"),
    "Decimal": pa.decimal128(38, 9),
    "decimal": pa.decimal128(38, 9),
}
_DECIMAL = re.compile(r"decimal(?:128)?\(\s*([0-9]+)\s*,\s*(-?[0-9]+)\s*\)")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)\s*,\s*(?:tz=)?([^\]]+)\]")
_LIST = re.compile(r"list<(?:item: )?(.+)>", re.DOTALL)
_STRUCT = re.compile(r"struct<(.*)>", re.DOTALL)
_FIELD = re.compile(r"\s*(.+?)\s*:\s*(.+?)( not null)?\s*", re.DOTALL)


def type_named(name: Any) -> pa.DataType:
    """The type; an Arrow type is itself. Raises InvalidArgument for an unknown name."""
    if isinstance(name, pa.DataType):
        return name
    if name in _NAMES:
        return _NAMES[name]
    try:
        if found := _DECIMAL.fullmatch(name):
            return pa.decimal128(int(found[1]), int(found[2]))
        if found := _TIMESTAMP.fullmatch(name):
            return pa.timestamp(found[1], found[2].strip())
        if found := _LIST.fullmatch(name):
            return pa.list_(type_named(found[1]))
        if found := _STRUCT.fullmatch(name):
            return pa.struct(map(_field, split_types(found[1]) if found[1].strip() else []))
        return pa.type_for_alias(name)
    except ValueError:
        raise InvalidArgument(
            f"there is no type {name!r}; write {', '.join(n for n in _NAMES if n != 'Decimal')}, bool, or Arrow's "
            "name, such as int32, decimal(10, 2), timestamp[us, UTC], list<int> or struct<x: int, day: date>"
        ) from None


def _field(text: str) -> pa.Field:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise ValueError
    return pa.field(found[1], type_named(found[2]), nullable=found[3] is None)
