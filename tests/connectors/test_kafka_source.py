"""Messages of a topic as rows: formats, metadata, transactions, where reading begins, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import uuid
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)
from kafka_broker import USERS, Broker, broker
from waiting import until

from arroyo_udf_plugin.engine.connectors.interface import Gauge, Partition
from arroyo_udf_plugin.engine.connectors.kafka import partition as kafka_partition
from arroyo_udf_plugin.engine.connectors.kafka import topic as kafka_topic
from arroyo_udf_plugin.engine.connectors.kafka.source import KafkaInput, KafkaSource
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable
from arroyo_udf_plugin.testing import check_source

pytestmark = pytest.mark.connectors

NUMBERS = {"n": "int"}


def described(kafka: Broker, topic: str, **keys: Any) -> KafkaInput:
    """All messages that there are, as JSON with a number."""
    usual = {"bootstrap_servers": kafka.address, "offset": "earliest", "bounded": True, "types": NUMBERS}
    return KafkaInput(topic=topic, **{**usual, **keys})


async def rest_of(partition: Partition) -> list[Rows]:
    with contextlib.closing(partition):  # type: ignore[type-var]
        return [rows async for rows in _reads(partition)]


async def _reads(partition: Partition) -> Any:
    while (rows := await partition.read()) is not None:
        yield rows


def read(model: KafkaInput) -> list[Rows]:
    """Partition by partition."""
    source = model.source(1)
    return [rows for name in source.partitions() for rows in asyncio.run(rest_of(source.open(name, None)))]


def values(model: KafkaInput) -> list[dict[str, Any]]:
    found = read(model)
    assert not any(rows.refused for rows in found)
    return [row for rows in found for row in rows.batch.to_pylist()]


def offsets_of(rows: Rows) -> list[int]:
    first, count = rows.first, rows.batch.num_rows
    return list(range(first, first + count)) if rows.numbers is None else rows.numbers.to_pylist()


def numbers(*n: int) -> list[bytes | None]:
    return [b'{"n": %d}' % each for each in n]


# ---- Rows ------------------------------------------------------------------------------------------------------------


def test_objects_of_json(kafka: Broker) -> None:
    topic, types = kafka.topic(), {"n": "int", "at": "timestamp[us, UTC]", "any": "str"}
    kafka.write(
        topic, [b'{"n": 1, "at": "2026-01-01T00:00:00Z", "any": {"b": [1]}, "new": 5}', b'{\n  "n": 2\n}', None]
    )
    assert values(described(kafka, topic, types=types, json_columns=["any"])) == [
        {"n": 1, "at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "any": '{"b": [1]}'},
        {"n": 2, "at": None, "any": None},
        {"n": None, "at": None, "any": None},
    ]


def test_a_large_batch_is_decoded_in_native_code(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(*range(20_000)))
    source = described(kafka, topic).source(1)
    (name,) = source.partitions()
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.json_rows.parsed", None)
    found = asyncio.run(rest_of(source.open(name, None)))
    assert [row["n"] for rows in found for row in rows.batch.to_pylist()] == list(range(20_000))


@pytest.mark.parametrize(("format", "value"), [("raw_string", "ä\n{"), ("raw_bytes", "ä\n{".encode())])
def test_values_as_they_are(kafka: Broker, format: str, value: object) -> None:
    topic = kafka.topic()
    kafka.write(topic, ["ä\n{".encode(), None])
    assert values(described(kafka, topic, format=format, types={})) == [{"value": value}, {"value": None}]


def test_what_is_known_about_a_message(kafka: Broker) -> None:
    topic = kafka.topic(partitions=2)
    producer = Producer(kafka.client())
    producer.produce(topic, b'{"n": 7}', b"k", 1, timestamp=1_767_225_600_123, headers={"trace": b"\xff"})
    producer.flush()
    keys = ("topic", "partition", "offset_id", "timestamp", "key", "headers")
    metadata = {key: key for key in keys} | {"text": "key", "millis": "timestamp"}
    model = described(kafka, topic, metadata=metadata, types=NUMBERS | {"text": "str", "millis": "int64"})
    assert values(model) == [
        {
            "n": 7,
            "topic": topic,
            "partition": 1,
            "offset_id": 0,
            "timestamp": datetime.datetime(2026, 1, 1, 0, 0, 0, 123_000, datetime.UTC),
            "key": b"k",
            "headers": [{"key": "trace", "value": b"\xff"}],
            "text": "k",
            "millis": 1_767_225_600_123,
        }
    ]


def test_messages_that_cannot_be_read_are_named(kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b'{"n": 1}', b"{", b'{"n": "x"}', b"5", b"\xff", b""])
    (rows,) = read(described(kafka, topic))
    assert (rows.file, rows.first) == (f"{topic}, partition 0", 0)
    assert list(rows.refused) == [1, 3, 4, 5, 2]
    assert rows.refused[1].startswith("the message is not JSON: ")
    assert rows.refused[4].startswith("the message is not UTF-8")
    (rows,) = read(described(kafka, topic, format="raw_string", types={}))
    assert rows.refused == {4: "the message is not UTF-8: b'\\xff'"}


def test_only_committed_messages_are_read_and_rows_have_their_offsets(kafka: Broker) -> None:
    topic = kafka.topic()
    producer = Producer(kafka.client(transactional_id=uuid.uuid4().hex))
    producer.init_transactions(60)
    for n, end in ((1, producer.commit_transaction), (2, producer.abort_transaction), (3, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, b'{"n": %d}' % n)
        producer.flush()
        end(60)
    offsets = {"metadata": {"at": "offset_id"}}
    committed = read(described(kafka, topic, **offsets))
    assert [row for rows in committed for row in rows.batch.to_pylist()] == [{"n": 1, "at": 0}, {"n": 3, "at": 4}]
    assert [number for rows in committed for number in offsets_of(rows)] == [0, 4]
    every = values(described(kafka, topic, read_mode="read_uncommitted", **offsets))
    assert every == [{"n": 1, "at": 0}, {"n": 2, "at": 2}, {"n": 3, "at": 4}]


def test_the_lag_is_told_until_all_has_been_read(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that is idle behind the end of a transaction has none."""
    monkeypatch.setattr(kafka_partition, "BATCH_ROWS", 10)
    topic = kafka.topic()
    producer = Producer(kafka.client(transactional_id=uuid.uuid4().hex))
    producer.init_transactions(60)
    producer.begin_transaction()
    for n in range(100):
        producer.produce(topic, b'{"n": %d}' % n)
    producer.commit_transaction(60)

    async def work() -> None:
        source = described(kafka, topic, bounded=False).source(1)
        partition: Any = source.open(source.partitions()[0], None)
        with contextlib.closing(partition):
            assert partition.gauges() == []
            rows = await partition.read()
            assert partition.gauges() == [Gauge("lag", 101 - rows.batch.num_rows, "messages")]
            read = rows.batch.num_rows
            while read < 100:
                read += (await partition.read()).batch.num_rows
            waiting = asyncio.create_task(partition.read())
            async with asyncio.timeout(60):
                while partition.gauges() != [Gauge("lag", 0, "messages")]:
                    await asyncio.sleep(0.01)
            waiting.cancel()

    asyncio.run(work())


# ---- Where reading begins --------------------------------------------------------------------------------------------


def test_the_first_message(kafka: Broker) -> None:
    topic, group = kafka.topic(partitions=2), uuid.uuid4().hex
    producer = Producer(kafka.client())
    for n in range(3):
        producer.produce(topic, b'{"n": %d}' % n, partition=0, timestamp=1000 * (n + 1))
    producer.flush()
    kafka.write(topic, numbers(10), partition=1)
    with contextlib.closing(Consumer(kafka.client(group_id=group))) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)

    def begun(**keys: Any) -> list[int]:
        return [row["n"] for row in values(described(kafka, topic, **keys))]

    second = datetime.datetime.fromtimestamp(2, datetime.UTC)
    later = datetime.datetime.fromtimestamp(4e9, datetime.UTC)
    assert begun(offset="earliest") == [0, 1, 2, 10]
    assert begun(offset="latest") == []
    assert begun(offset="group", group_id=group) == [1, 2, 10]
    assert begun(timestamp=second) == [1, 2, 10]
    assert begun(timestamp=later) == []


def test_a_partition_that_comes_later_is_opened_while_brokers_are_away(tmp_path: Path) -> None:
    with broker(tmp_path) as kafka:
        topic = kafka.topic()
        source = described(kafka, topic, offset="latest", bounded=False).source(1)
        assert source.partitions() == ["0"]
        kafka.admin.create_partitions([NewPartitions(topic, 2)])[topic].result(60)
        until(lambda: source.partitions() == ["0", "1"], "the new partition")
        kafka.write(topic, numbers(7), partition=1)
        kafka.kill()
        partition = source.open("1", None)
        kafka.restart()
        assert partition.position() == {"offset": 0}

        async def first() -> Rows | None:
            async with asyncio.timeout(60):
                return await partition.read()

        rows = asyncio.run(first())
        partition.close()
        assert rows is not None
        assert rows.batch.to_pylist() == [{"n": 7}]


def test_the_kit(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_partition, "BATCH_ROWS", 1)  # a position behind each message
    topic = kafka.topic(partitions=2)
    kafka.write(topic, numbers(1, 2, 3), partition=0)
    kafka.write(topic, numbers(4), partition=1)
    check_source(tmp_path / "kit", lambda: described(kafka, topic).source(1), most=0)


# ---- What is refused -------------------------------------------------------------------------------------------------


def refused(model: KafkaInput) -> str:
    with pytest.raises(InvalidArgument) as error:
        read(model)
    return str(error.value)


def sasl(user: str, password: str) -> dict[str, Any]:
    return {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": user, "password": password}


def test_an_unknown_topic(kafka: Broker) -> None:
    assert refused(described(kafka, "nobody")) == (
        f"Kafka at {kafka.address} has no topic 'nobody': create it, or correct its name"
    )
    assert "nobody" not in kafka.admin.list_topics(timeout=10).topics


def test_no_broker(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topic, "PATIENCE", 1.0)
    with pytest.raises(Unreachable, match=r"Kafka at .* does not answer: start it") as error:
        read(described(kafka, "a", bootstrap_servers="127.0.0.1:1"))
    assert error.value.service == "Kafka at 127.0.0.1:1"


def test_passwords_and_permissions(kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(5))
    known = described(kafka, topic, bootstrap_servers=kafka.guarded, auth=sasl("reader", USERS["reader"]))
    assert values(known) == [{"n": 5}]
    assert USERS["reader"] not in repr(known)
    wrong = refused(known.model_copy(update={"auth": known.auth.model_copy(update={"password": "guessed"})}))  # type: ignore[union-attr]
    assert wrong.startswith(f"Kafka at {kafka.guarded} refuses us: check the password of reader")
    assert "guessed" not in wrong
    place = ResourceType.TOPIC, topic, ResourcePatternType.LITERAL
    denied = AclBinding(*place, "User:reader", "*", AclOperation.ALL, AclPermissionType.DENY)
    kafka.admin.create_acls([denied])[denied].result(60)
    assert f"topic {topic!r}: the user reader may not do this" in refused(known)


def test_options_of_the_client(kafka: Broker) -> None:
    assert "No such configuration property" in refused(described(kafka, "a", client_configs={"no.such": "1"}))
    for name in ("group.id", "plugin.library.paths"):
        with pytest.raises(ValueError, match=f"leave out '{name}'"):
            described(kafka, "a", client_configs={name: "1"})


def test_messages_that_are_gone(kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(*range(5)))
    running = described(kafka, topic, bounded=False).source(1)
    partition = running.open(*running.partitions(), {"offset": 1})
    kafka.admin.delete_records([TopicPartition(topic, 0, 3)])
    until(lambda: isinstance(running, KafkaSource) and running.offsets([0], "earliest")[0] == 3, "the removal")
    text = f"topic {topic}, partition 0: the next message is that of offset 1, and the topic begins with 3 now: 2 mes"
    with pytest.raises(InvalidArgument, match=text):
        described(kafka, topic).source(1).check({"0": {"offset": 1}})
    with contextlib.closing(running.open("0", {"offset": 1})) as late, pytest.raises(InvalidArgument, match=text):
        asyncio.run(late.read())
    partition.close()
    with pytest.raises(InvalidArgument, match="the topic ends before 5: it was made anew"):
        described(kafka, topic).source(1).check({"0": {"offset": 9}})


def test_types_that_do_not_fit(kafka: Broker) -> None:
    for keys, text in (
        ({"types": {}}, "types: name the columns"),
        ({"format": "raw_bytes"}, "raw_bytes has one column"),
        ({"metadata": {"a": "ofset_id"}}, "a message has no 'ofset_id': write 'offset_id'"),
        ({"metadata": {"n": "key"}}, "'n' is the key of a message: it is binary or string, not int64"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            described(kafka, "a", **keys).source(1)


def test_the_description_as_json(kafka: Broker) -> None:
    model = described(kafka, "a", auth=sasl("me", "${PASSWORD}"))
    assert KafkaInput.model_validate_json(json.dumps(model.model_dump(mode="json"))) == model


def test_a_leader_that_takes_over_is_asked_again(kafka: Broker) -> None:
    moves, answer = Future[int](), Future[int]()
    moves.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH)))
    answer.set_result(7)
    answers = [moves, answer]
    topic = KafkaInput(bootstrap_servers=kafka.address, topic="t", types={"n": "int"})
    assert topic.admin().ask(lambda client: {"offset": answers.pop(0)}) == {"offset": 7}
