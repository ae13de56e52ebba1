"""Windows over more rows than a batch has, in several slices; what is late; what fails."""

from __future__ import annotations

import json
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
from arroyo_udf_plugin.errors import RowError

pytestmark = pytest.mark.usefixtures("folder")

OUT = "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');"
TABLE = """CREATE TABLE events (k TEXT, x BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '10 seconds')
           WITH (connector = 'filesystem', path = 'events', format = 'parquet', type = 'source');"""
GROUPED = f"{TABLE} INSERT INTO out SELECT tumble(interval '10 seconds') AS w, sum(x) AS s FROM events GROUP BY w;"
ROWS, FILES = 60_000, 8


def run(text: str, parallelism: int = 1, udfs: tuple[str, ...] = (), **others: Any) -> PipelineSummary:
    pipeline = Script("query.sql", f"{OUT} {text}", udfs).pipeline
    return run_pipeline(pipeline.model_copy(update={"parallelism": parallelism}), **others)


def rows() -> list[dict[str, Any]]:
    return sorted(ds.dataset("out").to_table().to_pylist(), key=str)


def shown(table: pa.Table) -> list[str]:
    """The rows, with times that do not depend on whether there is pandas."""
    return sorted(json.dumps(row, default=lambda time: time.isoformat()) for row in table.to_pylist())


def write(times: list[int], name: str = "events/0.parquet") -> None:
    """Times in seconds."""
    Path("events").mkdir(exist_ok=True)
    columns = {"k": pa.array(["a"] * len(times)), "x": pa.array(range(len(times)), pa.int64())}
    pq.write_table(pa.table({**columns, "t": pa.array([1000 * t for t in times], pa.timestamp("ms"))}), name)


@pytest.fixture
def events() -> pa.Table:
    """In files behind each other, each row up to eight seconds too early or too late."""
    Path("events").mkdir()
    seed = random.Random(7)
    times = [n * 20 + seed.randrange(8_000) for n in range(ROWS)]
    table = pa.table(
        {
            "k": [None if n % 11 == 3 else f"k{n * 7 % 13}" for n in range(ROWS)],
            "x": pa.array([None if n % 5 == 1 else n % 101 for n in range(ROWS)], pa.int64()),
            "t": pa.array(times, pa.timestamp("ms")),
        }
    )
    for number in range(FILES):
        pq.write_table(table.slice(number * ROWS // FILES, ROWS // FILES), f"events/{number}.parquet")
    return table


AGGREGATES = {
    "parts": "count(*) AS n, sum(x) AS s, min(x) AS low, avg(x) AS a",
    "rows": "count(*) AS n, median(x) AS m, count(DISTINCT x) AS d",
}


@pytest.mark.parametrize("parallelism", [1, 2, 4])
@pytest.mark.parametrize("kept", AGGREGATES)
def test_results_are_the_same_in_several_slices(events: pa.Table, kept: str, parallelism: int) -> None:
    summary = run(
        f"{TABLE} INSERT INTO out "
        f"SELECT k, tumble(interval '30 seconds') AS w, {AGGREGATES[kept]} FROM events GROUP BY k, w",
        parallelism,
    )
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches("events", [events.to_batches()])
    start = "date_bin(interval '30 seconds', t)"
    window = f"named_struct('start', {start}, 'end', {start} + interval '30 seconds')"
    wanted = context.sql(f"SELECT k, {window} AS w, {AGGREGATES[kept]} FROM events GROUP BY 1, 2").to_arrow_table()
    assert shown(ds.dataset("out").to_table()) == shown(wanted)
    (windows,) = [operator for operator in summary.progress.operators if operator.name.endswith("_windows")]
    assert (windows.rows_in, windows.counts.late) == (ROWS, 0)


@pytest.mark.parametrize(
    "watermark",
    [
        "WATERMARK FOR t AS t - INTERVAL '10 seconds'",
        "WATERMARK FOR t AS to_timestamp_millis((x - x) + arrow_cast(t, 'Int64') - 10000)",
        "at TIMESTAMP(3) GENERATED ALWAYS AS (date_trunc('second', t)), WATERMARK FOR at AS at - INTERVAL '10 s'",
        "ms BIGINT GENERATED ALWAYS AS (arrow_cast(t, 'Int64')), WATERMARK FOR t AS to_timestamp_millis(ms - 10000)",
    ],
)
def test_late_rows_are_counted(watermark: str) -> None:
    """The watermark before a batch decides: each file is one."""
    write([5, 100, 3])
    write([4, 95], "events/1.parquet")
    assert TABLE.count("WATERMARK") == 1
    summary = run(GROUPED.replace("WATERMARK FOR t AS t - INTERVAL '10 seconds'", watermark))
    assert [row["s"] for row in rows()] == [0 + 2, 1, 1]
    assert sum(operator.counts.late for operator in summary.progress.operators) == 1


def test_an_event_time_must_not_be_null() -> None:
    Path("events").mkdir()
    schema = pa.schema([("k", pa.string()), ("x", pa.int64()), ("t", pa.timestamp("ms"))])
    pq.write_table(pa.table([["a", "b"], [1, 2], [1000, None]], schema=schema), "events/0.parquet")
    with pytest.raises(RowError, match="row 2: column 't' is null, and NOT NULL"):
        run(GROUPED)
    run(f"SET on_error = 'drop'; {GROUPED}")
    assert [row["s"] for row in rows()] == [1]


def test_a_row_that_fails_in_front_of_a_window_fails_alone() -> None:
    write([1, 2, 3])
    run(f"SET on_error = 'drop'; {GROUPED.replace('sum(x)', 'sum(6 / x)')}")
    assert [row["s"] for row in rows()] == [9]


def test_dead_letters_of_results_have_no_columns_of_the_source() -> None:
    write([1, 2, 13])
    settings = "SET on_error = 'dead_letter'; SET dead_letters = 'dead';"
    run(f"{settings} {GROUPED.replace('sum(x)', 'positive(sum(x) - 2)')}", udfs=("functions.so",))
    assert [row["s"] for row in rows()] == [0]
    (letter,) = ds.dataset("dead").to_table().to_pylist()
    assert (letter["x"], letter["failed_file"], letter["failed_row"]) == (None, "window of out_rows_windows", 0)


def test_the_window_of_a_full_join_beside_a_call() -> None:
    """What both sides make together is there still when the call's results are."""
    write([1, 2, 31])
    views = "".join(
        f"CREATE VIEW {name} AS SELECT tumble(interval '10 seconds') AS window, k, count(*) AS n FROM events "
        f"WHERE {where} GROUP BY window, k;"
        for name, where in (("l", "x < 2"), ("r", "x > 0"))
    )
    text = (
        "INSERT INTO out SELECT window.start AS s, plane(k) AS p, l.n, r.n AS m FROM l FULL JOIN r USING (window, k);"
    )
    run(f"{TABLE} {views} {text}", udfs=("functions.so",))
    assert [(row["s"].second, row["p"], row["n"], row["m"]) for row in rows()] == [
        (0, "P-a", 2, 1),
        (30, "P-a", None, 1),
    ]
