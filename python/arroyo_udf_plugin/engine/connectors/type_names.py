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
    "time": pa.time64("us"),
    "timedelta": pa.duration("us"),
    "Decimal": pa.decimal128(38, 9),
    "decimal": pa.decimal128(38, 9),
}
_DECIMAL = re.compile(r"decimal(?:128)?\(\s*([0-9]+)\s*,\s*(-?[0-9]+)\s*\)")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)\s*,\s*(?:tz=)?([^\]]+)\]")
_LIST = re.compile(r"list<(?:item: )?(.+)>", re.DOTALL)
_MAP = re.compile(r"map<(.+)>", re.DOTALL)
_STRUCT = re.compile(r"struct<(.*)>", re.DOTALL)
_FIELD = re.compile(r"\s*(.+?)\s*:\s*(.+?)( not null)?\s*", re.DOTALL)


def type_named(name: Any) -> pa.DataType:
    """The type; an Arrow type is itself. Raises InvalidArgument for an unknown name."""
    if isinstance(name, pa.DataType):
        return name
    if name in _NAMES:
        return _NAMES[name]
    try:
        if match := _DECIMAL.fullmatch(name):
            return pa.decimal128(int(match[1]), int(match[2]))
        if match := _TIMESTAMP.fullmatch(name):
            return pa.timestamp(match[1], match[2].strip())
        if match := _LIST.fullmatch(name):
            return pa.list_(type_named(match[1]))
        if (match := _MAP.fullmatch(name)) and len(pair := split_types(match[1])) == 2:
            return pa.map_(*(type_named(part.strip()) for part in pair))
        if match := _STRUCT.fullmatch(name):
            return pa.struct(map(_field, split_types(match[1]) if match[1].strip() else []))
        return pa.type_for_alias(name)
    except ValueError:
        raise InvalidArgument(
            f"there is no type {name!r}; write {', '.join(n for n in _NAMES if n != 'Decimal')}, bool, or Arrow's "
            "name, such as int32, decimal(10, 2), timestamp[us, UTC], list<int> or struct<x: int, day: date>"
        ) from None


def _field(text: str) -> pa.Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError
    return pa.field(match[1], type_named(match[2]), nullable=match[3] is None)
