"""Late rows in SQL: windows that wait for them, and dead letters of those that come later."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sql_world import Killed, killer

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.progress import PipelineSummary
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Join, Windows
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.usefixtures("folder")

TABLE = """CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');
           CREATE TABLE events (k TEXT, x BIGINT, t TIMESTAMP(0), WATERMARK FOR t AS t - INTERVAL '10 seconds')
           WITH (connector = 'filesystem', path = 'events', format = 'parquet', type = 'source');"""
LETTERS = "SET on_late = 'dead_letter'; SET dead_letters = 'dead';"
GROUPED = "INSERT INTO out SELECT tumble(interval '10 seconds') AS w, array_agg(x) AS xs FROM events GROUP BY w;"


def script(text: str) -> Any:
    return Script("query.sql", TABLE + text, ()).pipeline


def write(number: int, times: list[int], first: int = 0) -> None:
    """A file of rows with these times, in seconds; x numbers them."""
    Path("events").mkdir(exist_ok=True)
    numbers = pa.array(range(first, first + len(times)), pa.int64())
    columns = {"k": pa.array(["a"] * len(times)), "x": numbers, "t": pa.array(times, pa.timestamp("s"))}
    pq.write_table(pa.table(columns), f"events/{number:02}.parquet")


def grouped() -> list[list[int]]:
    """The rows of each window."""
    return sorted(sorted(row["xs"]) for row in ds.dataset("out").to_table().to_pylist())


def late(summary: PipelineSummary) -> int:
    return sum(operator.counts.late for operator in summary.progress.operators)


def test_late_rows_are_dead_letters_with_their_columns() -> None:
    write(0, [5, 100, 3])
    write(1, [4, 95, 7], 3)
    summary = run_pipeline(script(f"{LETTERS} {GROUPED}"))
    assert grouped() == [[0, 2], [1], [4]]
    letters = ds.dataset("dead").to_table().to_pylist()
    assert [(row["k"], row["x"], row["t"].second, row["failed_row"]) for row in letters] == [
        ("a", 3, 4, 1),
        ("a", 5, 7, 3),
    ]
    assert {row["failed_file"] for row in letters} == {"events/01.parquet"}
    assert {(row["failed_outcome"], row["failed_function"]) for row in letters} == {("late", "out_rows_windows")}
    assert letters[0]["failed_error"] == (
        "late: its event time is 1970-01-01 00:00:04, and windows were over up to 1970-01-01 00:01:30"
    )
    assert late(summary) == sum(operator.counts.dead_letters for operator in summary.progress.operators) == 2


def test_windows_wait_for_rows_that_are_late_by_no_more_than_is_allowed() -> None:
    write(0, [5, 100, 3])
    write(1, [4, 95], 3)
    write(2, [200, 6], 5)
    write(3, [8], 7)
    summary = run_pipeline(script(f"SET allowed_lateness = '85 seconds'; {GROUPED}"))
    assert grouped() == [[0, 2, 3, 6], [1], [4], [5]]
    assert late(summary) == 1


def test_only_the_first_windows_wait() -> None:
    """Results of windows are not late. A window of theirs that waited, too, would be twice as late."""
    write(0, [1])
    views = """
        CREATE VIEW tens AS SELECT k, tumble(interval '10 seconds') AS w, count(*) AS n FROM events GROUP BY 1, 2;
        CREATE VIEW counts AS SELECT k, n FROM tens;
        CREATE VIEW minutes AS SELECT k, tumble(interval '1 minute') AS w, sum(n) AS n FROM counts GROUP BY 1, 2;
        CREATE VIEW again AS SELECT w, max(n) AS n FROM minutes GROUP BY w;"""
    pipeline = script(
        f"SET allowed_lateness = '1 minute'; {LETTERS} {views}"
        "INSERT INTO out SELECT again.w, again.n, m.n AS m FROM again JOIN minutes m ON again.w = m.w;"
    )
    waiting = [one for one in pipeline.operators if isinstance(one, Windows | Join)]
    assert [one.allowed_lateness for one in waiting] == [60, 0, 0, 0]
    assert {one.on_late for one in waiting} == {"dead_letter"}


@pytest.mark.parametrize("widths", [(1, 1), (3, 2), (1, 3)], ids=str)
def test_each_row_is_in_a_window_or_a_dead_letter_once(
    widths: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is killed when (O4); with several slices, other rows are late. widths: of the engines, in turn."""
    seed, size = random.Random(5), 6
    for number in range(12):
        write(number, [20 * number + seed.randrange(-200, 20) for _ in range(size)], number * size)
    told = script(f"SET allowed_lateness = '8 seconds'; {LETTERS} {GROUPED}")

    def engine(number: int) -> PipelineSummary:
        checkpoints = Checkpoints(place="state", every_rows=4)
        width = widths[number % 2]
        return run_pipeline(
            told.model_copy(update={"checkpoints": checkpoints, "parallelism": width}), resume=number > 0
        )

    for number, moment in enumerate(("staged", "committed", "applied", "committed")):
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "reached", killer(moment))
            with pytest.raises(Killed):
                engine(number)
    engine(4)
    letters = ds.dataset("dead").to_table().to_pylist()
    assert letters or max(widths) > 1  # several slices may have waited for each other
    found = Counter(x for rows in grouped() for x in rows) + Counter(row["x"] for row in letters)
    assert found == Counter(range(12 * size))
    assert {(row["failed_file"], row["failed_row"]) for row in letters} == {
        (f"events/{row['x'] // size:02}.parquet", row["x"] % size + 1) for row in letters
    }


FIRST_ROWS = """SET state_ttl = '1 hour';
                INSERT INTO out SELECT x FROM events QUALIFY row_number() OVER (PARTITION BY x ORDER BY t) = 1;"""
NEAR = """INSERT INTO out SELECT a.x FROM events a JOIN events b
          ON a.x = b.x AND b.t BETWEEN a.t AND a.t + INTERVAL '1 second';"""
LAG = """SET state_ttl = '1 hour';
         INSERT INTO out SELECT x, lag(x) OVER (PARTITION BY k ORDER BY t) AS before FROM events;"""


@pytest.mark.parametrize("text", [FIRST_ROWS, NEAR, LAG], ids=["first rows", "interval join", "lag"])
def test_what_else_waits_for_the_watermark_knows_late_rows(text: str) -> None:
    write(0, [5, 100, 3])
    write(1, [4, 95], 3)
    run_pipeline(script(f"{LETTERS} {text}"))
    assert sorted(ds.dataset("out").to_table().column("x").to_pylist()) == [0, 1, 2, 4]
    letters = ds.dataset("dead").to_table().to_pylist()
    assert {(row["x"], row["failed_outcome"], row["failed_row"]) for row in letters} == {(3, "late", 1)}
    Path("out").rename("before")
    summary = run_pipeline(script(f"SET allowed_lateness = '90 seconds'; {text}"))
    assert sorted(ds.dataset("out").to_table().column("x").to_pylist()) == [0, 1, 2, 3, 4]
    assert late(summary) == 0
