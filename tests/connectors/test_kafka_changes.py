"""Debezium's events in a topic: a query over them, tombstones, and a sink that writes what the source reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka_broker import Broker

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.connectors

COLUMNS = "op TEXT, before STRUCT<id BIGINT, price DECIMAL(10, 2)>, after STRUCT<id BIGINT, price DECIMAL(10, 2)>"


def table(kafka: Broker, name: str, topic: str, columns: str, options: str) -> str:
    return f"""
        CREATE TABLE {name} ({columns}) WITH (connector = 'kafka', bootstrap_servers = '{kafka.address}',
        topic = '{topic}', format = 'debezium_json', {options});
    """


def run(*statements: str) -> None:
    run_pipeline(Script("query.sql", "".join(statements), []).pipeline)


def test_changes_are_read_and_written(kafka: Broker, tmp_path: Path) -> None:
    first, second = kafka.topic(), kafka.topic()
    a, b = {"id": 1, "price": "MDk="}, {"id": 1, "price": "z8c="}
    changes = [{"op": "c", "before": None, "after": a}, {"op": "u", "before": a, "after": b}, {"op": "d", "before": b}]
    kafka.write(first, [*(json.dumps(change).encode() for change in changes), None])
    bounded = "'source.offset' = 'earliest', 'source.bounded' = 'true'"
    run(
        table(kafka, "changes", first, COLUMNS, f"type = 'source', {bounded}"),
        table(kafka, "out", second, COLUMNS, "type = 'sink'"),
        "INSERT INTO out SELECT op, before, after FROM changes;",
    )
    out = [json.loads(message.value()) for message in kafka.messages(second)[0]]
    assert out == [{"op": change["op"], "before": change["before"], "after": change.get("after")} for change in changes]
    run(
        table(
            kafka, "changes", second, f"{COLUMNS}, n BIGINT METADATA FROM 'offset_id'", f"type = 'source', {bounded}"
        ),
        f"CREATE TABLE out WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'json', type = 'sink');",
        "INSERT INTO out SELECT n, op, after['price'] AS price FROM changes;",
    )
    (part,) = (tmp_path / "out").glob("part-*")
    assert sorted(json.loads(line)["n"] for line in part.read_text().splitlines()) == [0, 1, 2]


def test_tombstones_alone_are_passed_over_and_end_a_bounded_topic(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.write(topic, [None, None])
    run(
        table(kafka, "changes", topic, COLUMNS, "'source.offset' = 'earliest', 'source.bounded' = 'true'"),
        f"CREATE TABLE out WITH (connector = 'single_file', path = '{tmp_path}/out', format = 'json');",
        "INSERT INTO out SELECT op FROM changes;",
    )
    assert (tmp_path / "out").read_text() == ""
