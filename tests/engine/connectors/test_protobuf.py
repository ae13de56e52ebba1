"""Messages of Protobuf as columns: types, presence, the registry's framing, and what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from protobuf_file import Air

from arroyo_udf_plugin.engine.connectors.kafka.protobuf_values import ProtobufValues
from arroyo_udf_plugin.errors import InvalidArgument


@pytest.fixture
def air(tmp_path: Path) -> Air:
    return Air(tmp_path)


def read(air: Air, types: dict[str, pa.DataType], *values: bytes | None, is_framed: bool = False) -> Any:
    reader = ProtobufValues(types, str(air.path), "air.Flight", is_framed)
    columns, refused = reader.read(values)
    batch = pa.RecordBatch.from_arrays(columns, schema=reader.schema)
    batch.validate(full=True)
    return batch.to_pylist(), refused


def test_fields_are_columns(air: Air) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901)
    value = air.message(
        tail="ä",
        miles=-(2**62),
        kind=1,
        at=at,
        raw=b"\xff",
        legs=[{"to": "X", "miles": 5}],
        seats={"a": 1},
        delay=0.5,
        weight=2**64 - 1,
    )
    types = {
        "tail": pa.string(),
        "miles": pa.int64(),
        "kind": pa.string(),
        "at": pa.timestamp("us"),
        "raw": pa.binary(),
        "legs": pa.list_(pa.struct([("miles", pa.int64())])),
        "seats": pa.map_(pa.string(), pa.int32()),
        "delay": pa.float64(),
        "weight": pa.uint64(),
    }
    expected = {
        "tail": "ä",
        "miles": -(2**62),
        "kind": "JET",
        "at": at,
        "raw": b"\xff",
        "legs": [{"miles": 5}],
        "seats": [("a", 1)],
        "delay": 0.5,
        "weight": 2**64 - 1,
    }
    nothing = dict.fromkeys(types)
    defaults = {"tail": "", "miles": 0, "kind": "UNKNOWN", "raw": b"", "legs": [], "seats": [], "weight": 0}
    assert read(air, types, value, b"", None) == ([expected, nothing | defaults, nothing], {})


def test_what_is_no_message_or_does_not_fit_is_refused(air: Air) -> None:
    rows, refused = read(air, {"miles": pa.int8()}, air.message(miles=5), b"\xff", air.message(miles=128))
    assert (rows[0], list(refused)) == ({"miles": 5}, [1, 2])
    assert refused[1].startswith("the message is no air.Flight in Protobuf: ")
    assert refused[2].startswith("column 'miles': ")


def test_the_framing_says_which_message_it_is(air: Air) -> None:
    head = b"\0\0\0\0\7"
    value = air.message(tail="a")
    framed = [
        head + b"\x02\x02" + value,  # a path of one: the second message of the file
        head + b"\0" + air.message("Other", x=1),
        head + b"\x04\x02\x02" + value,
        head + b"\x02",
        value,
    ]
    rows, refused = read(air, {"tail": pa.string()}, *framed, is_framed=True)
    assert [row["tail"] for row in rows] == ["a", None, None, None, None]
    assert refused[1] == "the message is of another type of its file than air.Flight: that at [0]"
    assert refused[2].endswith("that at [1, 1]")
    assert refused[3] == "the message does not say which type of its file it is"
    assert refused[4].startswith("the message is not in the framing of a schema registry")


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ({"tial": pa.string()}, "air.Flight has no field 'tial': write 'tail'"),
        ({"legs": pa.binary()}, "field 'legs' of air.Flight cannot be binary"),
        ({}, "types: name the columns"),
    ],
)
def test_columns_that_there_are_not(air: Air, types: dict[str, pa.DataType], why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        read(air, types)


def test_a_file_without_the_message(air: Air, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"schema.pb has no message 'Flight': write 'air.Flight'"):
        ProtobufValues({"x": pa.int64()}, str(air.path), "Flight", False)
    for data in (b"", b"syntax = 'proto3';"):
        (tmp_path / "wrong").write_bytes(data)
        with pytest.raises(InvalidArgument, match=r"no set of descriptions .*: make it with protoc --include_imports"):
            ProtobufValues({"x": pa.int64()}, str(tmp_path / "wrong"), "Flight", False)
