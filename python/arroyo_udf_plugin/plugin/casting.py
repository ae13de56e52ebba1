"""Arrays of other types than a function takes: cast where nothing can be lost. Files and Python use the same rule.

| the function takes | and is given | each value must be |
|---|---|---|
| an integer | any integer, float or decimal | whole, and in range |
| float32, float64 | any integer or float | exactly a number of that type |
| a decimal | any decimal or integer | within precision and scale |
| utf8, large_utf8 | utf8, large_utf8, utf8_view | any |
| binary, large_binary | binary, large_binary, binary_view, fixed-size binary | any |
| fixed-size binary | the same types | of that size |
| date32, date64 | date32, date64 | a whole day |
| time | time of any unit | a multiple of the unit |
| timestamp without a zone | timestamp of any unit without a zone | a multiple of the unit, and in range |
| timestamp with a zone | timestamp of any unit and zone: the same instant | a multiple of the unit, and in range |
| duration | duration of any unit | a multiple of the unit, and in range |
| list, large_list | list, large_list, fixed-size list, list view | a list of items that fit |
| struct | struct with the same fields, in any order | a struct of fields that fit |
| any of these | the same, dictionary-encoded; or type null | as above |

Items of lists and fields of structs follow the same table; whether their types allow nulls does not matter, but a null
among them is refused where the function takes none. A null row stays null: it is no loss.

A value that does not fit is refused: its row is an error, and the other rows are called. All other pairs of types are
refused as a whole, because a cast would have to guess: text as numbers, bool as numbers, decimals as floats, a time
without a zone as an instant.

Guarantees: a value that is not refused is equal to the value that was given. An array that already has the type is
returned as it is. Works with every pyarrow from version 16 on.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument

_is = pa.types
_Refused = dict[int, str]


@dataclasses.dataclass(frozen=True)
class Cast:
    """An array in the type that a function takes, and the rows that it could not hold.

    array: has that type; null where refused. refused: the row's position in the array -> why, without the column's
    name. Calls of a `Function` and `Runtime.map` take a Cast in place of an array: its refused rows are errors.
    """

    array: pa.Array | pa.ChunkedArray
    refused: dict[int, str] = dataclasses.field(default_factory=dict)


def cast(array: pa.Array | pa.ChunkedArray, wanted: pa.Field) -> Cast:
    """Casts an array to the type of an argument. Raises InvalidArgument, naming it, if the types cannot fit."""
    if not to_check(array.type, wanted.type):
        return Cast(array)
    if why := fits(array.type, wanted):
        raise InvalidArgument(f"argument {wanted.name!r} {why}")
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    done: list[pa.Array] = []
    refused: _Refused = {}
    first = 0
    for chunk in chunks:
        try:
            values, wrong = _cast(chunk, wanted.type)
        except pa.ArrowInvalid as error:  # such as more text than utf8 can hold
            raise InvalidArgument(f"argument {wanted.name!r} cannot be cast to {wanted.type}: {error}") from error
        done.append(values)
        refused.update((first + row, why) for row, why in wrong.items())
        first += len(chunk)
    return Cast(pa.chunked_array(done, wanted.type) if isinstance(array, pa.ChunkedArray) else done[0], refused)


def to_check(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether an array must be cast, or searched for nulls inside, which its type may allow or not."""
    return given != wanted or _takes_no_null_inside(wanted)


def _takes_no_null_inside(type_: pa.DataType) -> bool:
    inside = [type_.field(i) for i in range(type_.num_fields)] if _is.is_nested(type_) else []
    return any(not field.nullable or _takes_no_null_inside(field.type) for field in inside)


# ---- Types -----------------------------------------------------------------------------------------------------------


def fits(given: pa.DataType, wanted: pa.Field) -> str | None:
    """Says why arrays of type `given` cannot be cast for an argument, and what to do. None: they can."""
    why = _misfit(given, wanted.type)
    return why and f"is {given}, not {wanted.type}: {why}"


def _misfit(given: pa.DataType, wanted: pa.DataType) -> str | None:
    if _is.is_dictionary(given):
        return _misfit(given.value_type, wanted)
    if _is_uuid(given):
        return _misfit(given.storage_type, wanted)
    if given == wanted or _is.is_null(given):
        return None
    if _is.is_struct(given) and _is.is_struct(wanted):
        return _struct_misfit(given, wanted)
    if _is_any_list(given) and _is_any_list(wanted):
        inner = _misfit(given.value_type, wanted.value_type)
        return inner and f"its items: {inner}"
    if _is.is_timestamp(given) and _is.is_timestamp(wanted):
        if given.tz is None and wanted.tz is not None:
            return "times without a zone are no instants; state their zone, with pyarrow.compute.assume_timezone"
        if given.tz is not None and wanted.tz is None:
            return "the function takes times without a zone; convert them, with pyarrow.compute.local_timestamp"
        return None
    if any(takes(wanted) and accepts(given) for takes, accepts in _FAMILIES):
        return None
    if isinstance(given, pa.BaseExtensionType):
        return "it is an extension type; pass its storage"
    return f"convert it first, to {constructor(wanted)}, or change the function's signature"


def _struct_misfit(given: pa.DataType, wanted: pa.DataType) -> str | None:
    names, needed = [field.name for field in given], [field.name for field in wanted]
    if sorted(names) != sorted(needed):
        return f"the function takes structs with exactly the fields {', '.join(needed)}"
    for field in wanted:
        if inner := _misfit(given.field(names.index(field.name)).type, field.type):
            return f"its field {field.name!r}: {inner}"
    return None


def _is_any_list(type_: pa.DataType) -> bool:
    kinds = (_is.is_list, _is.is_large_list, _is.is_fixed_size_list, _is.is_list_view, _is.is_large_list_view)
    return any(kind(type_) for kind in kinds)


def _is_text(type_: pa.DataType) -> bool:
    return bool(_is.is_string(type_) or _is.is_large_string(type_) or _is.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (_is.is_binary, _is.is_large_binary, _is.is_fixed_size_binary, _is.is_binary_view)
    return any(kind(type_) for kind in kinds)


def _is_uuid(type_: pa.DataType) -> bool:
    """Arrow's own extension type, which Parquet files have."""
    return isinstance(type_, pa.BaseExtensionType) and type_.extension_name == "arrow.uuid"


def _is_number(type_: pa.DataType) -> bool:
    return bool(_is.is_integer(type_) or _is.is_floating(type_))


# What a function takes, and what can be cast to it.
_FAMILIES: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]]] = [
    (_is.is_integer, lambda t: _is_number(t) or _is.is_decimal(t)),
    (_is.is_floating, _is_number),
    (_is.is_decimal, lambda t: _is.is_decimal(t) or _is.is_integer(t)),
    (_is_text, _is_text),
    (_is_bytes, _is_bytes),
    (_is.is_date, _is.is_date),
    (_is.is_time, _is.is_time),
    (_is.is_duration, _is.is_duration),
]

_CONSTRUCTORS = {
    pa.bool_(): "bool_",
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.date32(): "date32",
    pa.date64(): "date64",
}


def constructor(type_: pa.DataType) -> str:
    """How a type is written in Python: `pa.float64()` for the type that pyarrow prints as double."""
    if name := _CONSTRUCTORS.get(type_):
        return f"pa.{name}()"
    if _is.is_timestamp(type_):
        return f"pa.timestamp({type_.unit!r}" + (f", tz={type_.tz!r})" if type_.tz else ")")
    if _is.is_time(type_):
        return f"pa.time{type_.bit_width}({type_.unit!r})"
    if _is.is_duration(type_):
        return f"pa.duration({type_.unit!r})"
    if _is.is_decimal(type_):
        return f"pa.decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if _is.is_fixed_size_binary(type_):
        return f"pa.binary({type_.byte_width})"
    if _is.is_list(type_) or _is.is_large_list(type_):
        return f"pa.{'list_' if _is.is_list(type_) else 'large_list'}({constructor(type_.value_type)})"
    if _is.is_struct(type_):
        return f"pa.struct([{', '.join(f'({field.name!r}, {constructor(field.type)})' for field in type_)}])"
    return f"pa.{type_}()"


# ---- Values ----------------------------------------------------------------------------------------------------------


def _cast(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, _Refused]:
    given = array.type
    if not to_check(given, wanted):
        return array, {}
    if _is.is_null(given):
        return pa.nulls(len(array), wanted), {}
    if _is_uuid(given):
        return _cast(array.storage, wanted)
    if _is.is_dictionary(given):
        values, wrong = _cast(array.dictionary, wanted)
        indices = array.indices
        rows = enumerate(indices.to_pylist()) if wrong else ()
        refused = {row: wrong[index] for row, index in rows if index in wrong}
        return values.take(indices), refused
    if _is.is_struct(wanted):
        return _cast_structs(array, wanted)
    if _is_any_list(wanted):
        return _cast_lists(array, wanted)
    return _cast_plain(array, wanted)


def _cast_structs(array: pa.StructArray, wanted: pa.DataType) -> tuple[pa.Array, _Refused]:
    given = [field.name for field in array.type]
    children = array.flatten()  # with the nulls of the structs
    done: list[pa.Array] = []
    refused: _Refused = {}
    for field in wanted:
        values, wrong = _cast(children[given.index(field.name)], field.type)
        done.append(values)
        for row, why in wrong.items():
            refused.setdefault(row, f"field {field.name!r}: {why}")
        if not field.nullable:
            for row in _positions(pc.and_(array.is_valid(), values.is_null())):
                refused.setdefault(row, f"field {field.name!r} is null, and the function takes no null there")
    if array.type == wanted and not refused:
        return array, {}
    valid = _without(array.is_valid(), refused)
    return pa.Array.from_buffers(wanted, len(array), [_bitmap(valid)], children=done), refused


def _cast_lists(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, _Refused]:
    item = wanted.value_field
    items, wrong = _cast(array.flatten(), item.type)  # without those below null lists
    if not item.nullable:
        for place in _positions(items.is_null()):
            wrong.setdefault(place, "null, and the function takes no null there")
    if array.type == wanted and not wrong:
        return array, {}
    # Not by pyarrow's own cast, which loses items of list views in some versions.
    is_view = _is.is_list_view(array.type) or _is.is_large_list_view(array.type)
    lengths = pc.if_else(array.is_valid(), array.sizes if is_view else pc.list_value_length(array), 0)
    index = pa.int32() if _is.is_list(wanted) else pa.int64()
    offsets = pa.concat_arrays([pa.array([0], index), pc.cumulative_sum_checked(lengths.cast(index))])
    refused: _Refused = {}
    starts = offsets.to_pylist() if wrong else []
    for place in sorted(wrong):
        row = bisect.bisect_right(starts, place) - 1
        refused.setdefault(row, f"item {place - starts[row]}: {wrong[place]}")
    valid = _without(array.is_valid(), refused)
    buffers = [_bitmap(valid), offsets.buffers()[1]]
    return pa.Array.from_buffers(wanted, len(array), buffers, children=[items]), refused


def _cast_plain(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, _Refused]:
    try:
        return _exact(array, wanted), {}
    except (pa.ArrowInvalid, UnicodeDecodeError):
        pass
    if _is.is_floating(array.type) and _is.is_floating(wanted):
        done = array.cast(wanted)
        lost = _positions(_changed(array, done))
        refused = {row: f"{array[row].as_py()} is not exactly a {wanted}" for row in lost}
        return pc.if_else(_without(array.is_valid(), refused), done, pa.scalar(None, wanted)), refused
    if _is.is_floating(array.type) and _is.is_integer(wanted):
        numbers = _converted(array, pa.float64())
        limit = 2.0 ** (wanted.bit_width - _is.is_signed_integer(wanted))
        least = -limit if _is.is_signed_integer(wanted) else 0.0
        in_range = pc.and_(pc.greater_equal(numbers, least), pc.less(numbers, limit))
        fitting = pc.and_(in_range, pc.equal(pc.trunc(numbers), numbers))
        refused = {
            row: f"{_shown(array.slice(row, 1))} does not fit {wanted}" for row in _positions(pc.invert(fitting))
        }
        return pc.if_else(fitting, numbers, pa.scalar(None, pa.float64())).cast(wanted), refused
    pieces: list[pa.Array] = []
    refused = {}
    todo = [(0, len(array))]
    while todo:  # halves, until the values that fail are alone
        start, end = todo.pop()
        try:
            pieces.append(_exact(array.slice(start, end - start), wanted))
        except (pa.ArrowInvalid, UnicodeDecodeError):
            if end - start == 1:
                value = _single(array.slice(start, 1), wanted)
                if value is None:
                    refused[start] = f"{_shown(array.slice(start, 1))} does not fit {wanted}"
                    value = pa.nulls(1, wanted)
                pieces.append(value)
            else:
                middle = (start + end) // 2
                todo += [(middle, end), (start, middle)]
    return pa.concat_arrays(pieces), refused


def _exact(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array in another type. Raises ArrowInvalid or UnicodeDecodeError if a value would change."""
    given = array.type
    if _is.is_integer(given) and _is.is_decimal(wanted):
        array = array.cast(pa.decimal128(20))  # all integers: pyarrow judges integers by their type, decimals by value
    if _is.is_floating(given) and _is.is_integer(wanted):
        signed = _is.is_signed_integer(wanted)
        limit = 2.0 ** (wanted.bit_width - signed)  # beyond it processors differ
        if pc.any(pc.greater_equal(_converted(array, pa.float64()), limit)).as_py():
            raise pa.ArrowInvalid("out of range")
    done = _converted(array, wanted)
    narrower = _is.is_floating(given) and _is.is_floating(wanted) and given.bit_width > wanted.bit_width
    if (narrower or _is.is_date(given)) and pc.any(_changed(array, done)).as_py():
        raise pa.ArrowInvalid("a value would change")
    return done


def _changed(before: pa.Array, after: pa.Array) -> pa.Array:
    """Which values are not the same any more; NaN is the same as NaN."""
    changed = pc.not_equal(before, _converted(after, before.type))
    return pc.and_not(changed, pc.is_nan(before)) if _is.is_floating(before.type) else changed


def _converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """pyarrow's own cast, or by way of Python's values where this version of pyarrow has none."""
    try:
        return array.cast(wanted)
    except pa.ArrowNotImplementedError:
        return pa.array(array.to_pylist(), wanted)


def _single(value: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """An integer as a float, beyond 2**53, where pyarrow refuses also those that are exact; None if it is not."""
    if not (_is.is_integer(value.type) and _is.is_floating(wanted)):
        return None
    done = pa.array([float(value[0].as_py())], wanted)
    return done if done[0].as_py() == value[0].as_py() else None


def _shown(value: pa.Array) -> str:
    """A value in a text for users."""
    try:
        text = str(value.cast(pa.int64() if _is.is_duration(value.type) else pa.string())[0].as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        text = repr(value[0].as_py())
    text += f" {value.type.unit}" if _is.is_duration(value.type) else ""
    return text if len(text) <= 100 else text[:100] + "..."


def _positions(mask: pa.BooleanArray) -> Iterator[int]:
    return iter(pc.indices_nonzero(mask).to_pylist())


def _without(valid: pa.BooleanArray, refused: _Refused) -> pa.BooleanArray:
    """The mask, false also for the refused rows."""
    if not refused:
        return valid
    keep = valid.to_pylist()
    for row in refused:
        keep[row] = False
    return pa.array(keep, pa.bool_())


def _bitmap(valid: pa.BooleanArray) -> pa.Buffer | None:
    if valid.true_count == len(valid):
        return None
    return (pc.and_(valid, valid) if valid.offset else valid).buffers()[1]  # a copy begins at its first bit
