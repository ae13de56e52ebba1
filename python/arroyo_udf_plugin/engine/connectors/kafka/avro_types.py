"""Types of Avro, and Arrow's: what a writer's values are in a column, and which schema rows have.

    array_of = converter(schema, named, pa.timestamp("us"))       schema: of fastavro, parsed
    array_of([1, None])                                          values without their logical types: numbers, bytes
    schema_of("Row", pa.schema([...]))                           as JSON has it

| Avro                                            | a column may be                                            |
| int, long                                       | integers and floats                                        |
| float, double; boolean; string, enum            | floats; bool; text                                         |
| bytes, fixed                                    | binary                                                     |
| date; time-*; timestamp-*, local-timestamp-*    | date; time; timestamp, without a zone in UTC; or a number  |
| decimal; uuid                                   | decimal; text                                              |
| record; array; map                              | struct, whose other fields are null; list; map             |
| union with null, or of types that fit           | the other type                                             |

Guarantees: a type that does not fit is refused before a value is read; a value that does not fit raises an error, and
is never rounded. One exception: times lose digits that the column's unit has not.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

_is = pa.types
Array = Callable[[list[Any]], pa.Array]
Named = Mapping[str, Any]
_EXACT = Context(prec=100)
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_LOGICAL_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_DAY = 86_400
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE: Mapping[str, Sequence[Callable[[pa.DataType], bool]]] = {
    "boolean": (_is.is_boolean,),
    "int": (_is.is_integer, _is.is_float32, _is.is_float64),
    "long": (_is.is_integer, _is.is_float32, _is.is_float64),
    "float": (_is.is_float32, _is.is_float64),
    "double": (_is.is_float64,),
    "string": (_is.is_string, _is.is_large_string),
    "enum": (_is.is_string, _is.is_large_string),
    "bytes": (_is.is_binary, _is.is_large_binary),
    "fixed": (_is.is_binary, _is.is_large_binary, _is.is_fixed_size_binary),
}


class Unfit(Exception):
    """Types that do not fit."""


# ---- What is read ----------------------------------------------------------------------------------------------------


def converter(schema: Any, named: Named, type_: pa.DataType) -> Array:
    """named: schemas by their full names. Raises Unfit."""
    while isinstance(schema, dict) and not isinstance(schema["type"], str):
        schema = schema["type"]
    if isinstance(schema, list):
        return _union([branch for branch in schema if _kind(branch) != "null"], named, type_)
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    kind = _kind(schema)
    if kind == "null":
        return lambda values: pa.nulls(len(values), type_)
    if kind == "record" and _is.is_struct(type_):
        return _struct(schema, named, type_)
    if kind == "array" and (_is.is_list(type_) or _is.is_large_list(type_)):
        return _list(converter(schema["items"], named, type_.value_type), type_)
    if kind == "map" and _is.is_map(type_) and _is.is_string(type_.key_type):
        return _map(converter(schema["values"], named, type_.item_type), type_)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical is not None and (made := _logical(schema, logical, type_)) is not None:
        return made
    if any(fits(type_) for fits in _SIMPLE.get(kind, ())):
        return lambda values: pa.array(values, type_)
    raise Unfit(f"it is {kind if logical is None else logical} in the schema of the message, and cannot be {type_}")


def _kind(schema: Any) -> str:
    while isinstance(schema, dict):
        schema = schema["type"]
    return schema if isinstance(schema, str) else "union"


def _union(branches: Sequence[Any], named: Named, type_: pa.DataType) -> Array:
    if not branches:
        return lambda values: pa.nulls(len(values), type_)
    if len(branches) == 1:
        return converter(branches[0], named, type_)
    if any(not isinstance(branch, str) or branch in named for branch in branches):
        raise Unfit("it is a union of several types in the schema of the message, which no column can be")
    for branch in branches:
        converter(branch, named, type_)
    return lambda values: pa.array(values, type_)


def _struct(schema: Any, named: Named, type_: pa.DataType) -> Array:
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    children: list[tuple[str, Array]] = []
    for field in type_:
        try:
            children.append((field.name, converter(fields.get(field.name, "null"), named, field.type)))
        except Unfit as error:
            raise Unfit(f"its field {field.name!r}: {error}") from None

    def convert(values: list[Any]) -> pa.Array:
        columns = [
            array_of([None if value is None else value.get(name) for value in values]) for name, array_of in children
        ]
        return pa.Array.from_buffers(type_, len(values), [_bitmap(values)], children=columns)

    return convert


def _list(items: Array, type_: pa.DataType) -> Array:
    width = pa.int32() if _is.is_list(type_) else pa.int64()

    def convert(values: list[Any]) -> pa.Array:
        buffers = [_bitmap(values), _offsets(values, width)]
        own = items(list(itertools.chain.from_iterable(value or () for value in values)))
        return pa.Array.from_buffers(type_, len(values), buffers, children=[own])

    return convert


def _map(items: Array, type_: pa.DataType) -> Array:
    def convert(values: list[Any]) -> pa.Array:
        buffers = [_bitmap(values), _offsets(values, pa.int32())]
        keys = pa.array([key for value in values for key in value or ()], pa.string())
        own = items([item for value in values for item in (value or {}).values()])
        entries = pa.StructArray.from_arrays([keys, own], fields=[type_.key_field, type_.item_field])
        return pa.Array.from_buffers(type_, len(values), buffers, children=[entries])

    return convert


def _bitmap(values: list[Any]) -> pa.Buffer | None:
    valid = [value is not None for value in values]
    return None if all(valid) else pa.array(valid, pa.bool_()).buffers()[1]


def _offsets(values: list[Any], width: pa.DataType) -> pa.Buffer:
    return pa.array([0, *itertools.accumulate(len(value or ()) for value in values)], width).buffers()[1]


def _logical(schema: Any, logical: str, type_: pa.DataType) -> Array | None:
    """None: the logical type says nothing about such a column."""
    if logical == "decimal" and _is.is_decimal(type_):
        scale = int(schema.get("scale", 0))
        return lambda values: pa.array([None if value is None else _decimal(value, scale) for value in values], type_)
    if logical == "uuid" and _kind(schema) == "fixed" and _is.is_string(type_):
        return lambda values: pa.array(
            [None if value is None else str(uuid.UUID(bytes=value)) for value in values], type_
        )
    if logical == "date" and _is.is_date32(type_):
        return lambda values: pa.array(values, pa.int32()).view(type_)
    name, _, unit = logical.rpartition("-")
    is_instant, is_local = name == "timestamp", name == "local-timestamp"
    if unit not in _LOGICAL_UNITS:
        return None
    per = _UNITS[_LOGICAL_UNITS[unit]]
    if _is.is_timestamp(type_) and (is_instant or (is_local and type_.tz is None)):
        return lambda values: pa.array(_scaled(values, per, _UNITS[type_.unit]), pa.int64()).view(type_)
    if name == "time" and _is.is_time(type_):
        width = pa.int32() if _is.is_time32(type_) else pa.int64()
        return lambda values: pa.array(_scaled(_of_day(values, per), per, _UNITS[type_.unit]), width).view(type_)
    return None


def _decimal(value: bytes, scale: int) -> Decimal:
    return Decimal(int.from_bytes(value, signed=True)).scaleb(-scale, _EXACT)


def _scaled(values: list[Any], per: int, wanted: int) -> list[Any]:
    if per == wanted:
        return values
    return [None if value is None else value * wanted // per for value in values]


def _of_day(values: list[Any], per: int) -> list[Any]:
    for value in values:
        if value is not None and not 0 <= value < _DAY * per:
            raise ValueError(f"{value} is no time of a day")
    return values


# ---- What is written -------------------------------------------------------------------------------------------------


def schema_of(name: str, schema: pa.Schema) -> dict[str, Any]:
    """Of a record with the columns. Raises Unfit."""
    return {"type": "record", "name": name, "fields": [_field(name, field) for field in schema]}


def _field(parent: str, field: pa.Field) -> dict[str, Any]:
    if not _NAME.fullmatch(field.name):
        raise Unfit(f"column {field.name!r}: Avro's names have letters, digits and _: rename it")
    try:
        own = _written(f"{parent}_{field.name}", field.type)
    except Unfit as error:
        raise Unfit(f"column {field.name!r}: {error}") from None
    if field.nullable and own != "null":
        return {"name": field.name, "type": ["null", own], "default": None}
    return {"name": field.name, "type": own}


def _written(name: str, type_: pa.DataType) -> Any:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if _is.is_dictionary(type_):
        type_ = type_.value_type
    for fits, avro in _WRITTEN:
        if fits(type_):
            return avro
    if _is.is_fixed_size_binary(type_):
        return {"type": "fixed", "name": name, "size": type_.byte_width}
    if _is.is_decimal(type_) and type_.scale >= 0:
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if _is.is_timestamp(type_):
        return {"type": "long", "logicalType": f"timestamp-{_SUFFIXES[type_.unit]}"}
    if _is.is_struct(type_):
        return {"type": "record", "name": name, "fields": [_field(name, field) for field in type_]}
    if _is.is_list(type_) or _is.is_large_list(type_):
        return {"type": "array", "items": _item(f"{name}_item", type_.value_field)}
    if _is.is_map(type_) and _is.is_string(type_.key_type):
        return {"type": "map", "values": _item(f"{name}_value", type_.item_field)}
    raise Unfit(f"no type of Avro is {type_}: cast it in a SELECT")


def _item(name: str, field: pa.Field) -> Any:
    own = _written(name, field.type)
    return ["null", own] if field.nullable and own != "null" else own


def form(schema: Any, named: Named) -> Any:
    """What two schemas have in common if values of one can be written with the other: no names of types, and no
    nulls, whose absence a row would notice."""
    if isinstance(schema, str):
        return form(named[schema], named) if schema in named else schema
    if isinstance(schema, list):
        branches = [form(branch, named) for branch in schema if branch != "null"]
        return branches[0] if len(branches) == 1 else branches
    if not isinstance(schema["type"], str):
        return form(schema["type"], named)
    kept = {key: schema[key] for key in ("type", "logicalType", "precision", "scale", "size") if key in schema}
    inner = {key: form(schema[key], named) for key in ("items", "values") if key in schema}
    if "fields" in schema:
        inner["fields"] = [(field["name"], form(field["type"], named)) for field in schema["fields"]]
    return schema["type"] if kept.keys() == {"type"} and not inner else kept | inner


_SUFFIXES = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}
_WRITTEN: Sequence[tuple[Callable[[pa.DataType], bool], Any]] = (
    (_is.is_null, "null"),
    (_is.is_boolean, "boolean"),
    (lambda type_: type_ in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), "int"),
    (lambda type_: type_ in (pa.int64(), pa.uint32()), "long"),
    (_is.is_float32, "float"),
    (_is.is_float64, "double"),
    (lambda type_: _is.is_string(type_) or _is.is_large_string(type_), "string"),
    (lambda type_: _is.is_binary(type_) or _is.is_large_binary(type_), "bytes"),
    (_is.is_date32, {"type": "int", "logicalType": "date"}),
    (_is.is_time32, {"type": "int", "logicalType": "time-millis"}),
    (lambda type_: type_ == pa.time64("us"), {"type": "long", "logicalType": "time-micros"}),
)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Of the values that are written: times are numbers, in the unit that `schema_of` names."""
    return mapped(type_, _plain)


def in_units(type_: pa.DataType) -> pa.DataType:
    """The type with those units of times that Avro has, too."""
    return mapped(type_, _in_units)


def _plain(type_: pa.DataType) -> pa.DataType:
    if _is.is_timestamp(type_) or _is.is_time64(type_):
        return pa.int64()
    return pa.int32() if _is.is_date32(type_) or _is.is_time32(type_) else type_


def _in_units(type_: pa.DataType) -> pa.DataType:
    if _is.is_timestamp(type_) and type_.unit == "s":
        return pa.timestamp("ms", type_.tz)
    return pa.time32("ms") if _is.is_time32(type_) else type_


def mapped(type_: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """With other types of what is not nested, and without dictionaries."""

    def own(field: pa.Field) -> pa.Field:
        return field.with_type(mapped(field.type, leaf))

    if _is.is_dictionary(type_):
        return mapped(type_.value_type, leaf)
    if _is.is_struct(type_):
        return pa.struct(list(map(own, type_)))
    if _is.is_large_list(type_):
        return pa.large_list(own(type_.value_field))
    if _is.is_list(type_):
        return pa.list_(own(type_.value_field))
    if _is.is_map(type_):
        return pa.map_(own(type_.key_field), own(type_.item_field))
    return leaf(type_)
