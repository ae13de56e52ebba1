"""The network between a pipeline and its brokers is cut, again and again, while the topic gets more partitions: each
message is read once, and its row is written once.

CUT: for how many seconds (3). Requests are given up after a few seconds here, so that a short cut is a long one, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions
from kafka_broker import Broker
from waiting import until

from arroyo_udf_plugin.engine.connectors.kafka import source as kafka_source
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of

pytestmark = pytest.mark.connectors

CUT = float(os.environ.get("CUT", "3"))
ROUNDS = 2
ROWS = 200


def test_a_network_that_is_cut(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "WATCH", 0.05)
    first, second = kafka.topic(partitions=2), kafka.topic(partitions=2)
    impatient = {"socket.timeout.ms": "2000"}
    common = {"type": "kafka", "bootstrap_servers": kafka.proxied, "client_configs": impatient}
    description: dict[str, Any] = {
        "name": "cut",
        "source": {**common, "topic": first, "offset": "earliest", "types": {"n": "int"}},
        "sinks": [{**common, "topic": second}],
        "checkpoints": {"place": str(tmp_path / "state"), "every": 0.05},
        "parallelism": 2,
    }
    stop, failed = StopRequest(timeout=100), list[BaseException]()

    def run() -> None:
        try:
            run_pipeline(pipeline_of(description), stop=stop)
        except BaseException as error:
            failed.append(error)

    def found() -> list[int]:
        own = kafka.messages(second).values()
        return sorted(json.loads(message.value())["n"] for messages in own for message in messages)

    sent = 0

    def send(partition: int) -> None:
        nonlocal sent
        kafka.write(first, [b'{"n": %d}' % n for n in range(sent, sent + ROWS)], partition)
        sent += ROWS

    engine = threading.Thread(target=run, daemon=True)
    with kafka.proxy() as proxy:
        engine.start()
        with contextlib.ExitStack() as ending:
            ending.callback(engine.join, 120)
            ending.callback(stop.request)
            ending.callback(proxy.mend)
            for round in range(ROUNDS):
                send(0)
                until(lambda: bool(failed) or len(found()) > sent - ROWS, "some rows")
                assert failed == []
                send(1)
                proxy.cut()
                kafka.admin.create_partitions([NewPartitions(first, 3 + round)])[first].result(60)
                send(2 + round)
                assert not threading.Event().wait(CUT)
                assert failed == []
                proxy.mend()
                until(lambda: bool(failed) or len(found()) >= sent, "all rows")
    assert failed == []
    assert found() == list(range(sent))
