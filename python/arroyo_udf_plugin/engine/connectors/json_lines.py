"""Newline JSON: lines as batches.

Columns whose types the user names have values of these types (`json_types`). The keys and types of the first block are
the other columns: a column is bool, int64, float64 or a list of those if all its values are; otherwise it has cells,
which keep every value. A line that is no JSON object, has another key, or a value of another type, is a refused row.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .blocks import Blocks
from .cells import JSON_VALUE, CellType, cell_type
from .json_blocks import EXACT, NativeJson
from .json_types import Number, check, number, typed
from .json_values import JsonFunction
from .piece import KEPT, Piece, TextBlock, cut
from .text_values import shortened

_CELL = cell_type(None)
_HINT = "the first lines decide; --types can name another type"


class JsonReader:
    """read, seek: the file's bytes, see `Blocks`. name: for error texts. types: of columns, by name.
    json_columns: those whose values are texts of JSON, as they are written there. timestamps: see `options.Reading`.

    schema: of all columns; that of an earlier file, if given. Raises InvalidArgument, also while iterating.
    """

    rows = None

    def __init__(
        self,
        read: Callable[[int], bytes],
        name: str,
        types: Mapping[str, pa.DataType],
        schema: pa.Schema | None = None,
        cells: bool = False,
        json_columns: Sequence[str] = (),
        timestamps: str | None = None,
        ignores: bool = False,
        seek: Callable[[int], object] | None = None,
    ) -> None:
        self._types, self._timestamps, self._ignores = types, timestamps, ignores
        for column, type_ in types.items():
            try:
                check(type_)
            except InvalidArgument as error:
                raise InvalidArgument(f"{name}: column {column!r}: {error}") from None
        self._json = {column: JsonFunction("json_get", (column,)) for column in json_columns}
        self._blocks = Blocks(read, b"", name, seek)
        self._first = self._blocks.next().removeprefix(b"\xef\xbb\xbf")
        if schema is not None:
            self.schema = schema
            return
        lines = [_parsed(line) for line in self._first.split(b"\n") if line.strip()]
        rows = [line for line in lines if isinstance(line, dict)]
        if not rows:
            why = f": line 1 {lines[0]}" if lines else " is empty"
            raise InvalidArgument(f"{name}{why}; a newline JSON file has one object in each line")
        names = dict.fromkeys([*(key for row in rows for key in row), *types, *json_columns])
        given = dict(types) | dict.fromkeys(json_columns, pa.string())
        if cells:
            given = dict.fromkeys(names, _CELL) | given
        types_ = [given[key] if key in given else _type_of([row.get(key) for row in rows]) for key in names]
        self.schema = pa.schema(list(zip(names, types_, strict=True)))
        self._first_rows = rows

    def first_rows(self) -> list[pa.Array]:
        """The values of all columns of the first rows, which `pieces` has, too."""
        cells = [field.name if isinstance(field.type, CellType) else None for field in self.schema]
        return [
            pa.nulls(0, field.type) if name is None else _array([row.get(name) for row in self._first_rows], field, {})
            for name, field in zip(cells, self.schema, strict=True)
        ]

    def pieces(
        self, columns: list[int], most_rows: int, start: int = 1, block: TextBlock | None = None
    ) -> Iterator[Piece]:
        """Batches of these columns, each with the number of its first line. An empty line is no row.

        start: the first line to read. block: it is in this one, or behind it.
        """
        ignores = self._ignores or len(columns) < len(self.schema)
        known = None if ignores else set(self.schema.names)
        schema = pa.schema([self.schema.field(index) for index in columns])
        native = self._native(schema, ignores)
        number, text = 1, self._first
        if block is not None:
            self._blocks.go_to(block.byte)
            number, text = block.row, self._blocks.next()
        while text:
            block = self._blocks.place(number)
            read = native.rows(text)
            if read is not None:
                whole, refused = self._whole(text, *read, schema)
                yield from cut(number, whole, refused, block, most_rows, start)
                number += whole.num_rows
            else:
                lines = text.removesuffix(b"\n").split(b"\n")
                for first, run in _runs(number, lines, most_rows, start):
                    rows, refused = self._rows(run, schema, known)
                    yield first, rows, refused, block
                number += len(lines)
            text = self._blocks.next()

    def _native(self, schema: pa.Schema, ignores: bool) -> NativeJson:
        fields = {field.name: field for field in schema if field.name not in self._json}
        if self._json and not ignores:  # they have values of all kinds, which no schema says
            fields = {}
        return NativeJson(pa.schema(fields.values()), self._types, self._timestamps, ignores)

    def _whole(
        self, block: bytes, arrays: Mapping[str, pa.Array], refused: dict[int, str], schema: pa.Schema
    ) -> tuple[pa.RecordBatch, dict[int, str]]:
        texts = self._texts(block.removesuffix(b"\n").split(b"\n"), {}) if self._json else None
        columns = [self._json[name](texts) if name in self._json else arrays[name] for name in schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=schema), refused

    def _rows(
        self, lines: list[bytes], schema: pa.Schema, known: set[str] | None
    ) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Line by line. known: the keys that there may be; None: any."""
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
            else self._array([row.get(field.name) for row in rows], field, refused)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema), refused

    def _array(self, values: list[Any], field: pa.Field, refused: dict[int, str]) -> pa.Array:
        """The values of a column. Adds those that are of another type to `refused`."""
        if field.name not in self._types:
            return _array(values, field, refused)
        done = typed(values, field.type, self._timestamps)
        for at, (where, why) in done.refused.items():
            refused.setdefault(at, f"column {field.name + where!r}: {why}")
        return done.array

    def _texts(self, lines: list[bytes], refused: Mapping[int, str]) -> pa.Array:
        read = [None if at in refused else line for at, line in enumerate(lines)]
        return pa.array(read, pa.binary()).cast(pa.string())


def _runs(number: int, lines: list[bytes], most: int, first: int) -> Iterator[tuple[int, list[bytes]]]:
    """Lines without an empty one between them, and the number of the first. number: of the first of `lines`. first: the
    first line to read."""
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


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant, parse_float=number).decode
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
    kinds = set(map(type, values)) - {type(None)}
    if Number in kinds:
        kinds = kinds - {Number} | {float}
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
        return pa.float64() if all(type(v) is not int or abs(v) <= EXACT for v in values) else _CELL
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
                refused.setdefault(at, f"column {field.name!r}: {_shown(value)} is not {type_} ({_HINT})")
                values[at] = None
        array = pa.array(values, type_)
    return pa.ExtensionArray.from_storage(field.type, array) if is_cell else array


_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
_KINDS: dict[Any, set[type]] = {
    pa.bool_(): {bool},
    pa.int64(): {int},
    pa.float64(): {int, float, Number},
    pa.string(): {str},
}


def _are(values: list[Any], type_: pa.DataType) -> bool:
    """Whether values may have the type: pyarrow would make 2 of 2.5."""
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_list(type_):
        return kinds <= {list} and all(_are(value, type_.value_type) for value in values if value is not None)
    return kinds <= _KINDS[type_]


def _cell(value: Any) -> str | None:
    return None if value is None else JSON_VALUE + (value.text if type(value) is Number else _encode(value))


def _shown(value: Any) -> str:
    return shortened(_encode(value).encode(errors="backslashreplace").decode())  # half a surrogate pair is no text
