"""What CREATE TABLE says of a topic's format and schemas, and which choices do not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pydantic
import pytest
from google.protobuf import descriptor_pb2

from arroyo_udf_plugin.engine.connectors.kafka.sink import KafkaOutput
from arroyo_udf_plugin.engine.connectors.kafka.source import KafkaInput
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import InvalidArgument

REGISTRY = "'schema_registry.endpoint' = 'http://localhost:8081'"
AVRO = f"format = 'avro', 'avro.confluent_schema_registry' = 'true', {REGISTRY}"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with schemas are read when a query is planned."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", "sesame")
    record = {"type": "record", "name": "Row", "fields": [{"name": "n", "type": "long"}]}
    Path("a.avsc").write_text(json.dumps(record))
    file = descriptor_pb2.FileDescriptorProto(name="n.proto", package="air", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto
    one = kind(number=1, name="n", type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)
    file.message_type.add(name="Flight").field.append(one)
    Path("a.pb").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def source(options: str, columns: str = "n BIGINT") -> dict[str, Any]:
    text = f"""
        CREATE TABLE s ({columns}) WITH (connector = 'kafka', bootstrap_servers = 'b:1', topic = 't', {options});
        CREATE TABLE o WITH (connector = 'blackhole');
        INSERT INTO o SELECT * FROM s;
    """
    told: dict[str, Any] = described(Script("query.sql", text, []).pipeline)["source"]
    return told


def test_a_registry_with_its_user() -> None:
    auth = "'schema_registry.api_key' = 'me', 'schema_registry.api_secret' = '${SECRET}', 'value.subject' = 'other'"
    told = source(f"{AVRO}, {auth}")
    endpoint = {"endpoint": "http://localhost:8081", "api_key": "me", "api_secret": "${SECRET}"}
    assert (told["format"], told["schema_registry"], told["value_subject"]) == ("avro", endpoint, "other")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ("format = 'avro', 'avro.raw_datums' = 'true', 'avro.schema_file' = 'a.avsc'", {"schema_file": "a.avsc"}),
        (
            "format = 'protobuf', 'protobuf.schema_file' = 'a.pb', 'protobuf.message_name' = 'air.Flight'",
            {"schema_file": "a.pb", "message_name": "air.Flight"},
        ),
        (f"format = 'json', {REGISTRY}", {"schema_registry": None}),  # a profile's, which other tables need
        (
            f"format = 'json', 'json.confluent_schema_registry' = 'true', {REGISTRY}",
            {"schema_registry": {"endpoint": "http://localhost:8081", "api_key": None, "api_secret": None}},
        ),
    ],
)
def test_options_become_keys(options: str, keys: dict[str, Any]) -> None:
    told = source(options)
    assert {name: told.get(name) for name in keys} == keys


def test_debezium_has_times_and_decimals_of_its_own() -> None:
    columns = "op TEXT, after STRUCT<n BIGINT>"
    told = source("format = 'debezium_json', json.timestamp_format = 'unix_micros'", columns)
    assert (told["timestamps"], told.get("decimals")) == ("unix_micros", None)
    told = source("format = 'debezium_json', json.decimal_encoding = 'string'", columns)
    assert told["decimals"] == "string"


def test_records_as_json() -> None:
    told = source(f"{AVRO}, 'avro.into_unstructured_json' = 'true'", "value TEXT")
    assert told["unstructured"] is True


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("format = 'avro'", "avro has its schemas in a registry or in a file: write 'avro.confluent_schema_registry'"),
        ("format = 'avro', 'avro.raw_datums' = 'true'", "avro has its schemas in a registry or in a file"),
        (f"{AVRO}, 'avro.raw_datums' = 'true'", "avro has its schemas in a registry or in a file"),
        (
            "format = 'avro', 'avro.confluent_schema_registry' = 'true'",
            "a schema registry needs schema_registry.endpoint = 'http://localhost:8081'",
        ),
        ("format = 'protobuf', 'protobuf.schema_file' = 'a.pb'", "no protobuf.message_name: write"),
        ("format = 'json', json.timestamp_format = 'unix_micros'", "'unix_micros' is not known"),
        ("format = 'json', json.include_schema = 'true'", "values have no schema in them here"),
        ("format = 'json', json.decimal_encoding = 'bytes'", "write 'number' or 'string'"),
        ("format = 'avr'", "format = 'avr' is not known of messages: "),
    ],
)
def test_options_that_do_not_go_together(options: str, why: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        source(options)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"format": "avro"}, "avro needs one of schema_registry and schema_file"),
        ({"schema_file": "a"}, "schema_file: json has no schema: leave it out"),
        ({"format": "raw_string", "schema_registry": {"endpoint": "http://r"}}, "raw_string has no schema"),
        ({"format": "protobuf"}, "protobuf needs schema_file"),
        ({"format": "protobuf", "schema_file": "a"}, "protobuf needs message_name"),
        ({"message_name": "a.B"}, "json has no message_name"),
        ({"unstructured": True}, "unstructured is of the format avro"),
        ({"timestamps": "unix_micros"}, 'timestamps = "unix_micros" is of the format debezium_json'),
        ({"decimals": "bytes"}, 'decimals = "bytes" is of the format debezium_json'),
        ({"schema_registry": {"endpoint": "localhost:8081"}}, "write an address, such as 'http://localhost:8081'"),
        ({"schema_registry": {"endpoint": "http://me:sesame@r"}}, "leave the user out of the address"),
        ({"schema_registry": {"endpoint": "http://r", "api_key": "me"}}, "write both of api_key and api_secret"),
    ],
)
def test_keys_that_do_not_go_together(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=why):
        KafkaInput(bootstrap_servers="b:1", topic="t", **keys)


def test_a_sink_of_protobuf() -> None:
    options = "format = 'protobuf', 'protobuf.schema_file' = 'a.pb', 'protobuf.message_name' = 'air.Flight'"
    text = f"""
        CREATE TABLE s (counter BIGINT) WITH (connector = 'impulse', event_rate = '1');
        CREATE TABLE o (n BIGINT) WITH (connector = 'kafka', bootstrap_servers = 'b:1', topic = 't', {options});
        INSERT INTO o SELECT counter AS n FROM s;
    """
    (sink,) = described(Script("query.sql", text, []).pipeline)["sinks"]
    assert (sink["format"], sink["schema_file"], sink["message_name"]) == ("protobuf", "a.pb", "air.Flight")
    with pytest.raises(pydantic.ValidationError, match="protobuf needs message_name"):
        KafkaOutput(bootstrap_servers="b:1", topic="t", format="protobuf", schema_file="a")
