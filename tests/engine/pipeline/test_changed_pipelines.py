"""What may change between a checkpoint and the run that goes on from it, while windows are open: the table of
docs/pipelines.md, a line each (O3, O4). Other lines are in tests/engine/execution/test_resumed_changes.py."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import InvalidArgument

COUNTS: dict[str, Any] = {
    "name": "counts",
    "source": {
        "type": "files",
        "paths": ["in"],
        "types": {"t": "timestamp[ns]", "x": "int64"},
    },
    "event_time": {"column": "t"},
    "operators": [
        {"type": "sql", "select": {"t": "t", "k": "k", "x": "x"}},
        {
            "type": "windows",
            "time": "t",
            "width": "10m",
            "keys": ["k"],
            "aggregates": {"n": "count(*)", "s": "sum(x)"},
        },
        {"type": "sql", "select": {"k": "k", "n": "n", "s": "s"}},
    ],
    "sinks": [{"type": "parts", "path": "out", "format": "jsonl"}],
    "checkpoints": {"place": "state", "every_rows": 1},
}

MONTHS = {name: value for name, value in COUNTS["operators"][1].items() if name != "width"} | {"months": 1}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/1.csv").write_text("t,k,x\n2020-01-01 00:01,a,1\n2020-01-01 00:02,a,2\n")


def begin(described: Pipeline) -> None:
    """A run that is stopped while a window is open, with rows of x = 1 and 2."""
    stop = StopRequest()

    def hear(progress: Progress) -> None:
        if progress.rows_in == 2 and not stop.requests:
            stop.request()

    summary = run_pipeline(watched(described, 0.01), stop=stop, progress=hear)
    assert (summary.ended, summary.progress.rows_out) == ("resumable", 0)


def changed(path: str, value: Any) -> Pipeline:
    """The description with another value. path: keys with slashes between them."""
    found = copy.deepcopy(COUNTS)
    *keys, last = path.split("/")
    at: Any = found
    for key in keys:
        at = at[int(key) if isinstance(at, list) else key]
    if isinstance(at, list):
        at[int(last)] = value
    elif value is None:
        del at[last]
    else:
        at[last] = value
    return pipeline_of(found)


def watched(described: Pipeline, seconds: float | None) -> Pipeline:
    return described.model_copy(update={"source": described.source.model_copy(update={"watch": seconds})})


def go_on(described: Pipeline) -> list[tuple[Any, ...]]:
    """To the end of the input, in which there is one more row, of x = 3. Returns the windows."""
    Path("in/2.csv").write_text("t,k,x\n2020-01-01 00:03,a,3\n")
    run_pipeline(watched(described, None), resume=True)
    lines = [line for part in Path("out").glob("part-*") for line in part.read_text().splitlines()]
    return [tuple(json.loads(line).values()) for line in lines]


def test_without_a_change() -> None:
    begin(pipeline_of(COUNTS))
    assert go_on(pipeline_of(COUNTS)) == [("a", 3, 6)]


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("operators/0/where", "x < 3", ("a", 2, 3)),
        ("operators/2/select/s", "s * 10", ("a", 3, 60)),
        ("operators/2/where", "s > 100", None),
        ("operators/1/aggregates/s", "count(*)", ("a", 3, 3)),
        ("operators/1/allowed_lateness", "1h", ("a", 3, 6)),
        ("operators/1/aggregates", {"s": "sum(x)", "n": "count(*)"}, ("a", 3, 6)),
    ],
)
def test_what_may_say_something_else(path: str, value: Any, found: tuple[Any, ...] | None) -> None:
    """Rows and windows from then on have it; the rows in open windows stay."""
    begin(pipeline_of(COUNTS))
    assert go_on(changed(path, value)) == ([] if found is None else [found])


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("operators/1/aggregates/s", "max(x)", r"columns .*sum \( x \) int64.*, and now gets .*max \( x \) int64"),
        ("operators/1/width", "20m", r"operators\[1\]\.width was 600.*, and is 1200"),
        ("operators/1", MONTHS, r"operators\[1\]\.months was null, and is 1"),
        ("operators/1/keys", ["k", "x"], r"operators\[1\]\.keys\[1\] is new"),
        ("operators/0/select/x", "x * 10", r"operators\[0\]\.select\.x was .x., and is .x \* 10"),
        ("operators/0/select/k", "upper(k)", r"operators\[0\]\.select\.k was .k., and is .upper"),
        ("operators/2/select/s", "CAST(s AS DOUBLE)", r"columns\[0\]\.s was .int64., and is .double"),
        ("operators/2/select/more", "n", r"operators\[2\]\.select\.more was null"),
        ("operators/2/select/s", None, r"operators\[2\]\.select\.s was .s., and is null"),
    ],
)
def test_what_may_not(path: str, value: Any, told: str) -> None:
    """It is refused by name, changes nothing, and goes on when the change is undone."""

    def everything() -> dict[str, bytes]:
        return {str(one): one.read_bytes() for one in Path("state").rglob("*") if one.is_file()}

    begin(pipeline_of(COUNTS))
    before = everything()
    with pytest.raises(InvalidArgument, match=told):
        go_on(changed(path, value))
    assert everything() == before
    assert go_on(pipeline_of(COUNTS)) == [("a", 3, 6)]


QUERY = """
CREATE TABLE rows (t TIMESTAMP, k TEXT, x BIGINT, WATERMARK FOR t)
WITH (connector = 'filesystem', path = 'in', format = 'csv', type = 'source');
CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'json', type = 'sink');
INSERT INTO out SELECT k, count(*) AS n, {} AS s FROM rows WHERE x < {} GROUP BY tumble(INTERVAL '10 minutes'), k
"""


def query(total: str, limit: int) -> Pipeline:
    text = QUERY.format(total, limit)
    return Script("query.sql", text).pipeline.model_copy(
        update={"checkpoints": Checkpoints(place="state", every_rows=1)}
    )


def test_a_query_may_make_something_else_of_the_same_aggregates() -> None:
    begin(query("sum(x) * 2", 9))
    assert go_on(query("sum(x) * 3 + count(*)", 3)) == [("a", 2, 11)]


def test_a_query_whose_windows_would_mix_two_expressions_is_refused() -> None:
    """Keys and arguments of aggregates are computed in front of the windows."""
    begin(query("sum(x) * 2", 9))
    with pytest.raises(InvalidArgument, match=r"operators\[1\]\.select\.__x1 was .x."):
        go_on(query("sum(x + 1) * 2", 9))
    assert go_on(query("sum(x) * 2", 9)) == [("a", 3, 12)]


def test_a_query_that_asks_for_another_aggregate_is_refused_and_goes_on_as_it_was() -> None:
    begin(query("sum(x) * 2", 9))
    with pytest.raises(InvalidArgument, match=r"had rows .* sum \( __x1 \) int64, and now gets .* max \( __x1 \)"):
        go_on(query("max(x)", 9))
    assert go_on(query("sum(x) * 2", 9)) == [("a", 3, 12)]
