"""Tables over connectors, settings, and what is not an expression."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sql_world import FLIGHTS

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.operators.watermarks import DriftBound
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline, Windows
from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery
from arroyo_udf_plugin.errors import InvalidArgument, RowError

pytestmark = pytest.mark.usefixtures("folder")

OUT = "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');"
FLIGHTS_TABLE = (
    "CREATE TABLE flights WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');"
)


def pipeline(text: str) -> Pipeline:
    return Script("query.sql", text, ["functions.so"]).pipeline


def run(text: str) -> Any:
    return run_pipeline(pipeline(f"{OUT} {text}"))


def rows(path: str = "out") -> list[dict[str, Any]]:
    return sorted(ds.dataset(path).to_table().to_pylist(), key=str)


def refusal(text: str) -> str:
    with pytest.raises(InvalidQuery) as error:
        pipeline(text)
    return str(error.value)


TRIPS = "a,b,c,d\n1,x,2013-01-02 03:04:05,1.50\n2,,NA,2\nthree,z,2013-01-01,3\n"


def trips(columns: str, options: str = "") -> str:
    Path("trips.csv").write_text(TRIPS)
    options = f"connector = 'filesystem', path = 'trips.csv', type = 'source'{options}"
    return f"CREATE TABLE trips ({columns}) WITH ({options});"


def test_columns_have_their_types() -> None:
    table = trips("c TIMESTAMP(6), a BIGINT, d DECIMAL(6, 2)", ", bad_data = 'drop'")
    run(f"{table} INSERT INTO out SELECT * FROM trips")
    schema = ds.dataset("out").schema
    assert list(map(str, schema.types)) == ["timestamp[us]", "int64", "decimal128(6, 2)"]
    assert sorted(row["a"] for row in rows()) == [1, 2]


def test_text_without_columns_is_text() -> None:
    Path("trips.csv").write_text(TRIPS)
    table = "CREATE TABLE trips WITH (connector = 'single_file', path = 'trips.csv', type = 'source');"
    run(f"{table} INSERT INTO out SELECT a || '!' AS a, b IS NULL AS n FROM trips")
    assert rows() == [{"a": "1!", "n": False}, {"a": "2!", "n": True}, {"a": "three!", "n": False}]


def test_columns_that_are_computed() -> None:
    table = trips("a TEXT, b TEXT, twice_b TEXT GENERATED ALWAYS AS (b || b) STORED")
    run(f"{table} INSERT INTO out SELECT twice_b FROM trips WHERE a = '1'")
    assert rows() == [{"twice_b": "xx"}]


def test_a_column_that_may_not_be_null() -> None:
    table = trips("a TEXT, b TEXT NOT NULL")
    with pytest.raises(RowError, match=r"trips.csv, row 2: column 'b' is null, and NOT NULL"):
        run(f"{table} INSERT INTO out SELECT a FROM trips")


def test_a_computed_column_has_its_type() -> None:
    table = trips("a BIGINT, half DOUBLE GENERATED ALWAYS AS (a / 2)", ", bad_data = 'drop'")
    run(f"{table} INSERT INTO out SELECT half FROM trips WHERE a = 2")
    assert rows() == [{"half": 1.0}]
    assert str(ds.dataset("out").schema.field("half").type) == "double"
    table = trips("a TEXT, b TEXT, n BIGINT GENERATED ALWAYS AS (a || b)")
    assert "1:67: n is int64, and this is string: write CAST(... AS ...)" in refusal(f"{table} SELECT n FROM trips")


def test_a_computed_column_that_may_not_be_null() -> None:
    table = trips("a TEXT, b TEXT, c TEXT GENERATED ALWAYS AS (nullif(b, 'z')) NOT NULL", ", bad_data = 'drop'")
    run(f"{table} SET on_error = 'drop'; INSERT INTO out SELECT a, c FROM trips WHERE a IN ('1', 'three')")
    assert rows() == [{"a": "1", "c": "x"}]


def test_columns_of_a_sink_that_may_not_be_null() -> None:
    table = (
        "CREATE TABLE planes (id BIGINT, tail TEXT NOT NULL) WITH (connector = 'filesystem', path = 'planes', "
        "format = 'parquet', type = 'sink');"
    )
    insert = f"{FLIGHTS_TABLE} {table} INSERT INTO planes SELECT id, plane(tail) FROM flights WHERE id < 4"
    with pytest.raises(RowError, match=r"flights/0.parquet, row 4: column 'tail' is null, and NOT NULL"):
        run_pipeline(pipeline(insert))
    run_pipeline(pipeline(f"SET on_error = 'drop'; {insert}"))
    assert rows("planes") == [{"id": 0, "tail": "P-N00"}, {"id": 1, "tail": "P-D01"}, {"id": 2, "tail": "P-B02"}]


def test_rows_that_fail_are_left_out() -> None:
    table = trips("a TEXT, b TEXT NOT NULL")
    run(f"{table} SET on_error = 'drop'; INSERT INTO out SELECT CAST(a AS INT) AS n FROM trips")
    assert rows() == [{"n": 1}]


def test_dead_letters_are_rows_of_the_source() -> None:
    settings = "SET on_error = 'dead_letter'; SET dead_letters = 'dead';"
    summary = run(f"{FLIGHTS_TABLE} {settings} INSERT INTO out SELECT 100 / alt AS q, positive(alt) AS p FROM flights")
    letters = sorted(rows("dead"), key=lambda row: int(row["id"]))
    wrong = [row["id"] for row in FLIGHTS.to_pylist() if row["alt"] is not None and row["alt"] <= 0]
    assert [letter["id"] for letter in letters] == wrong
    assert set(FLIGHTS.schema.names) < set(letters[0])
    assert len(rows()) + len(letters) == len(FLIGHTS)
    assert summary.progress.rows_out == len(rows())


def test_a_table_in_memory() -> None:
    memory = "CREATE TABLE mem (a INT, b TEXT); INSERT INTO mem SELECT id, plane(tail) FROM flights WHERE id < 2;"
    run(f"{FLIGHTS_TABLE} {memory} INSERT INTO out SELECT a, b FROM mem")
    assert rows() == [{"a": 0, "b": "P-N00"}, {"a": 1, "b": "P-D01"}]
    assert str(ds.dataset("out").schema.field("a").type) == "int32"


def test_a_table_in_memory_may_say_so() -> None:
    memory = (
        "CREATE TABLE mem (a INT) WITH (connector = 'memory'); INSERT INTO mem SELECT id FROM flights WHERE id < 2;"
    )
    run(f"{FLIGHTS_TABLE} {memory} INSERT INTO out SELECT a FROM mem")
    assert rows() == [{"a": 0}, {"a": 1}]


def test_row_groups_have_a_size() -> None:
    table = OUT.replace("'parquet'", "'parquet', 'parquet.row_group_size' = '10'")
    run_pipeline(pipeline(f"{table} {FLIGHTS_TABLE} INSERT INTO out SELECT id FROM flights"))
    (file,) = Path("out").iterdir()
    groups = pq.ParquetFile(file).metadata
    assert max(groups.row_group(number).num_rows for number in range(groups.num_row_groups)) == 10
    assert "row_group_size = 'ten': write a number of rows" in refusal(
        f"{table.replace('10', 'ten')} {FLIGHTS_TABLE} INSERT INTO out SELECT id FROM flights"
    )


def test_the_impulse() -> None:
    table = """CREATE TABLE impulse WITH (connector = 'impulse', message_count = 5, start = '2020-01-01T00:00:00Z',
               event_time_interval = INTERVAL '1 minute');"""
    run(f"{table} INSERT INTO out SELECT counter, subtask_index, date_part('minute', event_time) AS m FROM impulse")
    assert rows() == [{"counter": n, "subtask_index": 0, "m": n} for n in range(5)]


def test_a_database_with_a_key() -> None:
    table = "CREATE TABLE planes (small INT PRIMARY KEY, n BIGINT) WITH (connector = 'sqlite', uri = 'sqlite:out.db');"
    run(f"{FLIGHTS_TABLE} {table} INSERT INTO planes SELECT small, id FROM flights")
    with sqlite3.connect("out.db") as connection:
        found = connection.execute("SELECT small, n FROM planes ORDER BY small").fetchall()
    connection.close()
    assert found == [(0, 21), (1, 22), (2, 23)]


def test_the_event_time() -> None:
    columns = "id BIGINT, day TIMESTAMP(6), WATERMARK FOR day AS day - INTERVAL '90' SECOND"
    table = FLIGHTS_TABLE.replace("flights WITH", f"flights ({columns}) WITH")
    time = pipeline(f"{table} SELECT id FROM flights").event_time
    assert time is not None
    assert (time.column, time.lateness) == ("day", 90.0)
    table = table.replace("'90'", "'-90'")
    ahead = pipeline(f"{table} SELECT id FROM flights").event_time
    assert ahead is not None
    assert (ahead.lateness, ahead.watermark) == (0, "day - INTERVAL '-90' SECOND")


def test_each_source_has_its_time_until_it_is_idle() -> None:
    def table(name: str, idle: str) -> str:
        return f"""CREATE TABLE {name} (id BIGINT, day TIMESTAMP(6), WATERMARK FOR day)
                   WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source'{idle});"""

    both = "SELECT id FROM busy UNION ALL SELECT id FROM calm"
    found = pipeline(f"{table('busy', '')} {table('calm', ', idle_micros = 2500000')} {both}")
    times = [found.event_time, *(one.event_time for one in found.sources.values())]
    assert [time is not None and time.idle for time in times] == [None, 2.5]


def test_the_time_is_not_that_of_the_plan() -> None:
    """Each file is a batch of its own, or several on a slow machine."""
    run(f"{FLIGHTS_TABLE} INSERT INTO out SELECT CAST(now() AS TEXT) AS t, current_date AS d FROM flights")
    assert len({row["t"] for row in rows()}) >= 6


def test_rows_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "flights")
    table = FLIGHTS_TABLE.replace("'flights'", "'${PLACE}'")
    described = pipeline(f"{OUT} {table} INSERT INTO out SELECT id FROM flights")
    assert "${PLACE}" in described.model_dump_json()
    run_pipeline(described)
    assert len(rows()) == 24


def test_a_shared_view_is_computed_once() -> None:
    text = "CREATE VIEW v AS SELECT twice(id) AS t FROM flights; SELECT t FROM v; SELECT t + 1 AS u FROM v;"
    calls = [one for operator in pipeline(FLIGHTS_TABLE + text).operators for one in getattr(operator, "calls", ())]
    assert calls == ['__r1 = twice("id")']


def test_calls_of_a_volatile_function_are_calls_of_their_own() -> None:
    (operator,) = [
        one
        for one in pipeline(
            f"{FLIGHTS_TABLE} SELECT ticket(id) + ticket(id) AS a, twice(id) + twice(id) AS b FROM flights"
        ).operators
        if one.type == "functions"
    ]
    assert list(operator.calls) == ['__r1 = ticket("id")', '__r2 = ticket("id")', '__r3 = twice("id")']


def test_explain_shows_the_operators() -> None:
    script = Script(
        "query.sql", f"{FLIGHTS_TABLE} EXPLAIN SELECT upper(plane(tail)) AS p FROM flights", ["functions.so"]
    )
    assert script.explain
    planned = plan(script.pipeline)
    planned.close()
    told = explained(planned)
    assert '__r1 = plane("tail")    async, __r1: string' in told
    assert "p  string = upper(__r1)" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CREATE TABLE t (a INT, a TEXT) WITH (connector = 'impulse')", "1:24: there is a column a already"),
        ("CREATE TABLE t (a INT,) WITH (connector = 'impulse')", "1:16: a column is missing"),
        ("CREATE TABLE t (a DECIMAL(99)) WITH (connector = 'impulse')", "1:19: write DECIMAL(P, S)"),
        ("CREATE TABLE t (a TIMESTAMP(2)) WITH (connector = 'impulse')", "1:28: write TIMESTAMP(0)"),
        (
            "CREATE TABLE t (a INT) WITH (connector = 'impulse') x",
            "1:53: write WITH (option = 'value', ...), or the end",
        ),
        ("CREATE TABLE t (a INT) WITH (rows = 3)", "1:30: table t has options and no connector"),
        ("CREATE TABLE t WITH (connector = 'stdout', type = 'source')", "1:44: the connector stdout has no sources"),
        ("CREATE TABLE t WITH (connector = 'stdout', type = 'both')", "1:44: type = 'both': write 'source' or 'sink'"),
        ("CREATE TABLE t WITH (connector = 'impulse', connector = 'x')", "1:45: the option connector is there twice"),
        ("CREATE INDEX i", "1:8: there is no CREATE INDEX: rows pass one by one. Leave it out"),
        ("SET on_error", "1:13: write TO here, not the end"),
        ("INSERT flights SELECT 1", "1:8: write INTO here, not flights"),
        ("SELECT a FROM t WHERE (b", "1:23: this ( has no )"),
        ("SELECT a) FROM t", "1:9: nothing is open that this ) closes"),
        ("SELECT /* a FROM t", "1:8: this comment has no end"),
        ("SELECT CASE WHEN a THEN b FROM t", "1:18: write the end of the query here, not a"),
    ],
)
def test_what_is_wrong_in_a_statement(text: str, told: str) -> None:
    assert told in refusal(text)


def test_columns_that_are_not_there() -> None:
    wrong = FLIGHTS_TABLE.replace("flights WITH", "flights (idd BIGINT) WITH")
    assert "1:14: table flights: flights/0.parquet: there is no column 'idd'" in refusal(
        f"{wrong} SELECT idd FROM flights"
    )
    wrong = FLIGHTS_TABLE.replace("flights WITH", "flights (tail BIGINT) WITH")
    assert "tail is string where it is read, not int64" in refusal(f"{wrong} SELECT tail FROM flights")


def test_a_missing_file_is_told_once() -> None:
    table = "CREATE TABLE t WITH (connector = 'filesystem', path = 'no.parquet', type = 'source');"
    assert refusal(f"{table}\nSELECT a FROM t;\nSELECT b FROM t") == (
        "query.sql:1:14: table t: no.parquet: there is no such file"
    )


def test_a_function_with_a_timeout_needs_worker_processes() -> None:
    Path("own.py").write_text(
        "from arroyo_udf_plugin import udf\n\n@udf(timeout=60)\ndef slow(n: int) -> int:\n    return n + 1\n"
    )
    text = f"{FLIGHTS_TABLE} {OUT}\nINSERT INTO out SELECT slow(id) AS n FROM flights WHERE id < 2"
    with pytest.raises(InvalidQuery) as error:
        Script("query.sql", text, ["own.py"])
    assert str(error.value) == (
        "query.sql:2:24: slow has a timeout, and only worker processes keep one: write SET isolation = 'process', or "
        "leave the timeout out"
    )
    run_pipeline(Script("query.sql", f"SET isolation = 'process'; SET workers = 2; {text}", ["own.py"]).pipeline)
    assert rows() == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("watermark", "lateness"), [("day", 1.0), ("day AS day", 0.0), ("day AS day - INTERVAL '2 seconds'", 2.0)]
)
def test_how_late_rows_may_be(watermark: str, lateness: float) -> None:
    text = (
        f"CREATE TABLE t (day TIMESTAMP(6), WATERMARK FOR {watermark}) WITH (connector = 'filesystem', "
        "path = 'flights', format = 'parquet', type = 'source'); SELECT day FROM t"
    )
    told = Script("query.sql", text).pipeline.event_time
    assert told is not None
    assert told.lateness == lateness


def test_settings_of_checkpoints_and_windows() -> None:
    """They say how often; the command line says where. Without a place there are none."""
    text = (
        "CREATE TABLE t (day TIMESTAMP(6), WATERMARK FOR day) "
        "WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source'); "
        "SET checkpoint_interval = '5 minutes'; SET checkpoint_rows = 7; SET retained_checkpoints = 5; "
        "SET memory_limit = '2MiB'; SET disk_limit = 9; SET max_drift = '2 minutes';"
        "SELECT count(*) FROM t GROUP BY tumble(interval '1 hour')"
    )
    pipeline = Script("query.sql", text).pipeline
    assert pipeline.checkpoints == Checkpoints(every=300.0, every_rows=7, retain=5)
    (windows,) = (one for one in pipeline.operators if isinstance(one, Windows))
    assert (windows.memory_limit, windows.disk_limit, windows.max_drift) == (2 << 20, 9, 120.0)
    with contextlib.closing(plan(pipeline)) as planned:
        assert planned.drifts == [DriftBound(frozenset([0]), 120 * 10**9)]
    placed = Checkpoints(place="state", every=300.0, every_rows=7)
    with pytest.raises(InvalidPipeline, match="'stdout' cannot go on where it stopped"):
        plan(pipeline.model_copy(update={"checkpoints": placed}))


@pytest.mark.parametrize("workers", ["0", "1025", "'two'"])
def test_a_number_of_workers_that_is_none(workers: str) -> None:
    assert "1:5: workers = " in refusal(f"SET workers = {workers}")


def test_two_functions_of_one_name() -> None:
    with pytest.raises(InvalidArgument, match=r"functions.so and functions.so both have a function"):
        Script("query.sql", f"{FLIGHTS_TABLE} SELECT id FROM flights", ["functions.so", "functions.so"])


def test_without_datafusion_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafusion", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'arroyo_udf_plugin\[engine\]'"):
        Script("query.sql", f"{FLIGHTS_TABLE} SELECT id FROM flights")


# ---- The command line ----


def cli(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "arroyo_udf_plugin.cli", *words], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_the_commands() -> None:
    Path("q.sql").write_text(f"{FLIGHTS_TABLE}\nSELECT id, plane(tail) AS p FROM flights WHERE id < 2")
    done = cli("run", "q.sql", "--udf", "functions.so")
    assert list(map(json.loads, done.stdout.splitlines())) == [{"id": 0, "p": "P-N00"}, {"id": 1, "p": "P-D01"}]
    assert "q: 24 rows read, 2 written" in done.stderr
    assert cli("check", "q.sql", "--udf", "functions.so").stdout == "q.sql: the pipeline q can be run\n"
    assert "Error: q.sql:2:12: there is no function plane" in cli("check", "q.sql", status=1).stderr
    assert "operator functions" in cli("run", "q.sql", "--udf", "functions.so", "--explain").stdout


def test_functions_of_a_description_are_in_it() -> None:
    Path("p.toml").write_text('name = "p"')
    assert "--udf is for queries (.sql)" in cli("check", "p.toml", "--udf", "functions.so", status=2).stderr
