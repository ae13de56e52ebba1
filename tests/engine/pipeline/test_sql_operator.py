"""Operators of SQL in a description, and operators and sinks that form a tree."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from arroyo_udf_plugin.cluster.functions.graph import graph_of
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline
from arroyo_udf_plugin.errors import InvalidArgument, RowError

pytestmark = pytest.mark.usefixtures("folder")


def described(*operators: dict[str, Any], **others: Any) -> Any:
    told = {
        "name": "planes",
        "source": {"type": "files", "paths": ["flights.parquet"]},
        "operators": list(operators),
        "sinks": [{"type": "parts", "path": "out"}],
    }
    return pipeline_of(told | others)


def rows(path: str = "out") -> list[dict[str, Any]]:
    return ds.dataset(path).to_table().to_pylist()  # type: ignore[no-any-return]


PER_MINUTE = {"type": "sql", "select": {"tail": "tail", "rate": "miles / minutes"}}


def test_a_row_that_cannot_be_computed_fails_alone() -> None:
    run_pipeline(described(PER_MINUTE | {"on_error": "drop"}))
    assert rows() == [{"tail": "N1", "rate": 1}, {"tail": "N3", "rate": 5}]


def test_it_is_named() -> None:
    with pytest.raises(RowError, match=r"query sql, flights.parquet, row 2: Divide by zero"):
        run_pipeline(described(PER_MINUTE))


def test_dead_letters_behind_a_query_have_the_rows_of_the_source() -> None:
    query = {"type": "sql", "select": {"tail": "lower(tail)", "zero": "minutes - 60"}, "where": "miles > 150"}
    call = {"plugin": "functions.so", "calls": ["mph(zero, zero)"], "on_error": "dead_letter"}
    run_pipeline(described(query, call, dead_letters={"type": "parts", "path": "dead"}))
    assert [row["tail"] for row in rows()] == ["n2"]
    (letter,) = rows("dead")
    assert (letter["tail"], letter["miles"], letter["failed_row"]) == ("N3", 300, 3)
    assert "ZeroDivisionError" in letter["failed_error"]


def test_rows_go_several_ways() -> None:
    sinks = [
        {"type": "parts", "path": "all", "after": "source"},
        {"type": "parts", "path": "far", "after": "far"},
        {"type": "parts", "path": "planes"},
    ]
    far = {"type": "sql", "name": "far", "where": "input.miles >= 200"}
    near = {"plugin": "functions.so", "calls": ["plane(tail)"], "after": "source"}
    run_pipeline(described(far, near, sinks=sinks))
    assert [len(rows(path)) for path in ("all", "far", "planes")] == [3, 2, 3]
    assert [row["plane"] for row in rows("planes")] == ["n1", "n2", "n3"]
    assert "plane" not in rows("far")[0]


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        ({"type": "sql", "select": {"a": "tail", "b": "milez"}}, "operators[0].select.b: there is no column milez"),
        ({"type": "sql", "where": "nothing > 3"}, "operators[0].where: there is no column nothing"),
        ({"type": "sql", "select": {"n": "count(*)"}}, "operators[0].select.n: "),
        (
            {"type": "sql", "after": "soruce"},
            "operators[0].after: there is no operator 'soruce' before it: write 'source'",
        ),
        ({"plugin": "functions.so", "calls": ["plane(tail) if miles"]}, "the condition 'miles' is int64"),
        ({"plugin": "functions.so", "calls": ["plane(tail) if nowhere"]}, "there is no column 'nowhere'"),
        ({"type": "sequel"}, "there is no type 'sequel': write 'sql'"),
    ],
)
def test_what_is_wrong(operator: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidPipeline) as error:
        plan(described(operator)).close()
    assert text in str(error.value)


def test_all_expressions_that_are_wrong_are_told() -> None:
    given = {"type": "sql", "select": {"milesFlown": "miles", "day": "departure"}}
    select = {"a": "milesFlown + 1", "b": "nosuch(day)", "c": '"milesFlown"', "d": "dya"}
    with pytest.raises(InvalidPipeline) as error:
        plan(described(given, {"type": "sql", "select": select, "where": "dy > 1"}))
    assert [str(problem).splitlines()[0] for problem in error.value.problems] == [
        'operators[1].select.a: there is no column milesflown: write "milesFlown", in double quotes',
        "operators[1].select.b: Invalid function 'nosuch'.",
        "operators[1].select.d: there is no column dya: write 'day'",
        "operators[1].where: there is no column dy: write 'day'",
    ]


def test_windows_over_text_name_the_type_to_give(folder: Path) -> None:
    (folder / "rows.csv").write_text("tail,at\nN1,2013-01-01T00:00:00\n")
    keys = {"source": {"type": "files", "paths": ["rows.csv"]}, "event_time": {"column": "at"}}
    text = r"operators\[0\].time: column 'at' is text: give its type to the source, types = \{ at = \"datetime\" \}"
    with pytest.raises(InvalidPipeline, match=text):
        plan(described(windows(time="at", width="1h"), **keys))


def test_without_datafusion_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafusion", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'arroyo_udf_plugin\[engine\]'"):
        plan(described(PER_MINUTE)).close()


def test_an_operator_whose_rows_nobody_takes() -> None:
    lost = {"type": "sql", "name": "lost"}
    with pytest.raises(InvalidPipeline, match=r"operators\[0\]: nothing takes its rows"):
        plan(described(lost, {"type": "sql", "after": "source"})).close()


def test_only_rows_whose_condition_is_true_are_called() -> None:
    wanted = {
        "type": "sql",
        "select": {"tail": "tail", "wanted": "CASE miles WHEN 100 THEN true WHEN 200 THEN false END"},
    }
    run_pipeline(described(wanted, {"plugin": "functions.so", "calls": ["plane(tail) if wanted", "up = plane(tail)"]}))
    assert [(row["plane"], row["up"]) for row in rows()] == [("n1", "n1"), (None, "n2"), (None, "n3")]
    assert ds.dataset("out").schema.field("plane").type == pa.string()


def windows(**keys: Any) -> dict[str, Any]:
    return {"type": "windows", "time": "day", "keys": ["tail"], "aggregates": {"n": "count(*)"}} | keys


def joined(**keys: Any) -> dict[str, Any]:
    sides = {"left": "sql", "right": "sql", "select": {"tail": "a.tail"}, "time": "day"}
    return {"type": "join", "within": [-60, 60]} | sides | keys


def deduplicate(**keys: Any) -> dict[str, Any]:
    return {"type": "deduplicate", "time": "day", "keys": ["tail"], "ttl": "1h"} | keys


def updating(**keys: Any) -> dict[str, Any]:
    return {"type": "updating", "keys": ["tail"], "aggregates": {"n": "count(*)"}} | keys


def look_back(**keys: Any) -> dict[str, Any]:
    aggregates = {"before": "lag(tail) OVER (ORDER BY day)"}
    return {"type": "look_back", "time": "day", "order": "day", "rows": 1, "ttl": 60, "aggregates": aggregates} | keys


@pytest.mark.parametrize(
    ("operator", "event_time", "text"),
    [
        (joined(within=[1, 0]), {"column": "day"}, "operators[0].within: no row is within this interval"),
        (joined(within=[1]), {"column": "day"}, "operators[0].within: write at least 2"),
        (joined(on="a.tail > b.nothing"), {"column": "day"}, "operators[0].on: there is no column b.nothing"),
        (deduplicate(), None, "operators[0]: keys are forgotten by the event time: add [event_time]"),
        (deduplicate(keys=["nothing"]), {"column": "day"}, "operators[0].keys: there is no column nothing"),
        (deduplicate(time="tail"), {"column": "day"}, "operators[0].time: tail is string: name a column of times"),
        (deduplicate(ttl=0), {"column": "day"}, "operators[0].ttl: "),
        (look_back(), None, "operators[0]: rows are in the order of their event time: add [event_time]"),
        (look_back(time="tail"), {"column": "day"}, "operators[0].time: there is no column tail of times"),
        (
            look_back(aggregates={"before": "lag(nothing) OVER (ORDER BY day)"}),
            {"column": "day"},
            "operators[0].aggregates.before: there is no column nothing",
        ),
        (updating(keys=["nothing"]), None, "operators[0].keys: there is no column nothing"),
        (
            updating(aggregates={"m": "count(DISTINCT tail)"}),
            None,
            "operators[0].aggregates.m: this aggregate would need all",
        ),
        (updating(over=[{"select": {"x": "nothing"}}]), None, "operators[0]: there is no column nothing"),
        (updating(ttl=0), None, "operators[0].ttl: "),
        (windows(width="1h"), None, "operators[0]: windows end by the event time: add [event_time]"),
        (
            windows(),
            {"column": "day"},
            "operators[0].width: write width, or width and slide, or months, or months and slide_months, or for",
        ),
        (
            windows(width="1h", on_late="dead_letter"),
            {"column": "day"},
            "operators[0].on_late: the policy dead_letter needs a place",
        ),
        (windows(width="1h", months=1), {"column": "day"}, "operators[0].months: write width, or width and slide, or"),
        (windows(months=3, slide_months=2), {"column": "day"}, "operators[0].months: the width of a window must be a"),
        (
            windows(width="1h", slide="7m"),
            {"column": "day"},
            "operators[0].width: the width of a window must be a multiple",
        ),
        (windows(gap="1h", by_row=True), {"column": "day"}, "operators[0].width: sessions have no window functions"),
        (
            windows(width="1h", aggregates={"n": "sum(nothing)"}),
            {"column": "day"},
            "operators[0].aggregates.n: there is no column nothing",
        ),
        (windows(width="1h", time="tail"), {"column": "day"}, "operators[0]: tail is string: name a column of times"),
    ],
)
def test_windows_that_are_wrong(operator: dict[str, Any], event_time: dict[str, Any] | None, text: str) -> None:
    query = {"type": "sql", "select": {"tail": "tail", "day": "arrow_cast(minutes, 'Timestamp(Second, None)')"}}
    with pytest.raises(InvalidPipeline) as error:
        plan(described(query, operator, event_time=event_time))
    assert text.replace("operators[0]", "operators[1]") in str(error.value)


def test_windows_of_months() -> None:
    """In a description, its chain and the graph of a job."""
    day = "arrow_cast(CAST(miles AS BIGINT) * 86400, 'Timestamp(Second, None)')"
    query = {"type": "sql", "name": "days", "select": {"tail": "tail", "day": day}}
    both = [windows(months=1), windows(months=12, slide_months=6, keys=[], name="years", after="days")]
    sinks = [{"type": "parts", "path": path, "after": path} for path in ("windows", "years")]
    pipeline = described(query, *both, event_time={"column": "day", "computed": {"day": day}}, sinks=sinks)
    with contextlib.closing(plan(pipeline)) as planned:
        kinds = [node["operator"] for node in graph_of(planned)["nodes"]]
        assert kinds[2:4] == ["TumblingWindowAggregate", "SlidingWindowAggregate"]
        assert "months = 12, slide_months = 6" in explained(planned)
    run_pipeline(pipeline)
    found = {
        path: [(str(row["window"]["start"])[:10], row["n"]) for row in rows(path)] for path in ("windows", "years")
    }
    assert found["windows"] == [("1970-04-01", 1), ("1970-07-01", 1), ("1970-10-01", 1)]
    assert found["years"] == [("1969-07-01", 1), ("1970-01-01", 3), ("1970-07-01", 2)]
