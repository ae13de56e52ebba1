"""Blocks of newline JSON as Arrow arrays in native code, if nothing in a block is unusual.

    native = NativeJson(schema, typed=["day"], timestamps=None, ignores=False)
    native.rows(block)                       columns by name, and the rows that were refused; None: read it line by line

Guarantees: what it answers is what `json_lines` makes of the lines.
Assumes: values of all of `schema` are wanted. ignores: further keys are no errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc

from ...abi import address, ffi
from .cells import JSON_VALUE, CellType
from .json_types import parsed

LEAST = 1 << 10
"""Bytes of a block that is worth it."""

EXACT = 2**53
"""Integers up to here are floats, too."""

_is = pa.types
_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (_is.is_integer, _is.is_float64, _is.is_boolean, _is.is_string)
_AS_TEXT: tuple[Callable[[pa.DataType], bool], ...] = (_is.is_date, _is.is_time, _is.is_timestamp, _is.is_decimal)


class NativeJson:
    """typed: the columns to which the user has given types. timestamps: see `options.Reading`."""

    def __init__(self, schema: pa.Schema, typed: Collection[str], timestamps: str | None, ignores: bool) -> None:
        from ..._native import json_reader, json_rows

        self._typed, self._timestamps = typed, timestamps
        self._fields = list(schema)
        types = [self._read_as(field) for field in schema]
        self._is_able = bool(types) and None not in types
        if self._is_able:
            self._type = pa.struct(list(zip(schema.names, types, strict=True)))
            given = ffi.new("struct ArrowSchema *")
            self._type._export_to_c(address(given))
            self._reader, self._read = json_reader(address(given), ignores), json_rows

    def _read_as(self, field: pa.Field) -> pa.DataType | None:
        """The type of what stands in the lines; None: it is not read in native code."""
        type_ = field.type
        if isinstance(type_, CellType):
            return pa.string()
        if field.name in self._typed and any(kind(type_) for kind in _AS_TEXT):
            is_instant = _is.is_timestamp(type_) and self._timestamps == "unix_millis"
            return pa.int64() if is_instant else pa.string()
        plain = type_
        while field.name not in self._typed and _is.is_list(plain):
            plain = plain.value_type
        return type_ if any(kind(plain) for kind in _PLAIN) else None

    def rows(self, block: bytes) -> tuple[dict[str, pa.Array], dict[int, str]] | None:
        """block: whole lines."""
        if not self._is_able or len(block) < LEAST:
            return None
        out = ffi.new("struct ArrowArray *")
        if not self._read(self._reader, block.removesuffix(b"\n"), address(out)):
            return None
        columns = pa.Array._import_from_c(address(out), self._type)
        arrays: dict[str, pa.Array] = {}
        refused: dict[int, str] = {}
        for at, field in enumerate(self._fields):
            array = self._as_wanted(columns.field(at), field, refused)
            if array is None:
                return None
            arrays[field.name] = array
        return arrays, refused

    def _as_wanted(self, column: pa.Array, field: pa.Field, refused: dict[int, str]) -> pa.Array | None:
        """None: line by line it would be another one."""
        if isinstance(field.type, CellType):
            if pc.any(pc.starts_with(column, JSON_VALUE)).as_py():
                return None
            return pa.ExtensionArray.from_storage(field.type, column)
        if column.type != field.type:
            done = parsed(column.cast(pa.string()), field.type, self._timestamps)
            for at, why in done.refused.items():
                refused.setdefault(at, f"column {field.name!r}: {why}")
            return done.array
        return column
