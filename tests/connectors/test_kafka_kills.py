"""Pipelines that write to Kafka are killed with SIGKILL, again and again, and so is the broker: readers with
read_committed see each row once.

Each engine commits some epochs and is killed, between two steps of an epoch or whenever. The next one resumes it, with
another number of slices. Meanwhile the test adds rows for each epoch.

KILLS: how often, a half for each of the two (4). KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kafka_broker
import pytest
from failing import ended
from waiting import until

pytestmark = pytest.mark.connectors

KILLS = max(2, int(os.environ.get("KILLS", "4")) // 2)
MOMENTS = ("committed", "any", "staged", "applied", "any", "sealed", "any", "cleaned")
EPOCHS = 2
ROWS = 500
PATIENCE = 120.0
CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"


class KilledWriter:
    """A pipeline, its engines, and its input. feed: adds rows with these numbers."""

    def __init__(
        self, kafka: kafka_broker.Broker, folder: Path, feed: Callable[[range], None], description: Mapping[str, Any]
    ) -> None:
        seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
        print(f"KILL_SEED={seed} KILLS={KILLS}")
        self._random = random.Random(seed)
        self._kafka, self._folder, self._feed = kafka, folder, feed
        self.topic, self.rows = kafka.topic(partitions=3), 0
        self._description = {
            "name": "killed",
            **description,
            "sinks": [{"type": "kafka", "bootstrap_servers": kafka.address, "topic": self.topic, "key_field": "key"}],
            "checkpoints": {"place": str(folder / "checkpoints"), "every": 0.02},
        }

    def add(self) -> None:
        self._feed(range(self.rows, self.rows + ROWS))
        self.rows += ROWS

    def found(self) -> list[int]:
        own = self._kafka.messages(self.topic).values()
        return sorted(json.loads(message.value())["n"] for messages in own for message in messages)

    def _engine(self, moment: str, is_first: bool) -> subprocess.Popen[str]:
        path, errors = self._folder / "pipeline.json", self._folder / "errors"
        path.write_text(json.dumps(self._description | {"parallelism": self._random.randint(1, 3)}))
        command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS), *([] if is_first else ["--resume"])]
        with open(errors, "w") as stderr:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def kill(self, moment: str, is_first: bool, disturb: bool) -> None:
        """Lets an engine run until it is killed. disturb: the broker is killed, too, and restarted."""
        self.add()
        with self._engine(moment, is_first) as process:
            assert process.stdout is not None
            for epochs, line in enumerate(process.stdout, 1):
                assert line == "epoch\n", self._errors()
                self.add()
                if epochs == 1 and disturb:
                    self._kafka.restart()
                if moment == "any" and epochs == EPOCHS:
                    time.sleep(self._random.random() / 10)  # a kill at any moment: no result depends on its length
                    process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL, self._errors()

    def _errors(self) -> str:
        return (self._folder / "errors").read_text()

    def run(self) -> None:
        """Kills engines, lets the last one write the rest, and checks what is there."""
        for number in range(KILLS):
            self.kill(MOMENTS[number % len(MOMENTS)], is_first=not number, disturb=number % 3 == 1)
            found = self.found()
            assert len(found) == len(set(found)), "rows came twice"
        self.add()
        with ended(self._engine("none", is_first=False)) as process:
            until(lambda: len(self.found()) >= self.rows or process.poll() is not None, "all rows")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, self._errors()
        assert output.splitlines()[-1] == "resumable"
        assert self.found() == list(range(self.rows))


FUNCTION = """
from arroyo_udf_plugin import udf


@udf
def named(n: int) -> str:
    return f"row {n}"
"""


def test_kafka_to_a_function_to_kafka(
    kafka: kafka_broker.Broker, tmp_path: Path, build_plugin: Callable[..., Path]
) -> None:
    topic = kafka.topic(partitions=2)

    def feed(numbers: range) -> None:
        for partition in range(2):
            kafka.write(topic, [b'{"n": %d}' % n for n in numbers[partition::2]], partition)

    description = {
        "source": {
            "type": "kafka",
            "bootstrap_servers": kafka.address,
            "topic": topic,
            "offset": "earliest",
            "types": {"n": "int64"},
        },
        "operators": [{"plugin": str(build_plugin(FUNCTION, name="named")), "calls": ["key = named(n)"]}],
    }
    killed = KilledWriter(kafka, tmp_path, feed, description)
    killed.run()
    own = kafka.messages(killed.topic).values()
    assert all(message.key() == b"row %d" % json.loads(message.value())["n"] for each in own for message in each)


def test_files_to_kafka(kafka: kafka_broker.Broker, tmp_path: Path) -> None:
    folder = tmp_path / "input"
    folder.mkdir()

    def feed(numbers: range) -> None:
        aside = folder / ".aside"
        aside.write_text("".join(f'{{"n": {n}, "key": "{n % 7}"}}\n' for n in numbers))
        aside.rename(folder / f"{numbers[0]:09}.jsonl")

    source = {"type": "files", "paths": [str(folder)], "watch": 0.01}
    KilledWriter(kafka, tmp_path, feed, {"source": source}).run()
