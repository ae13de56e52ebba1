"""Topics of Kafka on Flink, by Flink's own connector: the values of the embedded engine, each once."""

from __future__ import annotations

import collections
import json
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation
from kafka_broker import USERS, Broker
from sessions import Session, until

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script

QUERY = """
CREATE TABLE orders (
  id BIGINT, name TEXT, part INT METADATA FROM 'partition', number BIGINT METADATA FROM 'offset_id',
  who TEXT METADATA FROM 'key', at TIMESTAMP METADATA FROM 'timestamp', WATERMARK FOR at)
WITH (connector = 'kafka', bootstrap_servers = '{kafka}', topic = '{orders}', format = 'json', {user}, {options});
CREATE TABLE copies (id BIGINT, name TEXT, part INT, number BIGINT, who TEXT, at TIMESTAMP) WITH (
  connector = 'kafka', bootstrap_servers = '{kafka}', topic = '{copies}', format = 'json', {user},
  'sink.key_field' = 'who', 'sink.timestamp_field' = 'at');
CREATE TABLE counts (part INT, rows BIGINT, ids BIGINT) WITH (
  connector = 'kafka', bootstrap_servers = '{kafka}', topic = '{counts}', format = 'json', {user});
INSERT INTO copies SELECT id, name, part, number, who, at FROM orders;
INSERT INTO counts SELECT part, rows, ids FROM (
  SELECT tumble(interval '1 hour') AS window, part, count(*) AS rows, sum(id) AS ids FROM orders GROUP BY window, part);
"""
BOUNDED = {"source.bounded": "true"}
EARLIEST = {"source.offset": "earliest"}
USER = {
    "auth.type": "sasl",
    "auth.protocol": "SASL_PLAINTEXT",
    "auth.mechanism": "PLAIN",
    "auth.username": "writer",
    "auth.password": USERS["writer"],
}


class Topics:
    """orders: what is read, with three partitions."""

    def __init__(self, kafka: Broker) -> None:
        self.kafka, self.orders = kafka, kafka.topic(partitions=3)
        self.written = 0

    def write(self, count: int) -> None:
        for partition in range(3):
            numbers = range(self.written + partition, self.written + count, 3)
            values = [json.dumps({"id": n, "name": f"order {n}", "other": [n]}).encode() for n in numbers]
            self.kafka.write(self.orders, values, partition, key=(None, b"anna", b"otto")[partition])
        self.written += count

    def description(self, **options: str) -> tuple[dict[str, Any], str, str]:
        """And the topics to which it writes. A user with a password reads and writes."""
        copies, counts = self.kafka.topic(partitions=5), self.kafka.topic()
        text = QUERY.format(
            kafka=self.kafka.guarded,
            orders=self.orders,
            copies=copies,
            counts=counts,
            user=_written(USER),
            options=_written(EARLIEST | options),
        )
        pipeline = described(Script("query.sql", text, []).pipeline)
        return {**pipeline, "name": f"copies-of-{self.orders}"}, copies, counts


def _written(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


@pytest.fixture
def topics(kafka: Broker) -> Topics:
    return Topics(kafka)


def found(kafka: Broker, topic: str) -> list[tuple[bytes | None, bytes | None, Any, int | None]]:
    """All messages that are committed: key, value and time, and with a key the partition."""
    every = kafka.messages(topic).items()
    return sorted(
        ((m.key(), m.value(), m.timestamp(), at if m.key() else None) for at, own in every for m in own), key=repr
    )


def values(kafka: Broker, topic: str) -> list[bytes | None]:
    return [value for _, value, _, _ in found(kafka, topic)]


def ids(kafka: Broker, topic: str) -> collections.Counter[int]:
    return collections.Counter(json.loads(value or b"")["id"] for value in values(kafka, topic))


def test_a_description_runs_on_both_engines(topics: Topics, kafka: Broker, session_cluster: Session) -> None:
    topics.write(3000)
    kafka.write(topics.orders, [None, b'{"id": -1, "name": "\\u00e4\\n"}'], partition=2)
    reference, copies, counts = topics.description(**BOUNDED)
    run_pipeline(pipeline_of({**reference, "parallelism": 2}))
    pipeline, own_copies, own_counts = topics.description(**BOUNDED)
    session_cluster.submit(pipeline).await_state("FINISHED")
    assert len(found(kafka, copies)) == 3002
    assert found(kafka, own_copies) == found(kafka, copies)
    assert len(values(kafka, counts)) >= 3
    assert values(kafka, own_counts) == values(kafka, counts)


def test_a_killed_taskmanager_doubles_and_loses_nothing(
    topics: Topics, kafka: Broker, session_cluster: Session
) -> None:
    """It is killed while transactions are open."""
    topics.write(3000)
    pipeline, copies, _ = topics.description(**{"source.group_id": "watching"})
    job = session_cluster.submit(pipeline, checkpoint_interval=0.5)
    until(lambda: bool(ids(kafka, copies)), "the first messages")
    topics.write(3000)
    killed = session_cluster.kill("taskmanager-0")
    topics.write(3000)
    session_cluster.await_new("taskmanager-0", killed)
    job.await_running()
    topics.write(3000)
    everything = collections.Counter(range(topics.written))
    until(lambda: ids(kafka, copies).total() >= topics.written, "all messages")
    job.await_checkpoints(2)
    assert ids(kafka, copies) == everything
    until(lambda: sum(kafka.committed("watching", topics.orders).values()) == topics.written, "the group's offsets")


def copying(topics: Topics, copies: str, way: str) -> dict[str, Any]:
    """A pipeline of a user who is asked for a password in this way. The user `reader` reads, `writer` writes."""
    mechanism, _, tls = way.partition(" with ")
    kafka = topics.kafka
    options = {
        "bootstrap_servers": kafka.secured if tls else kafka.guarded,
        "auth.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "auth.mechanism": mechanism,
        **({"client_configs": f"ssl.ca.location={kafka.authority}"} if tls else {}),
    }
    users = [USER | options | {"auth.username": user, "auth.password": USERS[user]} for user in ("reader", "writer")]
    text = f"""
        CREATE TABLE orders (id BIGINT) WITH (
            connector = 'kafka', format = 'json', topic = '{topics.orders}', {_written(users[0] | EARLIEST | BOUNDED)});
        CREATE TABLE copies (id BIGINT) WITH (
            connector = 'kafka', format = 'json', topic = '{copies}', {_written(users[1])});
        INSERT INTO copies SELECT id FROM orders;
    """
    return {**described(Script("query.sql", text, []).pipeline), "name": f"copies-of-{topics.orders}"}


@pytest.mark.parametrize("way", ["SCRAM-SHA-256", "SCRAM-SHA-256 with TLS"])
def test_users_with_passwords(topics: Topics, kafka: Broker, session_cluster: Session, way: str) -> None:
    topics.write(300)
    copies = kafka.topic()
    session_cluster.submit(copying(topics, copies, way)).await_state("FINISHED")
    assert ids(kafka, copies) == collections.Counter(range(300))


@pytest.mark.parametrize(("user", "operation"), [("reader", AclOperation.READ), ("writer", AclOperation.WRITE)])
def test_what_an_acl_denies(
    topics: Topics, kafka: Broker, session_cluster: Session, user: str, operation: AclOperation
) -> None:
    """Which the job says when it begins."""
    topics.write(3)
    copies = kafka.topic()
    topic = topics.orders if user == "reader" else copies
    kafka.deny(topic, user, operation)
    job = session_cluster.submit(copying(topics, copies, "SCRAM-SHA-256 with TLS"))
    until(lambda: job.state() == "FAILED", "the end of the job")
    (failure,) = job.exceptions()
    assert f"topic '{topic}': the user {user} may not do this: ask for an ACL" in failure


def test_a_topic_that_is_not_there_is_named(topics: Topics, session_cluster: Session) -> None:
    pipeline, _, _ = topics.description()
    job = session_cluster.submit(json.loads(json.dumps(pipeline).replace(topics.orders, "nowhere")))
    until(lambda: job.state() == "FAILED", "the end of the job")
    (failure,) = job.exceptions()
    assert f"Kafka at {topics.kafka.guarded} has no topic 'nowhere': create it, or correct its name" in failure
