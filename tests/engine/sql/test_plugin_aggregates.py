"""Aggregates and table functions of plugins beyond what queries/*_of_plugin*.sql say: many rows, failures, changed
plugins, descriptions, and what is refused over sources that end."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from datafusion import Accumulator, SessionConfig, SessionContext, udaf
from sql_world import Killed, killer

from arroyo_udf_plugin import failpoints, load
from arroyo_udf_plugin.engine.datafusion.accumulators import Accumulators, GroupAccumulator
from arroyo_udf_plugin.engine.datafusion.aggregates import Steps
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Checkpoints, InvalidPipeline
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery
from arroyo_udf_plugin.errors import InvalidArgument, RowError
from arroyo_udf_plugin.host.aggregate import Aggregate

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

UDFS = ["functions.so"]
OUT = "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');"
TABLE = """CREATE TABLE events (k TEXT, x BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '10 seconds')
           WITH (connector = 'filesystem', path = 'events', format = 'parquet', type = 'source');"""
ROWS, FILES = 60_000, 6
BRITTLE = """
from dataclasses import dataclass
from arroyo_udf_plugin import udaf

@udaf
@dataclass
class brittle:
    sum: int = 0

    def update(self, values: list[int]) -> None:
        if 13 in values:
            raise ValueError("13 brings bad luck")
        self.sum += sum(values)

    def merge(self, other: "brittle") -> None:
        self.sum += other.sum

    def finish(self) -> int:
        if self.sum == 99:
            raise ValueError("99 is too many")
        return self.sum
"""


def script(text: str, udfs: list[str] = UDFS) -> Script:
    return Script("q.sql", f"{OUT} {TABLE} INSERT INTO out {text}", udfs)


def run(text: str, udfs: list[str] = UDFS, parallelism: int = 1) -> list[dict[str, Any]]:
    run_pipeline(script(text, udfs).pipeline.model_copy(update={"parallelism": parallelism}))
    return rows()


def rows() -> list[dict[str, Any]]:
    return sorted(ds.dataset("out").to_table().to_pylist(), key=str)


def write(values: list[int | None], name: str = "events/0.parquet") -> None:
    """A row for each second."""
    Path("events").mkdir(exist_ok=True)
    times = pa.array([1000 * second for second in range(len(values))], pa.timestamp("ms"))
    columns = [pa.array(["a"] * len(values)), pa.array(values, pa.int64()), times]
    pq.write_table(pa.table(columns, names=["k", "x", "t"]), name)


@pytest.fixture
def events() -> pa.Table:
    """In files behind each other, each row up to eight seconds too early or too late."""
    Path("events").mkdir()
    seed = random.Random(7)
    table = pa.table(
        {
            "k": [None if n % 11 == 3 else f"k{n * 7 % 13}" for n in range(ROWS)],
            "x": pa.array([None if n % 5 == 1 else n % 101 for n in range(ROWS)], pa.int64()),
            "t": pa.array([n * 20 + seed.randrange(8_000) for n in range(ROWS)], pa.timestamp("ms")),
        }
    )
    for number in range(FILES):
        pq.write_table(table.slice(number * ROWS // FILES, ROWS // FILES), f"events/{number}.parquet")
    return table


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    "window",
    ["tumble(interval '30 seconds')", "hop(interval '1 minute', interval '3 minutes')", "session(interval '0.4 s')"],
)
@pytest.mark.parametrize("others", ["avg(x) AS a", "median(x) AS a"], ids=["parts", "rows"])
def test_an_own_sum_is_that_of_sql_over_many_rows(events: pa.Table, window: str, others: str, parallelism: int) -> None:
    query = f"SELECT k, {window} AS w, total(x) AS t, sum(x) AS s, {others} FROM events GROUP BY k, w"
    found = run(query, parallelism=parallelism)
    assert len(found) > 100
    assert [row["t"] for row in found] == [row["s"] for row in found]


def test_late_rows_are_not_in_it() -> None:
    write([1, 2, 3])
    columns = [["a"] * 2, [100, 4], pa.array([100_000, 1_000], pa.timestamp("ms"))]
    pq.write_table(pa.table(columns, names=["k", "x", "t"]), "events/1.parquet")
    columns = [["a"], [50], pa.array([5_000], pa.timestamp("ms"))]
    pq.write_table(pa.table(columns, names=["k", "x", "t"]), "events/2.parquet")
    found = run("SELECT tumble(interval '10 seconds') AS w, total(x) AS t FROM events GROUP BY w")
    assert [row["t"] for row in found] == [1 + 2 + 3 + 4, 100]


# ---- Whole queries ----


@pytest.mark.parametrize("threads", [1, 3])
def test_datafusion_has_the_same_sums_however_many_threads_it_has(threads: int) -> None:
    """Far more rows than wait for a call; groups in several partitions are merged."""
    table = pa.table({"k": [n * 7 % 5000 for n in range(150_000)], "x": range(150_000)})
    context = SessionContext(SessionConfig().with_target_partitions(threads))
    shares = table.to_batches(max_chunksize=10_000)
    context.register_record_batches("t", [shares[start::3] for start in range(3)])
    with load("functions.so") as plugin:
        total = plugin.functions["total"]
        assert isinstance(total, Aggregate)
        Accumulator.register(GroupAccumulator)
        new: Any = Accumulators(Steps(total)).new
        context.register_udaf(udaf(new, [pa.int64()], pa.int64(), [total.state], "volatile", name="total"))
        groups = context.sql("SELECT k, total(x) AS t, sum(x) AS s FROM t GROUP BY k").to_arrow_table()
        every = context.sql("SELECT total(x) AS t, sum(x) AS s FROM t").to_arrow_table()
    assert len(groups) == 5000
    assert groups["t"] == groups["s"]
    assert every["t"] == every["s"]


REFUSED = {
    "SELECT k, total(x, 2) AS t FROM events GROUP BY k": "2 arguments are given, and the function is total(values",
    "SELECT k FROM events WHERE total(x) > 3": "Aggregate functions are not allowed in the WHERE clause",
    "SELECT total(x) OVER (ORDER BY t ROWS 2 PRECEDING) AS s FROM events": "write ROWS BETWEEN UNBOUNDED PRECEDING",
    "SELECT total(x) OVER (ORDER BY t ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM events": "total cannot take",
    "SELECT total(k) AS s FROM events": "there is no total",
    "SELECT DISTINCT * FROM events, letters(k)": "a * is not for rows of a function here: write the columns",
    "SELECT count(*) AS n FROM events e CROSS JOIN events f, letters(f.k)": "write what is before them as a query",
    "SELECT count(*) AS n FROM events e JOIN events f ON e.x = f.x, letters(f.k)": "beside another JOIN",
    "SELECT k FROM events, nothing(k)": "there is no table function nothing: name the UDF's file",
    "SELECT k FROM events CROSS JOIN UNNEST(letters(k)) AS l": "write unnest(list) among the items",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused_of_sources_that_end(query: str) -> None:
    write([1])
    with pytest.raises(InvalidQuery) as error:
        script(query)
    assert REFUSED[query] in str(error.value)


# ---- Failures ----


@pytest.fixture
def brittle(build_plugin: Callable[..., Path]) -> list[str]:
    return [str(build_plugin(BRITTLE, name="luck"))]


WINDOWED = "SELECT tumble(interval '10 seconds') AS w, brittle(x) AS s FROM events GROUP BY w"


@pytest.mark.parametrize(
    "query",
    [
        WINDOWED,
        WINDOWED.replace("AS s", "AS s, median(x) AS m"),
        WINDOWED.replace("tumble", "session"),
        "SELECT brittle(x) AS s FROM events",
        "SELECT brittle(DISTINCT x) AS s FROM events",
        "SELECT k, brittle(x) AS s FROM events GROUP BY k",
    ],
)
@pytest.mark.parametrize(
    ("values", "why"), [([1, 13, 2], "13 brings bad luck"), ([90, 9, None], "99 is too many")], ids=["update", "finish"]
)
def test_a_group_that_fails_ends_the_query_with_the_plugins_text(
    brittle: list[str], query: str, values: list[int | None], why: str
) -> None:
    write(values)
    with pytest.raises(RowError, match=rf"luck\.brittle\.(update|finish), row 0: ValueError: {why}"):
        run(query, brittle)


def test_a_group_that_fails_does_not_hide_the_values_of_others(brittle: list[str]) -> None:
    """DataFusion asks for the groups one by one; which ones it asks for is its own matter."""
    with load(brittle[0]) as plugin:
        aggregate = plugin.functions["brittle"]
        assert isinstance(aggregate, Aggregate)
        accumulators = Accumulators(Steps(aggregate))
        good, bad, empty = (accumulators.new() for _ in range(3))
        good.update(pa.array([1, 2]))
        bad.update(pa.array([99]))
        assert (good.evaluate().as_py(), empty.evaluate().as_py()) == (3, 0)
        with pytest.raises(RowError, match="99 is too many"):
            bad.evaluate()
        bad.update(pa.array([1]))
        good.merge([pa.concat_arrays([pa.array([s.as_py() for s in bad.state()], aggregate.state)])])
        assert (bad.evaluate().as_py(), good.evaluate().as_py()) == (100, 103)


# ---- Checkpoints ----


def test_a_plugin_that_has_changed_is_told(
    events: pa.Table, build_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT k, tumble(interval '1 hour') AS w, total(x) AS t, sum(x) AS s FROM events GROUP BY k, w"
    own = BRITTLE.replace("brittle", "total").replace("13 in values", "False").replace("== 99", "< 0")
    Path("own.so").symlink_to(build_plugin(own, name="own"))
    pipeline = script(query, ["own.so"]).pipeline
    pipeline = pipeline.model_copy(update={"checkpoints": Checkpoints(place="state", every_rows=4)})
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", killer("committed"))
        with pytest.raises(Killed):
            run_pipeline(pipeline)
    Path("own.so").unlink()
    Path("own.so").symlink_to(build_plugin(own + "\n# another\n", name="own"))
    with pytest.raises(InvalidArgument, match=r"the plugin of out_rows_windows\.total is not .*--allow-changed-plugin"):
        run_pipeline(pipeline, resume=True)
    run_pipeline(pipeline, resume=True, allow_changed_plugin=True)
    assert [row["t"] for row in rows()] == [row["s"] or 0 for row in rows()]


# ---- Descriptions ----


def test_a_description_is_loaded_in_another_place(events: pa.Table) -> None:
    """As a worker gets it: as JSON, without the planner. In processes of its own."""
    query = "SELECT k, tumble(interval '5 minutes') AS w, total(x) AS t, sum(x) AS s FROM events GROUP BY k, w"
    planned = Script("q.sql", f"SET isolation = 'process'; {OUT} {TABLE} INSERT INTO out {query}", UDFS).pipeline
    pipeline = pipeline_of(json.loads(json.dumps(described(planned))))
    run_pipeline(pipeline)
    found = rows()
    assert len(found) > 10
    assert [row["t"] for row in found] == [row["s"] for row in found]
    with contextlib.closing(plan(pipeline)) as opened:
        text = explained(opened)
    assert "__v1  int64 = total(__x1)" in text
    assert "functions = {'total': 'functions.so'}, isolation = process, workers = 1" in text


@pytest.mark.parametrize(
    ("functions", "why"),
    [
        ({"twice": "functions.so"}, "twice is sync, and windows cannot call it"),
        ({"most": "functions.so"}, "functions.so has no function most"),
    ],
)
def test_windows_call_aggregates_alone(functions: dict[str, str], why: str) -> None:
    write([1])
    query = "SELECT tumble(interval '5 minutes') AS w, total(x) AS t FROM events GROUP BY w"
    pipeline = script(query).pipeline
    changed = [
        operator.model_copy(update={"functions": functions}) if operator.type == "windows" else operator
        for operator in pipeline.operators
    ]
    with pytest.raises(InvalidPipeline) as error:
        plan(pipeline.model_copy(update={"operators": tuple(changed)}))
    assert why in str(error.value)


def test_the_plan_of_a_query_over_all_rows_names_the_function() -> None:
    write([1])
    with contextlib.closing(plan(script("SELECT total(x) AS t FROM events").pipeline)) as opened:
        text = explained(opened)
    assert "functions = {'total': 'functions.so'}" in text
