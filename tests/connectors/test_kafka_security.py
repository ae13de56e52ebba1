"""Topics of a cluster that wants to know who asks, with TLS and without, and what a user is told who may not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from asgi_client import Client
from confluent_kafka.admin import AclOperation
from kafka_broker import USERS, Broker
from schema_registry_server import registry

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.engine.connectors.kafka.sink import KafkaOutput
from arroyo_udf_plugin.engine.connectors.kafka.source import KafkaInput
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable

pytestmark = pytest.mark.connectors

ROWS = pa.record_batch({"n": [1, 2]})
WAYS = ["PLAIN", "SCRAM-SHA-256", "PLAIN with TLS", "SCRAM-SHA-256 with TLS"]


def keys(kafka: Broker, way: str, user: str, **more: str) -> dict[str, Any]:
    """way: of `WAYS`. more: of auth."""
    mechanism, _, tls = way.partition(" with ")
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    auth = {"protocol": protocol, "mechanism": mechanism, "username": user, "password": USERS[user], **more}
    configs = {"client_configs": {"ssl.ca.location": str(kafka.authority)}} if tls else {}
    return {"bootstrap_servers": kafka.secured if tls else kafka.guarded, "auth": auth, **configs}


def read(**keys: Any) -> list[Any]:
    source = KafkaInput(**{"offset": "earliest", "bounded": True, "types": {"n": "int"}, **keys}).source(1)
    with contextlib.closing(source.open(source.partitions()[0], None)) as partition:  # type: ignore[type-var]
        rows = asyncio.run(partition.read())
    assert rows is not None
    return rows.batch.column("n").to_pylist()  # type: ignore[no-any-return]


def write(topic: str, **keys: Any) -> None:
    output = KafkaOutput(topic=topic, **keys)
    output.check(ROWS.schema)
    with contextlib.closing(output.sink(ROWS.schema, 0, None, "pipeline", "out")) as sink:
        sink.write(ROWS)
        sink.finish()


@pytest.mark.parametrize("way", WAYS)
def test_a_user_reads_and_writes(kafka: Broker, way: str) -> None:
    topic = kafka.topic()
    write(topic, **keys(kafka, way, "writer"))
    assert read(topic=topic, **keys(kafka, way, "reader")) == [1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_password_is_an_error_at_once_and_in_no_text(kafka: Broker, way: str) -> None:
    wrong, topic = keys(kafka, way, "reader", password="sesame"), kafka.topic()
    begin = time.monotonic()
    for use in (read, write):
        with pytest.raises(InvalidArgument, match="refuses us: check the password of reader") as raised:
            use(topic=topic, **wrong)
        assert not isinstance(raised.value, Unreachable)
        assert "sesame" not in str(raised.value)
    assert time.monotonic() - begin < 15
    assert "sesame" not in repr(KafkaInput(topic=topic, types={"n": "int"}, **wrong))


def test_a_mechanism_that_the_cluster_does_not_have(kafka: Broker) -> None:
    with pytest.raises(InvalidArgument, match=r"does not know SCRAM-SHA-512: .*supported mechanisms: .*PLAIN"):
        read(topic=kafka.topic(), **keys(kafka, "SCRAM-SHA-512", "reader"))


def test_a_certificate_whose_authority_is_not_named(kafka: Broker) -> None:
    told = {**keys(kafka, "PLAIN with TLS", "reader"), "client_configs": {}}
    with pytest.raises(InvalidArgument, match=r"cannot be trusted: name the file of its authority as ssl\.ca.location"):
        read(topic=kafka.topic(), **told)


def test_what_an_acl_denies(kafka: Broker) -> None:
    topic = kafka.topic()
    for user, operation in (("reader", AclOperation.READ), ("writer", AclOperation.WRITE)):
        kafka.deny(topic, user, operation)
    kafka.write(topic, [b'{"n": 1}'])
    way = "SCRAM-SHA-256 with TLS"
    assert read(topic=topic, **keys(kafka, way, "writer")) == [1]
    for use, user in ((read, "reader"), (write, "writer")):
        with pytest.raises(InvalidArgument, match=f"topic '{topic}': the user {user} may not do this: ask for an ACL"):
            use(topic=topic, **keys(kafka, way, user))


# ---- Through the API of a cluster ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("api")
    database = Database.open(f"sqlite:///{folder / 'cluster.sqlite'}")
    database.migrate()
    builder = Builder(folder / "functions", cache=folder / "cache")
    with Client(create_app(ApiParts(database, builder, Records(folder)))) as client:
        yield client
        client.run(builder.close())
    database.close()


def answer_of(api: Client, table: dict[str, Any]) -> str:
    """The last message of a test of the connection."""
    answer = api.post("/api/v1/connection_tables/test", json=table)
    (*_, last) = [json.loads(part.removeprefix("data: ")) for part in answer.text.split("\n\n") if part]
    assert last["done"]
    return str(last["message"])


def profile(api: Client, kafka: Broker, name: str, **more: Any) -> str:
    config = {
        "bootstrap_servers": kafka.secured,
        "protocol": "SASL_SSL",
        "mechanism": "SCRAM-SHA-256",
        "username": "reader",
        "password": USERS["reader"],
        "ca_location": str(kafka.authority),
        **more,
    }
    asked = {"name": name, "connector": "kafka", "config": config}
    answer = api.post("/api/v1/connection_profiles", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.json()["config"]["password"] == "********"
    return str(answer.json()["id"])


def test_a_saved_topic_is_tested_and_used(kafka: Broker, api: Client) -> None:
    topic = kafka.topic()
    fields = [
        {"name": "n", "type": "int64"},
        {"name": "at", "type": "int64", "metadata_key": "timestamp"},
    ]
    table = {
        "name": "numbers",
        "connector": "kafka",
        "connection_profile_id": profile(api, kafka, "right"),
        "config": {"table_type": {"type": "source", "topic": topic, "offset": "earliest"}},
        "schema": {"fields": fields, "format": {"type": "json"}},
    }
    assert answer_of(api, table) == "The table can be used"
    gone = {**table, "config": {"table_type": {"type": "source", "topic": "nothing"}}}
    assert "has no topic 'nothing': create it, or correct its name" in answer_of(api, gone)
    wrong = {**table, "connection_profile_id": profile(api, kafka, "wrong", password="sesame")}
    assert "refuses us: check the password of reader" in answer_of(api, wrong)
    sink = {**table, "config": {"table_type": {"type": "sink", "topic": topic}}, "name": "out"}
    assert "a sink of kafka has no metadata 'timestamp'" in answer_of(api, sink)
    for format in ({"type": "json", "debezium": True}, {"type": "json"}):
        sink["schema"] = {"fields": fields[:1], "format": format}
        assert answer_of(api, sink) == "The table can be used"
    for made in (table, sink):
        assert api.post("/api/v1/connection_tables", json=made).status_code == 200
    kafka.write(topic, [b'{"n": 7}'])
    told = api.post("/api/v1/pipelines/validate_query", json={"query": "INSERT INTO out SELECT n FROM numbers"}).json()
    assert told["errors"] == []


def test_a_saved_topic_with_a_registry(kafka: Broker, api: Client) -> None:
    with registry(user="me:sesame") as server:
        schemas = {
            "schema_registry_endpoint": server.address,
            "schema_registry_api_key": "me",
            "schema_registry_api_secret": "sesame",
        }
        table = {
            "name": "records",
            "connector": "kafka",
            "connection_profile_id": profile(api, kafka, "with a registry", **schemas),
            "config": {"table_type": {"type": "sink", "topic": kafka.topic()}},
            "schema": {
                "fields": [{"name": "n", "type": "int64"}],
                "format": {"type": "avro", "confluent_schema_registry": True},
            },
        }
        assert answer_of(api, table) == "The table can be used"
        schemas["schema_registry_api_secret"] = "no-sesame"
        table["connection_profile_id"] = profile(api, kafka, "with a wrong secret", **schemas)
        assert "refuses us: check the api_secret of me" in answer_of(api, table)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"protocol": "SASL_SSL", "username": "me"}, "SASL_SSL needs mechanism, username and password"),
        ({"password": "sesame"}, "a user needs the protocol SASL_SSL or SASL_PLAINTEXT"),
        ({"ca_location": "a,b"}, "name a file without a comma"),
    ],
)
def test_a_wrong_profile_is_refused(api: Client, config: dict[str, Any], why: str) -> None:
    asked = {"name": "p", "connector": "kafka", "config": {"bootstrap_servers": "localhost:9092", **config}}
    told = api.post("/api/v1/connection_profiles/test", json=asked).json()
    assert why in told["message"]
    assert "sesame" not in json.dumps(told)


def test_the_file_of_an_authority_is_in_the_folders_of_a_cluster(kafka: Broker, tmp_path: Path) -> None:
    """Otherwise pipelines of others could find out what files there are."""
    from arroyo_udf_plugin.engine.connectors.location import confined_to

    with confined_to([tmp_path]), pytest.raises(InvalidArgument, match="is outside of the folders that pipelines may"):
        read(topic="t", **keys(kafka, "PLAIN with TLS", "reader"))
