"""Rows as messages of Protobuf: types, what is not there, and what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from protobuf_file import Air

from arroyo_udf_plugin.engine.connectors.kafka.protobuf_values import ProtobufValues
from arroyo_udf_plugin.engine.connectors.kafka.protobuf_writer import ProtobufWriter
from arroyo_udf_plugin.errors import InvalidArgument

LEG = pa.struct([("to", pa.string()), ("miles", pa.int64())])
WEATHER = pa.struct([("wind", pa.float32())])
SCHEMA = pa.schema(
    [
        ("tail", pa.dictionary(pa.int8(), pa.string())),
        ("miles", pa.int32()),
        ("kind", pa.large_string()),
        ("at", pa.timestamp("ns", "Europe/Berlin")),
        ("raw", pa.binary()),
        ("legs", pa.list_(LEG)),
        ("seats", pa.map_(pa.string(), pa.int32())),
        ("delay", pa.float64()),
        ("weight", pa.uint64()),
        ("lasts", pa.duration("ms")),
        ("seats_left", pa.int16()),
        ("weather", WEATHER),
        ("stops", pa.map_(pa.int64(), WEATHER)),
        ("heights", pa.large_list(pa.int16())),
    ]
)
AT = datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000, datetime.UTC)
ROW: dict[str, Any] = {
    "tail": "ä",
    "miles": -5,
    "kind": "JET",
    "at": AT,
    "raw": b"\xff",
    "legs": [{"to": "X", "miles": 2**62}, {"to": None, "miles": None}],
    "seats": [("b", 2), ("a", 1)],
    "delay": 0.5,
    "weight": 2**64 - 1,
    "lasts": datetime.timedelta(milliseconds=-1500),
    "seats_left": 0,
    "weather": {"wind": None},
    "stops": [(7, {"wind": 1.5})],
    "heights": [1, -1],
}


@pytest.fixture
def air(tmp_path: Path) -> Air:
    return Air(tmp_path)


def written(air: Air, batch: pa.RecordBatch, message: str = "air.Flight") -> list[bytes]:
    writer = ProtobufWriter("out", batch.schema, None, "t-value", str(air.path), message)
    writer.check()
    values: list[bytes] = writer.of(batch).to_pylist()
    return values


def test_columns_are_fields(air: Air) -> None:
    """As Protobuf's own library reads them."""
    whole, empty = written(air, pa.RecordBatch.from_pylist([ROW, dict.fromkeys(ROW)], SCHEMA))
    assert empty == b""
    found = air.kind().FromString(whole)
    assert (found.tail, found.miles, found.kind, found.raw) == ("ä", -5, 1, b"\xff")
    assert (found.at.seconds, found.at.nanos) == (-1, 500_000_000)
    assert (found.lasts.seconds, found.lasts.nanos) == (-1, -500_000_000)
    assert [(leg.to, leg.miles) for leg in found.legs] == [("X", 2**62), ("", 0)]
    assert (dict(found.seats), found.delay, found.weight) == ({"a": 1, "b": 2}, 0.5, 2**64 - 1)
    assert found.HasField("seats_left")
    assert found.HasField("weather")
    assert (found.seats_left.value, found.stops[7].wind, list(found.heights)) == (0, 1.5, [1, -1])


def test_what_is_written_is_read_again(air: Air) -> None:
    types = {
        **{name: SCHEMA.field(name).type for name in ("miles", "raw", "legs", "delay", "weight", "weather", "stops")},
        "tail": pa.string(),
        "kind": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "seats_left": pa.int32(),
    }
    rows = pa.RecordBatch.from_pylist([ROW], SCHEMA)
    reader = ProtobufValues(types, str(air.path), "air.Flight", False)
    columns, refused = reader.read(written(air, rows))
    assert refused == {}
    (found,) = pa.RecordBatch.from_arrays(columns, schema=reader.schema).to_pylist()
    # These fields have no presence: what is not there is their default.
    legs, weather = [ROW["legs"][0], {"to": "", "miles": 0}], {"wind": 0.0}
    assert found == {name: ROW[name] for name in types} | {"legs": legs, "weather": weather}


@pytest.mark.parametrize(
    ("name", "type_", "why"),
    [
        ("tial", pa.string(), "air.Flight has no field 'tial': write 'tail'"),
        ("tail", pa.int64(), "the field air.Flight.tail cannot have values of the type int64: cast them in a SELECT"),
        ("tail", pa.binary(), "cannot have values of the type binary"),
        ("raw", pa.string(), "cannot have values of the type string"),
        ("kind", pa.int32(), "the field air.Flight.kind cannot have values of the type int32"),
        ("miles", pa.float64(), "cannot have values of the type double"),
        ("at", pa.string(), "the field air.Flight.at cannot have values of the type string"),
        ("lasts", pa.int64(), "cannot have values of the type int64"),
        ("legs", LEG, "the field air.Flight.legs cannot have values of the type struct"),
        ("legs", pa.list_(pa.struct([("tu", pa.string())])), "air.Flight.Leg has no field 'tu': there are to, miles"),
        ("seats", pa.list_(pa.int32()), "cannot have values of the type list"),
        (
            "weather",
            pa.struct([("wind", pa.float64())]),
            "the field air.Weather.wind cannot have values of the type do",
        ),
        ("seats_left", pa.string(), "the field google.protobuf.Int32Value.value cannot have values of the type string"),
    ],
)
def test_columns_that_a_message_cannot_have(air: Air, name: str, type_: pa.DataType, why: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        written(air, pa.RecordBatch.from_pylist([], pa.schema([(name, type_)])))
    assert str(error.value).startswith("out: ")
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("name", "type_", "value", "why"),
    [
        ("weight", pa.int64(), -1, "column 'weight': "),
        ("heights", pa.list_(pa.int64()), [2**31], "column 'heights': "),
        ("kind", pa.string(), "JTE", "column 'kind': 'JTE' is no air.Kind: write 'JET'"),
        ("heights", pa.list_(pa.int32()), [None], "Protobuf has no nulls in lists and maps"),
        ("seats", pa.map_(pa.string(), pa.int32()), [("a", None)], "Protobuf has no nulls in lists and maps"),
        ("seats", pa.map_(pa.string(), pa.int32()), [("a", 1), ("a", 2)], "has each key once"),
        ("at", pa.timestamp("s"), 2**40, "a Timestamp is of the years 1 to 9999"),
    ],
)
def test_values_that_do_not_fit(air: Air, name: str, type_: pa.DataType, value: object, why: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        written(air, pa.record_batch({name: pa.array([value], type_)}))
    assert str(error.value).startswith("out: a row does not fit air.Flight: ")
    assert why in str(error.value)
