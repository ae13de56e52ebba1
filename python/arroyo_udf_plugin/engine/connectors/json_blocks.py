"""Blocks of newline JSON as Arrow arrays in native code, if nothing in a block is unusual.

    native = NativeJson(schema, typed=["day"], timestamps=None, ignores=False)
    native.rows(block)                       columns by name, and the rows that were refused; None: read it line by line

Guarantees: what it answers is what `json_lines` makes of the lines. pyarrow reads most values as Python does; a block
where it may not, or does not say which line is wrong, has no answer.
Assumes: values of all of `schema` are wanted. ignores: further keys are no errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from .cells import JSON_VALUE, CellType
from .json_types import parsed

LEAST = 1 << 12
"""Bytes of a block that is worth it."""

EXACT = 2**53
"""Integers up to here are floats, too."""

_DEPTH = 500  # of values that Python's parser takes in every version
_is = pa.types
_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (_is.is_integer, _is.is_float64, _is.is_boolean, _is.is_string)
_AS_TEXT: tuple[Callable[[pa.DataType], bool], ...] = (_is.is_date, _is.is_time, _is.is_timestamp, _is.is_decimal)


class NativeJson:
    """typed: the columns to which the user has given types. timestamps: see `options.Reading`."""

    def __init__(self, schema: pa.Schema, typed: Collection[str], timestamps: str | None, ignores: bool) -> None:
        self._typed, self._timestamps = typed, timestamps
        self._fields = {field.name: field for field in schema}
        self._ignores = ignores
        read = {name: self._read_as(field) for name, field in self._fields.items()}
        self._is_able = bool(read) and None not in read.values()
        if self._is_able:
            self._options = pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(list(read.items())),
                unexpected_field_behavior="ignore" if ignores else "error",
            )

    def _read_as(self, field: pa.Field) -> pa.DataType | None:
        """The type that pyarrow is asked for; None: it has none for these."""
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
        body = block.removesuffix(b"\n")
        n_rows = body.count(b"\n") + 1
        # A line that begins and ends with a brace has whole objects: none goes on in the next line.
        are_objects = body.startswith(b"{") and body.endswith(b"}") and body.count(b"}\n{") == n_rows - 1
        if not self._is_able or len(block) < LEAST or not are_objects:
            return None
        if self._ignores and _has_odd_values(body, n_rows):
            return None
        try:
            body.decode()
            table = pyarrow.json.read_json(
                pa.BufferReader(body),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(body) + 1),
                parse_options=self._options,
            )
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if table.num_rows != n_rows:  # several objects in a line
            return None
        arrays: dict[str, pa.Array] = {}
        refused: dict[int, str] = {}
        for name, column in zip(table.column_names, table.combine_chunks().columns, strict=True):
            array = self._as_wanted(column.chunk(0), self._fields[name], refused)
            if array is None:
                return None
            arrays[name] = array
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
        items = column
        while _is.is_list(items.type):
            items = items.flatten()
        return column if not _is.is_float64(items.type) or _are_exact(items) else None


def _are_exact(floats: pa.Array) -> bool:
    """Whether these floats may have stood there as integers, too: but not as -0, and not as NaN."""
    is_small = pc.all(pc.less(pc.abs(floats), float(EXACT))).as_py() is not False  # NaN is not less
    return is_small and not pc.any(pc.equal(floats.view(pa.int64()), -(2**63))).as_py()


def _has_odd_values(body: bytes, n_rows: int) -> bool:
    """Whether pyarrow may pass over a value that is none for Python. Each row begins with a brace."""
    if b"NaN" in body or b"Inf" in body:
        return True
    if body.count(b"[") + body.count(b"{") - n_rows < _DEPTH:
        return False
    lines = pa.array(body.split(b"\n"), pa.binary())
    opening = pc.add(pc.count_substring(lines, "["), pc.count_substring(lines, "{"))
    return bool(pc.max(opening).as_py() > _DEPTH)
