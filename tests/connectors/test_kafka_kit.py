"""The sink against the kit for sinks: an engine that ends, fails, or sleeps at each kind of step.

KIT: "all": each with one slice and with two.

Assumes: what a slice notes is as `epochs.py` says it: the offset of a group whose name has the topic's.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_broker import Broker

from arroyo_udf_plugin.engine.connectors.interface import Stage, TransactionalSink
from arroyo_udf_plugin.engine.connectors.kafka.sink import KafkaOutput
from arroyo_udf_plugin.testing.conformance import sink_scenario
from arroyo_udf_plugin.testing.report import Report
from arroyo_udf_plugin.testing.simulation import Simulation

pytestmark = pytest.mark.connectors


class Topics:
    """A topic for each schedule, because messages cannot be taken away. width: of the engines.

    Contents: "rows", and "noted/SLICE", what a slice has noted: an offset with its metadata.
    """

    name = "kafka"

    def __init__(self, kafka: Broker, width: int) -> None:
        self._kafka, self._width = kafka, width
        self._topic = ""

    def clear(self) -> None:
        self._topic = self._kafka.topic()

    def contents(self) -> dict[str, bytes]:
        found = {"rows": json.dumps(self.shown()).encode()}
        for slice in range(self._width):
            with self._group(slice) as consumer:
                (noted,) = consumer.committed([TopicPartition(self._topic, 0)], 60)
            if noted.offset >= 0:
                found[f"noted/{slice}"] = json.dumps([noted.offset, noted.metadata]).encode()
        return found

    def put(self, name: str, data: bytes) -> None:
        kind, _, slice = name.partition("/")
        if kind == "rows":
            self._kafka.write(self._topic, [b'{"n": %d}' % n for n in json.loads(data)])
        else:
            noted = TopicPartition(self._topic, 0, *json.loads(data))
            with self._group(int(slice)) as consumer:
                consumer.commit(offsets=[noted], asynchronous=False)

    def delete(self, name: str) -> None:
        raise AssertionError("no schedule takes something away")

    def _group(self, slice: int) -> contextlib.closing[Consumer]:
        group = f"arroyo-udf/pipeline/out/{self._topic}/{slice}"
        return contextlib.closing(Consumer(self._kafka.client(group_id=group)))

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None) -> TransactionalSink:
        model = KafkaOutput(bootstrap_servers=self._kafka.address, topic=self._topic)
        made: Any = model.sink(schema, slice, stage, "pipeline", "out")
        return made  # type: ignore[no-any-return]

    def shown(self) -> list[int]:
        return [json.loads(message.value())["n"] for message in self._kafka.messages(self._topic)[0]]


def simulation(kafka: Broker, folder: Path, width: int) -> Simulation:
    topics = Topics(kafka, width)
    scenario = sink_scenario(folder / "kit", topics.sink, topics.shown, elsewhere=[topics])
    return Simulation(scenario, Report(), width, most=1)


def widths(usual: int) -> pytest.MarkDecorator:
    chosen = (1, 2) if os.environ.get("KIT") == "all" else (usual,)
    return pytest.mark.parametrize("width", chosen, ids="{} slices".format)


@widths(1)
def test_an_engine_that_is_killed_at_each_kind_of_step(kafka: Broker, tmp_path: Path, width: int) -> None:
    made = simulation(kafka, tmp_path, width)
    made.stop_everywhere(losses=["kill"])
    assert made.report.faults["crash: kill"] > 10


@widths(2)
def test_an_engine_that_sleeps_at_each_kind_of_step_while_another_one_goes_on(
    kafka: Broker, tmp_path: Path, width: int
) -> None:
    made = simulation(kafka, tmp_path, width)
    made.two_engines()
    assert made.report.faults["two engines"] > 10
