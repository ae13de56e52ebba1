"""Joins within an interval of event time, over more rows than a batch has: in several slices, in files, late rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext

from arroyo_udf_plugin.engine.embedded import run_pipeline
from arroyo_udf_plugin.engine.progress import Summary
from arroyo_udf_plugin.errors import ArroyoUdfError
from arroyo_udf_plugin.planner.script import Script

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

OUT = "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');"
ROWS, FILES = 20_000, 4


def table(name: str, watermark: str = "t - INTERVAL '10 seconds'", columns: str = "t TIMESTAMP(3)") -> str:
    return (
        f"CREATE TABLE {name} (k BIGINT, x BIGINT, {columns}, WATERMARK FOR t AS {watermark}) WITH (connector = "
        f"'filesystem', path = '{name}', format = 'parquet', type = 'source');"
    )


def write(name: str, rows: list[tuple[int, int, int]], number: int = 0) -> pa.Table:
    """rows: of k, x, and the time in milliseconds."""
    Path(name).mkdir(exist_ok=True)
    columns = [list(one) for one in zip(*rows, strict=True)]
    types = [pa.int64(), pa.int64(), pa.timestamp("ms")]
    found = pa.table([pa.array(*one) for one in zip(columns, types, strict=True)], ["k", "x", "t"])
    pq.write_table(found, f"{name}/{number}.parquet")
    return found


def run(text: str, parallelism: int = 1) -> Summary:
    pipeline = Script("query.sql", f"{OUT} {text}", ()).pipeline
    return run_pipeline(pipeline.model_copy(update={"parallelism": parallelism}))


def rows() -> list[dict[str, Any]]:
    return sorted(ds.dataset("out").to_table().to_pylist(), key=str)


def late(summary: Summary) -> int:
    return sum(operator.counts.late for operator in summary.progress.operators)


@pytest.fixture
def both() -> dict[str, pa.Table]:
    """Two tables in files, each row up to eight seconds too early or too late."""
    seed = random.Random(5)
    found = {}
    for name in ("a", "b"):
        all_rows = [(seed.randrange(40), n, n * 50 + seed.randrange(8_000)) for n in range(ROWS)]
        size = ROWS // FILES
        parts = [write(name, all_rows[n * size : (n + 1) * size], n) for n in range(FILES)]
        found[name] = pa.concat_tables(parts)
    return found


@pytest.mark.parametrize(("parallelism", "limit"), [(1, "1GB"), (2, "200kB"), (4, "1GB")])
def test_results_are_the_same_in_several_slices_and_in_files(
    both: dict[str, pa.Table], parallelism: int, limit: str
) -> None:
    query = (
        "SELECT a.x, b.x AS y FROM a FULL JOIN b ON a.k = b.k AND a.x % 3 <> b.x % 3 "
        "AND b.t BETWEEN a.t - INTERVAL '3 seconds' AND a.t + INTERVAL '20 seconds'"
    )
    summary = run(f"SET memory_limit = '{limit}'; {table('a')} {table('b')} INSERT INTO out {query};", parallelism)
    context = SessionContext(SessionConfig().with_target_partitions(1))
    for name, one in both.items():
        context.register_record_batches(name, [one.to_batches()])
    columns = [("x", "ascending"), ("y", "ascending")]
    wanted = context.sql(query).to_arrow_table().sort_by(columns)
    assert wanted.num_rows > ROWS
    assert ds.dataset("out").to_table().sort_by(columns).equals(wanted)
    assert late(summary) == 0


def test_what_does_not_fit_on_the_disk_fails(both: dict[str, pa.Table]) -> None:
    text = (
        "SET memory_limit = '10kB'; SET disk_limit = '20kB'; INSERT INTO out SELECT a.x FROM a JOIN b ON a.k = b.k "
        "AND b.t BETWEEN a.t - INTERVAL '1 day' AND a.t;"
    )
    with pytest.raises(ArroyoUdfError, match="set a higher limit, or shorter windows or intervals"):
        run(f"{table('a')} {table('b')} {text}")


def test_late_rows_are_counted() -> None:
    """The watermark before a batch decides: each file is one."""
    write("a", [(1, 1, 0), (1, 2, 100_000)])
    write("b", [(1, 3, 1_000), (1, 4, 100_000)])
    write("a", [(1, 5, 89_000), (1, 6, 95_000)], 1)
    query = "SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL '6 seconds'"
    # Both tables are read side by side: b is at its end, so a alone has a watermark.
    summary = run(f"{table('a')} {table('b')} INSERT INTO out {query};")
    assert rows() == [{"x": 1, "y": 3}, {"x": 2, "y": 4}, {"x": 6, "y": 4}]
    assert late(summary) == 1


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_no_result_of_a_join_is_late_in_a_window(both: dict[str, pa.Table], kind: str) -> None:
    view = (
        f"CREATE VIEW pairs AS SELECT a.x, b.x AS y FROM a {kind} b ON a.k = b.k "
        "AND b.t BETWEEN a.t - INTERVAL '15 seconds' AND a.t - INTERVAL '5 seconds';"
    )
    text = "INSERT INTO out SELECT tumble(interval '10 seconds') AS w, count(*) AS n FROM pairs GROUP BY w;"
    summary = run(f"{table('a')} {table('b')} {view} {text}", 2)
    assert late(summary) == 0
    operators = {operator.name: operator for operator in summary.progress.operators}
    assert sum(row["n"] for row in rows()) == operators["pairs"].rows_in > ROWS / 2


def test_times_with_fewer_digits_than_what_is_read() -> None:
    """A condition is on the columns, also where the event time is more exact."""
    write("a", [(1, 1, 999), (1, 2, 60_000)])
    write("b", [(1, 3, 1_999), (1, 4, 60_000)])
    query = "SELECT a.x, b.x AS y FROM a JOIN b ON b.t BETWEEN a.t + INTERVAL '1 second' AND a.t + INTERVAL '1 second'"
    seconds = "t TIMESTAMP(0)"
    run(f"{table('a', columns=seconds)} {table('b', columns=seconds)} INSERT INTO out {query};")
    assert rows() == [{"x": 1, "y": 3}]
