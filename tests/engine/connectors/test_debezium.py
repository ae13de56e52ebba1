"""Debezium's JSON: what its events are as rows, with and without a schema, and rows as events."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.kafka.debezium import DebeziumValues
from arroyo_udf_plugin.engine.connectors.kafka.value_writers import JsonValueWriter
from arroyo_udf_plugin.errors import InvalidArgument

ROW = pa.struct([("id", pa.int64()), ("name", pa.string())])
TYPES = {"op": pa.string(), "before": ROW, "after": ROW}
ADA, BOB = {"id": 1, "name": "Ada"}, {"id": 1, "name": "Bob"}


def event(op: Any, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 5, **more}


def read(
    *events: Any, types: Any = None, timestamps: str | None = None, decimals: str | None = None, texts: Any = ()
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    reader = DebeziumValues(types or TYPES, texts, timestamps, decimals)
    columns, refused = reader.read([each if type(each) is bytes else json.dumps(each).encode() for each in events])
    return pa.RecordBatch.from_arrays(columns, schema=reader.schema).to_pylist(), refused


def after(value: Any, type_: pa.DataType, schema: dict[str, Any] | None = None, **how: Any) -> Any:
    """A value of a column as it is read."""
    made: Any = event("c", None, {"v": value})
    if schema is not None:
        row = {"type": "struct", "fields": [{"field": "v", **schema}]}
        made = {"schema": {"type": "struct", "fields": [{"field": "after", **row}]}, "payload": made}
    rows, refused = read(made, types={"op": pa.string(), "after": pa.struct([("v", type_)])}, **how)
    return refused[0] if refused else rows[0]["after"]["v"]


def test_each_operation_is_a_row() -> None:
    changes = [event("r", None, ADA), event("c", None, ADA), event("u", ADA, BOB), event("d", BOB), event("t")]
    rows, refused = read(*changes)
    assert refused == {}
    assert rows == [{name: change[name] for name in TYPES} for change in changes]


def test_columns_that_are_not_named_are_passed_over_and_others_may_be() -> None:
    types = {"op": pa.string(), "after": pa.struct([("id", pa.int64()), ("new", pa.string())]), "source": pa.string()}
    source = {"table": "people", "lsn": 7}
    rows, refused = read(event("c", None, ADA, source=source), types=types, texts=["source"])
    assert (rows, refused) == (
        [{"op": "c", "after": {"id": 1, "new": None}, "source": '{"table":"people","lsn":7}'}],
        {},
    )


def test_an_envelope_with_a_schema() -> None:
    rows, _ = read({"schema": None, "payload": event("c", None, ADA)}, {"payload": event("d", ADA)})
    assert [row["op"] for row in rows] == ["c", "d"]


@pytest.mark.parametrize(
    ("name", "value", "type_", "expected"),
    [
        ("io.debezium.time.Date", -1, pa.date32(), datetime.date(1969, 12, 31)),
        ("io.debezium.time.Time", 1_500, pa.time32("ms"), datetime.time(0, 0, 1, 500_000)),
        ("io.debezium.time.MicroTime", 1_500_001, pa.time64("us"), datetime.time(0, 0, 1, 500_001)),
        ("io.debezium.time.Timestamp", -1, pa.timestamp("ms"), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000)),
        ("io.debezium.time.MicroTimestamp", 1_000_001, pa.timestamp("us"), datetime.datetime(1970, 1, 1, 0, 0, 1, 1)),
        (
            "io.debezium.time.NanoTimestamp",
            1_000_001_000,
            pa.timestamp("ns", "UTC"),
            datetime.datetime(1970, 1, 1, 0, 0, 1, 1, datetime.UTC),
        ),
        ("org.apache.kafka.connect.data.Timestamp", 1000, pa.timestamp("us"), datetime.datetime(1970, 1, 1, 0, 0, 1)),
        (
            "io.debezium.time.ZonedTimestamp",
            "2026-01-01T02:00:00+02:00",
            pa.timestamp("us", "UTC"),
            datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        ),
        ("io.debezium.time.MicroTimestamp", 1_000_001, pa.int64(), 1_000_001),
    ],
)
def test_times_by_the_schema_of_the_event(name: str, value: Any, type_: pa.DataType, expected: Any) -> None:
    found = after(value, type_, {"type": "int64", "name": name}, timestamps="unix_millis")
    assert found == expected


def test_times_without_a_schema_have_the_unit_that_is_named() -> None:
    type_, second = pa.timestamp("us"), datetime.datetime(1970, 1, 1, 0, 0, 1)
    assert after(1_000, type_) == second
    assert after(1_000_000, type_, timestamps="unix_micros") == second
    assert after("1970-01-01T00:00:01Z", type_, timestamps="rfc3339") == second
    assert after(1_000, type_, timestamps="rfc3339") == "column 'after.v': '1000' is not timestamp[us]"
    assert after(2**62, type_).startswith("column 'after.v': ")
    assert after(1_000, pa.time64("us")) == "column 'after.v': '1000' is not time64[us]"


def test_decimals() -> None:
    type_, name = pa.decimal128(10, 2), "org.apache.kafka.connect.data.Decimal"
    assert after("MDk=", type_) == Decimal("123.45")
    assert after("z8c=", type_) == Decimal("-123.45")
    assert after("MDk=", type_, {"name": name, "parameters": {"scale": "1"}}) == Decimal("1234.50")
    assert after({"scale": 3, "value": "MDk="}, type_, decimals="string") == "column 'after.v': '12.345' is not " + str(
        type_
    )
    assert after({"scale": 1, "value": "MDk="}, type_, {"name": "io.debezium.data.VariableScaleDecimal"}) == Decimal(
        "1234.5"
    )
    assert after("123.45", type_, decimals="string") == Decimal("123.45")
    assert after("123.45", type_, {"type": "string"}) == Decimal("123.45")
    assert after("123.45", type_) == f"column 'after.v': '123.45 in base64' is not {type_}"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{", "the message is not JSON: "),
        (b"5", "the message is not a JSON object: '5'"),
        ({"schema": {}, "payload": 5}, "the message has no object as payload: "),
        (event("x"), 'the message has the op "x", and must have one of c, u, d, r, t: '),
        ({"after": ADA}, "the message has the op null, and must have one of "),
        (event("u", ADA), "the message has the op 'u' and no 'after': "),
        (event("d"), "the message has the op 'd' and no 'before': let the database log it (REPLICA IDENTITY"),
        (event("c", None, {"id": "x"}), "column 'after.id': 'x' is not int64"),
        (event("c", None, [5]), "column 'after': [5] is not struct<id: int64, name: string>"),
    ],
)
def test_what_is_no_event_is_refused(value: Any, why: str) -> None:
    rows, refused = read(event("c", None, ADA), value)
    assert list(refused) == [1]
    assert refused[1].startswith(why)
    assert rows[0]["after"] == ADA


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ({"op": pa.string()}, "debezium_json has the columns op, before and after, and after is missing"),
        ({"id": pa.int64()}, "and op, after is missing"),
        ({**TYPES, "after": pa.string()}, "'after' is string, and must be a struct"),
        ({**TYPES, "after": pa.struct([("raw", pa.binary())])}, "events have bytes in base64: name them as texts"),
        ({**TYPES, "op": pa.int64()}, "'op' is int64, and must be text"),
    ],
)
def test_columns_that_changes_do_not_have(types: dict[str, pa.DataType], why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        DebeziumValues(types, (), None, None)


# ---- Rows as events --------------------------------------------------------------------------------------------------

WRITTEN = pa.struct([("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us"))])


def writer(decimals: str = "bytes", row: pa.DataType = WRITTEN) -> JsonValueWriter:
    schema = pa.schema([("op", pa.string()), ("before", row), ("after", row)])
    how = {"timestamps": "unix_millis", "decimals": decimals, "json_columns": ()}
    return JsonValueWriter("out", schema, True, None, "", how)


def batch(*changes: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        list(changes), pa.schema([("op", "string"), ("before", WRITTEN), ("after", WRITTEN)])
    )


ROWS = [
    {"id": 1, "price": Decimal("-123.45"), "at": datetime.datetime(2026, 1, 1)},
    {"id": 2, "price": None, "at": None},
]


@pytest.mark.parametrize("decimals", ["bytes", "string"])
def test_rows_are_read_as_they_were_written(decimals: str) -> None:
    changes = [{"op": "u", "before": ROWS[0], "after": ROWS[1]}, {"op": "d", "before": ROWS[0], "after": None}]
    values = writer(decimals).of(batch(*changes)).to_pylist()
    types = {"op": pa.string(), "before": WRITTEN, "after": WRITTEN}
    assert read(*values, types=types, decimals=decimals) == (changes, {})


def test_an_event_in_text() -> None:
    (value,) = writer().of(batch({"op": "c", "before": None, "after": ROWS[0]})).to_pylist()
    written = {"id": 1, "price": "z8c=", "at": 1_767_225_600_000}
    assert json.loads(value) == {"op": "c", "before": None, "after": written}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"op": "x"}, "out: op is 'x', and must be one of c, u, d, r, t"),
        ({"op": None}, "out: op is None"),
        ({"op": "d", "after": ROWS[0]}, "out: a row has the op 'd', and 'before' is null"),
        ({"op": "c", "before": ROWS[0]}, "out: a row has the op 'c', and 'after' is null"),
    ],
)
def test_rows_that_are_no_changes_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        writer().of(batch({"op": "d", "before": ROWS[0]}, change))


def test_decimals_in_lists_cannot_be_bytes() -> None:
    row = pa.struct([("prices", pa.list_(pa.decimal128(10, 2)))])
    with pytest.raises(InvalidArgument, match='cannot be bytes: write decimals = "string"'):
        writer(row=row)
    writer("string", row)
