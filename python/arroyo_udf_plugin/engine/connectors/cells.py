"""Cells of text files: the Arrow type of a column of them, and how they are parsed.

A cell keeps its text until a function or the user asks for a value: "01234" stays "01234". So a column of a text file
has `CellType`, an extension type over text that knows its file's dialect, and so which cells are null. `parse` makes
values of such a column; `decoded` makes plain text; a `FileSink` for CSV writes the cells as they were.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...host import few
from ...plugin.casting import Cast, cast
from .json_types import Typed, check, number, typed
from .options import NULL_VALUES
from .text_values import can_be_text, parse_texts, shortened

_decode = json.JSONDecoder(parse_float=number).decode
JSON_VALUE = "\0"  # begins a cell of newline JSON that is no string


@dataclasses.dataclass(frozen=True)
class Dialect:
    """Of a CSV file. quote: "" means that there are no quotes. decimal_mark, date_formats: see `options.Reading`."""

    delimiter: str = ","
    quote: str = '"'
    null_values: tuple[str, ...] = NULL_VALUES
    decimal_mark: str = "."
    date_formats: tuple[str, ...] = ()

    def has_cells_of(self, other: Dialect) -> bool:
        """Whether cells of another dialect can stand as they are."""
        return (self.delimiter, self.quote, self.null_values) == (other.delimiter, other.quote, other.null_values)

    def described(self) -> dict[str, Any]:
        """For `of`. What is as by default is left out, where versions before did not know it."""
        later = {"decimal_mark": ".", "date_formats": ()}
        return {name: value for name, value in dataclasses.asdict(self).items() if value != later.get(name, self)}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Dialect:
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in described.items()}
        return cls(**given)


class CellType(pa.ExtensionType):  # type: ignore[misc]
    """Text cells, as they stand in their file.

    dialect: of CSV. A cell is null if it is one of the dialect's null values; a quoted cell has its quotes, if it needs
        them or would be null without them.
    Without a dialect, of newline JSON: a string is its text; any other value is `JSON_VALUE` and its JSON.

    Made by `cell_type`: pyarrow asks an array for its type often, and makes it anew if nobody has kept it.
    """

    def __init__(self, dialect: Dialect | None) -> None:
        self.dialect = dialect
        super().__init__(pa.string(), "arroyo_udf.cell")

    def __str__(self) -> str:
        return "text"

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self.dialect and self.dialect.described()).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> CellType:
        document = json.loads(serialized)
        return cell_type(document and Dialect.of(document))


@functools.cache
def cell_type(dialect: Dialect | None) -> CellType:
    """The type of cells in a dialect."""
    return CellType(dialect)


def plain_field(field: pa.Field) -> pa.Field:
    """Cells as the texts that they become; any other field as it is."""
    return field.with_type(pa.string()) if isinstance(field.type, CellType) else field


def decoded(column: pa.Array) -> pa.Array:
    """Cells as plain text and nulls; any other column as it is."""
    if not isinstance(column.type, CellType):
        return column
    text, dialect = column.storage, column.type.dialect
    if dialect is None:
        is_json = pc.starts_with(text, JSON_VALUE)
        return pc.replace_with_mask(text, is_json, _json_texts(text.filter(is_json))) if _any(is_json) else text
    plain = unquoted(text, dialect)
    if not dialect.null_values:
        return plain
    is_null = pc.is_in(text, value_set=few.texts(dialect.null_values))
    return pc.replace_with_mask(plain, is_null, few.null(pa.string())) if _any(is_null) else plain


def unquoted(cells: pa.Array, dialect: Dialect) -> pa.Array:
    """The texts of CSV cells, of nulls, too."""
    quote = dialect.quote
    is_quoted = pc.starts_with(cells, quote) if quote else None
    if is_quoted is None or not _any(is_quoted):
        return cells
    inner = pc.utf8_slice_codeunits(cells.filter(is_quoted), 1, -1)
    return pc.replace_with_mask(cells, is_quoted, pc.replace_substring(inner, quote * 2, quote))


def quoted(texts: pa.Array, quote: str) -> pa.Array:
    """Texts as CSV cells in quotes. Of any type of text, and of that type."""
    mark = few.text(quote, texts.type)
    inner = pc.replace_substring(texts, quote, quote * 2)
    return pc.binary_join_element_wise(mark, inner, mark, few.text("", texts.type))


def argument(column: pa.Array, wanted: pa.Field) -> Cast:
    """A source's column as a function's argument: cells are parsed, so are texts in lists, which have no cells; other
    types are cast (plugin/casting.py).

    Raises InvalidArgument if the types cannot fit.
    """
    if isinstance(column.type, CellType):
        return parse(column, wanted)
    if _are_texts(column.type, wanted.type):
        return cast_of(typed(column.to_pylist(), wanted.type), {})
    return cast(column, wanted)


def _are_texts(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether these are lists of texts, in place of other values."""
    if not pa.types.is_list(given) or not pa.types.is_list(wanted):
        return False
    given, wanted = given.value_type, wanted.value_type
    is_value = can_be_text(wanted) and not pa.types.is_binary(wanted) and not pa.types.is_large_string(wanted)
    return _are_texts(given, wanted) or (given == pa.string() and wanted != pa.string() and is_value)


def parse(column: pa.Array, wanted: pa.Field) -> Cast:
    """Cells (or plain text) as values. A cell that does not parse is null in the result, and in `refused`.

    Raises InvalidArgument for a type that no text can be.
    """
    type_ = wanted.type
    if pa.types.is_nested(type_) and isinstance(column.type, CellType) and column.type.dialect is None:
        return _parse_json(column.storage, type_)
    dialect = column.type.dialect if isinstance(column.type, CellType) else None
    if dialect is None:
        return parse_texts(decoded(column), type_)
    return parse_texts(decoded(column), type_, dialect.decimal_mark, dialect.date_formats)


def _parse_json(cells: pa.Array, type_: pa.DataType) -> Cast:
    """Lists and objects of newline JSON."""
    check(type_)
    refused: dict[int, str] = {}
    values: list[Any] = []
    for at, cell in enumerate(cells.to_pylist()):
        try:
            values.append(None if cell is None else _decode(cell.removeprefix(JSON_VALUE)))
        except ValueError:  # a string
            values.append(None)
            refused[at] = f"{shortened(cell)} is not {type_}"
    return cast_of(typed(values, type_), refused)


def cast_of(done: Typed, refused: dict[int, str]) -> Cast:
    """What does not fit, in words. refused: further values."""
    why = {at: f"{where.removeprefix('.')}: {why}" if where else why for at, (where, why) in done.refused.items()}
    return Cast(done.array, why | refused)


def _json_texts(cells: pa.Array) -> pa.Array:
    return pa.array([cell.removeprefix(JSON_VALUE) for cell in cells.to_pylist()], pa.string())


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
