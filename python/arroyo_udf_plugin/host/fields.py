"""Reads the constant ArrowSchemas of a plugin as pyarrow types, and checks them; and shows types as authors write them.

pyarrow itself would take ownership of the schemas and release them.
"""

import datetime
import decimal
import itertools
import re
from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa

from ..abi import ffi, text
from ..errors import AbiError

_MOST_FIELDS = 1 << 12  # of a schema, at all depths: a schema may contain itself
_DEEPEST = 64
_NULLABLE = 2

_TYPES = {
    "n": pa.null(), "b": pa.bool_(),
    "c": pa.int8(), "s": pa.int16(), "i": pa.int32(), "l": pa.int64(),
    "C": pa.uint8(), "S": pa.uint16(), "I": pa.uint32(), "L": pa.uint64(),
    "e": pa.float16(), "f": pa.float32(), "g": pa.float64(),
    "u": pa.utf8(), "U": pa.large_utf8(), "z": pa.binary(), "Z": pa.large_binary(),
    "tdD": pa.date32(), "tdm": pa.date64(),
    "tts": pa.time32("s"), "ttm": pa.time32("ms"), "ttu": pa.time64("us"), "ttn": pa.time64("ns"),
    "tDs": pa.duration("s"), "tDm": pa.duration("ms"), "tDu": pa.duration("us"), "tDn": pa.duration("ns"),
}  # fmt: skip
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def field_of(schema: Any, what: str) -> pa.Field:
    """The field that an ArrowSchema describes. Raises AbiError, naming `what`, if it is malformed or unknown."""
    return _field_of(schema, what, 0, itertools.count())


def _field_of(schema: Any, what: str, depth: int, counter: Iterator[int]) -> pa.Field:
    if schema == ffi.NULL:
        raise AbiError(f"{what}: its schema is NULL")
    if depth > _DEEPEST:
        raise AbiError(f"{what}: its schema is nested more than {_DEEPEST} deep")
    if schema.n_children < 0 or schema.n_children > _MOST_FIELDS:
        raise AbiError(f"{what}: its schema has {schema.n_children} children")
    if next(counter) > _MOST_FIELDS:
        raise AbiError(f"{what}: its schema has more than {_MOST_FIELDS} fields")
    if schema.n_children and schema.children == ffi.NULL:
        raise AbiError(f"{what}: the children of its schema are NULL")
    children = [
        _field_of(schema.children[i], f"{what}, child {i}", depth + 1, counter) for i in range(schema.n_children)
    ]
    name = "" if schema.name == ffi.NULL else text(schema.name, f"{what}: its name")
    form = text(schema.format, f"{what}: its format")
    if not name.isprintable():
        raise AbiError(f"{what}: its name is {name[:100]!r}, which cannot be printed")
    if schema.dictionary != ffi.NULL:
        raise AbiError(f"{what}: it is dictionary-encoded, which is not supported; use the plain type")
    try:
        arrow_type = _type_of(form, children)
    except (KeyError, ValueError, IndexError, OverflowError, pa.ArrowException):
        raise AbiError(
            f"{what}: this host does not know the Arrow format {form[:100]!r} with {len(children)} children"
        ) from None
    # pyarrow has no type null without nulls.
    return pa.field(name, arrow_type, bool(schema.flags & _NULLABLE) or form == "n")


def _type_of(form: str, children: list[pa.Field]) -> pa.DataType:
    if form == "+s":
        return pa.struct(children)
    if form in ("+l", "+L"):
        (item,) = children
        return pa.list_(item) if form == "+l" else pa.large_list(item)
    if children:
        raise ValueError
    if form.startswith("ts") and form[3] == ":":
        if not form.isprintable():
            raise ValueError
        return pa.timestamp(_UNITS[form[2]], form[4:] or None)
    if decimal := re.fullmatch(r"d:([0-9]+),(-?[0-9]+)(?:,128)?", form):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if fixed := re.fullmatch(r"w:([0-9]+)", form):
        return pa.binary(int(fixed[1]))
    return _TYPES[form]


# ---- As authors write them -------------------------------------------------------------------------------------------

_PYTHON: dict[pa.DataType, Any] = {
    pa.bool_(): bool,
    pa.int64(): int,
    pa.float64(): float,
    pa.utf8(): str,
    pa.binary(): bytes,
    pa.date32(): datetime.date,
    pa.timestamp("us"): datetime.datetime,
    pa.duration("us"): datetime.timedelta,
    pa.decimal128(38, 9): decimal.Decimal,
}
_OTHERS = {
    pa.types.is_integer: int,
    pa.types.is_floating: float,
    pa.types.is_large_string: str,
    pa.types.is_timestamp: datetime.datetime,
    pa.types.is_duration: datetime.timedelta,
    pa.types.is_decimal: decimal.Decimal,
}


def annotation(field: pa.Field) -> Any:
    """A Python annotation for a field, such as `int | None`, or `Annotated[int, pa.int32()]`."""
    type_ = field.type
    if type_ in _PYTHON:
        hint = _PYTHON[type_]
    elif pa.types.is_list(type_):
        hint = list[annotation(type_.value_field)]  # type: ignore[misc]
    elif pa.types.is_struct(type_):
        hint = dict[str, Any]
    else:
        base = next((python for fits, python in _OTHERS.items() if fits(type_)), Any)
        hint = Annotated[base, type_]
    return hint | None if field.nullable else hint


def array_class(field: pa.Field) -> Any:
    """The annotation of a vectorized function's argument: `pa.Int64Array`."""
    return type(pa.nulls(0, field.type))  # `pa.array` of a list imports pandas
