"""Pipelines on a session cluster of Apache Flink: what a function costs there, against the same pipeline without it and
against Flink's own UDFs; and what a second TaskManager brings.

`make bench-flink` has Flink's environment. A job takes seconds to begin and to end: so each figure is the difference of
two runs, of which one has more rows.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conftest import HERE, note

if "FLINK_PYTHON" not in os.environ:
    pytest.skip("make bench-flink has Flink", allow_module_level=True)

sys.path[:0] = [str(HERE.parent / "tests" / folder) for folder in ("flink", "python", "engine/operators", "cluster")]

from sessions import Session, session  # noqa: E402

PYTHON = Path(os.environ["FLINK_PYTHON"])
ROUNDS = 3
WAITS = """
import asyncio
from arroyo_udf_plugin import udf

@udf(allowed_in_flight=50)
async def waits(x: int) -> int:
    await asyncio.sleep(0.005)
    return x

@udf
def works(x: int) -> int:
    for i in range(300):
        x = (x * 31 + i) % 1000003
    return x
"""
PRELUDE = """
CREATE TABLE numbers (counter BIGINT UNSIGNED NOT NULL, subtask_index BIGINT UNSIGNED NOT NULL,
  event_time TIMESTAMP NOT NULL) WITH (connector = 'impulse', message_count = {rows}, start = '2026-01-01T00:00:00Z',
  event_time_interval = '1 ms');
CREATE TABLE nowhere WITH (connector = 'blackhole');
"""
SELECT = "INSERT INTO nowhere SELECT {what} FROM (SELECT CAST(counter AS BIGINT) AS x FROM numbers)"
DESCRIBE = """
import json, sys
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
print(json.dumps(described(Script("query.sql", *sys.argv[1:2], sys.argv[2:]).pipeline)))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session(tmp_path_factory.mktemp("flink"), PYTHON, "--taskmanagers", 2, "--slots", 1) as started:
        yield started


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """udf.c, and `WAITS`, built for Flink's Python."""
    folder = tmp_path_factory.mktemp("functions")
    for name, text in (("udf.c", (HERE / "udf.c").read_text()), ("waits.py", WAITS)):
        (folder / name).write_text(text)
        command = [PYTHON, "-m", "arroyo_udf_plugin.cli", "build", folder / name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [str(folder / "libudf.so"), str(folder / "libwaits.so")]


def seconds(job: Any) -> float:
    """From the time at which the job runs to its end."""
    job.await_state("FINISHED")
    times = job.cluster.get(f"/jobs/{job.id}")["timestamps"]
    return float(times["FINISHED"] - times["RUNNING"]) / 1000


def each_row(run: Callable[[int], float], few: int, many: int) -> float:
    """Nanoseconds."""
    return (run(many) - run(few)) / (many - few) * 1e9


def ours(cluster: Session, libraries: list[str], what: str, parallelism: int = 2) -> Callable[[int], float]:
    def run(rows: int) -> float:
        query = PRELUDE.format(rows=rows) + SELECT.format(what=what)
        done = subprocess.run([PYTHON, "-c", DESCRIBE, query, *libraries], capture_output=True, text=True, check=True)
        return seconds(
            cluster.submit(json.loads(done.stdout), slices=8, checkpoint_interval=None, parallelism=parallelism)
        )

    return run


def of_flink(cluster: Session, kind: str) -> Callable[[int], float]:
    return lambda rows: seconds(cluster.run(HERE / "flink_own.py", kind, str(rows), parallelism=2))


MANY = 10_000_000, 40_000_000
CALLED, NOT_CALLED = "x, mph(x, x + 1) AS y", "x, CAST(x AS DOUBLE) AS y"


def both(benchmark: Any, subject: Callable[[], float], reference: Callable[[], float]) -> tuple[float, float]:
    """In turns."""
    pairs = benchmark.pedantic(lambda: [(subject(), reference()) for _ in range(ROUNDS)], rounds=1)
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs)


def test_a_function_on_flink(cluster: Session, libraries: list[str], benchmark: Any) -> None:
    """The goal: 0.85 of the rows of a pipeline without it."""
    called, without = (partial(each_row, ours(cluster, libraries, what), *MANY) for what in (CALLED, NOT_CALLED))
    one, other = both(benchmark, called, without)
    note(benchmark, "Flink: mph in C", one, "ns/row", "without it", one / other, 1 / 0.85)


@pytest.mark.parametrize(("kind", "rows", "goal"), [("row", 500_000, 1 / 50), ("pandas", 5_000_000, 1 / 3)])
def test_against_a_udf_of_flink(
    cluster: Session, libraries: list[str], benchmark: Any, kind: str, rows: int, goal: float
) -> None:
    own = partial(each_row, of_flink(cluster, kind), rows // 5, rows)
    one, other = both(benchmark, partial(each_row, ours(cluster, libraries, CALLED), *MANY), own)
    note(benchmark, f"Flink: mph in C, {kind}", one, "ns/row", f"Flink's {kind} UDF", one / other, goal)


def test_a_second_taskmanager_of_an_async_function(cluster: Session, libraries: list[str], benchmark: Any) -> None:
    two, one = (
        partial(each_row, ours(cluster, libraries, "waits(x) AS y", width), 20_000, 200_000) for width in (2, 1)
    )
    with_two, with_one = both(benchmark, two, one)
    ratio = with_two / with_one
    note(benchmark, "Flink: waits 5 ms, two TaskManagers", with_two, "ns/row", "one TaskManager", ratio, 1 / 1.8)


def test_a_second_taskmanager_of_a_function_that_works(cluster: Session, libraries: list[str], benchmark: Any) -> None:
    """Beside two processes without anything: that is what the machine has."""
    two, one = (
        partial(each_row, ours(cluster, libraries, "works(x) AS y", width), 50_000, 300_000) for width in (2, 1)
    )
    with_two, with_one = both(benchmark, two, one)
    times = with_one / with_two
    bare_times = 2 * statistics.median(bare(1) / bare(2) for _ in range(ROUNDS))
    name = f"Flink: works, two TaskManagers ({times:.2f} times one)"
    note(benchmark, name, with_two, "ns/row", f"two bare processes ({bare_times:.2f})", bare_times / times, None)


def bare(processes: int) -> float:
    """Seconds of so many processes that do the same at once."""
    begun = time.monotonic()
    each = [multiprocessing.Process(target=_work) for _ in range(processes)]
    for process in each:
        process.start()
    for process in each:
        process.join()
    return time.monotonic() - begun


def _work() -> None:
    for x in range(50_000):
        for i in range(300):
            x = (x * 31 + i) % 1000003
