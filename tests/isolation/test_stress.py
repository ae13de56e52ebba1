"""Many starts, many ends, and workers that are killed at random (make test-isolation)."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from arroyo_udf_plugin import Plugin, load

pytestmark = pytest.mark.isolation

BuildPlugin = Callable[..., Path]
PROGRAM = Path(__file__).with_name("cycles.py")

CYCLES = """
import asyncio

from arroyo_udf_plugin import udf


@udf
def plus(x: int) -> int:
    return x + 1


@udf
async def late(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1
"""
FLIGHTS = """
import ctypes

from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int, crashes: bool) -> float:
    if crashes:
        ctypes.string_at(0)
    return distance * 60.0 / air_time
"""
CRASH_CAUSE = "the worker process was killed by signal 11 (SIGSEGV) during this call"
KILL_CAUSE = "the worker process was killed by signal 9 (SIGKILL) during this call"


def run(*arguments: object) -> None:
    """A program of its own, which may crash."""
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@pytest.mark.skipif(sys.version_info < (3, 13), reason="subinterpreters need Python 3.13")
def test_four_subinterpreters_start_at_once_fifty_times(build_plugin: BuildPlugin) -> None:
    """CPython's start of an interpreter is not safe beside another one's. In fifty processes, because each keeps the
    interpreters that it has made; test_subinterpreter_stress.py has what happens then."""
    for _ in range(50):
        run(PROGRAM, build_plugin(CYCLES, name="cycles"), "subinterpreter", "crowd", 2)


def test_five_hundred_processes_come_and_go_and_leave_nothing_behind(build_plugin: BuildPlugin) -> None:
    run(PROGRAM, build_plugin(CYCLES, name="cycles"), "process", "cycles", 500)


def workers() -> list[int]:
    """The processes that this one has started."""
    return [int(child) for task in Path("/proc/self/task").glob("*/children") for child in task.read_text().split()]


class Killer(threading.Thread):
    """Kills a worker of this process some time after each batch, until it is told to end: so workers are killed at any
    point, but never so often that no batch gets through. `kills`: how often."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance, self._answered, self._ended, self.kills = chance, threading.Event(), False, 0

    def run(self) -> None:
        while True:
            self._answered.wait()
            self._answered.clear()
            if self._ended:
                return
            time.sleep(self._chance.uniform(0, 0.02))  # what is random about this test; nothing waits for it
            if found := workers():
                os.kill(self._chance.choice(found), signal.SIGKILL)
                self.kills += 1

    def answered(self) -> None:
        self._answered.set()

    def end(self) -> None:
        self._ended = True
        self._answered.set()
        self.join()


def test_flights_with_workers_that_are_killed_lose_the_rows_in_hand_alone(
    build_plugin: BuildPlugin, flights: Path
) -> None:
    """R1, R2: every row is answered; a row that neither crashed nor was in hand at a kill has its value."""
    seed = int(os.environ.get("KILL_SEED", random.randrange(1 << 32)))
    print(f"KILL_SEED={seed}")
    chance = random.Random(seed)
    options = pyarrow.csv.ConvertOptions(include_columns=["distance", "air_time"], null_values=["NA"])
    table = pyarrow.csv.read_csv(flights, convert_options=options)
    crashes = [chance.random() < 0.0002 for _ in range(table.num_rows)]
    table = table.append_column("crashes", pa.array(crashes))
    killer = Killer(chance)
    with load(build_plugin(FLIGHTS, name="fragile"), isolation="process", workers=2) as plugin:
        killer.start()
        try:
            values, errors = outcomes(plugin, table, killer.answered)
        finally:
            killer.end()
    assert killer.kills, "nothing was killed"
    killed = 0
    columns = (column.to_pylist() for column in table.columns)
    for row, (distance, minutes, crash) in enumerate(zip(*columns, strict=True)):
        error = errors[row]
        if error is None:
            assert values[row] == (None if minutes is None else distance * 60.0 / minutes)
            assert minutes is None or not crash
        elif error.endswith(KILL_CAUSE):
            killed += 1
        else:
            assert error.endswith(CRASH_CAUSE)
            assert crash
    assert killed <= killer.kills


def outcomes(
    plugin: Plugin, table: pa.Table, answered: Callable[[], None]
) -> tuple[list[float | None], list[str | None]]:
    values: list[float | None] = []
    errors: list[str | None] = []
    for batch in table.to_batches(max_chunksize=8192):
        found = plugin.functions["mph"].outcomes(*batch.columns)
        with_errors = found.type.get_field_index("error") >= 0
        values += found.field("value").to_pylist()
        errors += found.field("error").to_pylist() if with_errors else [None] * len(found)
        answered()
    return values, errors
