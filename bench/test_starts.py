"""What small commands take, from their start to their end: runs over a few rows, and builds of a changed source.

All is wall time, for a machine that is idle; of several turns the median counts. Programs have compiled modules
(conftest.py), and builds have what earlier builds have left.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin import build
from conftest import note

TURNS = 7
PROGRAM = (sys.executable, "-c", "from arroyo_udf_plugin.cli import main; main()")
ROWS = "miles,minutes\n12,25\n30,NA\n140,120\n"
QUERY = """
CREATE TABLE trips (miles BIGINT, minutes BIGINT) WITH (
    connector = 'filesystem', path = '{folder}/trips.csv', format = 'csv', type = 'source'
);
CREATE TABLE out WITH (
    connector = 'filesystem', path = '{folder}/out{turn}.parquet', format = 'parquet', type = 'sink'
);
INSERT INTO out SELECT miles, speed(miles, minutes) AS speed FROM trips WHERE miles > 12;
"""
PYTHON = """
from arroyo_udf_plugin import udf

@udf({options})
def speed(miles: int, minutes: int) -> float:
    return miles * 60 / minutes
"""
C = """
#include "arroyo_udf_plugin.h"

static const char* speed(int64_t miles, int64_t minutes, double* out) {
  *out = (double)miles * 60.0 / (double)minutes;
  return NULL;
}
ARROYO_UDF_FUNCTION(speed, float64, (int64, miles), (int64, minutes));
ARROYO_UDF_PLUGIN(speed);
"""
RUST = """
use arroyo_udf_plugin::udf;

#[udf]
fn speed(miles: i64, minutes: i64) -> f64 {
    miles as f64 * 60.0 / minutes as f64
}
"""


def seconds(*arguments: str | Path, folder: Path) -> float:
    start = time.perf_counter()
    done = subprocess.run([*PROGRAM, *arguments], cwd=folder, capture_output=True, text=True)
    spent = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    return spent


def noted(benchmark: Any, name: str, turn: Callable[[int], float], goal: float) -> None:
    """turn: called with its number, returns its seconds; the first one warms up."""
    spent = benchmark.pedantic(lambda: [turn(number) for number in range(TURNS + 1)][1:], rounds=1)
    note(benchmark, name, statistics.median(spent), "s", None, None, goal)


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """A folder with rows and a plugin."""
    (tmp_path / "trips.csv").write_text(ROWS)
    (tmp_path / "speeds.py").write_text(PYTHON.format(options=""))
    build(tmp_path / "speeds.py", tmp_path / "speeds.so")
    return tmp_path


def test_a_run_over_a_file(benchmark: Any, trips: Path) -> None:
    def turn(number: int) -> float:
        return seconds("run", "speeds.so", "trips.csv", "--out", f"out{number}.csv", folder=trips)

    noted(benchmark, "a small run over a file", turn, 0.45)


def test_a_query(benchmark: Any, trips: Path) -> None:
    def turn(number: int) -> float:
        (trips / "query.sql").write_text(QUERY.format(folder=trips, turn=number))
        return seconds("run", "query.sql", "--udf", "speeds.so", folder=trips)

    noted(benchmark, "a small query", turn, 0.9)


@pytest.mark.parametrize(
    ("name", "file", "source", "goal"),
    [
        ("Python, not native", "speeds.py", PYTHON.format(options="native=False"), 0.3),
        ("Python, native", "speeds.py", PYTHON.format(options=""), 0.5),
        ("C", "speeds.c", C, 0.2),
        ("Rust", "speeds.rs", RUST, 0.6),
    ],
)
def test_a_build(benchmark: Any, tmp_path: Path, name: str, file: str, source: str, goal: float) -> None:
    mark = "#" if file.endswith(".py") else "//"

    def turn(_: int) -> float:
        (tmp_path / file).write_text(f"{source}{mark} {time.time_ns()}\n")  # which nobody has built before
        return seconds("build", file, folder=tmp_path)

    noted(benchmark, f"a build of a changed source: {name}", turn, goal)
