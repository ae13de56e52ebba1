"""Table functions in DuckDB and SQLite (F9), against those that the engines have of their own."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import apsw
import duckdb
import pytest
from test_groups import ENGINES, Query, in_duck, in_lite

Many = Callable[[str], Path]


@pytest.fixture(params=ENGINES)
def query(request: pytest.FixtureRequest, many: Many) -> Query:
    return ENGINES[request.param](many("fail"))


def test_constants(query: Query) -> None:
    assert query("SELECT * FROM words('a b  longer_than_twelve')") == [("a", 0), ("b", 1), ("longer_than_twelve", 2)]
    assert query("SELECT place FROM words('a b') WHERE word = 'b'") == [(1,)]
    assert query("SELECT * FROM words('')") == query("SELECT * FROM words(NULL)") == []
    assert query("SELECT numbers FROM numbers(-2, 2)") == [(-2,), (-1,), (0,), (1,)]


def test_many_rows(query: Query) -> None:
    """Of a scan, and of a join of scans."""
    assert query("SELECT count(*), sum(numbers), min(numbers), max(numbers) FROM numbers(5, 50005)") == [
        (50_000, sum(range(5, 50005)), 5, 50004)
    ]
    assert query("SELECT count(*) FROM numbers(0, 30) AS a, numbers(0, 40) AS b WHERE a.numbers < b.numbers") == [
        (sum(40 - 1 - a for a in range(30)),)
    ]


def test_a_row_that_fails(query: Query, many: Many, request: pytest.FixtureRequest) -> None:
    nulls = ENGINES[request.node.callspec.params["query"]](many("null"))
    for _ in range(2):
        with pytest.raises(Exception, match=r"many\.picky_numbers, row 0: .*thirteen"):
            query("SELECT * FROM picky_numbers(13)")
        assert query("SELECT * FROM picky_numbers(2)") == [(0,), (1,)]
    assert nulls("SELECT * FROM picky_numbers(13)") == []
    assert nulls("SELECT * FROM picky_numbers(1)") == [(0,)]


def test_wrong_arguments(query: Query) -> None:
    for arguments in ("1, 2, 3", "1"):
        with pytest.raises(Exception, match="numbers"):
            query(f"SELECT * FROM numbers({arguments})")


def test_a_join_in_sqlite(many: Many) -> None:
    query = in_lite(many("fail"))
    table = "(SELECT 'a b' AS text UNION ALL SELECT NULL UNION ALL SELECT 'c') AS t"
    assert query(f"SELECT word, place FROM {table}, words(t.text)") == [("a", 0), ("b", 1), ("c", 0)]
    assert query(f"SELECT t.text, word FROM {table} LEFT JOIN words(t.text)") == [
        ("a b", "a"),
        ("a b", "b"),
        (None, None),
        ("c", "c"),
    ]
    assert query("SELECT a.numbers, b.numbers FROM numbers(0, 3) AS a, numbers(0, a.numbers) AS b") == [
        (1, 0),
        (2, 0),
        (2, 1),
    ]
    series = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT sum(i) FROM n"
    assert query("SELECT sum(numbers) FROM numbers(0, 100)") == query(series)
    assert query("SELECT b.value FROM json_each('[3, 4]') AS b JOIN numbers(0, b.value) AS n ON n.numbers = 2") == [
        (3,),
        (4,),
    ]


def test_hidden_columns_of_sqlite(many: Many) -> None:
    """Those are the arguments."""
    query = in_lite(many("fail"))
    assert query("SELECT text, word FROM words('a b')") == [("a b", "a"), ("a b", "b")]
    assert query("SELECT word FROM words WHERE text = 'a b'") == [("a",), ("b",)]
    assert query("SELECT word FROM words WHERE text IN ('a', 'b c') ORDER BY word") == [("a",), ("b",), ("c",)]
    assert query("SELECT text, n, text_argument FROM texts('x', 2)") == [(None, 2, "x"), ("x", 2, "x")]
    with pytest.raises(apsw.SQLError, match=r"many\.words needs 1 arguments: text has no value"):
        query("SELECT * FROM words")
    with pytest.raises(apsw.SQLError, match=r"many\.words: the argument text is utf8, which cannot hold this INTEGER"):
        query("SELECT * FROM words(3)")
    with pytest.raises(apsw.SQLError, match=r"many\.steps: the column day is date32, which SQLite has not"):
        query("SELECT * FROM steps('x', 3)")


def test_types_of_duckdb(many: Many) -> None:
    query = in_duck(many("fail"))
    day = datetime.date(2024, 1, 1)
    assert query("SELECT * FROM steps('x', 4)") == [
        (None, None, None),
        ("x", 0.5, day),
        (None, None, None),
        ("x", 1.5, day),
    ]
    assert query("SELECT * FROM steps(NULL, 2)") == [(None, None, None), (None, 0.5, day)]
    row = "b'ab' 2024-05-01 2024-05-01 01:02:03.000004 23:00:00 -12.50 True 1 -8 -16 -32 200 60000 4000000000 0.5 0.25"
    arguments = (
        "'ab'::BLOB, DATE '2024-05-01', TIMESTAMP '2024-05-01 01:02:03.000004', TIME '23:00:00', -12.5, true, 1, -8,"
        " -16, -32, 200, 60000, 4000000000, 0.5, 0.25"
    )
    assert query(f"SELECT * FROM one_of_each({arguments})") == [(row,)]
    assert query(f"SELECT one_of_each({arguments})[1].one_of_each") == [(row,)]


def test_rows_of_a_table_in_duckdb(many: Many) -> None:
    query = in_duck(many("fail"))
    table = "(VALUES ('a b'), (NULL), (''), ('c more_than_twelve_bytes')) AS t(text)"
    assert query(f"SELECT words(text) FROM {table}") == [
        ([{"word": "a", "place": 0}, {"word": "b", "place": 1}],),
        (None,),
        ([],),
        ([{"word": "c", "place": 0}, {"word": "more_than_twelve_bytes", "place": 1}],),
    ]
    assert query(f"SELECT unnest(words(text), recursive := true) FROM {table} WHERE text <> 'a b'") == [
        ("c", 0),
        ("more_than_twelve_bytes", 1),
    ]
    assert query(f"SELECT w.row.word FROM {table}, unnest(words(text)) AS w(row) ORDER BY 1") == [
        ("a",),
        ("b",),
        ("c",),
        ("more_than_twelve_bytes",),
    ]
    query("CREATE TABLE r AS SELECT range AS i FROM range(5000)")
    assert query("SELECT sum(n.row.numbers), count(*) FROM r, unnest(numbers(i % 50, i % 50 + 3)) AS n(row)") == query(
        "SELECT sum(n.value), count(*) FROM r, unnest(range(i % 50, i % 50 + 3)) AS n(value)"
    )
    with pytest.raises(duckdb.Error, match=r"many\.picky_numbers, row \d+: .*thirteen"):
        query("SELECT picky_numbers(i) FROM r WHERE i < 20")
    assert in_duck(many("null"))("SELECT picky_numbers(i) FROM range(12, 14) AS r(i)")[1] == (None,)


def test_a_prepared_scan_of_duckdb_runs_again(many: Many) -> None:
    query = in_duck(many("fail"))
    query("PREPARE p AS SELECT * FROM numbers(0, $1)")
    for n in (3, 3, 1):
        assert query(f"EXECUTE p({n})") == [(i,) for i in range(n)]
    query("CREATE VIEW v AS SELECT * FROM words('a b')")
    assert query("FROM v") == query("FROM v") == [("a", 0), ("b", 1)]


def test_types_that_the_engine_has_not(query: Query) -> None:
    with pytest.raises(Exception, match=r"many\.nested.*list"):
        query("SELECT * FROM nested(1)")
