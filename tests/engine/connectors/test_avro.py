"""Avro's types as columns, and columns as Avro: what fits, what is refused, and that nothing is changed on the way."""

from __future__ import annotations

import datetime
import io
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.kafka.avro_types import Unfit, schema_of
from arroyo_udf_plugin.engine.connectors.kafka.avro_values import AvroValues, AvroWriter
from arroyo_udf_plugin.errors import InvalidArgument


class Datums:
    """Bare datums of one schema, whose record has the field `v`."""

    def __init__(self, folder: Path, type_: Any, *more: Any) -> None:
        self._path = folder / "schema.avsc"
        self.schema = {"type": "record", "name": "Row", "fields": [{"name": "v", "type": type_}, *more]}
        self._path.write_text(json.dumps(self.schema))

    def encoded(self, *values: Any) -> list[bytes | None]:
        datums: list[bytes | None] = []
        for value in values:
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, self.schema, {"v": value})
            datums.append(stream.getvalue())
        return datums

    def reader(self, type_: pa.DataType, unstructured: bool = False) -> AvroValues:
        return AvroValues({} if unstructured else {"v": type_}, None, str(self._path), unstructured)

    def read(self, type_: pa.DataType, *values: Any) -> list[Any]:
        (column,), refused = self.reader(type_).read(self.encoded(*values))
        assert refused == {}
        column.validate(full=True)
        assert column.type == type_
        return column.to_pylist()  # type: ignore[no-any-return]

    def writer(self, type_: pa.DataType, **more: pa.DataType) -> AvroWriter:
        return AvroWriter("out", pa.schema({"v": type_, **more}), None, "", str(self._path))


UTC = datetime.UTC
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901)
NOON = datetime.time(12)
INNER = {"type": "record", "name": "Inner", "namespace": "a", "fields": [{"name": "x", "type": ["null", "int"]}]}


@pytest.mark.parametrize(
    ("avro", "type_", "value", "expected"),
    [
        ("int", pa.int64(), -5, -5),
        ("long", pa.int8(), 127, 127),
        ("long", pa.float64(), 5, 5.0),
        ("float", pa.float64(), 0.5, 0.5),
        ("double", pa.float64(), 0.1, 0.1),
        ("boolean", pa.bool_(), True, True),
        ("string", pa.string(), "ä", "ä"),
        ({"type": "string", "avro.java.string": "String"}, pa.string(), "a", "a"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string(), "B", "B"),
        ("bytes", pa.binary(), b"\xff", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, pa.binary(2), b"ab", b"ab"),
        ({"type": "int", "logicalType": "date"}, pa.date32(), AT.date(), AT.date()),
        ({"type": "int", "logicalType": "date"}, pa.int32(), AT.date(), 20_455),
        (
            {"type": "int", "logicalType": "time-millis"},
            pa.time64("us"),
            datetime.time(1, 2, 3),
            datetime.time(1, 2, 3),
        ),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us"), AT.time(), AT.time()),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us"), AT.replace(tzinfo=UTC), AT),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            pa.timestamp("ms", "UTC"),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.timestamp("ns"),
            AT.replace(microsecond=5000, tzinfo=UTC),
            AT.replace(microsecond=5000),
        ),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us"), AT, AT),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
            pa.decimal128(38, 2),
            Decimal("-123456789012345678901234567890123456.78"),
            Decimal("-123456789012345678901234567890123456.78"),
        ),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 2},
            pa.decimal128(20, 4),
            Decimal("1.50"),
            Decimal("1.5000"),
        ),
        ({"type": "string", "logicalType": "uuid"}, pa.string(), uuid.UUID(int=7), str(uuid.UUID(int=7))),
        (["null", "int", "long"], pa.int64(), 5, 5),
        ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.int32()), [1, None, 3], [1, None, 3]),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.int64()), {"a": 1, "b": 2}, [("a", 1), ("b", 2)]),
        (INNER, pa.struct([("x", pa.int64()), ("new", pa.string())]), {"x": 5}, {"x": 5, "new": None}),
        (
            {"type": "array", "items": INNER},
            pa.large_list(pa.struct([("x", pa.int64())])),
            [{"x": 1}, {"x": None}],
            [{"x": 1}, {"x": None}],
        ),
        ("null", pa.int64(), None, None),
    ],
    ids=str,
)
def test_a_value_becomes_a_column(tmp_path: Path, avro: Any, type_: pa.DataType, value: Any, expected: Any) -> None:
    assert Datums(tmp_path, avro).read(type_, value, value) == [expected, expected]
    is_union = isinstance(avro, list)
    if not is_union and avro != "null":
        datums = Datums(tmp_path, ["null", avro])
        assert datums.read(type_, value, None, value) == [expected, None, expected]


@pytest.mark.parametrize(
    ("avro", "type_", "why"),
    [
        ("string", pa.int64(), "column 'v': it is string in the schema of the message, and cannot be int64"),
        ("double", pa.float32(), "it is double in the schema"),
        ("int", pa.bool_(), "it is int in the schema"),
        (["null", "int", "string"], pa.int64(), "it is string in the schema"),
        (["null", INNER, "string"], pa.string(), "a union of several types"),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            pa.timestamp("us", "UTC"),
            "local-timestamp-micros",
        ),
        ({"type": "array", "items": "int"}, pa.list_(pa.string()), "it is int in the schema"),
        (INNER, pa.struct([("x", pa.string())]), "its field 'x': it is int in the schema"),
        ({"type": "map", "values": "int"}, pa.struct([("x", pa.int32())]), "it is map in the schema"),
    ],
    ids=str,
)
def test_a_type_that_does_not_fit(tmp_path: Path, avro: Any, type_: pa.DataType, why: str) -> None:
    with pytest.raises(InvalidArgument, match=f"schema.avsc: .*{why}"):
        Datums(tmp_path, avro).reader(type_)


@pytest.mark.parametrize(
    ("avro", "type_", "value"),
    [
        ("long", pa.int8(), 128),
        ("long", pa.uint64(), -1),
        ("long", pa.float64(), 2**53 + 1),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us"), -1),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
            pa.decimal128(9, 2),
            Decimal("0.001"),
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ns"), 2**60),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused_and_others_are_not(
    tmp_path: Path, avro: Any, type_: pa.DataType, value: Any
) -> None:
    datums = Datums(tmp_path, ["null", avro])
    (column,), refused = datums.reader(type_).read(datums.encoded(None, value, None))
    assert (column.to_pylist(), list(refused)) == ([None, None, None], [1])
    assert refused[1].startswith("column 'v': ")


def test_bytes_that_are_no_datum_are_refused(tmp_path: Path) -> None:
    datums = Datums(tmp_path, "string")
    good = datums.encoded("a")[0]
    assert good is not None
    values = [good, good[:1], good + b"x", b"\x04\xff\xff", b"", b"\x01", None]
    (column,), refused = datums.reader(pa.string()).read(values)
    assert column.to_pylist() == ["a", None, None, None, None, None, None]
    assert list(refused) == [1, 2, 3, 4, 5]
    assert refused[2] == "the message is not of its schema in Avro: 1 bytes are left over"


def test_records_as_json(tmp_path: Path) -> None:
    day = {"type": "int", "logicalType": "date"}
    row = {"type": "record", "name": "R", "fields": [{"name": "at", "type": day}, {"name": "b", "type": "bytes"}]}
    datums = Datums(tmp_path, row)
    values = [*datums.encoded({"at": AT.date(), "b": b"ab"}), None]
    (column,), refused = datums.reader(pa.string(), unstructured=True).read(values)
    assert (column.to_pylist(), refused) == (['{"v":{"at":"2026-01-02","b":"YWI="}}', None], {})
    numbers = Datums(tmp_path, "double")
    _, refused = numbers.reader(pa.string(), unstructured=True).read(numbers.encoded(float("nan")))
    assert list(refused) == [0]


@pytest.mark.parametrize("text", ["{", '{"type": "no"}', '"int"', '{"type": "record"}'])
def test_a_file_without_a_schema_of_a_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "schema").write_text(text)
    with pytest.raises(InvalidArgument, match=r"schema_file: .*schema: its schema is "):
        AvroValues({"v": pa.int64()}, None, str(tmp_path / "schema"), False)
    with pytest.raises(InvalidArgument, match=r"schema_file: .*other: No such file"):
        AvroValues({"v": pa.int64()}, None, str(tmp_path / "other"), False)


# ---- Rows as records -------------------------------------------------------------------------------------------------

WRITTEN = pa.schema(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        pa.field("n", pa.int64(), nullable=False),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("t", pa.large_string()),
        ("raw", pa.binary()),
        ("fixed", pa.binary(2)),
        ("day", pa.date32()),
        ("second", pa.timestamp("s")),
        ("micro", pa.timestamp("us", "UTC")),
        ("nano", pa.timestamp("ns")),
        ("time", pa.time32("s")),
        ("micros", pa.time64("us")),
        ("price", pa.decimal128(10, 2)),
        ("word", pa.dictionary(pa.int8(), pa.string())),
        ("many", pa.list_(pa.timestamp("s"))),
        ("inner", pa.struct([("x", pa.int64()), ("at", pa.timestamp("us"))])),
        ("named", pa.map_(pa.string(), pa.date32())),
    ]
)
ROW = {
    "b": True, "i": 1, "n": 2**40, "f": 0.5, "d": 0.1, "t": "ä", "raw": b"\0", "fixed": b"ab", "day": AT.date(),
    "second": AT.replace(microsecond=0), "micro": AT.replace(tzinfo=UTC), "nano": AT, "time": datetime.time(1, 2, 3),
    "micros": AT.time(), "price": Decimal("-1.50"), "word": "w", "many": [AT.replace(microsecond=0), None],
    "inner": {"x": 1, "at": AT}, "named": [("a", AT.date())],
}  # fmt: skip


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "schema.avsc"
    path.write_text(json.dumps(schema_of("Row", WRITTEN)))
    rows = pa.RecordBatch.from_pylist([ROW, {"n": 0}], WRITTEN)
    values = AvroWriter("out", WRITTEN, None, "", str(path)).of(rows).to_pylist()
    types = {field.name: pa.string() if field.name == "word" else field.type for field in WRITTEN}
    columns, refused = AvroValues(types, None, str(path), False).read(values)
    assert refused == {}
    assert pa.RecordBatch.from_arrays(columns, names=WRITTEN.names).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("type_", [pa.uint64(), pa.time64("ns"), pa.duration("us")], ids=str)
def test_a_column_that_is_no_type_of_avro(tmp_path: Path, type_: pa.DataType) -> None:
    with pytest.raises(InvalidArgument, match="out: column 'v': no type of Avro is "):
        Datums(tmp_path, "long").writer(type_)


def test_a_file_whose_schema_is_another_one_than_that_of_the_rows(tmp_path: Path) -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    with pytest.raises(InvalidArgument, match=r"its field 'v' is .*millis.*, and the column would be .*micros"):
        Datums(tmp_path, millis).writer(pa.timestamp("us"))
    with pytest.raises(InvalidArgument, match="it has no field 'w', so the column would be lost"):
        Datums(tmp_path, "long").writer(pa.int64(), w=pa.int64())
    with pytest.raises(InvalidArgument, match="it has a field 'w' without a default"):
        Datums(tmp_path, "long", {"name": "w", "type": "int"}).writer(pa.int64())
    writer = Datums(tmp_path, "long", {"name": "w", "type": "int", "default": 5}).writer(pa.int64())
    assert writer.of(pa.record_batch({"v": [1]})).to_pylist() == [b"\x02\x0a"]
    with pytest.raises(InvalidArgument, match="out: a row does not fit the schema: "):
        writer.of(pa.record_batch({"v": pa.array([None], pa.int64())}))


def test_names_that_avro_does_not_have() -> None:
    with pytest.raises(Unfit, match="column 'a b': Avro's names have letters, digits and _: rename it"):
        schema_of("Row", pa.schema([("a b", pa.int64())]))
