"""Joins within an interval of event time, and first rows of keys, over more rows than a batch has: in several slices,
in files, late rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.progress import PipelineSummary
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import ArroyoUdfError

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


def run(text: str, parallelism: int = 1) -> PipelineSummary:
    pipeline = Script("query.sql", f"{OUT} {text}", ()).pipeline
    return run_pipeline(pipeline.model_copy(update={"parallelism": parallelism}))


def rows() -> list[dict[str, Any]]:
    return sorted(ds.dataset("out").to_table().to_pylist(), key=str)


def late(summary: PipelineSummary) -> int:
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


def test_a_table_that_is_read_faster_waits_for_the_other_one() -> None:
    """Else all of it would have to be kept until the other one has come so far. Of one table, a batch has twenty times
    as much event time as of the other one."""
    fast = [[(n % 7, x, 30_000 * n + 60 * x) for x in range(500)] for n in range(20)]
    slow = [[(n % 7, n, 1_500 * n)] for n in range(400)]
    for name, files in (("a", fast), ("b", slow)):
        for number, part in enumerate(files, 100):  # their names are in this order
            write(name, part, number)
    limits = "SET memory_limit = '20kB'; SET disk_limit = '100kB';"
    query = "SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL '2 seconds'"
    text = f"{table('a')} {table('b')} INSERT INTO out {query};"
    with pytest.raises(ArroyoUdfError, match="set a higher limit, or shorter windows or intervals"):
        run(f"{limits} SET max_drift = '1 hour'; {text}")
    assert late(run(f"{limits} {text}")) == 0
    assert rows() == sorted(
        (
            {"x": x, "y": y}
            for part in fast
            for ((other, y, later),) in slow
            if other == part[0][0]
            for _, x, time in part
            if 0 <= later - time <= 2_000
        ),
        key=str,
    )


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


@pytest.mark.parametrize(("parallelism", "limit"), [(1, "1GB"), (2, "20kB")])
def test_first_rows_in_several_slices(both: dict[str, pa.Table], parallelism: int, limit: str) -> None:
    query = "SELECT k, x, t FROM a QUALIFY row_number() OVER (PARTITION BY k, x % 5 ORDER BY t) = 1"
    settings = f"SET memory_limit = '{limit}'; SET state_ttl = '30 seconds';"
    summary = run(f"{settings} {table('a')} INSERT INTO out {query};", parallelism)
    known: dict[tuple[int, int], int] = {}
    wanted = []
    for time, k, fifth in sorted(_times(both["a"])):
        if time >= known.get((k, fifth), -30_000) + 30_000:
            known[k, fifth] = time
            wanted.append((time, k, fifth))
    assert sorted(_times(ds.dataset("out").to_table())) == wanted
    assert ROWS / 3 > len(wanted) > 2 * 40 * 5
    assert late(summary) == 0


def _times(rows: pa.Table) -> list[tuple[int, int, int]]:
    """Of rows: the time in milliseconds, and the keys."""
    columns = rows["t"].cast(pa.int64()).to_pylist(), rows["k"].to_pylist(), rows["x"].to_pylist()
    return [(time, k, x % 5) for time, k, x in zip(*columns, strict=True)]


def test_a_first_row_keeps_the_columns_of_its_source() -> None:
    """Its dead letter has them, and its place there."""
    write("a", [(1, 5, 0), (1, 6, 10), (2, -7, 20)])
    settings = "SET state_ttl = '1 hour'; SET on_error = 'dead_letter'; SET dead_letters = 'dead';"
    query = "SELECT positive(x) AS p FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY t) = 1"
    text = f"{OUT} {settings} {table('a')} INSERT INTO out {query};"
    run_pipeline(Script("query.sql", text, ("functions.so",)).pipeline)
    assert rows() == [{"p": 5}]
    (letter,) = ds.dataset("dead").to_table().to_pylist()
    assert (letter["k"], letter["x"], letter["failed_file"], letter["failed_row"]) == (2, -7, "a/0.parquet", 3)
