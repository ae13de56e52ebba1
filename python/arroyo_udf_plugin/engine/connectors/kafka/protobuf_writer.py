"""Rows as messages of Protobuf, of a type whose description is in a file, also in the framing of a schema registry.

| field                               | its column                                              |
| bool; integers; float; double       | bool; integers; float32; float32 and float64            |
| string; enum; bytes                 | text; text, the name of its value; binary               |
| Timestamp, Duration; wrappers       | timestamp, in UTC if it has no zone, duration; the value |
| messages; repeated; maps            | structs, some of their fields; lists; maps              |

A null is a field that is not there; readers of a field without presence see its default. Lists and maps have no nulls.

Guarantees: a column without a field, or of a type that its field cannot hold, is refused before anything is written; so
is a value that does not fit. Nothing is rounded.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument, nearest
from ..cells import decoded
from .avro_types import Unfit, mapped
from .protobuf_values import path_of, protobuf_class, repeats
from .schema_registry import ImportedSchema, RegistryClient, framed
from .value_writers import is_bytes, is_text

_is = pa.types
_KIND = "PROTOBUF"
_KNOWN_FILES = "google/protobuf/"  # every reader has them
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS = range(-62_135_596_800, 253_402_300_800)  # of a Timestamp: the years 1 to 9999
_NANOS = 1_000_000_000
_WRAPPERS = {
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_Set = Callable[[Any, Any], None]
"""Takes a message, and a value that is no null. Raises ValueError, TypeError."""


class ProtobufWriter:
    """name: of the sink, for error texts. registry: where the message's file is registered for the subject; None:
    messages have no framing. schema_file: a FileDescriptorSet. message: the type's full name. Raises InvalidArgument.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        registry: RegistryClient | None,
        subject: str,
        schema_file: str,
        message: str,
    ) -> None:
        self._name, self._registry, self._subject, self._message = name, registry, subject, message
        self._class = protobuf_class(schema_file, message)
        descriptor = self._class.DESCRIPTOR
        try:
            self._columns = [(field.name, *_column(descriptor, field)) for field in schema]
        except Unfit as error:
            raise InvalidArgument(f"{name}: {error}") from None
        self._place = _varints(path_of(descriptor))
        self._text = _text_of(descriptor.file)
        self._imports = _imports_of(descriptor.file)
        self._id: int | None = None

    def check(self) -> None:
        """Whether the registry takes the schema. Raises InvalidArgument, Unreachable."""
        if self._registry is not None:
            self._registry.check(self._subject, self._text, _KIND, self._imports)

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Raises InvalidArgument, Unreachable."""
        if self._id is None and self._registry is not None:
            self._id = self._registry.register(self._subject, self._text, _KIND, self._imports)
        messages = [self._class() for _ in range(batch.num_rows)]
        for (name, plain, put), column in zip(self._columns, batch.columns, strict=True):
            try:
                for message, value in zip(messages, decoded(column).cast(plain).to_pylist(), strict=True):
                    if value is not None:
                        put(message, value)
            except (ValueError, TypeError) as error:
                raise self._unfit(f"column {name!r}: {error}") from None
        try:
            values = [message.SerializeToString(deterministic=True) for message in messages]
        except Exception as error:  # the library's own, in each of its versions: a required field is not there
            raise self._unfit(str(error)) from None
        if self._id is not None:
            values = framed(self._id, [self._place + value for value in values])
        return pa.array(values, pa.large_binary())

    def _unfit(self, why: str) -> InvalidArgument:
        return InvalidArgument(f"{self._name}: a row does not fit {self._message}: {why}")


def _column(descriptor: Any, field: pa.Field) -> tuple[pa.DataType, _Set]:
    """The type in which values come, with times as numbers, and what puts them. Raises Unfit."""
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    return mapped(storage, _plain), _setter(descriptor, field.name, mapped(storage, lambda type_: type_))


def _plain(type_: pa.DataType) -> pa.DataType:
    return pa.int64() if _is.is_timestamp(type_) or _is.is_duration(type_) else type_


def _setter(descriptor: Any, name: str, type_: pa.DataType) -> _Set:
    if name not in descriptor.fields_by_name:
        raise Unfit(f"{descriptor.full_name} has no field {name!r}: {nearest(name, descriptor.fields_by_name)}")
    field = descriptor.fields_by_name[name]
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map_setter(field, type_)
    if repeats(field):
        return _list_setter(field, type_)
    if field.message_type is None:
        convert = _scalar(field, type_)
        return lambda message, value: setattr(message, name, convert(value))
    fill = _filler(field, type_)

    def put(message: Any, value: Any) -> None:
        inner = getattr(message, name)
        inner.SetInParent()  # it is there, also if all of its fields are nulls
        fill(inner, value)

    return put


def _list_setter(field: Any, type_: pa.DataType) -> _Set:
    if not (_is.is_list(type_) or _is.is_large_list(type_)):
        raise _no(field, type_)
    if field.message_type is None:
        convert = _scalar(field, type_.value_type)
        return lambda message, value: getattr(message, field.name).extend(convert(item) for item in _whole(value))
    fill = _filler(field, type_.value_type)

    def put(message: Any, value: Any) -> None:
        for item in _whole(value):
            fill(getattr(message, field.name).add(), item)

    return put


def _map_setter(field: Any, type_: pa.DataType) -> _Set:
    if not _is.is_map(type_):
        raise _no(field, type_)
    of_key, of_value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
    key_of = _scalar(of_key, type_.key_type)

    def checked(value: Any) -> Mapping[Any, Any]:
        items = dict(value)
        if len(items) < len(value):
            raise ValueError("a map of Protobuf has each key once: remove the others in a SELECT")
        _whole(items.values())
        return items

    if of_value.message_type is None:
        convert = _scalar(of_value, type_.item_type)

        def put(message: Any, value: Any) -> None:
            for key, item in checked(value).items():
                getattr(message, field.name)[key_of(key)] = convert(item)

        return put
    fill = _filler(of_value, type_.item_type)

    def put_messages(message: Any, value: Any) -> None:
        for key, item in checked(value).items():
            fill(getattr(message, field.name)[key_of(key)], item)

    return put_messages


def _whole(values: Any) -> Any:
    if any(value is None for value in values):
        raise ValueError("Protobuf has no nulls in lists and maps: remove them in a SELECT")
    return values


def _scalar(field: Any, type_: pa.DataType) -> Callable[[Any], Any]:
    """Raises Unfit."""
    if field.enum_type is not None and is_text(type_):
        numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

        def number(value: str) -> int:
            if value not in numbers:
                raise ValueError(f"{value!r} is no {field.enum_type.full_name}: {nearest(value, numbers)}")
            return int(numbers[value])

        return number
    kind = field.cpp_type
    is_float32 = _is.is_float16(type_) or _is.is_float32(type_)
    fits = {
        field.CPPTYPE_BOOL: _is.is_boolean(type_),
        field.CPPTYPE_FLOAT: is_float32,
        field.CPPTYPE_DOUBLE: is_float32 or _is.is_float64(type_),
        field.CPPTYPE_STRING: is_bytes(type_) if field.type == field.TYPE_BYTES else is_text(type_),
    }
    integers = (field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    if not (_is.is_integer(type_) if kind in integers else fits.get(kind, False)):
        raise _no(field, type_)
    return lambda value: value


def _filler(field: Any, type_: pa.DataType) -> _Set:
    """What a message's value becomes, in a message that is there. Raises Unfit."""
    own = field.message_type
    if own.full_name == "google.protobuf.Timestamp" and _is.is_timestamp(type_):
        return _time_filler(_PER_SECOND[type_.unit], _SECONDS)
    if own.full_name == "google.protobuf.Duration" and _is.is_duration(type_):
        return _duration_filler(_PER_SECOND[type_.unit])
    if own.full_name in _WRAPPERS:
        return _setter(own, "value", type_)
    if not _is.is_struct(type_):
        raise _no(field, type_)
    setters = [(child.name, _setter(own, child.name, child.type)) for child in type_]

    def fill(message: Any, value: Mapping[str, Any]) -> None:
        for name, put in setters:
            if value[name] is not None:
                put(message, value[name])

    return fill


def _time_filler(per_second: int, allowed: range) -> _Set:
    def fill(message: Any, value: int) -> None:
        seconds, rest = divmod(value, per_second)
        if seconds not in allowed:
            raise ValueError("a Timestamp is of the years 1 to 9999")
        message.seconds, message.nanos = seconds, rest * (_NANOS // per_second)

    return fill


def _duration_filler(per_second: int) -> _Set:
    def fill(message: Any, value: int) -> None:
        sign = -1 if value < 0 else 1  # both parts have it
        seconds, rest = divmod(abs(value), per_second)
        message.seconds, message.nanos = sign * seconds, sign * rest * (_NANOS // per_second)

    return fill


def _no(field: Any, type_: pa.DataType) -> Unfit:
    return Unfit(f"the field {field.full_name} cannot have values of the type {type_}: cast them in a SELECT")


# ---- The registry ----------------------------------------------------------------------------------------------------


def _text_of(file: Any) -> str:
    """A file as registries take it."""
    return base64.b64encode(file.serialized_pb).decode()


def _imports_of(file: Any) -> Sequence[ImportedSchema]:
    own = [imported for imported in file.dependencies if not imported.name.startswith(_KNOWN_FILES)]
    return [ImportedSchema(imported.name, _text_of(imported), _imports_of(imported)) for imported in own]


def _varints(path: Sequence[int]) -> bytes:
    """The place of a type in its file, before a value. The first type has a short one."""
    if list(path) == [0]:
        return b"\0"
    return b"".join(map(_varint, (len(path), *path)))


def _varint(value: int) -> bytes:
    """With its sign in the lowest bit."""
    left, parts = value << 1, bytearray()
    while left > 0x7F:
        parts.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*parts, left])
