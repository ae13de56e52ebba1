"""Functions in DuckDB and Polars: against the engine's own expression, its own Python UDFs, and our host.

CPU time per row of a sum over the results, in one thread; 10 million rows for functions in C and Rust, a million for
those in Python. Where the engines are not installed, this is not collected: `make bench-integrations` installs them.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from arroyo_udf_plugin import build, load
from arroyo_udf_plugin.integrations import duckdb as in_duckdb
from arroyo_udf_plugin.integrations import polars as in_polars
from conftest import HERE, OUT, Compare, note

ROWS, FEW = 10_000_000, 1_000_000
NATIVE = ("c", "rs")


@functools.cache
def library(language: str, name: str = "udf") -> Path:
    folder = OUT / f"integrations-{language}"
    folder.mkdir(exist_ok=True)
    return build(HERE / f"{name}.{language}", folder / f"lib{name}.so")


def in_duck(language: str, rows: int) -> duckdb.DuckDBPyConnection:
    """With a table of rows, the functions of a library, and two UDFs of DuckDB's own."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
    in_duckdb.register(connection, library(language))
    connection.execute(f"CREATE TABLE t AS SELECT range AS a, range + 1 AS b FROM range({rows})")
    types: Any = ["BIGINT", "BIGINT"]
    connection.create_function("by_arrow", _of_arrays, types, "DOUBLE", type="arrow")
    connection.create_function("by_row", lambda a, b: a * 60.0 / b, types, "DOUBLE")
    return connection


def _of_arrays(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.divide(pc.multiply(a, 60.0), b)


def summed(connection: duckdb.DuckDBPyConnection, expression: str) -> Callable[[], object]:
    return lambda: connection.execute(f"SELECT sum({expression}) FROM t").fetchall()


@functools.cache
def frame(rows: int) -> polars.DataFrame:
    return polars.DataFrame({"a": pa.array(range(rows)), "b": pa.array(range(1, rows + 1))})


def selected(rows: int, expression: polars.Expr) -> Callable[[], object]:
    return lambda: frame(rows).select(expression.sum())


@pytest.mark.parametrize("language", NATIVE)
def test_native_in_duckdb(compare: Compare, language: str) -> None:
    connection = in_duck(language, ROWS)
    ours, own = summed(connection, "mph(a, b)"), summed(connection, "a * 60::DOUBLE / b")
    name = f"DuckDB: `mph`, {language}"
    compare(name, ours, own, n=ROWS, unit="ns/row", scale=1e9, reference_name="its expression", goal=2.5, rounds=5)


@pytest.mark.parametrize("language", NATIVE)
def test_native_in_polars(compare: Compare, language: str) -> None:
    ours = selected(ROWS, in_polars.functions(library(language)).mph("a", "b"))
    own = selected(ROWS, polars.col("a") * 60.0 / polars.col("b"))
    name = f"Polars: `mph`, {language}"
    compare(name, ours, own, n=ROWS, unit="ns/row", scale=1e9, reference_name="its expression", goal=3.5, rounds=5)


def test_native_against_duckdbs_python(compare: Compare) -> None:
    connection = in_duck("c", FEW)
    ours, own = summed(connection, "mph(a, b)"), summed(connection, "by_arrow(a, b)")
    name = "DuckDB: `mph`, c"
    compare(name, ours, own, n=FEW, unit="ns/row", scale=1e9, reference_name="its Arrow UDF", goal=1 / 25, rounds=5)


def test_python_in_duckdb(compare: Compare) -> None:
    connection = in_duck("py", FEW)
    ours, own = summed(connection, "mph(a, b)"), summed(connection, "by_row(a, b)")
    name = "DuckDB: `mph`, Python, row by row"
    compare(name, ours, own, n=FEW, unit="ns/row", scale=1e9, reference_name="its row UDF", goal=0.85, rounds=5)


def test_python_in_polars(compare: Compare) -> None:
    ours = selected(FEW, in_polars.functions(library("py")).mph("a", "b"))
    rows = polars.struct("a", "b").map_elements(lambda row: row["a"] * 60.0 / row["b"], return_dtype=polars.Float64)
    name = "Polars: `mph`, Python, row by row"
    own = selected(FEW, rows)
    compare(name, ours, own, n=FEW, unit="ns/row", scale=1e9, reference_name="map_elements", goal=0.85, rounds=5)


LIST = ",".join(f"w{i}" for i in range(0, 100, 3))


def test_constant_in_polars(compare: Compare) -> None:
    """A list as a literal: what is made of it is kept for a batch, against a set that Polars is given."""
    words = polars.DataFrame({"w": [f"w{i % 100}" for i in range(FEW)]})
    udf = in_polars.functions(library("rs", "constants"))
    kept, own = udf.among("w", polars.lit(LIST)), polars.col("w").is_in(LIST.split(","))
    assert words.select(kept.alias("x")).equals(words.select(own.alias("x")))
    one: Any = {"n": FEW, "unit": "ns/row", "scale": 1e9, "rounds": 5}
    compare("Polars: a list as `Constant`, Rust", lambda: words.select(kept), lambda: words.select(own), **one,
            reference_name="its `is_in`")  # fmt: skip


def test_constant_is_made_once(compare: Compare) -> None:
    words = polars.DataFrame({"w": [f"w{i % 100}" for i in range(FEW // 10)]})
    udf = in_polars.functions(library("rs", "constants"))
    kept, by_row = (of("w", polars.lit(LIST)) for of in (udf.among, udf.among_by_row))
    compare("Polars: a list as `Constant`, Rust", lambda: words.select(kept), lambda: words.select(by_row), n=FEW // 10,
            unit="ns/row", scale=1e9, reference_name="made for each row")  # fmt: skip


def test_literal_in_polars(compare: Compare) -> None:
    """A literal of 100 bytes, which is not repeated, against a column of such texts."""
    words = polars.DataFrame({"w": ["w" * 100] * FEW, "other": ["w" * 100] * FEW})
    same = in_polars.functions(library("rs", "constants")).same
    literal, column = same("w", polars.lit("w" * 100)), same("w", "other")
    compare("Polars: a literal of 100 bytes, Rust", lambda: words.select(literal), lambda: words.select(column), n=FEW,
            unit="ns/row", scale=1e9, reference_name="a column of such")  # fmt: skip


@pytest.mark.parametrize("engine", ["DuckDB", "Polars"])
def test_async(compare: Compare, engine: str) -> None:
    """Against our host, which starts the function for each call, as an engine does for its first one."""
    rows = 200_000
    column = pa.array(range(rows))
    function = load(library("py")).functions["at_once"]
    if engine == "DuckDB":
        ours = summed(in_duck("py", rows), "at_once(a)")
    else:
        ours = selected(rows, in_polars.functions(library("py")).at_once("a"))
    name = f"{engine}: `at_once`, async Python"
    compare(name, ours, lambda: function(column), n=rows, unit="ns/row", scale=1e9, reference_name="our host", goal=1.3)


@pytest.mark.parametrize("groups", [1, 1000])
@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_aggregate_in_duckdb(compare: Compare, language: str, groups: int) -> None:
    """A sum of integers beside DuckDB's; in Python over Arrow arrays."""
    rows = FEW if language == "py" else ROWS
    connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
    in_duckdb.register(connection, library(language, "groups"))
    connection.execute(f"CREATE TABLE t AS SELECT range AS a, range % {groups} AS k FROM range({rows})")
    ours, own = grouped(connection, "own_sum(a)"), grouped(connection, "sum(a)")
    assert ours() == own()
    name = f"DuckDB: own sum, {language}, {groups:,} group{'s' * (groups > 1)}"
    compare(name, ours, own, n=rows, unit="ns/row", scale=1e9, reference_name="its sum", rounds=5)


def grouped(connection: duckdb.DuckDBPyConnection, aggregate: str) -> Callable[[], list[Any]]:
    query = f"SELECT count(*), sum(x) FROM (SELECT {aggregate} AS x FROM t GROUP BY k)"
    return lambda: connection.execute(query).fetchall()


LOAD = """
import sys, time
import duckdb
connection = duckdb.connect(config={"allow_unsigned_extensions": True})
start = time.perf_counter()
connection.execute(f"LOAD '{sys.argv[1]}'")
print(time.perf_counter() - start)
"""


@pytest.mark.parametrize("language", NATIVE)
def test_load(benchmark: Any, language: str) -> None:
    """In a new process, wall time; the engine has been started."""
    link = str(library(language).with_suffix(".duckdb_extension"))

    def load_once() -> float:
        done = subprocess.run([sys.executable, "-c", LOAD, link], check=True, stdout=subprocess.PIPE, env=os.environ)
        return float(done.stdout)

    seconds = benchmark.pedantic(lambda: sorted(load_once() for _ in range(5))[2], rounds=1)
    note(benchmark, f"DuckDB: LOAD, {language}", seconds * 1e3, "ms (clock)", None, None, 5.0)
