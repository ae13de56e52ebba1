"""A pipeline whose workers crash and are killed at random, and whose engine is killed, too (make test-isolation)."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from waiting import until

pytestmark = pytest.mark.isolation

COMMAND = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", "pipeline.toml"]
FRAGILE = """
import asyncio
import ctypes
import random

from arroyo_udf_plugin import udf


@udf(ordered=True, idempotent=True, retry_on=("error",), max_attempts=30, backoff="1ms", allowed_in_flight=500)
async def plane(carrier: str, tailnum: str) -> str:
    await asyncio.sleep(0)
    if random.random() < CHANCE:
        ctypes.string_at(0)
    return f"{carrier}-{tailnum}"
"""
PIPELINE = """
name = "fragile"

[source]
type = "files"
paths = ["${FLIGHTS}"]

[[operators]]
plugin = "fragile.py"
calls = ["plane(carrier, tailnum)"]
isolation = "ISOLATION"
workers = WORKERS

[[sinks]]
type = "parts"
path = "out"

[checkpoints]
place = "state"
every_rows = 25000
"""


class Killer(threading.Thread):
    """Kills a worker of an engine now and then, until it is told to end. `kills`: how often."""

    def __init__(self, engine: int, chance: random.Random) -> None:
        super().__init__()
        self._engine, self._chance, self._end, self.kills = engine, chance, threading.Event(), 0

    def run(self) -> None:
        # The pauses are what is random about this test; nothing waits for them.
        while not self._end.wait(self._chance.uniform(0.05, 0.5)):
            try:
                tasks = list(Path(f"/proc/{self._engine}/task").glob("*/children"))
                if found := [int(child) for task in tasks for child in task.read_text().split()]:
                    os.kill(self._chance.choice(found), signal.SIGKILL)
                    self.kills += 1
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended by itself

    def end(self) -> None:
        self._end.set()
        self.join()


def write(folder: Path, chance: float, isolation: str, workers: int) -> None:
    folder.mkdir()
    (folder / "fragile.py").write_text(FRAGILE.replace("CHANCE", str(chance)))
    text = PIPELINE.replace("ISOLATION", isolation).replace("WORKERS", str(workers))
    (folder / "pipeline.toml").write_text(text)


def output(folder: Path) -> pa.Table:
    return ds.dataset(folder / "out").to_table()


def test_a_pipeline_whose_workers_are_killed_writes_the_same(flights: Path, tmp_path: Path) -> None:
    """R7, O4: the function is idempotent, ordered and retried after errors; so no kill shows, nor does a resume."""
    seed = int(os.environ.get("KILL_SEED", random.randrange(1 << 32)))
    print(f"KILL_SEED={seed}")
    chance = random.Random(seed)
    environment = os.environ | {"FLIGHTS": str(flights)}
    write(tmp_path / "whole", 0, "thread", 1)
    subprocess.run(COMMAND, cwd=tmp_path / "whole", env=environment, check=True, capture_output=True)
    folder = tmp_path / "killed"
    write(folder, 0.00005, "process", 2)

    def epochs() -> int:
        return max((int(path.stem) for path in (folder / "state" / "epochs").glob("*.json")), default=0)

    kills, options = 0, list[str]()
    for ending in ("killed", "killed", "whole"):
        before = epochs()
        command = [*COMMAND, *options]
        with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as engine:
            killer = Killer(engine.pid, chance)
            killer.start()
            try:
                if ending == "killed":
                    until(lambda: epochs() >= before + 3 or engine.poll() is not None, "an epoch")  # noqa: B023
                    engine.kill()
                _, said = engine.communicate()
            finally:
                killer.end()
        assert engine.returncode == (-signal.SIGKILL if ending == "killed" else 0), said
        kills += killer.kills
        options = ["--resume"]
    assert kills, "no worker was killed"
    assert output(folder).equals(output(tmp_path / "whole"))
