"""How columns of a database are read as Arrow types, and how keys are sent to it.

| Arrow                 | from SQLite                       | from PostgreSQL                                    |
|-----------------------|-----------------------------------|----------------------------------------------------|
| bool                  | INTEGER, 0 is false               | boolean                                            |
| integers              | INTEGER, or without a type        | smallint, integer, bigint, if they fit; numeric    |
| float32, float64      | REAL, NUMERIC                     | real, double precision, numeric                    |
| string                | TEXT, NUMERIC, as it is stored    | text, and what Arrow has no type for: uuid, jsonb  |
| binary                | BLOB                              | bytea                                              |
| date32, timestamp     | TEXT, as a table sink writes them | date, timestamp                                    |
| decimal128            | TEXT, NUMERIC                     | numeric                                            |
| list                  |                                   | array of an item's type                            |

Guarantees: a column that cannot hold such values is refused by its name before the run. A value that its Arrow type
cannot hold is a ValueError, and never another value.
"""

from __future__ import annotations

import re
from typing import Protocol

import pyarrow as pa

from .table_types import affinity_of

_is = pa.types


class ColumnReading(Protocol):
    """What a database's columns are read as. A declared type is as its catalogue shows it."""

    def natural(self, declared: str) -> pa.DataType | None:
        """The type of a column that nobody has given one. None: somebody must."""

    def expression(self, column: str, declared: str, wanted: pa.DataType) -> str | None:
        """What to select, so that `values` makes the wanted type of it. None: the column does not hold such values."""

    def key(self, declared: str, given: pa.DataType) -> pa.DataType | None:
        """The type in which values of a type are compared with a column. None: they cannot be."""

    def ordered(self, declared: str) -> pa.DataType | None:
        """The type in which a column is read by whose order rows are read, so that no digit is lost. None: by its order
        they are not."""


def values(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.Array:
    """What was selected with `ColumnReading.expression`. Raises ValueError for values that are none of this type."""
    if column.null_count == len(column):
        return pa.nulls(len(column), wanted)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # pyarrow 16, of no or several chunks
        array = pa.concat_arrays(array.chunks)
    if isinstance(array.type, pa.BaseExtensionType):  # a numeric array
        array = array.storage
    is_text = _is.is_string(array.type) or _is.is_large_string(array.type)
    if _is.is_string(wanted) and not is_text:
        raise ValueError(f"{array.type} is no text")
    if _is.is_floating(wanted) and is_text:  # SQLite's driver makes it text, in which numbers have lost digits
        raise ValueError("there is text among the numbers")
    return array.cast(wanted)


class SqliteReading:
    """A column has an affinity, by the words in its declared type; what it holds is seen at the run."""

    def natural(self, declared: str) -> pa.DataType | None:
        declared = declared.upper()
        for word, type_ in (("BOOL", pa.bool_()), ("DATETIME", pa.timestamp("us")), ("TIMESTAMP", pa.timestamp("us"))):
            if word in declared:
                return type_
        if declared == "DATE":
            return pa.date32()
        known = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
        return pa.binary() if declared == "BLOB" else known.get(affinity_of(declared))

    def expression(self, column: str, declared: str, wanted: pa.DataType) -> str | None:
        affinity = affinity_of(declared)
        if _is.is_integer(wanted) or _is.is_boolean(wanted):
            # Of columns without a type: whole numbers beside others would lose their last digits.
            whole = f"CASE WHEN typeof({column}) = 'real' AND {column} = CAST({column} AS INTEGER) "
            whole += f"THEN CAST({column} AS INTEGER) ELSE {column} END"
            return whole if affinity == "BLOB" else column if affinity in ("INTEGER", "NUMERIC") else None
        if _is.is_floating(wanted) and not _is.is_float16(wanted):
            # NUMERIC columns have whole numbers as integers, and a column of the driver has one type.
            whole = f"CASE typeof({column}) WHEN 'integer' THEN CAST({column} AS REAL) ELSE {column} END"
            return whole if affinity in ("REAL", "NUMERIC", "BLOB") else None
        if _is.is_binary(wanted):
            return column if affinity == "BLOB" else None
        if _is.is_string(wanted) or _is.is_decimal128(wanted) or _is.is_date32(wanted) or _is.is_timestamp(wanted):
            return f"CAST({column} AS TEXT)" if affinity in ("TEXT", "NUMERIC", "BLOB") else None
        return None

    def ordered(self, declared: str) -> pa.DataType | None:
        return {"INTEGER": pa.int64(), "TEXT": pa.string(), "NUMERIC": pa.string()}.get(affinity_of(declared))

    def key(self, declared: str, given: pa.DataType) -> pa.DataType | None:
        affinity = affinity_of(declared)
        if _is.is_date32(given) or _is.is_timestamp(given) or _is.is_decimal(given):
            return None  # texts may be written in several ways
        if affinity == "TEXT" or (affinity in ("BLOB", "NUMERIC") and _is_text(given)):
            return pa.string() if _is_text(given) else None
        if _is.is_integer(given) or _is.is_boolean(given):
            return pa.int64()
        if _is.is_floating(given):
            return pa.float64()
        return pa.binary() if affinity == "BLOB" and (_is.is_binary(given) or _is.is_large_binary(given)) else None


_POSTGRESQL = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}
_NUMERIC = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_LENGTH = re.compile(r"\(\d+\)")
_AS_TEXT = {"character varying": "text", "character": "bpchar", "uuid": "uuid", "citext": "citext", "name": "name"}
"""Columns that are read as text, and what text is compared with them as."""
_JSON = ("json", "jsonb")


def example(wanted: pa.DataType) -> str:
    """A value as SQLite gives those that are selected with `SqliteReading.expression`."""
    if _is.is_integer(wanted) or _is.is_boolean(wanted):
        return "0"
    return "0.0" if _is.is_floating(wanted) else "x''" if _is.is_binary(wanted) else "''"


class PostgresqlReading:
    def natural(self, declared: str) -> pa.DataType | None:
        declared = _LENGTH.sub("", declared) if "numeric" not in declared else declared
        if declared.endswith("[]"):
            item = self.natural(declared.removesuffix("[]"))
            return None if item is None or _is.is_list(item) else pa.list_(item)
        if (match := _NUMERIC.fullmatch(declared)) and match[1] and int(match[1]) <= 38 and int(match[2]) >= 0:
            return pa.decimal128(int(match[1]), int(match[2]))
        return pa.string() if declared in (*_AS_TEXT, *_JSON) else _POSTGRESQL.get(declared)

    def expression(self, column: str, declared: str, wanted: pa.DataType) -> str | None:
        declared = declared if "numeric" in declared else _LENGTH.sub("", declared)
        if declared.endswith("[]"):
            item = _POSTGRESQL.get(declared.removesuffix("[]"))
            return column if item is not None and _is.is_list(wanted) and _holds(item, wanted.value_type) else None
        if _NUMERIC.fullmatch(declared):
            if _is.is_decimal128(wanted) or _is.is_integer(wanted):
                return f"{column}::text"
            return f"{column}::double precision" if _is.is_float64(wanted) else None
        held = _POSTGRESQL.get(declared)
        if held is None:
            return f"{column}::text" if _is.is_string(wanted) else None
        return column if _holds(held, wanted) else None

    def ordered(self, declared: str) -> pa.DataType | None:
        if _NUMERIC.fullmatch(declared):
            return pa.string()
        held = self.natural(declared)
        is_ordered = held is not None and (
            _is.is_integer(held) or _is_text(held) or _is.is_date32(held) or _is.is_timestamp(held)
        )
        return held if is_ordered and declared not in _JSON else None

    def key(self, declared: str, given: pa.DataType) -> pa.DataType | None:
        declared = _LENGTH.sub("", declared)
        held = self.natural(declared)
        if held is None or _is.is_decimal(held):
            is_number = declared.startswith("numeric") and (_is.is_decimal128(given) or _is.is_integer(given))
            return (given if _is.is_decimal128(given) else pa.int64()) if is_number else None
        if _is.is_integer(held):
            return pa.int64() if _is.is_integer(given) or _is.is_decimal(given) else None
        if _is.is_floating(held):
            return pa.float64() if _is.is_floating(given) or _is.is_integer(given) else None
        if _is.is_string(held):
            return held if _is_text(given) and declared not in _JSON else None
        same_kind = _is.is_timestamp(held) and _is.is_timestamp(given) and (held.tz is None) == (given.tz is None)
        return held if same_kind or held == given else None


def compared(key: str, declared: str) -> str:
    """A key that was sent to PostgreSQL, as it is compared with a column so that the column's index serves."""
    base = _LENGTH.sub("", declared)
    return f"{key}::{_AS_TEXT[base]}" if base in _AS_TEXT else key


def _holds(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the wanted type holds the values, as far as the types tell."""
    if _is.is_integer(held):
        if not _is.is_integer(wanted):
            return False
        # A table sink puts uint32 into bigint.
        return bool(wanted.bit_width * (1 if _is.is_signed_integer(wanted) else 2) >= held.bit_width)
    if _is.is_floating(held):
        return bool(_is.is_floating(wanted) and wanted.bit_width >= held.bit_width)
    if _is.is_timestamp(held):
        return bool(_is.is_timestamp(wanted) and (wanted.tz is None) == (held.tz is None))
    return bool(held == wanted)


def _is_text(type_: pa.DataType) -> bool:
    return bool(_is.is_string(type_) or _is.is_large_string(type_))
