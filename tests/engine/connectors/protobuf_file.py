"""A file of Protobuf for tests, flights.proto, and its messages as Protobuf's own library makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2

Field = descriptor_pb2.FieldDescriptorProto


def field(number: int, name: str, type: str, type_name: str | None = None, **more: Any) -> Any:
    label = Field.LABEL_REPEATED if more.pop("many", False) else Field.LABEL_OPTIONAL
    kind = getattr(Field, f"TYPE_{type.upper()}")
    return Field(number=number, name=name, type=kind, type_name=type_name, label=label, **more)


class Air:
    """The file flights.proto of the package air."""

    def __init__(self, folder: Path) -> None:
        file = descriptor_pb2.FileDescriptorProto(
            name="flights.proto",
            package="air",
            syntax="proto3",
            dependency=[
                *(f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "wrappers")),
                "weather.proto",
            ],
        )
        file.message_type.add(name="Other").field.append(field(1, "x", "int32"))
        kind = file.enum_type.add(name="Kind")
        for number, name in enumerate(("UNKNOWN", "JET")):
            kind.value.add(name=name, number=number)
        flight = file.message_type.add(name="Flight")
        entry = flight.nested_type.add(name="SeatsEntry")
        entry.options.map_entry = True
        entry.field.extend([field(1, "key", "string"), field(2, "value", "int32")])
        stops = flight.nested_type.add(name="StopsEntry")
        stops.options.map_entry = True
        stops.field.extend([field(1, "key", "int64"), field(2, "value", "message", ".air.Weather")])
        flight.nested_type.add(name="Leg").field.extend([field(1, "to", "string"), field(2, "miles", "int64")])
        flight.oneof_decl.add(name="_delay")
        flight.field.extend(
            [
                field(1, "tail", "string"),
                field(2, "miles", "int64"),
                field(3, "kind", "enum", ".air.Kind"),
                field(4, "at", "message", ".google.protobuf.Timestamp"),
                field(5, "raw", "bytes"),
                field(6, "legs", "message", ".air.Flight.Leg", many=True),
                field(7, "seats", "message", ".air.Flight.SeatsEntry", many=True),
                field(8, "delay", "double", proto3_optional=True, oneof_index=0),
                field(9, "weight", "uint64"),
                field(10, "lasts", "message", ".google.protobuf.Duration"),
                field(11, "seats_left", "message", ".google.protobuf.Int32Value"),
                field(12, "weather", "message", ".air.Weather"),
                field(13, "stops", "message", ".air.Flight.StopsEntry", many=True),
                field(14, "heights", "int32", many=True),
            ]
        )
        known = (timestamp_pb2, duration_pb2, wrappers_pb2)
        files = [descriptor_pb2.FileDescriptorProto.FromString(each.DESCRIPTOR.serialized_pb) for each in known]
        weather = descriptor_pb2.FileDescriptorProto(name="weather.proto", package="air", syntax="proto3")
        weather.message_type.add(name="Weather").field.append(field(1, "wind", "float"))
        files += [weather, file]
        self.path = folder / "schema.pb"
        self.path.write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
        pool = descriptor_pool.DescriptorPool()
        for each in files:
            pool.Add(each)
        self._pool = pool

    def kind(self, name: str = "Flight") -> Any:
        """The class of messages."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"air.{name}"))

    def message(self, name: str = "Flight", **fields: Any) -> bytes:
        return bytes(self.kind(name)(**fields).SerializeToString())
