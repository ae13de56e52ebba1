"""Values of JSON as Arrow arrays of a type, nested, too: what `json_writer` writes is read as it was.

    done = typed([{"at": "2024-01-31T12:00:00Z"}, {"at": 5}], type_)
    done.array, done.refused                                {1: (".at", "5 is not timestamp[us, tz=UTC]")}

Each value at the ends is read as a cell of its own would be (`text_values`). A field that an object lacks is null; one
that the type lacks is refused, because it would be lost. An object can be a map; so can a list of pairs.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import json
from collections.abc import Callable
from math import isinf
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...plugin.casting import Cast
from .durations import PER_SECOND
from .text_values import ZONED, can_be_text, parse_texts, shortened

_is = pa.types
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Refused = dict[int, tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Typed:
    """refused: values that do not fit, by position: where in the value, such as `.at` or `[2]`, and why."""

    array: pa.Array
    refused: Refused


class Number(float):
    """A number of more digits than a float has."""

    __slots__ = ("text",)
    text: str


_FITTING: list[tuple[Callable[[pa.DataType], bool], set[type]]] = [  # of which pyarrow itself refuses the others
    (_is.is_integer, {int}),
    (_is.is_boolean, {bool}),
    (_is.is_string, {str}),
    (_is.is_large_string, {str}),
    (_is.is_float64, {float, int, Number}),
]
_NUMBERS = {int, float, Number}


def number(text: str) -> float:
    """As JSON has it. Raises ValueError for one that no float is near to."""
    value = float(text)
    if isinf(value):
        raise ValueError(f"{shortened(text)} is out of range")
    if len(text) <= 15 or repr(value) == text:
        return value
    exact = Number(value)
    exact.text = text
    return exact


def check(type_: pa.DataType) -> None:
    """Raises InvalidArgument for a type that no value of JSON can have."""
    for inner in _inner(type_):
        check(inner)
    if not _inner(type_) and not can_be_text(type_) and not _is.is_null(type_) and not _is.is_struct(type_):
        raise InvalidArgument(f"no value of JSON can be {type_}: use a file with types (.parquet, .arrow)")


def _inner(type_: pa.DataType) -> list[pa.DataType]:
    if _is.is_dictionary(type_):
        return [type_.value_type]
    if _is.is_map(type_):
        return [type_.key_type, type_.item_type]
    if _is.is_struct(type_):
        return [field.type for field in type_]
    return [type_.value_type] if _is_list(type_) else []


def _is_list(type_: pa.DataType) -> bool:
    return bool(_is.is_list(type_) or _is.is_large_list(type_) or _is.is_fixed_size_list(type_) or _is_view(type_))


def _is_view(type_: pa.DataType) -> bool:
    return bool(_is.is_list_view(type_) or _is.is_large_list_view(type_))


def typed(values: list[Any], type_: pa.DataType, timestamps: str | None = None) -> Typed:
    """values: as the JSON module has them, numbers as `number`. timestamps: see `options.Reading`.

    A value that does not fit is null. Assumes that `check` takes the type.
    """
    done = _typed(values, type_, timestamps)
    if done.refused and _is.is_nested(type_):
        kept = [None if at in done.refused else value for at, value in enumerate(values)]
        return Typed(_typed(kept, type_, timestamps).array, done.refused)
    return done


def _typed(values: list[Any], type_: pa.DataType, timestamps: str | None) -> Typed:
    if _is.is_dictionary(type_):
        return _dictionary(_typed(values, type_.value_type, timestamps), type_)
    if _is.is_map(type_):
        return _maps(values, type_, timestamps)
    if _is.is_struct(type_):
        return _structs(values, type_, timestamps)
    if _is_list(type_):
        return _lists(values, type_, timestamps)
    return _plain(values, type_, timestamps)


def _dictionary(values: Typed, type_: pa.DataType) -> Typed:
    encoded, refused = values.array.dictionary_encode(), values.refused
    indices, distinct = encoded.indices, encoded.dictionary
    bits = type_.index_type.bit_width
    most = 2 ** (bits if _is.is_unsigned_integer(type_.index_type) else bits - 1)
    if len(distinct) > most:
        too_many = pc.fill_null(pc.greater_equal(indices, most), False)
        why = f"this is one more distinct value than the {most} that {type_} can have"
        refused = dict.fromkeys(pc.indices_nonzero(too_many).to_pylist(), ("", why)) | refused
        indices = pc.if_else(too_many, pa.scalar(None, indices.type), indices)
        distinct = distinct[:most]
    return Typed(pa.DictionaryArray.from_arrays(indices.cast(type_.index_type), distinct), refused)


def _structs(values: list[Any], type_: pa.DataType, timestamps: str | None) -> Typed:
    refused: Refused = {}
    names = {field.name for field in type_}
    for at, value in enumerate(values):
        if value is not None and type(value) is not dict:
            refused[at] = "", _no(value, type_)
        elif value is not None and not names.issuperset(value):
            new = next(name for name in value if name not in names)
            refused[at] = "", f"it has a field {shortened(new)!r}, and {type_} has none"
    rows = [None if at in refused else value for at, value in enumerate(values)]
    children = []
    for field in type_:
        of_field = [None if row is None else row.get(field.name) for row in rows]
        done = _typed(of_field, field.type, timestamps)
        for at, (within, why) in done.refused.items():
            refused.setdefault(at, (f".{field.name}{within}", why))
        if not field.nullable:
            for at, (row, value) in enumerate(zip(rows, of_field, strict=True)):
                if row is not None and value is None:
                    refused.setdefault(at, (f".{field.name}", "null, where the type has no nulls"))
        children.append(done.array)
    return Typed(pa.Array.from_buffers(type_, len(rows), [_bitmap(rows)], children=children), refused)


def _lists(values: list[Any], type_: pa.DataType, timestamps: str | None) -> Typed:
    size = type_.list_size if _is.is_fixed_size_list(type_) else None
    refused: Refused = {}
    for at, value in enumerate(values):
        if value is not None and (type(value) is not list or (size is not None and len(value) != size)):
            refused[at] = "", _no(value, type_)
    rows = [None if at in refused else value for at, value in enumerate(values)]
    padding = [None] * (size or 0)
    items, offsets = _flat([padding if row is None else row for row in rows])
    done = _items(items, type_.value_field, timestamps)
    of_items = {at: why for at, why in done.refused.items() if size is None or rows[at // size] is not None}
    _add(refused, of_items, offsets)
    buffers = [_bitmap(rows)]
    count = pa.int32() if _is.is_list(type_) or _is.is_list_view(type_) else pa.int64()
    if size is None:
        buffers.append(pa.array(offsets, count).buffers()[1])
    if _is_view(type_):
        buffers.append(pa.array([len(row or []) for row in rows], count).buffers()[1])
    return Typed(pa.Array.from_buffers(type_, len(rows), buffers, children=[done.array]), refused)


def _maps(values: list[Any], type_: pa.DataType, timestamps: str | None) -> Typed:
    refused: Refused = {}
    rows: list[list[Any] | None] = []
    for at, value in enumerate(values):
        pairs = list(map(list, value.items())) if type(value) is dict else value
        if pairs is not None and not (
            type(pairs) is list and all(type(pair) is list and len(pair) == 2 for pair in pairs)
        ):
            refused[at] = "", _no(value, type_)
            pairs = None
        rows.append(pairs)
    pairs, offsets = _flat([row or [] for row in rows])
    keys = _items([key for key, _ in pairs], pa.field("key", type_.key_type, nullable=False), timestamps)
    items = _items([item for _, item in pairs], type_.item_field, timestamps)
    for done in (keys, items):
        _add(refused, done.refused, offsets)
    entries = pa.StructArray.from_arrays([keys.array, items.array], fields=[type_.key_field, type_.item_field])
    buffers = [_bitmap(rows), pa.array(offsets, pa.int32()).buffers()[1]]
    return Typed(pa.Array.from_buffers(type_, len(rows), buffers, children=[entries]), refused)


def _items(values: list[Any], field: pa.Field, timestamps: str | None) -> Typed:
    done = _typed(values, field.type, timestamps)
    if not field.nullable:
        for at, value in enumerate(values):
            if value is None:
                done.refused.setdefault(at, ("", "null, where the type has no nulls"))
    return done


def _plain(values: list[Any], type_: pa.DataType, timestamps: str | None) -> Typed:
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return Typed(pa.nulls(len(values), type_), {})
    if _is.is_null(type_):
        wrong = {at: ("", _no(value, type_)) for at, value in enumerate(values) if value is not None}
        return Typed(pa.nulls(len(values)), wrong)
    if any(is_(type_) and kinds <= fitting for is_, fitting in _FITTING):
        try:
            return Typed(pa.array(values, type_), {})
        except (pa.ArrowException, ValueError, OverflowError):
            pass
    refused: Refused = {}
    if _is.is_boolean(type_):  # Arrow's parser takes 0 and 1
        refused = {at: ("", _no(value, type_)) for at, value in enumerate(values) if type(value) in _NUMBERS}
        values = [None if at in refused else value for at, value in enumerate(values)]
    texts = [value if value is None or type(value) is str else _text(value) for value in values]
    try:
        column = pa.array(texts, pa.string())
    except UnicodeEncodeError:  # half a surrogate pair is no text
        for at, text in enumerate(texts):
            if text is not None and not _is_unicode(text):
                texts[at], refused[at] = None, ("", _no(values[at], type_))
        column = pa.array(texts, pa.string())
    done = parsed(column, type_, timestamps)
    return Typed(done.array, refused | {at: ("", why) for at, why in done.refused.items()})


def parsed(texts: pa.Array, type_: pa.DataType, timestamps: str | None) -> Cast:
    """Strings as values of a type that is not nested, as `typed` has them."""
    if not _is.is_timestamp(type_) or timestamps is None or (timestamps == "rfc3339" and type_.tz is not None):
        return parse_texts(texts, type_)
    if timestamps == "unix_millis":
        return _instants(texts, type_)
    zoned = pc.match_substring_regex(texts, ZONED)
    none = pa.scalar(None, pa.string())
    local = parse_texts(pc.if_else(zoned, none, texts), type_)
    utc = parse_texts(pc.if_else(zoned, texts, none), pa.timestamp(type_.unit, "UTC"))
    return Cast(pc.coalesce(local.array, utc.array.view(type_)), local.refused | utc.refused)


def _instants(texts: pa.Array, type_: pa.DataType) -> Cast:
    """From milliseconds. What is left over is left out, towards the earlier time."""
    done = parse_texts(texts, pa.int64())
    refused = {at: f"{shortened(texts[at].as_py())!r} is no whole number of milliseconds" for at in done.refused}
    counts: list[int | None] = []
    for at, value in enumerate(done.array.to_pylist()):
        count = None if value is None else value * PER_SECOND[type_.unit] // 1000
        if count is not None and not -(2**63) <= count < 2**63:
            refused[at] = f"{value} milliseconds are outside of {type_}"
            count = None
        counts.append(count)
    return Cast(pa.array(counts, pa.int64()).view(type_), refused)


def _flat(rows: list[list[Any]]) -> tuple[list[Any], list[int]]:
    """All items, and where those of each row begin, and the end."""
    return list(itertools.chain.from_iterable(rows)), [0, *itertools.accumulate(map(len, rows))]


def _add(refused: Refused, of_items: Refused, offsets: list[int]) -> None:
    """Adds items that do not fit; a list has one reason, the first."""
    for at, (within, why) in of_items.items():
        row = bisect.bisect_right(offsets, at) - 1
        refused.setdefault(row, (f"[{at - offsets[row]}]{within}", why))


def _bitmap(values: list[Any]) -> pa.Buffer | None:
    valid = [value is not None for value in values]
    return None if all(valid) else pa.array(valid, pa.bool_()).buffers()[1]


def _no(value: Any, type_: pa.DataType) -> str:
    text = shortened(_encode(value).encode(errors="backslashreplace").decode())
    return f"{text} is not {type_}"


def _text(value: Any) -> str:
    return value.text if type(value) is Number else _encode(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
