"""Many starts, many ends, and workers that are killed at random (make test-isolation)."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from kills import chance, kill_worker

from arroyo_udf_plugin import Function, load

pytestmark = pytest.mark.isolation
needs_subinterpreters = pytest.mark.skipif(sys.version_info < (3, 13), reason="subinterpreters need Python 3.13")

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


@needs_subinterpreters
def test_four_subinterpreters_start_at_once_fifty_times(build_plugin: BuildPlugin) -> None:
    """CPython's start of an interpreter is not safe beside another one's. In fifty processes, because each keeps the
    interpreters that it has made."""
    for _ in range(50):
        run(PROGRAM, build_plugin(CYCLES, name="cycles"), "subinterpreter", "crowd", 1)


@pytest.mark.parametrize(
    "isolation",
    [pytest.param("subinterpreter", marks=needs_subinterpreters), "process"],
)
def test_five_hundred_plugins_come_and_go_and_leave_nothing_behind(build_plugin: BuildPlugin, isolation: str) -> None:
    run(PROGRAM, build_plugin(CYCLES, name="cycles"), isolation, "cycles", 500)


def test_flights_with_workers_that_are_killed_lose_the_rows_in_hand_alone(
    build_plugin: BuildPlugin, flights: Path
) -> None:
    """R1, R2: every row is answered; a row that neither crashed nor was in hand at a kill has its value."""
    random = chance()
    options = pyarrow.csv.ConvertOptions(include_columns=["distance", "air_time"], null_values=["NA"])
    table = pyarrow.csv.read_csv(flights, convert_options=options)
    crashes = [random.random() < 0.0002 for _ in range(table.num_rows)]
    table = table.append_column("crashes", pa.array(crashes))
    kills, answered = 0, []
    with load(build_plugin(FLIGHTS, name="fragile"), isolation="process", workers=2) as plugin:
        mph = plugin.functions["mph"]
        for batch in table.to_batches(max_chunksize=8192):
            killed: list[bool] = []
            # One kill for each batch, at any point of it: no row depends on when it comes.
            killer = threading.Timer(random.uniform(0, 0.02), lambda: killed.append(kill_worker(os.getpid(), random)))  # noqa: B023
            killer.start()
            answered += answers(mph, batch)
            killer.join()
            kills += sum(killed)
    assert kills, "nothing was killed"
    lost = 0
    columns = (column.to_pylist() for column in table.columns)
    for distance, minutes, crash, (value, error) in zip(*columns, answered, strict=True):
        if error is None:
            assert value == (None if minutes is None else distance * 60.0 / minutes)
            assert minutes is None or not crash
        elif error.endswith(KILL_CAUSE):
            lost += 1
        else:
            assert error.endswith(CRASH_CAUSE)
            assert crash
    assert lost <= kills


def answers(function: Function, batch: pa.RecordBatch) -> list[tuple[float | None, str | None]]:
    """The value and the error of each row."""
    found = function.outcomes(*batch.columns)
    errors = found.field("error").to_pylist() if found.type.get_field_index("error") >= 0 else [None] * len(found)
    return list(zip(found.field("value").to_pylist(), errors, strict=True))
