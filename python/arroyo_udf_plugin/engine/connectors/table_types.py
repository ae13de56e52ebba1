"""Which columns of a database hold which Arrow types, and what is sent to them.

| Arrow                          | SQLite                            | PostgreSQL                        |
|--------------------------------|-----------------------------------|-----------------------------------|
| bool                           | INTEGER, 0 or 1                   | boolean                           |
| int8 ... int64, uint8 ... uint32 | INTEGER                         | smallint, integer, bigint         |
| uint64                         | INTEGER; above 2^63 - 1 refused   | numeric(20, 0)                    |
| float32, float64               | REAL; NaN is refused              | real, double precision            |
| string, large_string           | TEXT                              | text; the character NUL is refused |
| binary                         | BLOB                              | bytea                             |
| date32                         | TEXT, 2013-01-31                  | date                              |
| timestamp                      | TEXT, 2013-01-31 10:20:30.123456  | timestamp; nanoseconds are refused |
| timestamp with a zone          | TEXT, in UTC, with a Z            | timestamp with time zone          |
| duration                       | INTEGER, in its unit              | interval; nanoseconds are refused |
| decimal128                     | TEXT                              | numeric(precision, scale)         |
| list                           | refused                           | array of the item's type          |
| struct and others              | refused                           | refused                           |

Guarantees: what is read back equals what was written. A type for which this cannot be is refused by its column, before
a row is written, and a value by its column, before its rows are committed.
"""

from __future__ import annotations

import re
import sys
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from .cells import decoded
from .delimited import texts
from .durations import PER_SECOND

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # of integers by their bits
_DAY = 86_400


class Types(Protocol):
    """What a database's columns can hold. A declared type is as its catalogue shows it."""

    def declared(self, type_: pa.DataType) -> str:
        """What a new column is declared as. Raises ValueError, which says why there is none and what to do."""

    def sent(self, type_: pa.DataType, declared: str) -> pa.DataType | None:
        """The type in which a column gets its values; None: it does not hold all of them."""

    def trouble(self, values: pa.Array) -> str | None:
        """Why some of the values cannot be held."""


def plain(type_: pa.DataType) -> pa.DataType:
    """The type of a column's values, without dictionaries and text cells."""
    return decoded(pa.nulls(0, type_.value_type if pa.types.is_dictionary(type_) else type_)).type


def values_of(column: pa.Array) -> pa.Array:
    """A column with its `plain` type."""
    return decoded(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)


def sent_as(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Raises pa.ArrowInvalid for a value that does not fit."""
    if pa.types.is_large_string(type_) and (pa.types.is_temporal(values.type) or pa.types.is_decimal(values.type)):
        has_zone = pa.types.is_timestamp(values.type) and values.type.tz is not None
        return texts(values.cast(pa.timestamp(values.type.unit, "UTC")) if has_zone else values)
    return values.cast(type_)


class SqliteTypes:
    """A column has an affinity, by the words in its declared type."""

    def declared(self, type_: pa.DataType) -> str:
        return self._held(type_)[1][0]

    def sent(self, type_: pa.DataType, declared: str) -> pa.DataType | None:
        sent, affinities = self._held(type_)
        return sent if affinity_of(declared) in affinities else None

    def _held(self, type_: pa.DataType) -> tuple[pa.DataType, tuple[str, ...]]:
        """What is sent, and the affinities that do not change it."""
        is_ = pa.types
        if is_.is_integer(type_) or is_.is_boolean(type_) or is_.is_duration(type_):
            return pa.int64(), ("INTEGER", "NUMERIC", "BLOB")
        if is_.is_float32(type_) or is_.is_float64(type_):
            return pa.float64(), ("REAL", "BLOB")
        if is_.is_string(type_) or is_.is_large_string(type_):
            return type_, ("TEXT", "BLOB")
        if is_.is_binary(type_) or is_.is_large_binary(type_):
            return type_, ("BLOB",)
        if is_.is_date32(type_) or is_.is_timestamp(type_):
            return pa.large_string(), ("TEXT", "NUMERIC", "BLOB")
        if is_.is_decimal128(type_):
            return pa.large_string(), ("TEXT", "BLOB")
        raise ValueError("SQLite has no such type: make it text, such as JSON, in a function")

    def trouble(self, values: pa.Array) -> str | None:
        type_ = values.type
        if pa.types.is_floating(type_) and _any(pc.is_nan(values)):
            return "NaN would become NULL in SQLite; return None instead"
        if pa.types.is_uint64(type_) and _any(pc.greater(values, pa.scalar(2**63 - 1, pa.uint64()))):
            return "SQLite's integers end at 2^63 - 1: make it text"
        if pa.types.is_date32(type_) or pa.types.is_timestamp(type_):
            return _outside(values, -719_528 * _DAY, 2_932_897 * _DAY, "years 0 to 9999 can be written as text")
        return None


def affinity_of(declared: str) -> str:
    """As SQLite's documentation has it (Datatypes, 3.1)."""
    declared = declared.upper()
    for words, affinity in (
        (("INT",), "INTEGER"),
        (("CHAR", "CLOB", "TEXT"), "TEXT"),
        (("BLOB",), "BLOB"),
        (("REAL", "FLOA", "DOUB"), "REAL"),
    ):
        if any(word in declared for word in words):
            return affinity
    return "NUMERIC" if declared else "BLOB"


class PostgresqlTypes:
    def declared(self, type_: pa.DataType) -> str:
        return next(iter(self._held(type_)))

    def sent(self, type_: pa.DataType, declared: str) -> pa.DataType | None:
        item = _item(type_)
        if item is not None and declared.endswith("[]"):
            sent = self._sent_item(item, declared.removesuffix("[]"))
            return None if sent is None else pa.list_(sent)
        return self._sent_item(type_, declared)

    def _sent_item(self, type_: pa.DataType, declared: str) -> pa.DataType | None:
        held = self._held(type_)
        digits = _digits(type_)
        if digits is not None and (numeric := re.fullmatch(r"numeric(?:\((\d+),(-?\d+)\))?", declared)):
            precision, scale = digits
            fits = numeric[1] is None or (
                int(numeric[2]) >= scale and int(numeric[1]) - int(numeric[2]) >= precision - scale
            )
            return pa.decimal128(precision, scale) if fits else None
        return held.get(declared)

    def _held(self, type_: pa.DataType) -> dict[str, pa.DataType]:
        """What is sent to columns by their declared type, without numeric ones. The first is for new columns."""
        is_ = pa.types
        item = _item(type_)
        if item is not None:
            if _item(item) is not None:
                raise ValueError("PostgreSQL's arrays of arrays have one length: make it text, such as JSON")
            return {f"{name}[]": pa.list_(sent) for name, sent in self._held(item).items()}
        if is_.is_uint64(type_):
            return {"numeric(20,0)": pa.decimal128(20, 0)}
        if is_.is_integer(type_):
            least = type_.bit_width if is_.is_signed_integer(type_) else 2 * type_.bit_width
            kinds = {"smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}
            return {name: kind for name, kind in kinds.items() if kind.bit_width >= least}
        if is_.is_decimal128(type_) and type_.scale >= 0:
            return {f"numeric({max(type_.precision, type_.scale)},{type_.scale})": type_}
        if is_.is_timestamp(type_) or is_.is_duration(type_):
            if type_.unit == "ns":
                raise ValueError("PostgreSQL keeps microseconds: make it microseconds, or an integer")
            if is_.is_duration(type_):
                return {"interval": pa.duration("us")}
            zone = "without" if type_.tz is None else "with"
            return {f"timestamp {zone} time zone": pa.timestamp("us", type_.tz and "UTC")}
        if is_.is_boolean(type_):
            return {"boolean": type_}
        if is_.is_floating(type_):
            exact = {"real": pa.float32()} if type_.bit_width <= 32 else {}
            return exact | {"double precision": pa.float64()}
        if is_.is_string(type_) or is_.is_large_string(type_):
            return {"text": type_, "character varying": type_}
        if is_.is_binary(type_) or is_.is_large_binary(type_):
            return {"bytea": type_}
        if is_.is_date32(type_):
            return {"date": type_}
        raise ValueError("PostgreSQL has no such type here: make it text, such as JSON, or columns of their own")

    def trouble(self, values: pa.Array) -> str | None:
        type_ = values.type
        if _item(type_) is not None:
            return self.trouble(values.flatten())
        if pa.types.is_string(type_) or pa.types.is_large_string(type_):
            return "PostgreSQL's text cannot hold the character NUL; remove it" if _has_nul(values) else None
        if pa.types.is_date32(type_) or pa.types.is_timestamp(type_):
            end = 2_145_042_906 * _DAY if pa.types.is_date32(type_) else 2**63 // 10**6
            return _outside(values, -2_440_588 * _DAY, end, "PostgreSQL's times are from 4713 B.C. to 294246")
        return None


def _has_nul(texts: pa.Array) -> bool:
    """All bytes are searched at once, which takes a twentieth of the time; if one is found, it may be of a null."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return False
    width = 8 if pa.types.is_large_string(texts.type) else 4
    places = (texts.offset * width, (texts.offset + len(texts)) * width)
    first, end = (int.from_bytes(offsets.slice(place, width).to_pybytes(), sys.byteorder) for place in places)
    return b"\0" in data.slice(first, end - first).to_pybytes() and _any(pc.match_substring(texts, "\0"))


def _item(type_: pa.DataType) -> pa.DataType | None:
    """The type of a list's items."""
    is_ = pa.types
    is_list = is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_)
    return type_.value_type if is_list else None


def _digits(type_: pa.DataType) -> tuple[int, int] | None:
    """Precision and scale of a decimal that holds all values."""
    if pa.types.is_decimal128(type_):
        return type_.precision, type_.scale
    if pa.types.is_integer(type_):
        return 20 if pa.types.is_uint64(type_) else _DIGITS[type_.bit_width], 0
    return None


def _outside(values: pa.Array, begin: int, end: int, why: str) -> str | None:
    """`why`, if dates or times are outside of these seconds."""
    is_date = pa.types.is_date32(values.type)
    numbers = values.view(pa.int32() if is_date else pa.int64())
    per_second = 1 if is_date else PER_SECOND[values.type.unit]
    extremes = pc.min_max(numbers).as_py()
    if extremes["min"] is None:
        return None
    factor = _DAY if is_date else 1
    inside = begin * per_second <= extremes["min"] * factor and extremes["max"] * factor < end * per_second
    return None if inside else why


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
