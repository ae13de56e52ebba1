"""What jobs count, node by node of their graph."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import program
from monitors import value

from arroyo_udf_plugin.cluster import generation
from arroyo_udf_plugin.cluster.functions.graph import graph_of
from arroyo_udf_plugin.cluster.monitoring.exposition import Exposition
from arroyo_udf_plugin.cluster.monitoring.metrics import Measured
from arroyo_udf_plugin.cluster.reports import numbers_of, upgraded
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task
from arroyo_udf_plugin.engine.execution.embedded import run_planned
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import (
    Blackhole,
    Functions,
    Impulse,
    NamedSource,
    Parts,
    Pipeline,
    Sql,
    Union,
    Windows,
)
from arroyo_udf_plugin.engine.pipeline.plan import plan

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def counted(**parts: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Runs a pipeline to its end. Returns its graph and its numbers."""
    with contextlib.closing(plan(Pipeline(name="counts", **parts))) as planned:
        graph = graph_of(planned)
        return graph, dict(numbers_of(1, run_planned(planned).progress, graph))


def rows_of(numbers: dict[str, Any], what: str) -> dict[str, list[int]]:
    """By node: of each subtask, in the order of their indexes."""
    return {
        node: [subtasks[str(index)][f"messages_{what}"] for index in range(len(subtasks))]
        for node, told in numbers["nodes"].items()
        if f"messages_{what}" in (subtasks := told["subtasks"])["0"]
    }


def test_each_node_of_the_graph_has_its_own_rows() -> None:
    """Two sources, of which one has a sink of its own, and two sinks behind the operators."""
    few = Sql(name="few", select={"n": "CAST(counter AS BIGINT)"}, where="counter < 10", after="both")
    graph, numbers = counted(
        source=Impulse(rows=100),
        sources={"again": NamedSource(source=Impulse(rows=30))},
        operators=[Union(name="both", inputs=("source", "again")), few],
        sinks=[Blackhole(after="few"), Blackhole(after="again"), Blackhole(after="both")],
    )
    described = [node["description"] for node in graph["nodes"]]
    assert described[:2] == ["source impulse", "both"]
    assert described[-1] == "source again"
    assert [numbers["nodes"][str(node["node_id"])]["operator"] for node in graph["nodes"]] == [
        node["operator"] for node in graph["nodes"]
    ]
    assert rows_of(numbers, "sent") == {"0": [100], "1": [130], "2": [20], "6": [30]}
    assert rows_of(numbers, "recv") == {"1": [130], "2": [130], "3": [20], "4": [30], "5": [130]}
    assert (numbers["rows_in"], numbers["rows_out"]) == (130, 180)


def test_bytes_are_those_of_the_columns() -> None:
    """A row that is not split off has as many where it comes in as where it has left."""
    _, numbers = counted(
        source=Impulse(rows=100), operators=[Sql(select={"n": "CAST(counter AS BIGINT)"})], sinks=[Blackhole()]
    )
    source, operator, sink = (numbers["nodes"][node]["subtasks"]["0"] for node in "012")
    assert source["bytes_sent"] == operator["bytes_recv"] >= 100 * 16  # a number and a time
    assert operator["bytes_sent"] == sink["bytes_recv"] == 100 * 8
    assert "bytes_recv" not in source
    assert "bytes_sent" not in sink


UNSTEADY = """
from arroyo_udf_plugin import udf

seen = set()


@udf
async def unsteady(n: int) -> int:
    if n % 10 == 0 and (n % 50 == 0 or n not in seen):
        seen.add(n)
        raise ValueError(n)
    return n
"""


def test_functions_have_their_outcomes_retries_and_latencies(build_plugin: Callable[..., Path]) -> None:
    """Each tenth of 100 rows fails at first, two of them always."""
    options = {"max_attempts": 3, "retry_on": "error", "backoff": "1ms"}
    plugin = str(build_plugin(UNSTEADY, name="unsteady"))
    whole = Sql(select={"n": "CAST(counter AS BIGINT)"})
    called = Functions(plugin=plugin, calls=["unsteady(n)"], on_error="drop", options=options)
    graph, numbers = counted(source=Impulse(rows=100), operators=[whole, called], sinks=[Blackhole()])
    assert graph["nodes"][2]["operator"] == "AsyncUdf"
    found = numbers["nodes"]["2"]
    assert found["outcomes"] == {"values": 98, "errors": 2, "dropped": 2}
    assert found["retries"] == 8 + 2 * 2
    assert sum(found["latency"].values()) == 100
    assert found["latency_max"] > 0
    assert rows_of(numbers, "recv")["3"] == [98]
    assert "in_flight" not in found  # what is 0 is left out


def test_each_slice_has_its_own_rows_and_a_node_that_is_alone_all_of_them() -> None:
    impulse = Impulse(rows=300, partitions=3, start=START, interval=1.0)
    windows = Windows(name="minutes", time="event_time", width=60, aggregates={"n": "count(*)"}, after="all")
    graph, numbers = counted(
        source=impulse,
        event_time={"column": "event_time"},
        operators=[Sql(name="all", select={"event_time": "event_time"}), windows],
        sinks=[Blackhole(after="minutes"), Blackhole(after="all")],
        parallelism=2,
    )
    for node in graph["nodes"]:
        indexes = list(numbers["nodes"][str(node["node_id"])]["subtasks"])
        assert indexes == [str(index) for index in range(node["parallelism"])]
    assert rows_of(numbers, "sent") == {"0": [200, 100], "1": [200, 100], "2": [5]}
    assert rows_of(numbers, "recv") == {"1": [200, 100], "2": [300], "3": [5], "4": [200, 100]}
    # Of the slice without the last row; or of the other one, if it has read the partition with that row first.
    lowest = [int(START.timestamp() + row) * 1_000_000 for row in (298, 297)]
    assert numbers["nodes"]["0"]["watermark"] == numbers["nodes"]["1"]["watermark"]
    assert numbers["nodes"]["0"]["watermark"] in lowest


def test_what_a_source_tells_of_itself_reaches_prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "PROGRESS_EVERY", 0.01)
    (tmp_path / "log").write_text('{"n": 1}\n{"n": ')  # nine bytes are a line, and six none yet
    source = {"type": "tail", "paths": [str(tmp_path / "log")], "types": {"n": "int"}}
    pipeline = Pipeline.model_validate({"name": "grows", "source": source, "sinks": [{"type": "blackhole"}]})
    measured, stop = Measured(), StopRequest()
    given = Task("job_1", 1, program(pipeline), 1, 0.05, str(tmp_path / "checkpoints"))
    reports: list[JobReport] = []

    def unread() -> float | None:
        text = Exposition([measured.tell]).text()[0].decode()
        return value(text, "arroyo_udf_source_bytes", job_id="job_1", node_id=0, gauge="unread")

    def tell(report: JobReport) -> None:
        reports.append(report)
        measured.note(report)
        if unread() == 6:
            generation.request(stop, "save")

    generation.run(given, stop, tell)
    assert reports[-1].event is Event.SAVED, reports[-1]


def test_numbers_of_an_older_worker_are_understood() -> None:
    """It knew one source and one sink, and one subtask of each node."""
    nodes = [(0, 10), (10, 8), (8, 0)]
    detail = {"name": "town", "rows_in": 10, "in_flight": 3, "held": 5, "held_by_order": 0, "lag": 0.5, "p50": 0.25}
    told = {
        "rows_in": 10,
        "rows_out": 8,
        "operators": {
            str(node): {"0": {"messages_recv": got, "messages_sent": sent}} for node, (got, sent) in enumerate(nodes)
        },
        "details": [detail | {"counts": {"rows": 10, "values": 8, "errors": 0, "dropped": 2}}],
    }
    town = {"name": "town", "in_flight": 3, "held": 5, "lag": 0.5, "outcomes": {"values": 8, "dropped": 2}}
    assert upgraded(told) == {
        "rows_in": 10,
        "rows_out": 8,
        "nodes": {
            "0": {"subtasks": {"0": {"messages_sent": 10}}},
            "1": {"subtasks": {"0": {"messages_recv": 10, "messages_sent": 8}}} | town,
            "2": {"subtasks": {"0": {"messages_recv": 8}}},
        },
    }


def test_a_checkpoint_has_a_group_for_each_node_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And again at the end: it is the last one then."""
    monkeypatch.setattr(generation, "PROGRESS_EVERY", 0.01)
    windows = Windows(name="minutes", time="event_time", width=60, aggregates={"n": "count(*)"}, after="all")
    pipeline = Pipeline(
        name="counts",
        source=Impulse(rate=3000, rows=1200, partitions=3, start=START, interval=1.0),
        event_time={"column": "event_time"},
        operators=[Sql(name="all", select={"event_time": "event_time"}), windows],
        sinks=[Parts(path=str(tmp_path / "out"), after="minutes"), Parts(path=str(tmp_path / "all"), after="all")],
    )
    reports: list[JobReport] = []
    given = Task("job_1", 1, program(pipeline), 2, 0.05, str(tmp_path / "checkpoints"))
    generation.run(given, StopRequest(), reports.append)
    assert reports[-1].event is Event.FINISHED, reports[-1]
    assert {report.tasks for report in reports} == {2 + 2 + 1 + 1 + 2}
    *earlier, last = [report.checkpoint for report in reports if report.checkpoint is not None]
    epochs = [taken["epoch"] for taken in earlier]
    assert epochs == sorted(set(epochs))
    assert epochs[-1] == last["epoch"]
    for taken in earlier:
        assert taken["events"][0]["event"] == "Checkpointing"
        operators = taken["operators"]
        assert {name: len(one["subtasks"]) for name, one in operators.items()} == {
            "impulse_0": 2,
            "Projection_1": 2,
            "TumblingWindowAggregate_2": 1,
            "filesystem_3": 1,
            "filesystem_4": 2,
        }
        start, finish = (taken["events"][0][name] for name in ("start_time", "finish_time"))
        for one in operators.values():
            assert one["bytes"] == sum(subtask["bytes"] for subtask in one["subtasks"].values())
            assert start <= one["finish_time"] <= one["started_metadata_write"] <= finish
            assert [span["event"] for span in one["subtasks"]["0"]["event_spans"]][:2] == ["Alignment", "Sync"]
        assert taken["bytes"] == sum(one["bytes"] for one in operators.values())
    assert any(taken["operators"]["TumblingWindowAggregate_2"]["bytes"] > 1000 for taken in earlier)
