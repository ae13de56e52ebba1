"""Types as SQL writes them, as Arrow types, and back for casts."""

from __future__ import annotations

import pyarrow as pa

from .text import Cursor, Wrong

_SIMPLE = {
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "string": pa.string(),
    "json": pa.string(),
    "bytea": pa.binary(),
    "bytes": pa.binary(),
    "date": pa.date32(),
}
_UNSIGNED = {pa.int8(): pa.uint8(), pa.int16(): pa.uint16(), pa.int32(): pa.uint32(), pa.int64(): pa.uint64()}
_UNITS = {"0": "s", "3": "ms", "6": "us", "9": "ns"}
_KNOWN = ", ".join(
    [*(name.upper() for name in _SIMPLE), "DECIMAL(P, S)", "TIMESTAMP(3)", "TYPE[]", "STRUCT<NAME TYPE>"]
)


def type_at(cursor: Cursor) -> pa.DataType:
    """Reads a type. Raises Wrong."""
    at, token = cursor.offset, cursor.next()
    word = token.word
    if word in _SIMPLE:
        type_ = _SIMPLE[word]
        if word == "double":
            cursor.take("precision")
        if word == "varchar" and cursor.now is not None and cursor.now.text == "(":
            cursor.brackets()
        if type_ in _UNSIGNED and cursor.take("unsigned"):
            type_ = _UNSIGNED[type_]
    elif word in ("decimal", "numeric"):
        type_ = pa.decimal128(*_numbers(cursor, at))
    elif word == "timestamp":
        type_ = _timestamp(cursor)
    elif word == "struct":
        type_ = _struct(cursor)
    else:
        raise Wrong(f"there is no type {token.text} for columns of tables: write {_KNOWN}", at)
    while cursor.take("[", "]"):
        type_ = pa.list_(type_)
    return type_


def _numbers(cursor: Cursor, at: int) -> tuple[int, int]:
    texts = [token.text for token in cursor.brackets()]
    try:
        precision, scale = int(texts[0]), int(texts[2]) if len(texts) == 3 else 0
        pa.decimal128(precision, scale)
    except (ValueError, IndexError):
        raise Wrong("write DECIMAL(P, S), with a precision up to 38, such as DECIMAL(10, 2)", at) from None
    return precision, scale


def _timestamp(cursor: Cursor) -> pa.DataType:
    unit = "ns"
    if cursor.now is not None and cursor.now.text == "(":
        at, inner = cursor.offset, cursor.brackets()
        parsed_unit = _UNITS.get(inner[0].text) if len(inner) == 1 else None
        if parsed_unit is None:
            raise Wrong("write TIMESTAMP(0), (3), (6) or (9): seconds, milli-, micro- or nanoseconds", at)
        unit = parsed_unit
    if cursor.take("with", "time", "zone"):
        return pa.timestamp(unit, "UTC")
    cursor.take("without", "time", "zone")
    return pa.timestamp(unit)


def _struct(cursor: Cursor) -> pa.DataType:
    cursor.need("<")
    fields = []
    while True:
        name, _ = cursor.name("the field's name")
        fields.append(pa.field(name, type_at(cursor)))
        if not cursor.take(","):
            cursor.need(">")
            return pa.struct(fields)


_CASTS = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.binary(): "Binary",
    pa.date32(): "Date32",
}
_LONG_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_TEXTS = (pa.types.is_string, pa.types.is_large_string)
_TIMES = (pa.types.is_timestamp, pa.types.is_date32)
_KINDS = (_NUMBERS, _TEXTS, _TIMES)


def cast_to(text: str, given: pa.DataType, wanted: pa.DataType) -> str | None:
    """An expression as a value of a column's type. None: the types do not go together without the user's word."""
    if given == wanted:
        return text
    together = any(any(is_(given) for is_ in kind) and any(is_(wanted) for is_ in kind) for kind in _KINDS)
    named = _cast_name(wanted)
    if named is None or not (together or pa.types.is_null(given)):
        return None
    return f"arrow_cast({text}\n, '{named}')"


def _cast_name(type_: pa.DataType) -> str | None:
    if pa.types.is_timestamp(type_):
        zone = "None" if type_.tz is None else f'Some("{type_.tz}")'
        return f"Timestamp({_LONG_UNITS[type_.unit]}, {zone})"
    if pa.types.is_decimal128(type_):
        return f"Decimal128({type_.precision}, {type_.scale})"
    return _CASTS.get(type_)
