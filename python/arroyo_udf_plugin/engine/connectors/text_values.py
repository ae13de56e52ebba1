"""Texts as values: cells of text files, and strings and numbers of JSON; and a few values as texts."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import re

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...plugin.casting import Cast
from .durations import count_of


def parse_texts(
    texts: pa.Array, type_: pa.DataType, decimal_mark: str = ".", date_formats: tuple[str, ...] = ()
) -> Cast:
    """A text that does not parse is null in the result, and in `refused`. decimal_mark, date_formats: see
    `options.Reading`.

    Raises InvalidArgument for a type that no text can be.
    """
    is_ = pa.types
    if date_formats and (is_.is_timestamp(type_) or is_.is_date(type_)):
        return _in_their_words(parse_texts(_as_iso(texts, date_formats), type_), texts, type_)
    if decimal_mark == "," and (is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_)):
        return _in_their_words(parse_texts(_with_points(texts), type_), texts, type_)
    if type_ == texts.type:
        return Cast(texts, {})
    if not can_be_text(type_):
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


def _in_their_words(done: Cast, texts: pa.Array, type_: pa.DataType) -> Cast:
    """With errors that have the texts as they stand in the file."""
    return Cast(done.array, {at: _refusal(texts[at].as_py(), type_) for at in done.refused})


def _with_points(texts: pa.Array) -> pa.Array:
    """Numbers with a point in place of the comma. One that has a point has no such number."""
    swapped = pc.replace_substring(texts, ".", "\0")
    return pc.replace_substring(swapped, ",", ".")


def _as_iso(texts: pa.Array, formats: tuple[str, ...]) -> pa.Array:
    """Times in one of the formats as in ISO 8601; other texts as they are."""
    known = texts.dictionary_encode()
    times = [None if text is None else _iso(text, formats) for text in known.dictionary.to_pylist()]
    return pa.array(times, pa.string()).take(known.indices)


def _iso(text: str, formats: tuple[str, ...]) -> str:
    for format_ in formats:
        with contextlib.suppress(ValueError):
            time = datetime.datetime.strptime(text.strip(), format_)
            is_date = time.time() == datetime.time() and time.tzinfo is None
            return time.date().isoformat() if is_date else time.isoformat()
    return text


def _refusal(text: str, type_: pa.DataType) -> str:
    hint = ""
    if pa.types.is_timestamp(type_) and _ZONED.search(text.strip()) and type_.tz is None:
        hint = " without a zone"
    elif pa.types.is_timestamp(type_) and type_.tz is not None and not _ZONED.search(text.strip()):
        hint = ": it lacks a zone, such as Z or +01:00"
    return f"{shortened(text)!r} is not {type_}{hint}"


def can_be_text(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(
        is_.is_boolean(type_)
        or is_.is_integer(type_)
        or is_.is_floating(type_)
        or is_.is_decimal(type_)
        or is_.is_temporal(type_)
        or is_.is_string(type_)
        or is_.is_large_string(type_)
        or is_.is_string_view(type_)
        or is_.is_binary(type_)
        or is_.is_large_binary(type_)
    ) and not is_.is_interval(type_)


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_duration(type_):  # as `FileSink` writes it in CSV
        return _cast(texts, pa.int64()).cast(type_)
    if pa.types.is_time(type_):  # pyarrow has no such cast
        return pc.binary_join_element_wise("1970-01-01T", texts, "").cast(pa.timestamp(type_.unit)).cast(type_)
    if pa.types.is_integer(type_) and _any(pc.match_substring(texts, "x", ignore_case=True)):
        raise pa.ArrowInvalid("Arrow reads 0xFFFFFFFFFFFFFFFF as -1")
    if not pa.types.is_floating(type_):
        return texts.cast(type_)
    values = texts.cast(type_)
    is_infinite = pc.is_inf(values.cast(pa.float32()) if pa.types.is_float16(type_) else values)
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
ZONED = r":[0-9.:]*(Z|[+-][0-9]{2}:?([0-9]{2})?)$"  # ends a time with a zone
_ZONED = re.compile(ZONED, re.ASCII)
_LARGEST = 40  # digits: more than any type has


def _plain(text: str | None, type_: pa.DataType) -> str | None:
    """A text as Arrow's parsers know it: without spaces around it or a plus, and 12 for an integer's 12.0 or 1.2e1."""
    if text is None:
        return None
    text = text.strip()
    if pa.types.is_duration(type_) and (count := count_of(text, type_.unit)) is not None:
        return str(count)
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


def decimal_texts(column: pa.Array) -> pa.Array:
    """Decimals as large text, never with an exponent."""
    values = column.cast(pa.large_string())
    has_exponent = pc.match_substring(values, "E")  # zero with nine decimal places is 0E-9
    plain = [f"{number:f}" for number in column.filter(has_exponent).drop_null().to_pylist()]
    return pc.replace_with_mask(values, has_exponent, pa.array(plain, values.type))


def end_to_end(lines: pa.LargeStringArray) -> pa.Buffer:
    """The bytes of all texts, one behind the other. None is null."""
    if not len(lines):
        return pa.py_buffer(b"")
    _, offsets, data = lines.buffers()
    starts = memoryview(offsets).cast("q")
    return data.slice(starts[lines.offset], starts[lines.offset + len(lines)] - starts[lines.offset])


def shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
