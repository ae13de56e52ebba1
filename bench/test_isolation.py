"""Subinterpreters and worker processes: what a second one gives, what the way of a batch costs, how fast they start.

All is wall time, for a machine that is idle. What is compared takes turns; of several turns the fastest counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, build, load
from conftest import BATCH_ROWS, HERE, OUT, figures, note

ROWS = 40 * BATCH_ROWS
ASYNC_ROWS = 200_000
TURNS = 5
CALLS = 2000
Mode = Literal["thread", "subinterpreter", "process"]

needs_subinterpreters = pytest.mark.skipif(sys.version_info < (3, 13), reason="subinterpreters need Python 3.13")


@pytest.fixture(scope="module")
def path() -> Path:
    return build(HERE / "isolated.py", OUT / "bench_isolated{}{}.so".format(*sys.version_info))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fastest(*works: Callable[[], object]) -> list[float]:
    """The fastest turn of each; they take turns, after one that warms up."""
    for work in works:
        work()
    turns = [[seconds(work) for work in works] for _ in range(TURNS)]
    return [min(column) for column in zip(*turns, strict=True)]


def batches(rows: int) -> list[pa.Array]:
    return [pa.array(range(first, first + BATCH_ROWS), pa.int64()) for first in range(0, rows, BATCH_ROWS)]


def compared(
    benchmark: Any, name: str, rows: int, reference: str, works: list[Callable[[], object]], goal: float
) -> None:
    subject, other = benchmark.pedantic(fastest, works, rounds=1)
    note(benchmark, name, subject / rows * 1e9, "ns/row", reference, subject / other, goal)


@pytest.mark.parametrize(
    ("mode", "reference", "times"),
    [
        pytest.param("subinterpreter", "subinterpreter", 1.9, marks=needs_subinterpreters),
        ("process", "thread", 1.8),
    ],
)
def test_second_worker(benchmark: Any, path: Path, mode: Mode, reference: Mode, times: float) -> None:
    """A function that computes; the caller waits for each batch."""
    columns = batches(ROWS)
    with load(path, isolation=mode, workers=2) as two, load(path, isolation=reference) as one:
        busy_of_two, busy_of_one = two.functions["busy"], one.functions["busy"]
        assert busy_of_two(columns[1]).equals(busy_of_one(columns[1]))
        works: list[Callable[[], object]] = [
            lambda: [busy_of_two(column) for column in columns],
            lambda: [busy_of_one(column) for column in columns],
        ]
        name = f"busy: two of isolation {mode}"
        compared(benchmark, name, ROWS, f"one {reference}", works, 1 / times)


@needs_subinterpreters
def test_second_event_loop(benchmark: Any, path: Path) -> None:
    """As many rows as fit are in flight."""
    columns = batches(ASYNC_ROWS)
    rows = sum(map(len, columns))

    def through(function: Function) -> None:
        with function.start(allowed_in_flight=1000) as runtime:
            assert sum(len(part) for part, _ in runtime.map(columns, stop=False)) == rows
            runtime.stop()

    isolation: Mode = "subinterpreter"
    with load(path, isolation=isolation, workers=2) as two, load(path, isolation=isolation) as one:
        works: list[Callable[[], object]] = [
            lambda: through(two.functions["at_once"]),
            lambda: through(one.functions["at_once"]),
        ]
        compared(benchmark, "at_once: two of isolation subinterpreter", rows, "one subinterpreter", works, 1 / 1.8)


def test_way_of_a_batch(benchmark: Any, path: Path) -> None:
    """A batch of one row: what is left is the copy of larger ones. The call itself is taken off."""
    row = pa.array([1], pa.int64())
    with load(path, isolation="process") as there, load(path) as here:
        away, at_home = there.functions["plus_one"], here.functions["plus_one"]
        works: list[Callable[[], object]] = [
            lambda: [away(row) for _ in range(CALLS)],
            lambda: [at_home(row) for _ in range(CALLS)],
        ]
        subject, other = benchmark.pedantic(fastest, works, rounds=1)
    note(benchmark, "a batch to a process and back", (subject - other) / CALLS * 1e6, "us", None, None, 30.0)


@pytest.mark.parametrize(
    ("mode", "goal"), [pytest.param("subinterpreter", 60.0, marks=needs_subinterpreters), ("process", 200.0)]
)
def test_start_of_a_worker(benchmark: Any, path: Path, mode: Mode, goal: float) -> None:
    """Until the first row is answered, without pyarrow in the worker; in a fresh process, for interpreters are kept."""
    program = (sys.executable, HERE / "first_worker.py", path, mode)
    spent = benchmark.pedantic(lambda: min(figures(*program, runs=TURNS)[mode]), rounds=1)
    note(benchmark, f"start of a worker: {mode}", spent, "ms", None, None, goal)
