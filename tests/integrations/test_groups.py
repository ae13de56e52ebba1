"""Aggregates in DuckDB and SQLite (F8), against those that the engines have of their own."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import duckdb
import pytest
from callers import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.integrations import sqlite as in_sqlite

Many = Callable[[str], Path]
Query = Callable[[str], list[Any]]
THIRTEEN, HUNDRED = r"many\.picky\.update, row \d+: .*thirteen", r"many\.picky\.finish, row 0: .*a hundred"


def in_duck(library: Path) -> Query:
    opened = connection(library, threads=4)
    return lambda query: opened.execute(query).fetchall()


def in_lite(library: Path) -> Query:
    opened = apsw.Connection(":memory:")
    in_sqlite.register(opened, library)
    return lambda query: list(opened.execute(query))


ENGINES = {"duckdb": in_duck, "sqlite": in_lite}


@pytest.fixture(params=ENGINES)
def query(request: pytest.FixtureRequest, many: Many) -> Query:
    return ENGINES[request.param](many("fail"))


def rows(query: Query, n: int) -> None:
    """A table t of n rows: i is the row, k one of a thousand groups, r a number in no order."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {n - 1})"
    query(f"CREATE TABLE t AS {numbers} SELECT i, i % 1000 AS k, (i * 7919) % 100003 AS r FROM n")


def test_one_group_of_many_rows(query: Query) -> None:
    rows(query, 20_000)
    median = statistics.median(i * 7919 % 100003 for i in range(20_000))
    assert query("SELECT tally(r) = sum(r), fast_tally(i) = sum(i), middle(r) FROM t") == [(True, True, median)]


def test_many_groups(query: Query) -> None:
    rows(query, 20_000)
    assert query(
        "SELECT count(*), sum(a = b AND c = b AND d = b / 20.0) FROM (SELECT k, tally(i) AS a, sum(i) AS b,"
        " fast_tally(i) AS c, middle(i) AS d FROM t GROUP BY k) AS g"
    ) == [(1000, 1000)]


def test_groups_without_rows(query: Query) -> None:
    rows(query, 10)
    assert query("SELECT tally(i), middle(i), sorted_texts('a', '-') FROM t WHERE i < 0") == [(None, None, "")]
    assert query("SELECT tally(i) FROM t WHERE i < 0 GROUP BY k") == []
    assert query("SELECT tally(i) FILTER (WHERE i > 100), tally(i) FILTER (WHERE i > 7) FROM t") == [(None, 17)]


def test_nulls_are_left_out_unless_the_aggregate_takes_them(query: Query) -> None:
    table = "(SELECT 1 AS n, 'b' AS s UNION ALL SELECT NULL, NULL UNION ALL SELECT 3, 'a text that is longer') AS t"
    assert query(f"SELECT tally(n), middle(n), sorted_texts(s, '+') FROM {table}") == [
        (4, 2.0, "NULL+a text that is longer+b")
    ]
    assert query(f"SELECT tally(n) FROM {table} WHERE n IS NULL") == [(None,)]


def test_distinct_rows(query: Query) -> None:
    rows(query, 5000)
    assert query("SELECT tally(DISTINCT k), sum(DISTINCT k) FROM t") == [(499_500, 499_500)]


def test_texts_of_many_rows(query: Query) -> None:
    rows(query, 5000)
    found = query("SELECT sorted_texts(CAST(i AS TEXT), ' ') FROM t WHERE i % 7 < 5")[0][0]
    assert found == " ".join(sorted(str(i) for i in range(5000) if i % 7 < 5))


def test_a_group_that_fails_ends_the_query(query: Query) -> None:
    rows(query, 5000)
    for _ in range(2):
        with pytest.raises(Exception, match=THIRTEEN):
            query("SELECT picky(i) FROM t")
        with pytest.raises(Exception, match=THIRTEEN):
            query("SELECT k, picky(i) FROM t GROUP BY k")
        with pytest.raises(Exception, match=HUNDRED):
            query("SELECT picky(i) FROM t WHERE i = 99 OR i = 1")
        assert query("SELECT picky(i) FROM t WHERE i < 5") == [(10,)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_group_that_fails_is_null(many: Many, engine: str) -> None:
    query = ENGINES[engine](many("null"))
    rows(query, 5000)
    assert query("SELECT picky(i), tally(i) = sum(i) FROM t") == [(None, True)]
    assert query("SELECT picky(i) FROM t WHERE i = 99 OR i = 1") == [(None,)]
    assert query("SELECT k, picky(i) FROM t WHERE k IN (12, 13, 14, 100) AND i < 1000 GROUP BY k ORDER BY k") == [
        (12, 12),
        (13, None),
        (14, 14),
        (100, None),
    ]


def test_a_type_that_the_engine_has_not_is_named(query: Query) -> None:
    with pytest.raises(Exception, match=r"many\.unlike.* list"):
        query("SELECT unlike(1) FROM (SELECT 1) AS t")
    with pytest.raises(Exception, match=r"many\.unlike.* list"):
        query("SELECT unlike(1) FROM (SELECT 1) AS t WHERE 1 = 2")


def test_sqlite_refuses_a_value_that_does_not_fit_and_a_window(many: Many) -> None:
    query = in_lite(many("fail"))
    with pytest.raises(apsw.SQLError, match=r"many\.tally: the argument values is int64, which cannot hold this TEXT"):
        query("SELECT tally('x')")
    with pytest.raises(apsw.SQLError, match=r"tally\(\) may not be used as a window function"):
        query("SELECT tally(1) OVER ()")
    with pytest.raises(apsw.SQLError, match="wrong number of arguments"):
        query("SELECT tally(1, 2)")


def test_types_in_duckdb(many: Many) -> None:
    """The state has them all."""
    query = in_duck(many("fail"))
    query("CREATE TABLE t AS SELECT range AS i FROM range(10000)")
    found = query(
        "SELECT latest(DATE '2020-01-01' + i::INT, TIMESTAMP '2020-01-01' + to_seconds(i), (i / 4)::DECIMAL(12, 2),"
        " ('x' || lpad(i::VARCHAR, 20, '0'))::BLOB, i > 9000) FROM t WHERE i % 1000 = 7 OR i = 9999"
    )
    assert found == [(f"2047-05-18 2020-01-01 02:46:39 2499.75 {b'x' + b'9999'.zfill(20)!r} True",)]
    assert query("SELECT latest(NULL, NULL, NULL, NULL, NULL) FROM t") == [("None None None None None",)]


def test_threads_of_duckdb(many: Many) -> None:
    query = in_duck(many("fail"))
    query("CREATE TABLE t AS SELECT range AS i, range % 100000 AS k FROM range(400000)")
    assert query("SELECT tally(i) = sum(i), fast_tally(i) = sum(i) FROM t") == [(True, True)]
    assert query(
        "SELECT count(*), count(*) FILTER (a = b) FROM (SELECT k, tally(i) AS a, sum(i) AS b FROM t GROUP BY k)"
    ) == [(100_000, 100_000)]


@pytest.mark.parametrize(
    "window",
    [
        "()",
        "(PARTITION BY k)",
        "(ROWS UNBOUNDED PRECEDING)",
        "(PARTITION BY k ORDER BY i)",
        "(ORDER BY r ROWS BETWEEN 40 PRECEDING AND 3 FOLLOWING)",
        "(ORDER BY r ROWS BETWEEN 2500 PRECEDING AND 2400 PRECEDING)",
        "(ORDER BY i ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING EXCLUDE TIES)",
    ],
)
def test_windows_of_duckdb(many: Many, window: str) -> None:
    """DuckDB uses states again there, after it has combined or finished them."""
    query = in_duck(many("fail"))
    query("CREATE TABLE t AS SELECT range AS i, range % 9 AS k, (range * 7919) % 100003 AS r FROM range(5000)")
    n_rows = 5000 if "ORDER" in window else 500
    different = query(
        f"SELECT count(*) FROM (SELECT tally(i) OVER {window} AS a, sum(i) OVER {window} AS b,"
        f" middle(r) OVER {window} AS c, median(r) OVER {window} AS d FROM t WHERE i < {n_rows})"
        " WHERE a IS DISTINCT FROM b OR c IS DISTINCT FROM d"
    )
    assert different == [(0,)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-(2**40), 2**40)), max_size=60))
def test_any_rows(many: Many, table: list[tuple[int, int | None]]) -> None:
    own = "SELECT k, tally(v), sum(v), middle(v) FROM t GROUP BY k ORDER BY k"
    found = {}
    for engine in ENGINES:
        query = ENGINES[engine](many("fail"))
        query("CREATE TABLE t (k BIGINT, v BIGINT)")
        for k, v in table:
            query(f"INSERT INTO t VALUES ({k}, {'NULL' if v is None else v})")
        found[engine] = query(own)
        assert all(ours == theirs for _, ours, theirs, _ in found[engine])
    assert found["duckdb"] == found["sqlite"]


def test_interrupted_and_abandoned_queries(many: Many) -> None:
    """Their groups are freed; the functions go on."""
    query = in_lite(many("fail"))
    rows(query, 5000)
    opened = apsw.Connection(":memory:")
    in_sqlite.register(opened, many("fail"))
    cursor = opened.execute("WITH n(i) AS (VALUES (1), (2)) SELECT i, tally(i) FROM n GROUP BY i")
    assert next(cursor) == (1, 1)
    opened.close(True)
    duck = connection(many("fail"), threads=2)
    duck.execute("CREATE TABLE t AS SELECT range AS i FROM range(3000000)")
    timer = threading.Timer(0.2, duck.interrupt)
    timer.start()
    with pytest.raises(duckdb.InterruptException):
        duck.execute("SELECT i % 1000, middle(i) FROM t GROUP BY 1").fetchall()
    timer.join()
    assert duck.execute("SELECT tally(i) = sum(i) FROM t WHERE i < 100000").fetchall() == [(True,)]
