"""Newline JSON: lines as batches.

Columns whose types the user names have values of these types (`json_types`). The keys and types of the first block are
the other columns: a column is bool, int64, float64 or a list of those if all its values are; otherwise it has cells,
which keep every value. A line that is no JSON object, has another key, or a value of another type, is a refused row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from .blocks import Blocks
from .cells import CellType, cell_type
from .json_blocks import EXACT
from .json_rows import JsonRows, array_of, decode, parsed
from .json_types import Number, check
from .piece import Piece, TextBlock, cut

_CELL = cell_type(None)


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
        self._json_columns = json_columns
        self._blocks = Blocks(read, b"", name, seek)
        self._first = self._blocks.next().removeprefix(b"\xef\xbb\xbf")
        if schema is not None:
            self.schema = schema
            return
        lines = [parsed(line) for line in self._first.split(b"\n") if line.strip()]
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
            pa.nulls(0, field.type)
            if name is None
            else array_of([row.get(name) for row in self._first_rows], field, {})
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
        rows = JsonRows(schema, self._types, self._json_columns, self._timestamps, known)
        number, text = 1, self._first
        if block is not None:
            self._blocks.go_to(block.byte)
            number, text = block.row, self._blocks.next()
        while text:
            block = self._blocks.place(number)
            read = rows.of_text(text)
            if read is not None:
                yield from cut(number, *read, block, most_rows, start)
                number += read[0].num_rows
            else:
                lines = text.removesuffix(b"\n").split(b"\n")
                for first, run in _runs(number, lines, most_rows, start):
                    yield first, *rows.of_objects(run), block
                number += len(lines)
            text = self._blocks.next()


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


def no_json(line: bytes) -> str | None:
    """What is wrong with a line that has any value of JSON."""
    try:
        decode(line.decode())
    except UnicodeDecodeError:
        return "is not UTF-8"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return f"cannot be read as JSON: {error}"
    return None


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
