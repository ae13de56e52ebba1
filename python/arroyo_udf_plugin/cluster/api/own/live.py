"""A running pipeline: counts of its nodes as they come, what holds it back, and what its functions' runtimes say.

Clients ask with the time of the last point that they have. Rates and curves are theirs to make: counts never jump.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import fastapi

from ...database import history
from ...database import pipelines as rows
from ...database.database import now
from ...database.models import JobLog
from ...records import Counted
from ...reports import upgraded
from ...states import State
from ..dependencies import ApiParts, ThePart
from .findings import LATELY, findings
from .shapes import Complaint, Live, NodeCounts, Point, SourceGauge, StreamFinding, WaitingRow

router = fastapi.APIRouter(tags=["page"])

_SHOWN = 300_000_000
"""Microseconds."""
_FEW = 6
"""Points that are read without looking at all of them: enough for findings, and for a client that asks often."""
_LOOKED_AT = 30
"""Entries of the log."""
_COMPLAINTS = (
    ("stuck", re.compile(r"^.*?(?:WARNING \S+ )?(?P<text>\S+, row \d+: a call ignores its cancellation), in$")),
    ("blocked", re.compile(r"^.*?(?P<text>(?:the event loop|a call).*blocked.*half a second.*):$")),
    ("failed", re.compile(r"^.*?a row failed, the first of its kind: (?P<text>.*)$")),
)
_WORDS = ("ignores its cancellation", "half a second", "the first of its kind")
"""One of them is in each: most entries have none, and are not looked at line by line."""
_FIELDS = re.compile(r" \[job_id=[^\]]*\]$")
_NEW_LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_MOST_COMPLAINTS = 20


@router.get("/pipelines/{id}/live")
def live(
    parts: ThePart,
    id: str,
    since: Annotated[int, fastapi.Query(ge=0, lt=2**62, description="The time of the last point that is known.")] = 0,
) -> Live:
    """What has been counted since then, at most of the last five minutes."""
    with parts.database.read() as session:
        pipeline, job, status = rows.get(session, id)
        entries = history.logged(session, job.id, _LOOKED_AT).rows
        complaints = list(_complaints(entries))[:_MOST_COMPLAINTS]
    time = now()
    counted = parts.records.recent(job.id, _FEW)
    if not since or (len(counted) == _FEW and counted[0].at > since):
        counted = parts.records.numbers(job.id, max(since, time - _SHOWN))
    found = findings(_ends(counted), edges_of(pipeline.graph), time) if State(status.state) is State.RUNNING else []
    if (crash := _crash(status.state, status.restarts, status.failure_message, entries)) is not None:
        found = [crash, *found]
    return Live(
        now=time,
        state=status.state,
        state_since=status.state_since,
        generation=status.generation,
        restarts=status.restarts,
        points=[point_of(row) for row in counted if row.at > since],
        findings=found,
        complaints=complaints,
    )


def _crash(state: str, restarts: int, failure: str | None, entries: Sequence[JobLog]) -> StreamFinding | None:
    """A job that has failed, or whose worker dies again and again."""
    if failure is not None and state == State.FAILED:
        return StreamFinding(kind="failed", node_id=None, name="", text=failure)
    if not restarts:
        return None
    error = next((entry.message for entry in entries if entry.level == "error"), "its worker has ended")
    again = f"started again {restarts} time{'' if restarts == 1 else 's'} in a row: {error}"
    return StreamFinding(kind="crash", node_id=None, name="", text=again)


def latest_points(parts: ApiParts, job_id: str, generation: int) -> tuple[int, list[Point]]:
    """The time, and the last point of a generation, after the one that it is to be compared with."""
    return now(), [point for point in _ends(parts.records.recent(job_id, _FEW)) if point.generation == generation]


def _ends(counted: Sequence[Counted]) -> list[Point]:
    """The last count, after the first one of the time before it that findings look at. Few are made: it costs."""
    if not counted:
        return []
    last = counted[-1]
    generation = last.numbers.get("generation")
    lately = [row for row in counted if row.at >= last.at - LATELY and row.numbers.get("generation") == generation]
    return [point_of(row) for row in (lately[0], last)[len(lately) == 1 :]]


def edges_of(graph: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(edge["src_id"], edge["dest_id"]) for edge in graph.get("edges", [])]


def point_of(counted: Counted) -> Point:
    numbers = upgraded(counted.numbers)
    nodes = [_node(int(number), node) for number, node in numbers.get("nodes", {}).items()]
    return Point(at=counted.at, generation=numbers.get("generation", 0), nodes=nodes)


def _node(number: int, node: Mapping[str, Any]) -> NodeCounts:
    subtasks: Sequence[Mapping[str, Any]] = list(node["subtasks"].values())

    def total(name: str) -> int:
        return sum(subtask.get(name, 0) for subtask in subtasks)

    return NodeCounts(
        node_id=number,
        name=node.get("name", ""),
        operator=node.get("operator", ""),
        rows_in=total("messages_recv"),
        rows_out=total("messages_sent"),
        bytes_in=total("bytes_recv"),
        bytes_out=total("bytes_sent"),
        blocked=max((subtask.get("blocked", 0.0) for subtask in subtasks), default=0.0),
        gauges=[SourceGauge.model_validate(gauge) for gauge in node.get("gauges", ())],
        in_flight=node.get("in_flight", 0),
        held=node.get("held", 0),
        held_by_order=node.get("held_by_order", 0),
        backing_off=node.get("backing_off", 0),
        stuck=node.get("stuck", 0),
        retries=node.get("retries", 0),
        loop_blocked=node.get("loop_blocked", 0),
        outcomes=node.get("outcomes", {}),
        latency=node.get("latency", {}),
        latency_max=node.get("latency_max", 0.0),
        lag=node.get("lag"),
        watermark=node.get("watermark"),
        oldest=None if (oldest := node.get("oldest")) is None else WaitingRow.model_validate(oldest),
    )


def _complaints(entries: Sequence[JobLog]) -> Iterator[Complaint]:
    """What runtimes have said, out of the output of workers: a line that is known, and those below it."""
    for entry in entries:
        if not any(words in entry.details or words in entry.message for words in _WORDS):
            continue
        lines = [_FIELDS.sub("", line) for line in (entry.details or entry.message).splitlines()]
        found: list[Complaint] = []
        for number, line in enumerate(lines):
            for kind, pattern in _COMPLAINTS:
                if (match := pattern.match(line)) is None:
                    continue
                below = lines[number + 1 :]
                end = next((at for at, text in enumerate(below) if _NEW_LINE.match(text)), len(below))
                stack = "\n".join(below[:end])
                found.append(
                    Complaint.model_validate(
                        {"kind": kind, "at": entry.created_at, "text": match["text"], "stack": stack}
                    )
                )
                break
        yield from reversed(found)
