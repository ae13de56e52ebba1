"""Values in Protobuf: messages of a type whose description is in a file, also in the framing of a schema registry.

    protoc --include_imports --descriptor_set_out=schema.pb flights.proto       makes the file

Columns have the names of fields, as the .proto file has them. A field is what Protobuf's JSON says of it: an enum is
its name, a Timestamp a time, a wrapper its value; a field without presence has its default, others are null if they are
not there. Fields of bytes may be columns of bytes; those within structs are texts in base64.

Guarantees: a value that is no such message, or has fields that a column's type cannot hold, is refused. Fields that the
description or the types lack are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument, nearest
from ..json_types import check, typed
from ..message_rows import Refused, Values, typed_schema
from ..text_values import shortened
from .avro_values import text_of
from .schema_registry import id_of, payload_of
from .values import Columns, has_bytes

_is = pa.types
_VARINT_BYTES = 10


class ProtobufValues:
    """types: of the columns. schema_file: a FileDescriptorSet. message: the type's full name. is_framed: whether values
    are in the framing of a registry. Raises InvalidArgument."""

    keeps_tombstones = True

    def __init__(self, types: Mapping[str, pa.DataType], schema_file: str, message: str, is_framed: bool) -> None:
        self.schema = typed_schema(types)
        self._message, self._is_framed = message, is_framed
        self._class = protobuf_class(schema_file, message)
        self._path = path_of(self._class.DESCRIPTOR)
        fields = self._class.DESCRIPTOR.fields_by_name
        self._bytes: set[str] = set()
        for name, type_ in types.items():
            if name not in fields:
                raise InvalidArgument(f"types: {message} has no field {name!r}: {nearest(name, fields)}")
            if _is.is_binary(type_) and fields[name].type == fields[name].TYPE_BYTES and not repeats(fields[name]):
                self._bytes.add(name)
                continue
            try:
                check(type_)
            except InvalidArgument:
                raise InvalidArgument(f"types: field {name!r} of {message} cannot be {type_}") from None
            if has_bytes(type_):
                raise InvalidArgument(f"types: field {name!r} of {message} cannot be {type_}: write texts for bytes")

    def preparation(self, values: Values) -> None:
        """Nothing: the file has all."""

    def read(self, values: Values) -> Columns:
        from google.protobuf.json_format import MessageToDict

        refused: Refused = {}
        messages = [None if value is None else self._decoded(value, refused, at) for at, value in enumerate(values)]
        rows = [
            None
            if message is None
            else MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
            for message in messages
        ]
        columns = []
        for field in self.schema:
            name, type_ = field.name, field.type
            if name in self._bytes:
                both = zip(rows, messages, strict=True)
                there = [None if row is None or name not in row else getattr(message, name) for row, message in both]
                columns.append(pa.array(there, type_))
                continue
            cells = [None if row is None else _pruned(row.get(name), type_) for row in rows]
            done = typed(cells, type_, "rfc3339")
            for at, (where, why) in done.refused.items():
                refused.setdefault(at, f"column {name + where!r}: {why}")
            columns.append(done.array)
        return columns, refused

    def _decoded(self, value: bytes, refused: Refused, at: int) -> Any:
        if self._is_framed:
            id = id_of(value)
            if isinstance(id, str):
                refused[at] = f"the message {id}"
                return None
            try:
                path, value = _indexed(payload_of(value))
            except ValueError as error:
                refused[at] = f"the message {error}"
                return None
            if path != self._path:
                refused[at] = f"the message is of another type of its file than {self._message}: that at {path}"
                return None
        try:
            return self._class.FromString(value)
        except Exception as error:  # the library's own, in each of its versions
            refused[at] = f"the message is no {self._message} in Protobuf: {shortened(str(error))}"
            return None


def protobuf_class(schema_file: str, message: str) -> Any:
    """Of messages. schema_file: a FileDescriptorSet. message: their full name. Raises InvalidArgument."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ModuleNotFoundError as error:
        raise InvalidArgument("Protobuf needs protobuf: pip install 'arroyo_udf_plugin[kafka]'") from error
    data, pool = text_of(schema_file), descriptor_pool.DescriptorPool()
    names: list[str] = []
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data)
        if not files.file:
            raise ValueError("it has no files")
        for file in files.file:
            pool.Add(file)
            names += _names(file.package, file.message_type)
        made = {name: pool.FindMessageTypeByName(name) for name in names}
    except Exception as error:  # the library's own, in each of its versions
        raise InvalidArgument(
            f"schema_file: {schema_file}: it is no set of descriptions with all that they import: make it with "
            f"protoc --include_imports --descriptor_set_out ({shortened(str(error))})"
        ) from None
    if message not in made:
        raise InvalidArgument(f"message_name: {schema_file} has no message {message!r}: {nearest(message, made)}")
    return message_factory.GetMessageClass(made[message])


def _names(parent: str, messages: Any) -> list[str]:
    found = []
    for message in messages:
        name = f"{parent}.{message.name}" if parent else message.name
        found += [name, *_names(name, message.nested_type)]
    return found


def path_of(descriptor: Any) -> list[int]:
    """Where the type is in its file: its place, and those of the types that it is in."""
    outer = descriptor.containing_type
    among = descriptor.file.message_types_by_name.values() if outer is None else outer.nested_types
    own = [each.full_name for each in among].index(descriptor.full_name)
    return [own] if outer is None else [*path_of(outer), own]


def _indexed(payload: bytes) -> tuple[list[int], bytes]:
    """The place of the type in its file, which comes first, and the value. Raises ValueError."""
    count, at = _varint(payload, 0)
    if count == 0:
        return [0], payload[at:]
    path: list[int] = []
    while len(path) < count:
        index, at = _varint(payload, at)
        path.append(index)
    return path, payload[at:]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next one begins. Raises ValueError."""
    value = 0
    for place in range(_VARINT_BYTES):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << (7 * place)
        at += 1
        if data[at - 1] < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise ValueError("does not say which type of its file it is")


def repeats(field: Any) -> bool:
    is_repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if is_repeated is None else is_repeated)


def _pruned(value: Any, type_: pa.DataType) -> Any:
    """Without the fields that the type lacks."""
    if isinstance(value, dict) and _is.is_struct(type_):
        return {field.name: _pruned(value[field.name], field.type) for field in type_ if field.name in value}
    if isinstance(value, dict) and _is.is_map(type_):
        return {key: _pruned(item, type_.item_type) for key, item in value.items()}
    if isinstance(value, list) and (_is.is_list(type_) or _is.is_large_list(type_)):
        return [_pruned(item, type_.value_type) for item in value]
    return value
