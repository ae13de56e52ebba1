"""Topics whose schemas are in a registry: Avro and JSON, read and written, and a registry that is away, or refuses."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from kafka_broker import Broker
from schema_registry_server import RegistryServer, registry
from waiting import until

from arroyo_udf_plugin.engine.connectors.interface import Partition
from arroyo_udf_plugin.engine.connectors.kafka.sink import KafkaOutput
from arroyo_udf_plugin.engine.connectors.kafka.source import KafkaInput
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable

pytestmark = pytest.mark.connectors

FIRST: dict[str, Any] = {"type": "record", "name": "Flight", "fields": [{"name": "tail", "type": "string"}]}
SECOND: dict[str, Any] = {
    **FIRST,
    "namespace": "air",
    "fields": [
        {"name": "miles", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        *FIRST["fields"],
    ],
}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry() as made:
        yield made


def message(id: int, schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema, {}), row)
    return b"\0" + id.to_bytes(4) + stream.getvalue()


def keys(kafka: Broker, server: RegistryServer, topic: str, **more: Any) -> dict[str, Any]:
    usual = {"bootstrap_servers": kafka.address, "format": "avro", "schema_registry": {"endpoint": server.address}}
    return {**usual, "topic": topic, **more}


def model(kafka: Broker, server: RegistryServer, topic: str, **more: Any) -> KafkaInput:
    types = {"tail": "str", "miles": "decimal(9, 2)"}
    usual = {"offset": "earliest", "bounded": True, "types": types}
    return KafkaInput(**keys(kafka, server, topic, **{**usual, **more}))


async def rest_of(partition: Partition) -> list[Rows]:
    found = []
    while (rows := await partition.read()) is not None:
        found.append(rows)
    return found


def opened(described: KafkaInput) -> Partition:
    source = described.source(1)
    return source.open(source.partitions()[0], None)


def read(described: KafkaInput) -> Rows:
    """The rows of the only partition, which come at once."""
    with contextlib.closing(opened(described)) as partition:  # type: ignore[type-var]
        (rows,) = asyncio.run(rest_of(partition))
        return rows


def write(kafka: Broker, topic: str, server: RegistryServer) -> list[bytes]:
    first, second = (server.add(f"{topic}-value", json.dumps(schema)) for schema in (FIRST, SECOND))
    values = [
        message(second, SECOND, {"tail": "a", "miles": None}),
        message(first, FIRST, {"tail": "b"}),
        message(second, SECOND, {"tail": "c", "miles": Decimal("1.50")}),
    ]
    kafka.write(topic, values)
    return values


def test_each_message_is_read_with_its_own_schema(kafka: Broker, server: RegistryServer) -> None:
    topic = kafka.topic()
    write(kafka, topic, server)
    kafka.write(topic, [None])
    rows = read(model(kafka, server, topic, types={"tail": "str", "miles": "decimal(9, 2)"}))
    assert rows.refused == {}
    assert [(row["tail"], row["miles"] and str(row["miles"])) for row in rows.batch.to_pylist()] == [
        ("a", None),
        ("b", None),
        ("c", "1.50"),
        (None, None),
    ]
    assert server.asked == 2


def test_messages_that_cannot_be_read_are_named(kafka: Broker, server: RegistryServer) -> None:
    topic = kafka.topic()
    good, _, _ = write(kafka, topic, server)
    other = server.add("other", json.dumps({**FIRST, "fields": [{"name": "tail", "type": "long"}]}))
    values = [b"{}", good[:7], b"\0\0\0\1\0", b"\0" + other.to_bytes(4) + b"\2"]
    fourth = server.add("fourth", '{"type": "object"}', "JSON")
    kafka.write(topic, [*values, b"\0" + fourth.to_bytes(4) + b"{}"])
    refused = read(model(kafka, server, topic)).refused
    assert list(refused) == [3, 4, 5, 6, 7]
    assert refused[3].startswith("the message is not in the framing of a schema registry")
    assert refused[4].startswith("the message is not of its schema in Avro: ")
    assert refused[5] == f"the message: the schema registry at {server.address} has no schema with the id 256"
    assert refused[6] == "the message: column 'tail': it is long in the schema of the message, and cannot be string"
    assert refused[7] == "the message: its schema is one of JSON, not of AVRO"


def test_a_schema_that_refers_to_others(kafka: Broker, server: RegistryServer) -> None:
    topic = kafka.topic()
    server.add("flight", json.dumps(FIRST))
    pair = {"type": "record", "name": "Pair", "fields": [{"name": "one", "type": "Flight"}]}
    id = server.add("pair", json.dumps(pair), references=({"name": "Flight", "subject": "flight", "version": 1},))
    kafka.write(topic, [b"\0" + id.to_bytes(4) + b"\x02a"])
    rows = read(model(kafka, server, topic, types={"one": "struct<tail: string>"}))
    assert rows.batch.to_pylist() == [{"one": {"tail": "a"}}]


def test_reading_waits_for_a_registry_that_is_away(kafka: Broker, server: RegistryServer) -> None:
    topic = kafka.topic()
    write(kafka, topic, server)
    partition = opened(model(kafka, server, topic))
    server.stop()

    async def interrupted() -> None:
        """A read that is given up in the middle has lost nothing."""
        reading = asyncio.ensure_future(partition.read())
        for _ in range(2):
            while not partition._held:  # type: ignore[attr-defined]
                await asyncio.sleep(0.01)
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            assert partition.position() == {"offset": 0, "until": 3}
            reading = asyncio.ensure_future(partition.read())
        server.start()
        rows = await reading
        assert rows is not None
        assert rows.batch.num_rows == 3
        assert await partition.read() is None
        assert partition.position() == {"offset": 3, "until": 3, "end": True}

    with contextlib.closing(partition):  # type: ignore[type-var]
        asyncio.run(asyncio.wait_for(interrupted(), 60))


def test_a_registry_that_wants_a_password(kafka: Broker) -> None:
    topic = kafka.topic()
    with registry(user="me:sesame") as server:
        write(kafka, topic, server)
        auth = {"endpoint": server.address, "api_key": "me", "api_secret": "sesame"}
        assert read(model(kafka, server, topic, schema_registry=auth)).refused == {}
        for wrong, why in (
            ({**auth, "api_secret": "no-sesame"}, "refuses us: check the api_secret of me"),
            ({"endpoint": server.address}, "refuses us: a user is needed: write api_key and api_secret"),
        ):
            described = model(kafka, server, topic, schema_registry=wrong)
            with pytest.raises(InvalidArgument, match=why) as raised:
                read(described)
            assert "sesame" not in str(raised.value) + repr(described)


def numbers_in_protobuf(folder: Path, kind: str = "int64") -> str:
    """A file with the message a.Number, which has another one of a file that it imports. kind: of its number."""
    types, optional = descriptor_pb2.FieldDescriptorProto, descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    unit = descriptor_pb2.FileDescriptorProto(name="parts/unit.proto", package="a", syntax="proto3")
    unit.message_type.add(name="Unit").field.add(number=1, name="name", type=types.TYPE_STRING, label=optional)
    file = descriptor_pb2.FileDescriptorProto(name="n.proto", package="a", syntax="proto3", dependency=[unit.name])
    number = file.message_type.add(name="Number")
    number.field.add(number=1, name="n", type=getattr(types, f"TYPE_{kind.upper()}"), label=optional)
    number.field.add(number=2, name="unit", type=types.TYPE_MESSAGE, type_name=".a.Unit", label=optional)
    path = folder / f"{kind}.pb"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[unit, file]).SerializeToString())
    return str(path)


def test_a_query_over_protobuf(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b"\x08\x05", b"", b"\x08\x07"])
    text = f"""
        CREATE TABLE s (n BIGINT) WITH (connector = 'kafka', bootstrap_servers = '{kafka.address}', topic = '{topic}',
            format = 'protobuf', 'protobuf.message_name' = 'a.Number', 'source.offset' = 'earliest',
            'protobuf.schema_file' = '{numbers_in_protobuf(tmp_path)}', 'source.bounded' = 'true');
        CREATE TABLE o WITH (connector = 'single_file', path = '{tmp_path}/o', format = 'csv', csv.header = 'false');
        INSERT INTO o SELECT n FROM s;
    """
    run_pipeline(Script("query.sql", text, []).pipeline)
    assert sorted((tmp_path / "o").read_text().split()) == ["0", "5", "7"]


# ---- Writing ---------------------------------------------------------------------------------------------------------

SCHEMA = pa.schema([("tail", pa.string()), ("miles", pa.decimal128(9, 2))])


def rows_of(*tails: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"tail": tail} for tail in tails], SCHEMA)


def written(output: KafkaOutput, batch: pa.RecordBatch) -> None:
    output.check(batch.schema)
    sink = output.sink(batch.schema, 0, None, "pipeline", "out")
    sink.write(batch)
    sink.finish()
    sink.close()


@pytest.mark.parametrize("format", ["avro", "json", "debezium_json"])
def test_rows_are_read_as_they_were_written(kafka: Broker, server: RegistryServer, format: str) -> None:
    topic = kafka.topic()
    schema = SCHEMA
    rows: list[dict[str, Any]] = [{"tail": "a", "miles": None}]
    if format == "debezium_json":
        schema = pa.schema([("op", pa.string()), ("before", pa.struct(SCHEMA)), ("after", pa.struct(SCHEMA))])
        rows = [{"op": "c", "before": None, "after": rows[0]}]
    written(KafkaOutput(**keys(kafka, server, topic, format=format)), pa.RecordBatch.from_pylist(rows, schema))
    (id,) = server.subjects[f"{topic}-value"]
    assert server.schema(id)["schemaType"] == ("AVRO" if format == "avro" else "JSON")
    types = {field.name: str(field.type) for field in schema}
    found = read(model(kafka, server, topic, format=format, types=types))
    assert (found.batch.to_pylist(), found.refused) == (rows, {})


def test_a_subject_keeps_the_name_of_its_record_and_an_incompatible_schema_is_refused(
    kafka: Broker, server: RegistryServer
) -> None:
    topic = kafka.topic()
    server.add(f"{topic}-value", json.dumps(SECOND))
    output = KafkaOutput(**keys(kafka, server, topic))
    written(output, rows_of("a"))
    newest = json.loads(server.schema(server.subjects[f"{topic}-value"][-1])["schema"])
    assert newest["name"] == "air.Flight"
    numbers = pa.record_batch({"tail": [1]})
    why = f"the rows do not fit the schemas of the subject '{topic}-value', so its readers could not read them"
    with pytest.raises(InvalidArgument, match=why):
        output.check(numbers.schema)
    with pytest.raises(InvalidArgument, match=why):
        output.sink(numbers.schema, 0, None, "pipeline", "out").write(numbers)
    other = KafkaOutput(**keys(kafka, server, topic, value_subject="others"))
    written(other, numbers)
    assert len(server.subjects["others"]) == 1


def test_protobuf_is_read_as_it_was_written(kafka: Broker, server: RegistryServer, tmp_path: Path) -> None:
    """What the file imports is registered, too; a type that others could not read is refused."""
    topic = kafka.topic()
    own = {"format": "protobuf", "schema_file": numbers_in_protobuf(tmp_path), "message_name": "a.Number"}
    unit = pa.struct([("name", pa.string())])
    rows = pa.record_batch({"n": [1, -(2**40)], "unit": pa.array([{"name": "mile"}, None], unit)})
    written(KafkaOutput(**keys(kafka, server, topic, **own)), rows)
    (id,), (imported,) = server.subjects[f"{topic}-value"], server.subjects["parts/unit.proto"]
    reference = {"name": "parts/unit.proto", "subject": "parts/unit.proto", "version": 1}
    assert (server.schema(id)["schemaType"], server.schema(id)["references"]) == ("PROTOBUF", [reference])
    assert server.schema(imported)["schemaType"] == "PROTOBUF"
    types = {"n": "int64", "unit": "struct<name: string>"}
    found = read(model(kafka, server, topic, types=types, **own))
    assert (found.batch.to_pylist(), found.refused) == (rows.to_pylist(), {})
    texts = pa.record_batch({"n": ["1"]})
    other = KafkaOutput(**keys(kafka, server, topic, **own | {"schema_file": numbers_in_protobuf(tmp_path, "string")}))
    with pytest.raises(InvalidArgument, match=f"the rows do not fit the schemas of the subject '{topic}-value'"):
        other.check(texts.schema)


def test_a_registry_that_does_not_answer_is_unreachable(kafka: Broker, server: RegistryServer) -> None:
    output = KafkaOutput(**keys(kafka, server, kafka.topic()))
    server.stop()
    with pytest.raises(Unreachable, match=rf"the schema registry at {server.address} does not answer: start it, or"):
        output.check(SCHEMA)


def test_a_query_from_avro_to_avro_while_the_registry_is_restarted(
    kafka: Broker, server: RegistryServer, tmp_path: Path
) -> None:
    first, second = kafka.topic(), kafka.topic()
    options = f"""
        connector = 'kafka', bootstrap_servers = '{kafka.address}', format = 'avro',
        'avro.confluent_schema_registry' = 'true', 'schema_registry.endpoint' = '{server.address}'
    """
    text = f"""
        CREATE TABLE s (tail TEXT) WITH ({options}, topic = '{first}', type = 'source', 'source.offset' = 'earliest');
        CREATE TABLE o (tail TEXT) WITH ({options}, topic = '{second}', type = 'sink');
        INSERT INTO o SELECT tail FROM s;
    """
    checkpoints = {"place": str(tmp_path / "state"), "every": 0.05}
    description = {**described(Script("query.sql", text, []).pipeline), "checkpoints": checkpoints}
    stop, failed = StopRequest(timeout=60), list[BaseException]()

    def run() -> None:
        try:
            run_pipeline(pipeline_of(description), stop=stop)
        except BaseException as error:
            failed.append(error)

    def tails() -> list[str]:
        return [str(fastavro_row(each.value())["tail"]) for each in kafka.messages(second)[0]]

    def fastavro_row(value: bytes) -> Any:
        schema = json.loads(server.schema(int.from_bytes(value[1:5]))["schema"])
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(schema, {}))

    engine = threading.Thread(target=run, daemon=True)
    engine.start()
    try:
        ids = [server.add(f"{first}-value", json.dumps(schema)) for schema in (FIRST, SECOND)]
        kafka.write(first, [message(ids[0], FIRST, {"tail": "a"})])
        until(lambda: bool(failed) or tails() == ["a"], "the first row")
        server.stop()
        kafka.write(first, [message(ids[0], FIRST, {"tail": "b"}), message(ids[1], SECOND, {"tail": "c"})])
        server.start()
        until(lambda: bool(failed) or len(tails()) == 3, "the others")
    finally:
        stop.request()
        engine.join(60)
    assert failed == []
    assert tails() == ["a", "b", "c"]
