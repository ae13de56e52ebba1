"""Newline JSON: lines as batches, and batches as lines.

The keys and types of the first block are the columns: a column is bool, int64, float64 or a list of those if all its
values are; otherwise it has cells, which keep every value. A line that is no JSON object, has another key, or a value
of another type, is a refused row.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument
from .blocks import blocks
from .cells import JSON_VALUE, CellType, cell_type, decoded
from .json_values import JsonFunction, as_json
from .piece import KEPT, Piece
from .schemas import index_of

_CELL = cell_type(None)
_EXACT = 2**53  # integers up to here are floats, too
_HINT = "the first lines decide; --types can name another type"


class JsonReader:
    """read: the file's bytes, see `blocks`. name: for error texts. as_cells: columns whose values stay cells.
    json_columns: those whose values are texts of JSON, as they are written there.

    schema: of all columns; that of an earlier file, if given. Raises InvalidArgument, also while iterating.
    """

    rows = None

    def __init__(
        self,
        read: Callable[[int], bytes],
        name: str,
        as_cells: Iterable[str],
        schema: pa.Schema | None = None,
        cells: bool = False,
        json_columns: Sequence[str] = (),
    ) -> None:
        self._json = {column: JsonFunction("json_get", (column,)) for column in json_columns}
        self._blocks = blocks(read, b"", name)
        self._first = next(self._blocks, b"").removeprefix(b"\xef\xbb\xbf")
        if schema is not None:
            self.schema = schema
            return
        lines = [_parsed(line) for line in self._first.split(b"\n") if line.strip()]
        rows = [line for line in lines if isinstance(line, dict)]
        if not rows:
            why = f": line 1 {lines[0]}" if lines else " is empty"
            raise InvalidArgument(f"{name}{why}; a newline JSON file has one object in each line")
        names = list(dict.fromkeys([*(key for row in rows for key in row), *as_cells, *json_columns]))
        types = [_CELL if cells or key in as_cells else _type_of([row.get(key) for row in rows]) for key in names]
        types = [pa.string() if key in self._json else type_ for key, type_ in zip(names, types, strict=True)]
        self.schema = pa.schema(list(zip(names, types, strict=True)))

    def pieces(self, columns: list[int], most_rows: int, start: int = 1) -> Iterator[Piece]:
        """Batches of these columns, each with the number of its first line. An empty line is no row.

        start: the first line to read.
        """
        known = set(self.schema.names) if len(columns) == len(self.schema) else None
        schema = pa.schema([self.schema.field(index) for index in columns])
        for number, lines in self._runs(most_rows, start):
            refused: dict[int, str] = {}
            rows: list[dict[str, Any]] = []
            for line in lines:
                row = _parsed(line)
                if isinstance(row, str):
                    refused[len(rows)] = f"the line {row}: {_excerpt(line)}"
                elif known is not None and not known.issuperset(row):
                    new = next(key for key in row if key not in known)
                    refused[len(rows)] = (
                        f"the line has a key {new!r} that the first lines lack (name it in --types): {_excerpt(line)}"
                    )
                rows.append({} if len(rows) in refused else row)  # type: ignore[arg-type]
            texts = self._texts(lines, refused) if self._json else None
            arrays = [
                self._json[field.name](texts)
                if field.name in self._json
                else _array([row.get(field.name) for row in rows], field, refused)
                for field in schema
            ]
            yield number, pa.RecordBatch.from_arrays(arrays, schema=schema), refused

    def _texts(self, lines: list[bytes], refused: Mapping[int, str]) -> pa.Array:
        read = [None if at in refused else line for at, line in enumerate(lines)]
        return pa.array(read, pa.binary()).cast(pa.string())

    def _runs(self, most: int, first: int) -> Iterator[tuple[int, list[bytes]]]:
        """Lines without an empty one between them, and the number of the first. first: the first line to read."""
        number, block = 1, self._first
        while block:
            lines = block.removesuffix(b"\n").split(b"\n")
            if number < first:
                skipped = min(first - number, len(lines))
                number, lines = number + skipped, lines[skipped:]
            start = 0
            for end, line in enumerate(lines):
                if not line.strip():
                    if start < end:
                        yield number + start, lines[start:end]
                    start = end + 1
                elif end + 1 - start == most:
                    yield number + start, lines[start : end + 1]
                    start = end + 1
            if start < len(lines):
                yield number + start, lines[start:]
            number += len(lines)
            block = next(self._blocks, b"")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{_clipped(text)} is out of range")
    return value


_decode = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _parsed(line: bytes) -> dict[str, Any] | str:
    """The object; or what is wrong with the line."""
    try:
        row = _decode(line.decode())
    except UnicodeDecodeError:
        return "is not UTF-8"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return f"cannot be read as JSON: {error}"
    return row if isinstance(row, dict) else "is not a JSON object"


def no_json(line: bytes) -> str | None:
    """What is wrong with a line that has any value of JSON."""
    try:
        _decode(line.decode())
    except UnicodeDecodeError:
        return "is not UTF-8"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return f"cannot be read as JSON: {error}"
    return None


def _excerpt(line: bytes) -> str:
    return repr(line[: 4 * KEPT].decode(errors="replace")[:KEPT])


def _type_of(values: list[Any]) -> pa.DataType:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {list}:
        items = [item for value in values if value is not None for item in value]
        inner = _type_of(items)
        if inner != _CELL:
            return pa.list_(inner)
        return pa.list_(pa.string()) if {type(item) for item in items} - {type(None)} == {str} else _CELL
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64() if all(v is None or -(2**63) <= v < 2**63 for v in values) else _CELL
    if kinds in ({float}, {float, int}):
        return pa.float64() if all(type(v) is not int or abs(v) <= _EXACT for v in values) else _CELL
    return _CELL


def _array(values: list[Any], field: pa.Field, refused: dict[int, str]) -> pa.Array:
    """The values of a column. Adds those that are of another type to `refused`."""
    is_cell = isinstance(field.type, CellType)
    if is_cell:
        with contextlib.suppress(*_UNFIT):
            if _are(values, pa.string()):
                texts = pa.array(values, pa.string())
                if not pc.any(pc.starts_with(texts, JSON_VALUE)).as_py():
                    return pa.ExtensionArray.from_storage(field.type, texts)
        values = [value if type(value) is str and value[:1] != JSON_VALUE else _cell(value) for value in values]
    type_ = pa.string() if is_cell else field.type
    try:
        if not _are(values, type_):
            raise ValueError
        array = pa.array(values, type_)
    except _UNFIT:
        for at, value in enumerate(values):
            try:
                if not _are([value], type_):
                    raise ValueError
                pa.array([value], type_)
            except _UNFIT:
                refused.setdefault(at, f"column {field.name!r}: {_shortened(value)} is not {type_} ({_HINT})")
                values[at] = None
        array = pa.array(values, type_)
    return pa.ExtensionArray.from_storage(field.type, array) if is_cell else array


_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
_KINDS: dict[Any, set[type]] = {pa.bool_(): {bool}, pa.int64(): {int}, pa.float64(): {int, float}, pa.string(): {str}}


def _are(values: list[Any], type_: pa.DataType) -> bool:
    """Whether values may have the type: pyarrow would make 2 of 2.5."""
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_list(type_):
        return kinds <= {list} and all(_are(value, type_.value_type) for value in values if value is not None)
    return kinds <= _KINDS[type_]


def _cell(value: Any) -> str | None:
    return None if value is None else JSON_VALUE + _encode(value)


def _shortened(value: Any) -> str:
    return _clipped(_encode(value).encode(errors="backslashreplace").decode())  # half a surrogate pair is no text


def _clipped(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


# ---- Writing ---------------------------------------------------------------------------------------------------------


class JsonWriter:
    """Lines of JSON. write: takes bytes. Raises InvalidArgument for columns that JSON cannot hold.

    Dates, times and decimals are strings, as in CSV; so are NaN and infinity, which are no JSON.
    timestamps, decimals: columns of these types are written so, see `options.Writing`.
    json_columns: of texts that are JSON: they are written as that, and what is no JSON as a string.
    """

    def __init__(
        self,
        write: Callable[[Any], object],
        name: str,
        schema: pa.Schema,
        timestamps: str | None = None,
        decimals: str = "string",
        json_columns: Collection[str] = (),
    ) -> None:
        self._write, self._names = write, schema.names
        self._json = [field.name in json_columns for field in schema]
        for column in json_columns:
            if not _is_text(type_ := schema.field(index_of(schema, column, f"{name}: ")).type):
                raise InvalidArgument(f"{name}: a column of JSON has texts, and {column!r} is {type_}")
        self._timestamps, self._decimals = timestamps, decimals
        for field in schema:
            if schema.names.count(field.name) > 1:
                raise InvalidArgument(f"{name}: JSON cannot hold two columns {field.name!r}; rename one")
            if _has_no_json(field.type):
                raise InvalidArgument(
                    f"{name}: JSON cannot hold column {field.name!r} of type {field.type}; write .parquet or .arrow, "
                    f"or in SQL a text, such as encode({field.name}, 'hex')"
                )

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            if batch.num_rows:
                self._write(self._lines(batch))

    def close(self) -> None:
        """Nothing is held back."""

    def _lines(self, batch: pa.RecordBatch) -> bytes:
        pieces = []
        for at, (name, column) in enumerate(zip(self._names, batch.columns, strict=True)):
            texts = _json(decoded(column)) if self._json[at] else self._texts(column)
            pieces += [_large(("," if at else "{") + _encode(name) + ":"), texts]
        lines = pc.binary_join_element_wise(
            *pieces, _large("}\n"), _large(""), null_handling="replace", null_replacement="null"
        )
        return "".join(lines.to_pylist()).encode()

    def _texts(self, column: pa.Array) -> pa.Array:
        if self._timestamps is not None and pa.types.is_timestamp(column.type):
            return _milliseconds(column) if self._timestamps == "unix_millis" else _rfc3339(column)
        if self._decimals == "number" and pa.types.is_decimal(column.type):
            return pa.array(
                [None if value is None else f"{value:f}" for value in column.to_pylist()], pa.large_string()
            )
        return _texts(column)


def _is_text(type_: pa.DataType) -> bool:
    own = type_.storage_type if isinstance(type_, CellType) else type_
    return bool(pa.types.is_string(own) or pa.types.is_large_string(own))


def _json(texts: pa.Array) -> pa.Array:
    values, are_none = as_json(texts)
    values = values.cast(pa.large_string())
    return pc.replace_with_mask(values, are_none, _strings(texts.filter(are_none).cast(pa.large_string())))


def _milliseconds(times: pa.Array) -> pa.Array:
    """Fractions of a millisecond are left out, towards the earlier one."""
    return (
        pc.floor_temporal(times, unit="millisecond")
        .cast(pa.timestamp("ms", times.type.tz))
        .cast(pa.int64())
        .cast(pa.large_string())
    )


def _rfc3339(times: pa.Array) -> pa.Array:
    """A time without a zone is in UTC."""
    utc = times.cast(pa.timestamp(times.type.unit, "UTC"))
    return _strings(pc.strftime(utc, "%Y-%m-%dT%H:%M:%SZ").cast(pa.large_string()))


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _texts(column: pa.Array) -> pa.Array:
    """The values of a column as JSON, or null."""
    is_ = pa.types
    if isinstance(column.type, CellType) and column.type.dialect is None:
        cells = column.storage.cast(pa.large_string())
        is_json = pc.starts_with(cells, JSON_VALUE)
        values = pc.utf8_slice_codeunits(cells.filter(is_json), 1)
        return pc.replace_with_mask(_strings(cells), is_json, values)
    column = decoded(column)
    if is_.is_temporal(column.type):
        return _strings(column.cast(pa.large_string()))
    if is_.is_string(column.type) or is_.is_large_string(column.type):
        return _strings(column.cast(pa.large_string()))
    if is_.is_integer(column.type) or is_.is_boolean(column.type):
        return column.cast(pa.large_string())
    values = [None if value is None else _encode(_plain(value)) for value in column.to_pylist()]
    return pa.array(values, pa.large_string())


def _strings(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        return pa.array([None if text is None else _encode(text) for text in texts.to_pylist()], pa.large_string())
    return pc.binary_join_element_wise(_large('"'), texts, _large('"'), _large(""))


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case list():
            return [_plain(each) for each in value]
        case tuple():  # an entry of a map
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.timedelta():
            return str(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
    return value


def _has_no_json(type_: pa.DataType) -> bool:
    is_ = pa.types
    kinds = (is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary, is_.is_binary_view, is_.is_interval)
    inner = [type_.field(i).type for i in range(type_.num_fields)] if is_.is_nested(type_) else []
    if is_.is_dictionary(type_):
        inner = [type_.value_type]
    return any(kind(type_) for kind in kinds) or any(_has_no_json(each) for each in inner)
