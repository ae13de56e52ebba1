"""Batches as lines of newline JSON.

Times are as in RFC 3339, durations as in ISO 8601, at every level: 2013-01-01T05:00:00.000000Z, and without a Z if the
type has no zone; P1DT2H. Decimals are strings, so that no reader loses digits; so are NaN and infinity, which are no
JSON. A map is a list of pairs. `json_types` reads all of it as it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host import few
from . import durations
from .cells import JSON_VALUE, CellType, decoded
from .json_values import as_json
from .schemas import index_of
from .text_values import decimal_texts, end_to_end

_is = pa.types
_LARGE = pa.large_string()
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # of the years 0 to 9999


class JsonTexts:
    """Rows as texts of JSON. Raises InvalidArgument for columns that JSON cannot hold.

    timestamps, decimals: columns and fields of these types are written so, see `options.Writing`; shown, too.
    json_columns: of texts that are JSON: they are written as that, and what is no JSON as a string.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        timestamps: str | None = None,
        decimals: str = "string",
        json_columns: Collection[str] = (),
        shown: bool = False,
    ) -> None:
        self._name, self._names = name, schema.names
        self._json = [field.name in json_columns for field in schema]
        for column in json_columns:
            if not _is_text(type_ := schema.field(index_of(schema, column, f"{name}: ")).type):
                raise InvalidArgument(f"{name}: a column of JSON has texts, and {column!r} is {type_}")
        self._texts = _Texts(timestamps, decimals)
        self._are_shown = [shown and has_no_json(field.type) for field in schema]
        if shown:
            self._names = _each_once(schema.names)
            return
        for field in schema:
            if schema.names.count(field.name) > 1:
                raise InvalidArgument(f"{name}: JSON cannot hold two columns {field.name!r}; rename one")
            if has_no_json(field.type):
                raise InvalidArgument(
                    f"{name}: JSON cannot hold column {field.name!r} of type {field.type}; write .parquet or .arrow, "
                    f"or in SQL a text, such as encode({field.name}, 'hex')"
                )

    def of(self, batch: pa.RecordBatch, end: str = "") -> pa.LargeStringArray:
        """end: behind each row."""
        pieces = []
        for at, (name, column) in enumerate(zip(self._names, batch.columns, strict=True)):
            try:
                if self._are_shown[at]:
                    column = pa.array([_shown(value.as_py()) for value in column], pa.string())
                texts = _json(decoded(column)) if self._json[at] else self._texts.of(column)
            except _NoYear as error:
                raise InvalidArgument(f"cannot write {self._name}: column {name!r}: {error}") from None
            pieces += [_large(("," if at else "{") + _encode(name) + ":"), texts]
        return _joined(*pieces, _large("}" + end))


class JsonWriter:
    """Lines of JSON. write: takes bytes. Everything else is as `JsonTexts` has it."""

    def __init__(self, write: Callable[[Any], object], name: str, schema: pa.Schema, *how: Any, **more: Any) -> None:
        self._write, self._rows = write, JsonTexts(name, schema, *how, **more)

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            if batch.num_rows:
                self._write(end_to_end(self._rows.of(batch, "\n")))

    def close(self) -> None:
        """Nothing is held back."""


def _each_once(names: Sequence[str]) -> list[str]:
    """Names, of which each is there once: a further one has its position, counted from 1."""
    unique: list[str] = []
    for place, given in enumerate(names, 1):
        name = given
        while name in unique or (name != given and name in names):
            name = f"{name} ({place})"
        unique.append(name)
    return unique


def _shown(value: Any) -> str | None:
    return None if value is None else value.hex() if isinstance(value, bytes) else str(value)


def has_no_json(type_: pa.DataType) -> bool:
    """Whether columns of this type cannot be written."""
    bytes_ = (_is.is_binary, _is.is_large_binary, _is.is_fixed_size_binary, _is.is_binary_view)
    kinds = (*bytes_, _is.is_interval, _is.is_union, _is.is_run_end_encoded)
    inner = [type_.field(i).type for i in range(type_.num_fields)] if _is.is_nested(type_) else []
    if _is.is_dictionary(type_):
        inner = [type_.value_type]
    if isinstance(type_, pa.BaseExtensionType):
        inner = [type_.storage_type]
    return any(kind(type_) for kind in kinds) or any(has_no_json(inner_type) for inner_type in inner)


class _NoYear(Exception):
    """A time that RFC 3339 cannot have."""


class _Texts:
    """Values of all types as texts of JSON, or null."""

    def __init__(self, timestamps: str | None, decimals: str) -> None:
        self._timestamps, self._decimals = timestamps, decimals

    def of(self, column: pa.Array) -> pa.Array:
        type_ = column.type
        if isinstance(type_, CellType) and type_.dialect is None:
            return _cells(column.storage.cast(_LARGE))
        column = decoded(column)
        if isinstance(column, pa.ExtensionArray):
            return self.of(column.storage)
        if _is.is_dictionary(type_):
            return self.of(column.dictionary).take(column.indices)
        if _is.is_timestamp(type_):
            return self._times(column)
        if _is.is_struct(type_):
            return self._structs(column)
        if _is.is_map(type_):
            return self._lists(_entries(column), True)
        if _is.is_nested(type_) and hasattr(column, "flatten"):
            return self._lists(column)
        if _is.is_decimal(type_):
            texts = decimal_texts(column)
            return texts if self._decimals == "number" else _marked(texts)
        return _plain(column)

    def _times(self, times: pa.Array) -> pa.Array:
        if self._timestamps == "unix_millis":
            return _milliseconds(times)
        if self._timestamps == "rfc3339":  # a time without a zone is in UTC
            times = times.cast(pa.timestamp(times.type.unit, "UTC"))
        return _rfc3339(times)

    def _structs(self, column: pa.StructArray, as_pair: bool = False) -> pa.Array:
        opening, closing = "[]" if as_pair else "{}"
        pieces: list[Any] = []
        for field, values in zip(column.type, column.flatten(), strict=True):
            key = "" if as_pair else _encode(field.name) + ":"
            pieces += [_large(("," if pieces else opening) + key), self.of(values)]
        if not pieces:
            return _where(column.is_valid(), pa.repeat(_large("{}"), len(column)))
        return _where(column.is_valid(), _joined(*pieces, _large(closing)))

    def _lists(self, column: Any, of_pairs: bool = False) -> pa.Array:
        """of_pairs: the items are the entries of maps."""
        items = column.flatten()  # without those below null lists
        texts = self._structs(items, as_pair=True) if of_pairs else self.of(items)
        is_view = "view" in str(column.type)
        valid = column.is_valid()
        lengths = pc.if_else(valid, column.sizes if is_view else pc.list_value_length(column), few.number(0, "int64"))
        offsets = pa.concat_arrays([few.numbers([0], "int64"), pc.cumulative_sum(lengths)])
        lists = pa.LargeListArray.from_arrays(offsets, texts.fill_null("null"))
        return _where(valid, _joined(_large("["), pc.binary_join(lists, _large(",")), _large("]")))


def _entries(maps: pa.MapArray) -> pa.ListArray:
    """Lists of keys and values. pyarrow's own cast ends the process if values are lists of two nulls."""
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    offsets = pc.add(maps.offsets, pa.scalar(0, pa.int32()))  # those of a slice do not go together with a mask
    return pa.ListArray.from_arrays(offsets, entries, mask=maps.is_null() if maps.null_count else None)


def _cells(cells: pa.Array) -> pa.Array:
    is_json = pc.starts_with(cells, JSON_VALUE)
    values = pc.utf8_slice_codeunits(cells.filter(is_json), 1)
    return pc.replace_with_mask(_quoted(cells), is_json, values)


def _plain(column: pa.Array) -> pa.Array:
    type_ = column.type
    if _is.is_integer(type_) or _is.is_boolean(type_):
        return column.cast(_LARGE)
    if _is_text(type_) or _is.is_string_view(type_):
        return _quoted(column.cast(_LARGE))
    if _is.is_date(type_):
        _check_years(column.cast(pa.date32()), 1)
    if _is.is_date(type_) or _is.is_time(type_):
        return _marked(column.cast(_LARGE))
    if _is.is_duration(type_):
        return _marked(pa.array(durations.written(column), _LARGE))
    if _is.is_float32(type_) or _is.is_float64(type_):
        return _floats(column.cast(pa.float64()))
    return _one_by_one(column)


def _floats(values: pa.DoubleArray) -> pa.Array:
    """As Python writes them, which tells them from integers. Arrow finds the same digits, and chooses between 0.00001
    and 1e-05 in another way."""
    texts, size = values.cast(_LARGE), pc.abs(values)
    is_middle = pc.and_(pc.greater_equal(size, _number(1e-4)), pc.less(size, _number(1e16)))
    is_plain = pc.or_(pc.equal(size, _number(0)), is_middle)
    has_exponent = pc.match_substring_regex(texts, "e[+-][0-9]{2,}$")
    is_whole = pc.and_(is_plain, pc.and_(pc.equal(pc.floor(values), values), pc.less(size, _number(2**53))))
    if pc.any(large := pc.and_(is_whole, has_exponent)).as_py():
        texts = pc.replace_with_mask(texts, large.fill_null(False), values.filter(large).cast(pa.int64()).cast(_LARGE))
    texts = pc.if_else(is_whole, pc.binary_join_element_wise(texts, _large(".0"), _large("")), texts)
    is_ours = pc.or_(is_whole, pc.equal(is_plain, pc.invert(has_exponent)))
    others = pc.and_kleene(is_ours.is_valid(), pc.invert(is_ours))
    if not pc.any(others).as_py():
        return texts
    return pc.replace_with_mask(texts, others, _one_by_one(values.filter(others)))


def _number(value: float) -> pa.Scalar:
    return few.number(value, "float64")


def _one_by_one(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else _encode(_named(value)) for value in column.to_pylist()], _LARGE)


def _named(value: Any) -> Any:
    """NaN and infinity as the names that they have in JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _is_text(type_: pa.DataType) -> bool:
    own = type_.storage_type if isinstance(type_, CellType) else type_
    return bool(_is.is_string(own) or _is.is_large_string(own))


def _json(texts: pa.Array) -> pa.Array:
    values, are_none = as_json(texts)
    values = values.cast(_LARGE)
    return pc.replace_with_mask(values, are_none, _quoted(texts.filter(are_none).cast(_LARGE)))


def _milliseconds(times: pa.Array) -> pa.Array:
    """Fractions of a millisecond are left out, towards the earlier one."""
    counts = times.view(pa.int64())
    if times.type.unit == "s":
        return pc.multiply_checked(counts, 1000).cast(_LARGE)
    per_ms = {"ms": 1, "us": 1000, "ns": 10**6}[times.type.unit]
    whole = pc.divide(counts, per_ms)  # towards 0
    earlier = pc.less(pc.subtract(counts, pc.multiply(whole, per_ms)), 0)
    return pc.subtract(whole, earlier.cast(pa.int64())).cast(_LARGE)


def _rfc3339(times: pa.Array) -> pa.Array:
    if times.type.unit in _PER_DAY:
        _check_years(times, _PER_DAY[times.type.unit])
    if times.type.tz is not None:  # an offset of its own has no colon
        times = times.cast(pa.timestamp(times.type.unit, "UTC"))
    return _marked(pc.replace_substring(times.cast(_LARGE), " ", "T"))


def _check_years(times: pa.Array, per_day: int) -> None:
    ends = pc.min_max(times.cast(pa.int32() if _is.is_date(times.type) else pa.int64()))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is not None and not _FIRST_DAY * per_day <= first <= last < (_LAST_DAY + 1) * per_day:
        raise _NoYear("JSON has times of the years 0 to 9999, and one is outside; write .parquet or .arrow")


# ---- Texts -----------------------------------------------------------------------------------------------------------


def _large(text: str) -> pa.Scalar:
    return few.text(text, _LARGE)


def _joined(*pieces: Any) -> pa.Array:
    """The pieces one behind the other, with nulls as JSON has them."""
    return pc.binary_join_element_wise(*pieces, _large(""), null_handling="replace", null_replacement="null")


def _where(valid: pa.BooleanArray, texts: pa.Array) -> pa.Array:
    return texts if valid.true_count == len(valid) else pc.if_else(valid, texts, few.null(_LARGE))


def _marked(texts: pa.Array) -> pa.Array:
    """Texts in quotes, which need no escapes."""
    return pc.binary_join_element_wise(_large('"'), texts, _large('"'), _large(""))


def _quoted(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        return pa.array([None if text is None else _encode(text) for text in texts.to_pylist()], _LARGE)
    return _marked(texts)
