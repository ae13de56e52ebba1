"""What a function in Python costs here and elsewhere: other engines, loops over pyarrow, asyncio by hand.

CPU time per row, in one thread, in one run. Each line is measured in turns with the group's reference, so ratios can be
compared. Where the engines are not installed, this is not collected: `make bench-peers` installs them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import references
from arroyo_udf_plugin import build, load
from async_rows import ROWS as ASYNC_ROWS
from conftest import BATCH_ROWS, HERE, OUT, Compare, figures, note, plugin_path

ROWS = 40 * BATCH_ROWS
Run = Callable[[], object]
A, B = pa.array(range(ROWS)), pa.array(range(1, ROWS + 1))
TABLE = pa.table({"a": A, "b": B})
BATCHES = [(batch.column(0), batch.column(1)) for batch in TABLE.to_batches(BATCH_ROWS)]


def divided(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.divide(pc.multiply(pc.cast(a, pa.float64()), 60.0), pc.cast(b, pa.float64()))


def looped(a: pa.Array, b: pa.Array) -> pa.Array:
    return pa.array(list(map(references.mph, a.to_pylist(), b.to_pylist())), pa.float64())


def ours(path: Any, name: str) -> Run:
    function = load(path).functions[name]
    return lambda: [function(a, b) for a, b in BATCHES]


def in_datafusion(function: Callable[[pa.Array, pa.Array], pa.Array]) -> Run:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches("t", [TABLE.to_batches(BATCH_ROWS)])
    context.register_udf(datafusion.udf(function, [pa.int64(), pa.int64()], pa.float64(), "immutable", name="mph"))
    return lambda: context.sql("SELECT sum(mph(a, b)) FROM t").collect()


def in_duckdb(function: Callable[[Any, Any], Any], **kind: Any) -> Run:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", TABLE)
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    types: Any = ["BIGINT", "BIGINT"]
    connection.create_function("mph", function, types, "DOUBLE", **kind)
    return lambda: connection.execute("SELECT sum(mph(a, b)) FROM t").fetchall()


def in_polars(expression: polars.Expr) -> Run:
    frame = polars.DataFrame(TABLE)
    return lambda: frame.select(expression.sum())


def by_row() -> dict[str, Run]:
    rows = polars.struct("a", "b").map_elements(lambda row: references.mph(row["a"], row["b"]), polars.Float64)
    return {
        "ours, native": ours(build(HERE / "native.py", OUT / "peers_native.so"), "mph"),
        "ours, Python": ours(plugin_path(".py"), "mph"),
        "pyarrow, to_pylist": lambda: [looped(a, b) for a, b in BATCHES],
        "DataFusion, udf with to_pylist": in_datafusion(looped),
        "DuckDB, native UDF": in_duckdb(references.mph),
        "Polars, map_elements": in_polars(rows),
    }


def by_column() -> dict[str, Run]:
    def of_series(columns: Any) -> polars.Series:
        return polars.Series(divided(*(column.to_arrow() for column in columns)))

    return {
        "ours, vectorized": ours(plugin_path(".py"), "mph_vectorized"),
        "DataFusion, udf": in_datafusion(divided),
        "DuckDB, Arrow UDF": in_duckdb(divided, type="arrow"),
        "Polars, map_batches": in_polars(polars.map_batches(["a", "b"], of_series, polars.Float64)),
    }


@pytest.mark.parametrize("who", by_row())
def test_a_def_of_numbers(compare: Compare, who: str) -> None:
    lists = [[column.to_pylist() for column in batch] for batch in BATCHES]

    def comprehensions() -> None:
        for a, b in lists:
            references.comprehension(references.mph, a, b)

    _compare(compare, f"`mph`, row by row: {who}", by_row()[who], comprehensions, "comprehension")


@pytest.mark.parametrize("who", by_column())
def test_a_function_of_columns(compare: Compare, who: str) -> None:
    def direct() -> None:
        for a, b in BATCHES:
            divided(a, b)

    _compare(compare, f"`mph`, whole columns: {who}", by_column()[who], direct, "pyarrow")


@pytest.mark.parametrize("who", ["plugin", "workers", "tasks"])
@pytest.mark.parametrize("name", ["at_once", "sleep_ms"])
def test_async(benchmark: Any, name: str, who: str) -> None:
    """At most 1,000 calls at once. All but the reference, `slots`, and the Queue have a timeout for each call."""
    found = benchmark.pedantic(
        figures, (sys.executable, HERE / "async_rows.py", plugin_path(".py"), name), {"loop": "asyncio"}, rounds=1
    )
    shown = {"plugin": "ours", "workers": "Queue with workers", "tasks": "TaskGroup with wait_for"}[who]
    value, reference = median(found[who]), median(found["slots"])
    line = f"`{name}`, async: {shown}"
    note(benchmark, line, value / ASYNC_ROWS * 1e9, "ns/row", "slots", value / reference, None)


def _compare(compare: Compare, line: str, subject: Run, reference: Run, name: str) -> None:
    compare(line, subject, reference, n=ROWS, unit="ns/row", scale=1e9, reference_name=name)
