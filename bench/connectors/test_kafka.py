"""Kafka to a Python function to Kafka, exactly once, against a plain loop over confluent-kafka with the same function
and transactions that take as long. The goal: 0.7 of its rows.

KAFKA_JARS names the folder of a broker's jars (`make test-connectors` makes build/kafka).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin import build, run_pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from conftest import HERE, note

if "KAFKA_JARS" not in os.environ:
    pytest.skip("make test-connectors has Kafka", allow_module_level=True)

sys.path.insert(0, str(HERE.parent / "tests" / "connectors"))

import kafka_broker
from confluent_kafka import Consumer, Producer, TopicPartition

MESSAGES = int(os.environ.get("MESSAGES", "600000"))
ROUNDS = 3
EVERY = 1.0  # seconds between two checkpoints
BATCH = 8192
TEXT = '{"user": %d, "text": "' + "x" * 150 + '", "place": "home", "at": "2026-01-01T00:00:00Z"}'
FUNCTION = """
from arroyo_udf_plugin import udf


@udf
def shouted(value: str) -> str:
    return value.upper()
"""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_broker.Broker]:
    with kafka_broker.broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


def loop(kafka: kafka_broker.Broker, source: str, target: str) -> None:
    identity = uuid.uuid4().hex
    consumer = Consumer(
        kafka.client(group_id=identity, enable_auto_commit=False, isolation_level="read_committed")
        | {"auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(source, 0, 0)])
    producer = Producer(kafka.client(transactional_id=identity, queue_buffering_max_messages=1_000_000))
    producer.init_transactions()
    done = 0
    while done < MESSAGES:
        producer.begin_transaction()
        until = time.monotonic() + EVERY
        while done < MESSAGES and time.monotonic() < until:
            for message in consumer.consume(BATCH, 1.0):
                producer.produce(target, message.value().decode().upper().encode())
                done += 1
            producer.poll(0)
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(source, 0, done)], group)
        producer.commit_transaction()
    consumer.close()


def pipeline(kafka: kafka_broker.Broker, plugin: Path, source: str, target: str) -> None:
    topic = {"type": "kafka", "bootstrap_servers": kafka.address, "format": "raw_string"}
    with tempfile.TemporaryDirectory() as state:
        description = {
            "name": uuid.uuid4().hex,
            "source": {**topic, "topic": source, "offset": "earliest", "bounded": True},
            "operators": [{"plugin": str(plugin), "calls": ["shout = shouted(value)"]}],
            "sinks": [{**topic, "topic": target, "columns": ["shout"]}],
            "checkpoints": {"place": state, "every": EVERY},
        }
        run_pipeline(pipeline_of(description))


def test_kafka_to_kafka(kafka: kafka_broker.Broker, benchmark: Any, tmp_path: Path) -> None:
    path = tmp_path / "shouted.py"
    path.write_text(FUNCTION)
    plugin = build(path)
    source = kafka.topic()
    kafka.write(source, (TEXT.encode() % n for n in range(MESSAGES)))

    def seconds(run: Callable[[str], None]) -> float:
        target = kafka.topic()
        began = time.perf_counter()
        run(target)
        took = time.perf_counter() - began
        assert len(kafka.messages(target)[0]) == MESSAGES
        return took

    def both() -> list[tuple[float, float]]:
        return [
            (seconds(lambda to: pipeline(kafka, plugin, source, to)), seconds(lambda to: loop(kafka, source, to)))
            for _ in range(ROUNDS)
        ]

    pairs = benchmark.pedantic(both, rounds=1)
    one, other = (statistics.median(times) for times in zip(*pairs, strict=True))
    note(benchmark, "Kafka to Kafka, exactly once", one / MESSAGES * 1e9, "ns/row", "plain loop", one / other, 1 / 0.7)
