"""Queries over all rows of sources that end. Their results are in queries/whole_*.sql."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sql_world import Killed

from arroyo_udf_plugin import failpoints, load
from arroyo_udf_plugin.engine.datafusion.whole import Whole
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery
from arroyo_udf_plugin.errors import RowError

pytestmark = pytest.mark.once

FUNCTIONS = """
import os
from arroyo_udf_plugin import udf

@udf
def share(n: int, of: int) -> float:
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"{n}/{of}\\n")
    return n / of

@udf
async def share_later(n: int, of: int) -> float:
    return n / of
"""
ROWS = "n,of\n6,2\n1,0\n8,4\n5,\n"
TABLE = "CREATE TABLE t (n BIGINT, of BIGINT) WITH (connector = 'filesystem', path = 't.csv', type = 'source');"
NAMES = "CREATE TABLE u (k BIGINT, name TEXT) WITH (connector = 'filesystem', path = 'u.csv', type = 'source');"
OUT = "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');"


@pytest.fixture
def calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build_plugin: Callable[..., Path]
) -> Callable[[], list[str]]:
    """The calls of `share` that were made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLS", "calls")
    Path("t.csv").write_text(ROWS)
    Path("u.csv").write_text("k,name\n6,six\n8,eight\n8,VIII\n5,five\n")
    Path("f.so").symlink_to(build_plugin(FUNCTIONS, name="shares"))
    return lambda: sorted(Path("calls").read_text().splitlines()) if Path("calls").exists() else []


def script(query: str, *statements: str) -> Script:
    return Script("q.sql", "".join([TABLE, OUT, *statements, f"INSERT INTO out {query}"]), ["f.so"])


def answer(query: str, *statements: str) -> list[dict[str, Any]]:
    run_pipeline(script(query, *statements).pipeline)
    found: list[dict[str, Any]] = pq.read_table("out").to_pylist() if os.path.isdir("out") else []
    return found


@pytest.mark.parametrize(
    ("query", "made"),
    [
        ("SELECT sum(n) AS s FROM t WHERE of > 0 AND share(n, of) > 2", ["6/2", "8/4"]),
        ("SELECT sum(n) AS s FROM t WHERE of = 0 OR share(n, of) > 2", ["6/2", "8/4"]),
        ("SELECT sum(CASE WHEN of > 2 THEN share(n, of) END) AS s FROM t", ["8/4"]),
        ("SELECT sum(share(n, of)) FILTER (WHERE n > 7) AS s FROM t", ["8/4"]),
        ("SELECT sum(coalesce(of, share(n, 1))) AS s FROM t", ["5/1"]),
        (
            "SELECT sum(s) AS s FROM (SELECT n + of AS s, n, of FROM t WHERE n > 5) x WHERE share(n, of) > 2",
            ["6/2", "8/4"],
        ),
        ("SELECT count(*) AS s FROM t WHERE n IN (SELECT n FROM t WHERE n > 7 AND share(n, of) = 2)", ["8/4"]),
        ("SELECT max(share(n, of)) + avg(share(n, of)) AS s FROM t WHERE n = 6", ["6/2"]),
        (
            "SELECT n AS s FROM t WHERE of > 2 GROUP BY n, share(n, of) HAVING count(*) > 0 AND share(n, of) > 1",
            ["8/4"],
        ),
        ("SELECT n AS s FROM t WHERE n > 7 AND (n > 9 OR share(n, of) = 2 OR share(n, 1) > 1)", ["8/4"]),
        ("SELECT max(CASE n WHEN 6 THEN share(n, 1) WHEN 8 THEN share(n, 2) ELSE 0 END) AS s FROM t", ["6/1", "8/2"]),
    ],
)
def test_calls_are_for_the_rows_that_reach_them(calls: Callable[[], list[str]], query: str, made: list[str]) -> None:
    assert len(answer(query)) == 1
    assert calls() == made


@pytest.mark.parametrize(
    ("query", "made"),
    [
        ("SELECT name FROM t, u WHERE share(n, of) > 1 AND n = k", ["6/2", "8/4", "8/4"]),
        ("SELECT name FROM t JOIN u ON n = k WHERE share(n, of) > 1", ["6/2", "8/4", "8/4"]),
        ("SELECT name FROM t INNER JOIN u ON share(n, of) > 1 AND n = k", ["6/2", "8/4", "8/4"]),
        (
            "SELECT a.of FROM t a JOIN u ON n = k JOIN t b ON a.n = b.n AND share(b.n, b.of) > 1",
            ["6/2", "8/4"],
        ),
        (
            "SELECT name FROM t JOIN u ON n = k LEFT JOIN t b ON b.n = 1 WHERE share(t.n, t.of) > 2",
            ["6/2", "8/4", "8/4"],
        ),
        ("SELECT n FROM t LEFT JOIN u ON n = k AND name <> 'VIII' AND share(n, of) > 2", ["6/2", "8/4"]),
        ("SELECT n FROM t WHERE n > 7 GROUP BY n HAVING share(n, 1) > 7", ["8/1"]),
        ("SELECT n FROM t WHERE of > 0 GROUP BY n, share(n, of) HAVING share(n, of) > 2", ["6/2", "8/4"]),
        ("SELECT count(*) AS n, share(n, of) AS s FROM t WHERE of > 2 GROUP BY 2 HAVING s > 1", ["8/4"]),
        (
            "SELECT n FROM t WHERE of > 0 QUALIFY row_number() OVER (PARTITION BY of) = 1 AND share(1, of) > 0",
            ["1/2", "1/4"],
        ),
        ("SELECT n FROM t WHERE of > 0 AND n IN (SELECT k FROM u WHERE name = 'six') AND share(n, of) > 2", ["6/2"]),
        ("SELECT k FROM u WHERE EXISTS (SELECT 1 FROM t WHERE share(n, of) > 2 AND n = k)", ["6/2", "8/4", "8/4"]),
        (
            "SELECT k FROM u WHERE k > (SELECT max(of) FROM t WHERE n = k AND of > 0 AND share(n, of) > 0)",
            ["6/2", "8/4"],
        ),
        ("SELECT DISTINCT n FROM t WHERE of = 0 OR share(10 / of, of) > 2", ["2/4", "5/2"]),
        ("SELECT DISTINCT n FROM t WHERE share(10 / of, of) > 2 AND of <> 0", ["2/4", "5/2"]),
    ],
)
def test_calls_are_for_the_rows_that_conditions_and_joins_leave(
    calls: Callable[[], list[str]], query: str, made: list[str]
) -> None:
    assert answer(f"{query} ORDER BY 1", NAMES)
    assert set(calls()) == set(made)


def test_a_group_without_rows_is_left_to_having(calls: Callable[[], list[str]]) -> None:
    assert answer("SELECT sum(n) AS s FROM t WHERE n > 99 HAVING coalesce(share(max(n), 1), 1) = 1") == [{"s": None}]


def test_a_row_that_fails_ends_the_query(calls: Callable[[], list[str]]) -> None:
    with pytest.raises(RowError, match=r"shares\.share, row 1: ZeroDivisionError"):
        answer("SELECT sum(share(n, of)) AS s FROM t")
    assert not Path("out").exists()


def test_a_row_of_an_async_function_that_fails_ends_it(calls: Callable[[], list[str]]) -> None:
    with pytest.raises(RowError, match=r"shares\.share_later, row 1: ZeroDivisionError"):
        answer("SELECT sum(share_later(n, of)) AS s FROM t")


def test_a_policy_is_for_a_view(calls: Callable[[], list[str]]) -> None:
    policy = "SET on_error = 'null';"
    with pytest.raises(InvalidQuery, match=r"share is called in a query over all rows.* call it in a view"):
        script("SELECT sum(share(n, of)) AS s FROM t", policy)
    view = "CREATE VIEW shares AS SELECT share(n, of) AS s FROM t;"
    assert answer("SELECT sum(s) AS s FROM shares", policy, view) == [{"s": 5.0}]


def test_overflow_is_as_the_guide_says(calls: Callable[[], list[str]]) -> None:
    Path("t.csv").write_text(f"n,of\n{2**63 - 1},1\n")
    twice = "(SELECT n FROM t UNION ALL SELECT n FROM t) x"
    told = f"SELECT n + 1 AS s, CAST(n AS DECIMAL(38, 0)) + 1 AS d, sum(n) AS t FROM {twice} GROUP BY n"
    assert answer(told) == [{"s": -(2**63), "d": 2**63, "t": -2}]


def test_sources_without_an_end_have_no_answer(calls: Callable[[], list[str]]) -> None:
    endless = "CREATE TABLE e (n BIGINT) WITH (connector = 'filesystem', path = 't.csv', 'source.watch' = '1 hour');"
    for query in ("SELECT DISTINCT n FROM e", "SELECT n FROM t WHERE n IN (SELECT n FROM e)"):
        with pytest.raises(InvalidQuery, match=r"DISTINCT is not supported|a query inside an expression"):
            script(query, endless)


def test_errors_have_places_and_name_what_to_write(calls: Callable[[], list[str]]) -> None:
    for query, told in (
        ("SELECT DISTINCT m FROM t", "there is no column m"),
        ("SELECT coun(n) AS c FROM t ORDER BY 1", "write 'count'"),
        ("SELECT n, n FROM t ORDER BY 1", "two columns t.n: write AS"),
        ("SELECT DISTINCT n FROM u", "there is no table u"),
        ("SELECT share('a', of) AS s FROM t ORDER BY 1", "write CAST"),
        ("SELECT share(*) AS s FROM t ORDER BY 1", r"1 arguments are given, and the function is share\(n: int64"),
        ("SELECT share(n, of) OVER () AS s FROM t", "leave OVER and FILTER out"),
        ("SELECT n FROM t ASOF JOIN t b MATCH_CONDITION (t.n >= b.n) ON t.n = b.n", "ASOF JOIN is not supported"),
        ("SELECT n FROM t WHERE EXISTS (SELECT max(b.n) FROM t b WHERE b.n = t.of AND share(b.n, 1) > 0)", "a JOIN"),
    ):
        with pytest.raises(InvalidQuery, match=told):
            script(query)


def test_rows_beyond_memory_are_on_disk(calls: Callable[[], list[str]]) -> None:
    """Rows that wait, results, and what sorting keeps."""
    n_rows = 3_000_000
    pq.write_table(pa.table({"n": range(n_rows), "text": [f"{i:020}" for i in range(n_rows)]}), "big.parquet")
    big = "CREATE TABLE big WITH (connector = 'filesystem', path = 'big.parquet', format = 'parquet', type = 'source');"
    run_pipeline(script("SELECT n, text FROM big ORDER BY text DESC", big, "SET memory_limit = '4MiB';").pipeline)
    assert pq.read_table("out")["n"].to_pylist() == list(range(n_rows - 1, -1, -1))


def test_what_follows_a_union_is_for_all_of_it(calls: Callable[[], list[str]]) -> None:
    query = "SELECT DISTINCT n FROM t UNION ALL SELECT DISTINCT of FROM t ORDER BY 1 LIMIT 2"
    assert answer(query) == [{"n": 0}, {"n": 1}]


def test_rows_of_a_table_and_of_a_query_over_all_rows_are_united(calls: Callable[[], list[str]]) -> None:
    found = answer("SELECT n FROM t WHERE n > 7 UNION ALL SELECT count(*) FROM t")
    assert sorted(row["n"] for row in found) == [4, 8]


def test_a_view_without_an_answer_says_so_to_all_that_select_from_it(calls: Callable[[], list[str]]) -> None:
    endless = "CREATE TABLE e (n BIGINT) WITH (connector = 'filesystem', path = 't.csv', 'source.watch' = '1 hour');"
    view = "CREATE VIEW v AS SELECT DISTINCT n FROM e;"
    for query in ("SELECT * FROM v", "SELECT t.n FROM t JOIN v ON t.n = v.n"):
        with pytest.raises(InvalidQuery, match="DISTINCT is not supported"):
            script(query, endless, view)


def test_columns_may_have_names_of_views(calls: Callable[[], list[str]]) -> None:
    assert answer("SELECT s FROM n ORDER BY s", "CREATE VIEW n AS SELECT sum(n) AS s FROM t;") == [{"s": 20}]


def test_it_answers_once(calls: Callable[[], list[str]]) -> None:
    pipeline = script("SELECT count(*) AS c FROM t").pipeline
    pipeline = pipeline.model_copy(update={"checkpoints": Checkpoints(place="state", every_rows=2)})
    for _ in range(2):
        run_pipeline(pipeline)
        assert pq.read_table("out").to_pylist() == [{"c": 4}]


@pytest.mark.parametrize(
    ("query", "at_the_end"),
    [
        ("SELECT sum(share(n, of)) AS s FROM t WHERE of > 0", True),
        ("SELECT n FROM (SELECT n FROM t ORDER BY n LIMIT 3) x UNION ALL SELECT max(n) FROM t", True),
        ("SELECT n FROM t", False),
        ("SELECT n FROM t UNION ALL SELECT max(n) FROM t", False),
        ("SELECT max(s) AS m FROM shares", False),
    ],
)
def test_an_answer_at_the_end_is_one_epoch(calls: Callable[[], list[str]], query: str, at_the_end: bool) -> None:
    """A run that is killed before it reads again, unless calls would be made again."""
    view = "CREATE VIEW shares AS SELECT share(n, 1) AS s FROM t;"
    with contextlib.closing(plan(script(query, view).pipeline)) as planned:
        assert planned.answers_at_the_end == at_the_end


def test_a_killed_query_reads_again(calls: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = script("SELECT sum(share(n, of)) AS s FROM t WHERE of > 0").pipeline
    pipeline = pipeline.model_copy(update={"checkpoints": Checkpoints(place="state")})

    def killed(moment: str) -> None:
        if moment == "staged":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", killed)
        with pytest.raises(Killed):
            run_pipeline(pipeline)
    run_pipeline(pipeline)
    assert pq.read_table("out").to_pylist() == [{"s": 5.0}]
    assert calls() == ["6/2", "6/2", "8/4", "8/4"]


def test_tables_may_have_any_name(calls: Callable[[], list[str]]) -> None:
    Path("Up.csv").write_text(ROWS)
    os.symlink("t.csv", "latest.csv")
    assert sql("-c", 'SELECT count(*) AS c FROM "Up"', "Up.csv").stdout == "c\n4\n"
    assert sql("-c", "SELECT count(*) AS c FROM latest", "latest.csv").stdout == "c\n4\n"


def test_explain_shows_the_query(calls: Callable[[], list[str]]) -> None:
    with contextlib.closing(plan(script("SELECT count(*) AS c FROM t").pipeline)) as planned:
        assert "SELECT count(*) AS c FROM t" in explained(planned)


def test_a_function_is_called_once_for_the_same_rows(calls: Callable[[], list[str]]) -> None:
    with load("f.so") as plugin:
        schema = pa.schema([("n", pa.int64()), ("of", pa.int64())])
        whole = Whole(
            "SELECT share(n, of) AS a, share(n, of) + 1 AS b FROM t",
            {"t": schema},
            {"share": plugin.functions["share"]},
        )
        rows = pa.record_batch([[6, 8], [2, 4]], schema=schema)
        (found,) = whole.answers({"t": [rows]}, memory=1 << 26)
    assert found.to_pydict() == {"a": [3.0, 2.0], "b": [4.0, 3.0]}
    assert calls() == ["6/2", "8/4"]


def test_two_zeros_are_not_the_same_rows(build_plugin: Callable[..., Path]) -> None:
    text = """
        import math
        from arroyo_udf_plugin import udf

        @udf
        def sign(x: float) -> float:
            return math.copysign(1, x)
    """
    with load(build_plugin(text, name="signs")) as plugin:
        schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
        whole = Whole("SELECT sign(x) AS a, sign(y) AS b FROM t", {"t": schema}, {"sign": plugin.functions["sign"]})
        (found,) = whole.answers({"t": [pa.record_batch([[0.0], [-0.0]], schema=schema)]}, memory=1 << 26)
    assert found.to_pylist() == [{"a": 1.0, "b": -1.0}]


# ---- arroyo-udf sql ----


def sql(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "sql", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_a_query_over_files_shows_a_table(calls: Callable[[], list[str]]) -> None:
    query = "SELECT n, max(share(n, of)) AS share FROM t WHERE of > 0 GROUP BY n ORDER BY n"
    assert sql("-c", query, "t.csv", "--udf", "f.so").stdout == "n  share\n6    3.0\n8    2.0\n"
    assert sql("--json", "-c", f"{query} LIMIT 1", "t.csv", "--udf", "f.so").stdout == '{"n":6,"share":3.0}\n'


def test_it_shows_so_many_rows(calls: Callable[[], list[str]]) -> None:
    done = sql("-c", "SELECT n FROM t ORDER BY n", "--rows", "2", "t.csv")
    assert done.stdout == "n\n1\n5\n"
    assert "the first 2 rows of 4: --rows shows more" in done.stderr


def test_files_of_all_formats_are_tables(calls: Callable[[], list[str]]) -> None:
    pq.write_table(pa.table({"n": [6, 7]}), "p.parquet")
    Path("j.jsonl").write_text('{"n": 6, "text": "six"}\n')
    Path("tabs.tsv").write_text("n\tname\n6\tsix, or VI\n")
    query = "SELECT t.of, j.text, tabs.name FROM t JOIN p ON t.n = p.n JOIN j ON t.n = j.n JOIN tabs ON t.n = tabs.n"
    shown = sql("--json", "-c", query, "t.csv", "p.parquet", "j.jsonl", "tabs.tsv").stdout
    assert shown == '{"of":2,"text":"six","name":"six, or VI"}\n'


def test_errors_of_the_command(calls: Callable[[], list[str]]) -> None:
    Path("other").mkdir()
    Path("other/t.csv").write_text(ROWS)
    for words, told in (
        (("-c", "SELECT m FROM t", "t.csv"), "query:1:8: there is no column m"),
        (("-c", "SELECT n FROM u", "t.csv"), "there is no table u"),
        (("-c", "SELECT n FROM t; SELECT of FROM t", "t.csv"), "the rows of one SELECT"),
        (("-c", "SELECT n FROM t", "t.csv", "other/t.csv"), "several files would be the table t"),
    ):
        done = sql(*words, status=2 if "several" in told or "one SELECT" in told else 1)
        assert told in done.stderr
        assert "Traceback" not in done.stderr
