"""What holds a stream back, told from counts alone."""

from __future__ import annotations

from typing import Any

import pytest

from arroyo_udf_plugin.cluster.api.own.findings import findings
from arroyo_udf_plugin.cluster.api.own.live import point_of
from arroyo_udf_plugin.cluster.api.own.shapes import Point, StreamFinding
from arroyo_udf_plugin.cluster.records import Counted

EDGES = [(0, 1), (1, 2)]
OLDEST = {"file": "trips.csv", "row": 21, "since": 0}


def point(second: float, generation: int = 1, source: dict[str, Any] | None = None, **function: Any) -> Point:
    """source: counts of the only slice of the source. function: of the node in the middle."""
    subtask = {"messages_recv": 10, "messages_sent": 10, "blocked": function.pop("blocked", 0.0)}
    nodes = {
        "0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": source or {"messages_sent": 10}}},
        "1": {"operator": "AsyncUdf", "name": "town", "subtasks": {"0": subtask}, **function},
        "2": {"operator": "preview", "name": "preview", "subtasks": {"0": {"messages_recv": 10}}},
    }
    return point_of(Counted(round(second * 1e6), {"generation": generation, "nodes": nodes}))


def found(*points: Point, now: float | None = None) -> list[StreamFinding]:
    return findings(points, EDGES, round((points[-1].at / 1e6 if now is None else now) * 1e6))


def kinds(*points: Point, now: float | None = None) -> list[str]:
    told = found(*points, now=now)
    assert {finding.node_id for finding in told} <= {1}
    return [finding.kind for finding in told]


def test_a_job_that_does_what_it_should_has_none() -> None:
    assert found(point(0), point(2, in_flight=3, held=4, outcomes={"values": 90})) == []
    assert findings([], EDGES, 0) == []


@pytest.mark.parametrize(
    ("was", "now", "kind", "text"),
    [
        ({}, {"stuck": 1}, "stuck", "1 call ignored the cancellation"),
        ({"loop_blocked": 2}, {"loop_blocked": 3}, "blocked", "holds the event loop"),
        ({"outcomes": {"errors": 4}}, {"outcomes": {"errors": 8}}, "failing", "2.0 rows/s fail"),
        ({}, {"outcomes": {"errors": 40}}, "failing", "20 rows/s fail"),
        ({"outcomes": {}}, {"outcomes": {"timed_out": 2}}, "timeouts", "1.0 rows/s run out of time"),
        ({}, {"backing_off": 1}, "retries", "1 row waits for another call"),
        ({}, {"backing_off": 1200}, "retries", "1,200 rows wait for another call"),
    ],
)
def test_each_kind(was: dict[str, Any], now: dict[str, Any], kind: str, text: str) -> None:
    (finding,) = found(point(0, **was), point(2, **now))
    assert (finding.kind, finding.node_id, finding.name) == (kind, 1, "town")
    assert text in finding.text


def test_what_happened_once_is_over_after_ten_seconds() -> None:
    points = [point(second, outcomes={"errors": 3 if second else 0}) for second in (0, 2, 4, 6, 8, 10, 12)]
    assert kinds(*points[:3]) == ["failing"]
    assert kinds(*points) == []


def test_counts_of_another_generation_are_none() -> None:
    assert kinds(point(0, outcomes={"errors": 3}), point(2, generation=2, outcomes={"errors": 9})) == []


def test_rows_that_have_ended_wait_for_one_by_its_number() -> None:
    (finding,) = found(point(2, oldest=OLDEST, held=30, held_by_order=29, in_flight=1), now=8)
    assert finding.kind == "order"
    assert finding.text.startswith("29 rows wait for row 21 of trips.csv, which has taken 8 s so far")


def test_a_row_that_is_young_holds_nobody() -> None:
    assert kinds(point(2, oldest=OLDEST, held=30, held_by_order=29, in_flight=1), now=4) == []


def test_calls_of_which_none_ends_are_stalled() -> None:
    assert kinds(point(2, oldest=OLDEST, held=30, in_flight=30), now=8) == ["stalled"]
    assert kinds(point(2, oldest=OLDEST, held=30), now=8) == []


def test_a_node_that_is_fed_faster_than_it_goes_is_slow() -> None:
    def fed(blocked: float) -> dict[str, Any]:
        return {"messages_sent": 10, "blocked": blocked}

    assert kinds(point(0, source=fed(1.0)), point(2, source=fed(2.8), in_flight=9)) == ["slow"]
    assert kinds(point(0, source=fed(1.0)), point(2, source=fed(1.4), in_flight=9)) == []
    behind = point(0, source=fed(1.0)), point(2, source=fed(2.8), blocked=1.8)
    assert [(finding.kind, finding.node_id) for finding in found(*behind)] == [
        ("slow", 2)
    ]  # it is the sink that is slow


def test_the_worst_comes_first() -> None:
    was = point(0)
    now = point(2, stuck=1, backing_off=1, loop_blocked=1, outcomes={"errors": 3, "timed_out": 1})
    assert kinds(was, now) == ["stuck", "blocked", "failing", "timeouts", "retries"]
