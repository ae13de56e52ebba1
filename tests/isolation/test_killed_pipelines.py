"""A pipeline whose workers crash and are killed at random, and whose engine is killed, too (make test-isolation)."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from kills import chance, kill_worker
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
format = "csv"
header = false

[checkpoints]
place = "state"
every_rows = 25000
"""


def write(folder: Path, chance: float, isolation: str, workers: int) -> None:
    folder.mkdir()
    (folder / "fragile.py").write_text(FRAGILE.replace("CHANCE", str(chance)))
    text = PIPELINE.replace("ISOLATION", isolation).replace("WORKERS", str(workers))
    (folder / "pipeline.toml").write_text(text)


def output(folder: Path) -> bytes:
    """What the parts hold, in their order. Where one ends and the next begins depends on when the engine was killed."""
    return b"".join(path.read_bytes() for path in sorted((folder / "out").glob("*.csv")))


def epochs(folder: Path) -> int:
    return max((int(path.stem) for path in (folder / "state" / "epochs").glob("*.json")), default=0)


def run_with_kills(folder: Path, options: list[str], random: Random, until_epoch: int | None) -> int:
    """Runs the pipeline and kills a worker some time after each epoch, the engine after `until_epoch`. Returns how many
    workers it has killed."""
    kills, seen = 0, epochs(folder)
    with (
        (folder / "said").open("w+") as said,
        subprocess.Popen([*COMMAND, *options], cwd=folder, stderr=said) as engine,
    ):
        while engine.poll() is None and (until_epoch is None or seen < until_epoch):
            until(lambda: epochs(folder) > seen or engine.poll() is not None, "an epoch")  # noqa: B023
            seen = epochs(folder)
            time.sleep(random.uniform(0, 0.1))  # what is random about this test; nothing waits for it
            kills += kill_worker(engine.pid, random)
        if until_epoch is not None:
            engine.kill()
        expected = 0 if until_epoch is None else -signal.SIGKILL
        assert engine.wait() == expected, (folder / "said").read_text()
    return kills


def test_a_pipeline_whose_workers_are_killed_writes_the_same(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7, O4: the function is idempotent, ordered and retried after errors; so no kill shows, nor does a resume."""
    random = chance()
    monkeypatch.setenv("FLIGHTS", str(flights))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    write(whole, 0, "thread", 1)
    subprocess.run(COMMAND, cwd=whole, check=True, capture_output=True)
    write(killed, 0.00005, "process", 2)
    kills = run_with_kills(killed, [], random, 3)
    kills += run_with_kills(killed, ["--resume"], random, epochs(killed) + 3)
    kills += run_with_kills(killed, ["--resume"], random, None)
    assert kills, "no worker was killed"
    assert output(killed) == output(whole)
