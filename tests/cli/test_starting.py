"""What a command imports: no more than it uses, because a small run is little else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin.host import few

BuildPlugin = Callable[..., Path]

SOURCE = """
from typing import Annotated
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_udf_plugin import udf

@udf
def speed(miles: int, minutes: int) -> float:
    return miles * 60 / minutes

@udf(vectorized=True)
def speeds(miles: pa.Int64Array, minutes: pa.Int64Array) -> Annotated[pa.Array, pa.int64()]:
    return pc.subtract(miles, minutes)
"""

PROGRAM = """
import sys
from arroyo_udf_plugin.cli import main
main(sys.argv[1:], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""

NEVER = {"pandas", "datafusion", "pydantic", "pyarrow.dataset", "tqdm", "arroyo_udf_plugin.engine.operators.grouped"}


def run(*arguments: str | Path) -> set[str]:
    """The modules that were imported."""
    command = [sys.executable, "-c", PROGRAM, "run", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("function", ["speed", "speeds"])
@pytest.mark.parametrize("shown", [False, True])
def test_a_run_over_csv_imports_what_it_uses(
    build_plugin: BuildPlugin, tmp_path: Path, shown: bool, function: str
) -> None:
    plugin, trips = build_plugin(SOURCE, name="speeds"), tmp_path / "trips.csv"
    trips.write_text('trip,miles,minutes\nhome,12,25\nwork,30,NA\n"the, sea",140,120\n')
    out: list[str | Path] = [] if shown else ["--out", tmp_path / "out.csv"]
    modules = run(f"{plugin}:{function}", trips, *out)
    assert not modules & (NEVER | {"pyarrow.parquet"})


def test_a_run_over_parquet_imports_what_it_uses(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    plugin, trips = build_plugin(SOURCE, name="speeds"), tmp_path / "trips.parquet"
    pyarrow.parquet.write_table(pa.table({"miles": [12, 30, None], "minutes": [25, 30, 120]}), trips)
    assert not run(f"{plugin}:speed", trips, "--out", tmp_path / "out.parquet") & NEVER


def test_a_few_values_are_those_of_pyarrow() -> None:
    for type_ in (pa.string(), pa.large_string()):
        for values in ([], ["a", "", "größer", "\0"]):
            assert few.texts(values, type_).equals(pa.array(values, type_))
        assert few.text("é", type_).equals(pa.scalar("é", type_))
        assert few.null(type_).equals(pa.scalar(None, type_))
    assert few.numbers([]).equals(pa.array([], pa.uint64()))
    assert few.numbers([0, 2**64 - 1]).equals(pa.array([0, 2**64 - 1], pa.uint64()))
    assert few.numbers([-1, 5], "int64").equals(pa.array([-1, 5]))
    assert few.numbers(range(3), "uint32").equals(pa.array([0, 1, 2], pa.uint32()))
    assert few.number(1e-4, "float64").equals(pa.scalar(1e-4))
