"""Pipelines that read a topic: slices, new partitions, watermarks, and engines and brokers that are killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_broker import Broker
from waiting import until

from arroyo_udf_plugin.engine.connectors.kafka import source as kafka_source
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.description import Pipeline, described
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.connectors

CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"


def query(kafka: Broker, topic: str, folder: Path, select: str = "SELECT n FROM t", **options: str) -> Pipeline:
    """SQL over a topic, into a folder."""
    usual = {"source.offset": "earliest", "format": "json"}
    written = ", ".join(f"'{name}' = '{value}'" for name, value in (usual | options).items())
    text = f"""
        CREATE TABLE t (n BIGINT, at TIMESTAMP METADATA FROM 'timestamp', WATERMARK FOR at)
        WITH (connector = 'kafka', bootstrap_servers = '{kafka.address}', topic = '{topic}', {written});
        CREATE TABLE out WITH (connector = 'filesystem', path = '{folder / "out"}', format = 'json');
        INSERT INTO out {select};
    """
    return Script("query.sql", text, []).pipeline


def with_checkpoints(pipeline: Pipeline, folder: Path, parallelism: int = 1, **keys: Any) -> dict[str, Any]:
    checkpoints = {"place": str(folder / "state"), "every": 0.05, **keys}
    return {**described(pipeline), "checkpoints": checkpoints, "parallelism": parallelism}


def shown(folder: Path) -> list[Any]:
    """The rows of all parts, sorted by their text."""
    parts = sorted((folder / "out").glob("part-*")) if (folder / "out").is_dir() else []
    return sorted((json.loads(line) for part in parts for line in part.read_text().splitlines()), key=repr)


def numbers_in(folder: Path) -> list[int]:
    return sorted(row["n"] for row in shown(folder))


def write(kafka: Broker, topic: str, *n: int, partition: int = 0) -> None:
    kafka.write(topic, [b'{"n": %d}' % each for each in n], partition)


@contextlib.contextmanager
def running(description: dict[str, Any]) -> Iterator[None]:
    """An engine that is stopped at the end of the block."""
    stop, failed = StopRequest(timeout=60), list[BaseException]()

    def run() -> None:
        try:
            run_pipeline(pipeline_of(description), stop=stop)
        except BaseException as error:
            failed.append(error)

    engine = threading.Thread(target=run, daemon=True)
    engine.start()
    try:
        yield
    finally:
        stop.request()
        engine.join(60)
        assert failed == []


def test_a_bounded_topic_is_read_to_its_end(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=3)
    write(kafka, topic, 1, 2)
    write(kafka, topic, 3, partition=2)
    summary = run_pipeline(query(kafka, topic, tmp_path, **{"source.bounded": "true"}))
    assert (summary.ended, numbers_in(tmp_path)) == ("finished", [1, 2, 3])


@pytest.mark.parametrize("parallelism", [(1, 1, 1), (2, 1, 3)], ids=["one slice", "rescaled"])
def test_killed_engines_read_each_message_once(kafka: Broker, tmp_path: Path, parallelism: tuple[int, ...]) -> None:
    topic, wanted, description = kafka.topic(partitions=3), itertools.count(), tmp_path / "description.json"

    def write_some() -> None:
        for partition in range(3):
            write(kafka, topic, *itertools.islice(wanted, 1000), partition=partition)

    for round, width in enumerate(parallelism):
        description.write_text(json.dumps(with_checkpoints(query(kafka, topic, tmp_path), tmp_path, width)))
        command = [sys.executable, str(CHILD), str(description), "any", "0", *(["--resume"] if round else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
            write_some()
            assert engine.stdout is not None
            assert engine.stdout.readline() == "epoch\n"
            write_some()
            engine.kill()
    count = next(wanted)
    with running(with_checkpoints(query(kafka, topic, tmp_path), tmp_path, 2)):
        until(lambda: len(shown(tmp_path)) >= count, "all messages")
    assert numbers_in(tmp_path) == list(range(count))


def test_a_first_run_that_begins_with_the_latest_message_goes_on_there(kafka: Broker, tmp_path: Path) -> None:
    """What comes between two runs is read, although the first one has read nothing."""
    topic = kafka.topic()
    write(kafka, topic, 1)
    description = with_checkpoints(query(kafka, topic, tmp_path, **{"source.offset": "latest"}), tmp_path)
    state = tmp_path / "state" / "epochs"
    with running(description):
        until(lambda: len(list(state.glob("*.json"))) > 1, "an epoch with positions")
    write(kafka, topic, 2)
    with running(description):
        until(lambda: shown(tmp_path) != [], "the message")
    assert numbers_in(tmp_path) == [2]


def test_partitions_that_come_later(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read from their first message on, also by slices that had none."""
    from confluent_kafka.admin import NewPartitions

    monkeypatch.setattr(kafka_source, "WATCH", 0.05)
    topic = kafka.topic()
    with running(with_checkpoints(query(kafka, topic, tmp_path, **{"source.offset": "latest"}), tmp_path, 2)):
        until(lambda: (tmp_path / "state").is_dir(), "the start")
        kafka.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(60)
        for partition in range(1, 3):
            write(kafka, topic, partition, partition=partition)
        until(lambda: len(shown(tmp_path)) == 2, "rows of new partitions")
    write(kafka, topic, 3, partition=2)
    with running(with_checkpoints(query(kafka, topic, tmp_path, **{"source.offset": "latest"}), tmp_path, 1)):
        until(lambda: len(shown(tmp_path)) >= 3, "a row after a resume")
    assert numbers_in(tmp_path) == [1, 2, 3]


def test_a_partition_without_messages_does_not_hold_windows_back(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=3)
    counts = "SELECT count(*) AS n FROM t GROUP BY tumble(INTERVAL '1 second')"
    pipeline = query(kafka, topic, tmp_path, counts, **{"idle_micros": "50000"})
    with running(with_checkpoints(pipeline, tmp_path, 2)):
        write(kafka, topic, 1, 2)

        def later() -> bool:
            write(kafka, topic, 3)  # while others have messages, it is not idle
            return shown(tmp_path) != []

        until(later, "a window")


def test_a_broker_that_is_killed(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic()
    write(kafka, topic, 1)
    with running(with_checkpoints(query(kafka, topic, tmp_path), tmp_path)):
        until(lambda: numbers_in(tmp_path) == [1], "the first message")
        kafka.restart()
        write(kafka, topic, 2)
        until(lambda: len(shown(tmp_path)) >= 2, "the second one")
    assert numbers_in(tmp_path) == [1, 2]


def test_a_group_is_told_the_positions(kafka: Broker, tmp_path: Path) -> None:
    topic, group = kafka.topic(), uuid.uuid4().hex
    write(kafka, topic, 1, 2, 3)
    model = query(kafka, topic, tmp_path, **{"source.group_id": group})
    with running(with_checkpoints(model, tmp_path)):
        until(lambda: kafka.committed(group, topic) == {0: 3}, "the position")


def test_a_message_that_cannot_be_read_ends_the_job(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b'{"n": 1}', b"?"])
    with pytest.raises(Exception, match=f"{topic}, partition 0, row 1: the message is not JSON"):
        run_pipeline(query(kafka, topic, tmp_path))
