"""What changes around a pipeline under load: leaders of partitions, their number, a schema registry. Readers with
read_committed see each row once.

KILLS: a tenth of it is how often, and twice at least. KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import io
import json
import os
import random
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.admin import NewPartitions
from kafka_broker import Broker
from kafka_load import Load
from kafka_pair import pair
from schema_registry_server import registry
from waiting import until

from arroyo_udf_plugin.engine.connectors.kafka import source as kafka_source

pytestmark = pytest.mark.connectors

ROUNDS = max(2, int(os.environ.get("KILLS", "4")) // 10)
ROWS = 500
"""Between two disturbances, at most."""


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
    print(f"KILL_SEED={seed}")
    return random.Random(seed)


def description(servers: str, source: str, target: str, folder: Path, **keys: Any) -> dict[str, Any]:
    """A pipeline from one topic to another, in two slices."""
    common = {"type": "kafka", "bootstrap_servers": servers, **keys}
    return {
        "name": "disturbed",
        "source": {**common, "topic": source, "offset": "earliest", "types": {"n": "int"}},
        "sinks": [{**common, "topic": target}],
        "checkpoints": {"place": str(folder / "state"), "every": 0.05},
        "parallelism": 2,
    }


def objects(rows: range) -> list[bytes]:
    return [b'{"n": %d}' % n for n in rows]


def number(value: bytes) -> int:
    return int(json.loads(value)["n"])


def test_a_leader_that_is_killed_and_one_that_is_replaced(tmp_path: Path, chance: random.Random) -> None:
    """Of both topics, of the positions of groups, and of the states of transactions."""
    with pair(tmp_path) as brokers:
        kafka, source, target = brokers.first, brokers.topic(partitions=2), brokers.topic(partitions=2)
        pipeline = description(brokers.addresses, source, target, tmp_path)
        with Load(kafka, source, target, pipeline, objects, number, partitions=2) as load:
            for _ in range(ROUNDS):
                load.go_on(chance.randrange(1, ROWS))
                brokers.second.kill()
                until(lambda: all(brokers.led_by(topic, 1) for topic in (source, target)), "other leaders")
                load.go_on(chance.randrange(1, ROWS))
                brokers.second.restart()
                brokers.move_back(source, target)
            load.go_on(ROWS)
        load.check()


def test_partitions_that_are_added(
    kafka: Broker, tmp_path: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the broker is killed."""
    monkeypatch.setattr(kafka_source, "WATCH", 0.05)
    source, target = kafka.topic(), kafka.topic(partitions=2)
    pipeline = description(kafka.address, source, target, tmp_path)
    with Load(kafka, source, target, pipeline, objects, number) as load:
        for round in range(ROUNDS):
            load.go_on(chance.randrange(1, ROWS))
            kafka.admin.create_partitions([NewPartitions(source, 2 + round)])[source].result(60)
            if round % 2:
                kafka.restart()
            until(lambda: kafka.partitions(source) == load.partitions + 1, "the new partition")
            load.partitions += 1
        load.go_on(ROWS)
    load.check()


def test_a_schema_registry_that_is_killed(kafka: Broker, tmp_path: Path, chance: random.Random) -> None:
    """While it is asked for a schema. Each 100 messages have another one."""
    source, target = kafka.topic(), kafka.topic()
    with registry() as server:

        def records(rows: range) -> Sequence[bytes]:
            fields = [{"name": "n", "type": "long"}, {"name": f"f{rows[0]}", "type": "int", "default": 0}]
            schema = {"type": "record", "name": "Row", "fields": fields}
            head = b"\0" + server.add(f"{source}-value", json.dumps(schema)).to_bytes(4)
            values = []
            for n in rows:
                stream = io.BytesIO(head)
                stream.seek(len(head))
                fastavro.schemaless_writer(stream, schema, {"n": n})
                values.append(stream.getvalue())
            return values

        def number_of(value: bytes) -> int:
            schema = json.loads(server.schema(int.from_bytes(value[1:5]))["schema"])
            row: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
            return int(row["n"])

        avro = {"format": "avro", "schema_registry": {"endpoint": server.address}}
        pipeline = description(kafka.address, source, target, tmp_path, **avro)
        with Load(kafka, source, target, pipeline, records, number_of) as load:
            for _ in range(ROUNDS):
                load.go_on(chance.randrange(1, ROWS))
                server.kill()
                until(lambda: load.is_full, "a pipeline that waits")
                server.start()
            load.go_on(ROWS)
        load.check()
        assert server.broken >= ROUNDS
