"""One SELECT over batches: Query, and the feed that it runs on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.datafusion import feed, query
from arroyo_udf_plugin.engine.datafusion.query import Failed, Found, Query, Select, WrongQuery
from arroyo_udf_plugin.engine.datafusion.tokens import Unreadable, column_name, tokens, with_now

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))])


def batch(*numbers: int | None) -> pa.RecordBatch:
    lists = [None if n is None else list(range(n % 3)) for n in numbers]
    texts = [None if n is None else f"t{n}" for n in numbers]
    return pa.record_batch([pa.array(numbers, pa.int64()), texts, pa.array(lists, SCHEMA.types[2])], schema=SCHEMA)


def answers(asked: Query, *batches: pa.RecordBatch) -> list[list[Any]]:
    """For each batch its rows, with what they come from, and failed rows."""
    return [[one for found in asked.run(each) for one in _shown(found)] for each in batches]


def _shown(found: Found | Failed) -> list[Any]:
    if isinstance(found, Failed):
        return [(found.position, found.text)]
    of = [None] * found.rows.num_rows if found.of is None else found.of.to_pylist()
    return [(*row.values(), place) for row, place in zip(found.rows.to_pylist(), of, strict=True)]


@pytest.fixture(params=["handed over", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the undocumented way of DataFusion, and without it."""
    assert feed.works()
    if request.param == "one by one":
        monkeypatch.setattr(query, "works", lambda: False)


@pytest.mark.usefixtures("way")
class TestBothWays:
    def test_a_filter(self) -> None:
        asked = Query(Select({"m": "n + 1", "t": "upper(s)"}, "n > 2"), SCHEMA)
        assert asked.schema == pa.schema([("m", pa.int64()), ("t", pa.string())])
        assert answers(asked, batch(1, 3, 5), batch(0), batch(), batch(7, 8), batch(None, 9)) == [
            [(4, "T3", 1), (6, "T5", 2)],
            [],
            [],
            [(8, "T7", None), (9, "T8", None)],
            [(10, "T9", 1)],
        ]

    def test_lists_become_rows(self) -> None:
        asked = Query(Select({"n": "n", "i": "unnest(l)"}), SCHEMA)
        assert answers(asked, batch(2, 0, 1), batch(2)) == [[(2, 0, 0), (2, 1, 0), (1, 0, 2)], [(2, 0, 0), (2, 1, 0)]]

    def test_rows_that_fail(self) -> None:
        asked = Query(Select({"q": "6 / n"}), SCHEMA)
        failed = "Divide by zero error"
        assert answers(asked, batch(1, 0, 2), batch(0, 0), batch(3)) == [
            [(6, 0), (1, failed), (3, 2)],
            [(0, failed), (1, failed)],
            [(2, None)],
        ]

    def test_texts_of_datafusion_are_texts(self) -> None:
        asked = Query(Select({"m": "md5(s)", "one": "1"}), SCHEMA)
        assert [asked.schema.field(name).type for name in ("m", "one")] == [pa.string(), pa.int64()]
        (found,) = asked.run(batch(1))
        assert isinstance(found, Found)
        assert found.rows.schema == asked.schema

    def test_the_time_is_that_of_the_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        times = iter([1_000_000_000, 2_000_000_000])
        monkeypatch.setattr(query.time, "time_ns", lambda: next(times))
        asked = Query(Select({"t": "CAST(date_part('second', now()) AS INT)", "d": "current_date"}), SCHEMA)
        first, second = answers(asked, batch(1), batch(2))
        assert (first[0][0], second[0][0], str(first[0][1])) == (1, 2, "1970-01-01")


def test_columns_alone_need_no_query() -> None:
    given = batch(1, 2)
    (found,) = Query(Select({"x": "rows.s", "N": '"n"'}, table="rows"), SCHEMA).run(given)
    assert isinstance(found, Found)
    assert found.rows.schema.names == ["x", "N"]
    assert found.rows.column(0).buffers()[2].address == given.column(1).buffers()[2].address


def test_columns_alone_have_the_names_of_the_items() -> None:
    given = SCHEMA.with_metadata({"a": "b"})
    for names in (["n", "s"], ["s", "m"]):
        asked = Query(Select(dict(zip(names, ["n", "s"], strict=True)), required=["n"]), given)
        found, failed, others = *asked.run(batch(1).cast(given)), *asked.run(batch(1, None).cast(given))
        assert isinstance(found, Found)
        assert isinstance(others, Found)
        assert isinstance(failed, Failed)
        for rows in (found.rows, others.rows):
            assert rows.schema.equals(asked.schema, check_metadata=True)
            assert rows.to_pylist() == [dict(zip(names, [1, "t1"], strict=True))]


def test_a_plan_is_made_anew_after_some_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of which nothing is left ends an execution, and a plan keeps notes of each."""
    monkeypatch.setattr(feed, "_EXECUTIONS", 3)
    asked = Query(Select({"n": "n"}, "n > 5"), SCHEMA)
    assert answers(asked, *[batch(n) for n in (1, 2, 3, 9, 4, 5, 8, 1, 7)]) == [
        *([], [], [], [(9, None)], [], [], [(8, None)], [], [(7, None)])
    ]


def test_memory_does_not_grow() -> None:
    asked = Query(Select({"n": "n + 1"}, "n > 5"), SCHEMA)
    batches = [batch(*range(20)), batch(1), batch(*range(8, 20))]

    def run(times: int) -> int:
        for _ in range(times):
            answers(asked, *batches)
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    before = run(1_000)
    assert run(4_000) - before < 8 << 20


@pytest.mark.parametrize(
    ("select", "item", "text"),
    [
        (Select({"a": "n", "b": "m + 1"}), "b", "there is no column m"),
        (Select({"a": "n +"}), "a", "write an expression here, not )"),
        (Select({"a": "nothing(n)"}), "a", "Invalid function 'nothing'"),
        (Select({"a": "n"}, "s"), None, "WHERE takes a BOOLEAN, and this is Utf8"),
        (Select({"a": "sum(n) OVER ()"}), None, "need more than one row"),
        (Select({"a": "n"}, "n IN (SELECT 1)"), None, "need more than one row"),
        (Select(required=["m"]), None, "there is no column m"),
    ],
)
def test_what_is_wrong(select: Select, item: str | None, text: str) -> None:
    with pytest.raises(WrongQuery) as error:
        Query(select, SCHEMA)
    assert text in str(error.value)
    assert error.value.item == item


def test_a_column_may_be_required() -> None:
    asked = Query(Select({"n": "n + 1"}, "n > 1", required=["n", "s"]), SCHEMA)
    assert answers(asked, batch(1, None, 3), batch(None)) == [
        [(1, "column 'n' is null, and NOT NULL"), (4, 2)],
        [(0, "column 'n' is null, and NOT NULL")],
    ]


def test_tokens() -> None:
    text = """a."b ""c" || 'it''s' -- no 'quote
        /* nor /* this */ " */ E'\\'' 1.5e-3 x->>'k'"""
    assert [token.text for token in tokens(text)] == [
        *("a", ".", '"b ""c"', "||", "'it''s'", "E'\\''", "1.5e-3", "x", "->>", "'k'")
    ]
    assert [token.name for token in tokens('A "A"')] == ["a", "A"]


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a /* b /* c */"])
def test_what_does_not_end(text: str) -> None:
    with pytest.raises(Unreadable) as error:
        tokens(text)
    assert error.value.start == 2


def test_a_column_and_nothing_more() -> None:
    assert [column_name(text, "t") for text in ("a", '"A b"', "t.a", "u.a", "a + 1", "f(a)", "'a'", "3")] == [
        *("a", "A b", "a", None, None, None, None, None)
    ]


def test_where_the_time_is_asked() -> None:
    assert with_now("a.now + now(), NOW ( ), 'now()', x as now") == 'a.now + "__now", "__now", \'now()\', x as now'
    assert with_now("current_date") == 'CAST("__now" AS DATE)'
