"""Cells of text files: the Arrow type of a column of them, and how they are parsed.

A cell keeps its text until a function or the user asks for a value: "01234" stays "01234". So a column of a text file
has `CellType`, an extension type over text that knows its file's dialect, and so which cells are null. `parse` makes
values of such a column; `decoded` makes plain text; a `FileSink` for CSV writes the cells as they were.
"""

from __future__ import annotations

import dataclasses
import decimal
import functools
import json
import re

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument
from ..plugin.casting import Cast, cast
from .options import NULL_VALUES

JSON_VALUE = "\0"  # begins a cell of newline JSON that is no string


@dataclasses.dataclass(frozen=True)
class Dialect:
    """Of a CSV file. quote: "" means that there are no quotes."""

    delimiter: str = ","
    quote: str = '"'
    null_values: tuple[str, ...] = NULL_VALUES


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

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self.dialect and dataclasses.asdict(self.dialect)).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> CellType:
        found = json.loads(serialized)
        return cell_type(found and Dialect(found["delimiter"], found["quote"], tuple(found["null_values"])))


@functools.cache
def cell_type(dialect: Dialect | None) -> CellType:
    """The type of cells in a dialect."""
    return CellType(dialect)


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
    is_null = pc.is_in(text, value_set=pa.array(dialect.null_values, pa.string()))
    return pc.replace_with_mask(plain, is_null, pa.scalar(None, pa.string())) if _any(is_null) else plain


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
    mark = pa.scalar(quote, texts.type)
    inner = pc.replace_substring(texts, quote, quote * 2)
    return pc.binary_join_element_wise(mark, inner, mark, pa.scalar("", texts.type))


def argument(column: pa.Array, wanted: pa.Field) -> Cast:
    """A source's column as a function's argument: cells are parsed, other types cast (plugin/casting.py).

    Raises InvalidArgument if the types cannot fit.
    """
    return parse(column, wanted) if isinstance(column.type, CellType) else cast(column, wanted)


def parse(column: pa.Array, wanted: pa.Field) -> Cast:
    """Cells (or plain text) as values. A cell that does not parse is null in the result, and in `refused`.

    Raises InvalidArgument for a type that no text can be.
    """
    type_ = wanted.type
    if pa.types.is_nested(type_) and isinstance(column.type, CellType) and column.type.dialect is None:
        return _parse_json(column.storage, wanted)
    texts = decoded(column)
    if type_ == texts.type:
        return Cast(texts, {})
    if not _can_be_text(type_):
        raise InvalidArgument(
            f"a text cell cannot be {type_}: use a file with types (.parquet, .arrow), or a function that takes str"
        )
    try:
        return Cast(_cast(texts, type_), {})
    except pa.ArrowException:
        pass
    shown, texts = texts, pa.array([_plain(text, type_) for text in texts.to_pylist()], pa.string())
    array, refused = _cast_each(texts, type_, 0)
    return Cast(array, {at: _refusal(shown[at].as_py(), type_) for at in refused})


def _parse_json(cells: pa.Array, wanted: pa.Field) -> Cast:
    """Lists and objects of newline JSON, each by the rule for typed columns."""
    refused: dict[int, str] = {}
    arrays = []
    for at, cell in enumerate(cells.to_pylist()):
        array = pa.nulls(1, wanted.type)
        if cell is not None:
            try:
                done = cast(pa.array([json.loads(cell.removeprefix(JSON_VALUE))]), wanted)
            except (ValueError, InvalidArgument, pa.ArrowException):
                refused[at] = f"{_shortened(cell.removeprefix(JSON_VALUE))} is not {wanted.type}"
            else:
                array = done.array
                if done.refused:
                    refused[at] = done.refused[0]
        arrays.append(array)
    return Cast(pa.concat_arrays(arrays) if arrays else pa.nulls(0, wanted.type), refused)


def _refusal(text: str, type_: pa.DataType) -> str:
    hint = ""
    if pa.types.is_timestamp(type_) and _ZONED.search(text.strip()) and type_.tz is None:
        hint = " without a zone"
    elif pa.types.is_timestamp(type_) and type_.tz is not None and not _ZONED.search(text.strip()):
        hint = ": it lacks a zone, such as Z or +01:00"
    return f"{_shortened(text)!r} is not {type_}{hint}"


def _can_be_text(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(
        is_.is_boolean(type_)
        or is_.is_integer(type_)
        or is_.is_float32(type_)
        or is_.is_float64(type_)
        or is_.is_decimal(type_)
        or is_.is_temporal(type_)
        or is_.is_string(type_)
        or is_.is_large_string(type_)
        or is_.is_binary(type_)
        or is_.is_large_binary(type_)
    ) and not is_.is_interval(type_)


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_duration(type_):  # as `FileSink` writes it
        return _cast(texts, pa.int64()).cast(type_)
    if pa.types.is_integer(type_) and _any(pc.match_substring(texts, "x", ignore_case=True)):
        raise pa.ArrowInvalid("Arrow reads 0xFFFFFFFFFFFFFFFF as -1")
    if not pa.types.is_floating(type_):
        return texts.cast(type_)
    values = texts.cast(type_)
    is_infinite = pc.is_inf(values)
    if _any(is_infinite) and not pc.all(pc.match_substring_regex(texts.filter(is_infinite), "(?i)inf")).as_py():
        raise pa.ArrowInvalid("out of range")
    return values


def _cast_each(texts: pa.Array, type_: pa.DataType, first: int) -> tuple[pa.Array, list[int]]:
    """The values, and the positions of texts that have none. Halves until those are alone."""
    try:
        return _cast(texts, type_), []
    except pa.ArrowException:
        if len(texts) == 1:
            return pa.nulls(1, type_), [first]
    half = len(texts) // 2
    (left, refused), (right, more) = (
        _cast_each(texts[:half], type_, first),
        _cast_each(texts[half:], type_, first + half),
    )
    return pa.concat_arrays([left, right]), refused + more


_WHOLE = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_ZONED = re.compile(r":[0-9.:]*(Z|[+-][0-9]{2}:?([0-9]{2})?)$", re.ASCII)
_LARGEST = 40  # digits: more than any type has


def _plain(text: str | None, type_: pa.DataType) -> str | None:
    """A text as Arrow's parsers know it: without spaces around it or a plus, and 12 for an integer's 12.0 or 1.2e1."""
    if text is None:
        return None
    text = text.strip()
    if pa.types.is_integer(type_) or pa.types.is_duration(type_):
        if whole := _WHOLE.fullmatch(text):
            return ("-" if whole[1] == "-" else "") + whole[2]
        if _NUMBER.fullmatch(text):
            number = decimal.Decimal(text)
            if abs(number.adjusted()) < _LARGEST and number == number.to_integral_value():
                return f"{number.to_integral_value():f}"
    elif _NUMBER.fullmatch(text):
        return text.removeprefix("+")
    return text


def _json_texts(cells: pa.Array) -> pa.Array:
    return pa.array([cell.removeprefix(JSON_VALUE) for cell in cells.to_pylist()], pa.string())


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
