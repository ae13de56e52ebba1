"""What jobs do per second: for graphs of a job, and for Prometheus.

Counts come from the database, where the controller keeps some minutes of them; here they become rates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import fastapi
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from ..database import history
from ..database import pipelines as rows
from ..database.models import STATES, Checkpoint, JobNumbers
from ..database.opened import now
from ..numbers import upgraded
from .jobs import job_at
from .parts import Parts, ThePart
from .shapes.base import Listed
from .shapes.jobs import Metric, MetricGroup, MetricName, OperatorMetricGroup, SubtaskMetrics

router = fastapi.APIRouter(tags=["jobs"])

_COUNTED: Mapping[MetricName, str] = {
    "bytes_recv": "bytes_recv",
    "bytes_sent": "bytes_sent",
    "messages_recv": "messages_recv",
    "messages_sent": "messages_sent",
    "backpressure": "blocked",
}
"""What is shown, and the count whose rate it is."""
_TOLD_AGAIN = 6_000_000
"""Microseconds after which a job that does something would have told new counts."""
_LEAST = 500_000
"""Microseconds from one point to the next."""
_Key = tuple[int, MetricName, int]
"""A node, what is counted, and the subtask."""


@router.get("/pipelines/{id}/jobs/{job_id}/operator_metric_groups")
def groups(parts: ThePart, id: str, job_id: str) -> Listed[OperatorMetricGroup]:
    """What passes each node in a second, for the last minutes. Empty until there are two counts."""
    with parts.database.read() as session:
        found = history.numbers(session, job_at(session, id, job_id).job.id)
    return Listed(data=list(metric_groups(found)))


def metric_groups(numbers: Sequence[JobNumbers]) -> Iterator[OperatorMetricGroup]:
    """numbers: by time. Between a count and a lower one, the job was started again: no rate comes of them."""
    lines: dict[_Key, list[Metric]] = defaultdict(list)
    counted = [(row.at, _counts(row.numbers)) for row in _spaced(_until(now(), numbers))]
    for (since, then), (at, counts) in pairwise(counted):
        seconds = (at - since) / 1e6
        for key, count in counts.items():
            if seconds > 0 and count >= then.get(key, count + 1):
                value = (count - then[key]) / seconds
                lines[key].append(Metric(time=at, value=min(1.0, value) if key[1] == "backpressure" else value))
    for node_id, of_node in groupby(sorted(lines.items()), key=lambda line: line[0][0]):
        yield OperatorMetricGroup(
            node_id=node_id,
            metric_groups=[
                MetricGroup(
                    name=name,
                    subtasks=[SubtaskMetrics(index=index, metrics=metrics) for (_, _, index), metrics in of_name],
                )
                for name, of_name in groupby(of_node, key=lambda line: line[0][1])
            ],
        )


def _spaced(numbers: Sequence[JobNumbers]) -> Sequence[JobNumbers]:
    """Without those that come right after others, when a checkpoint is told: a rate of some milliseconds says
    nothing. The second one stays: a short job has no others."""
    kept: list[JobNumbers] = []
    for row in numbers:
        if len(kept) < 2 or row.at - kept[-1].at >= _LEAST:
            kept.append(row)
    return kept


def _until(time: int, numbers: Sequence[JobNumbers]) -> Sequence[JobNumbers]:
    """With what holds now: counts that do not change are not told again, and the rate of an idle job is 0."""
    if not numbers or time - numbers[-1].at < _TOLD_AGAIN:
        return numbers
    last = numbers[-1]
    return [*numbers, JobNumbers(job_id=last.job_id, at=time, numbers=last.numbers)]


def _counts(numbers: Mapping[str, Any]) -> dict[_Key, float]:
    """What was counted. Sources get nothing, and sinks send nothing."""
    found: dict[_Key, float] = {}
    for node, told in upgraded(numbers).get("nodes", {}).items():
        for index, subtask in told["subtasks"].items():
            counts: Mapping[str, Any] = subtask
            found |= {
                (int(node), name, int(index)): counts[count] for name, count in _COUNTED.items() if count in counts
            }
    return found


# ---- Prometheus ----


async def exposed(request: Request) -> PlainTextResponse:
    """All jobs, as Prometheus reads them. Names are Arroyo's where they mean the same."""
    text = await run_in_threadpool(_exposition, request.app.state.parts)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


_HELP = {
    "arroyo_controller_jobs": ("gauge", "Jobs, by state."),
    "arroyo_worker_bytes_recv": ("counter", "Bytes that a node has received."),
    "arroyo_worker_bytes_sent": ("counter", "Bytes that a node has sent."),
    "arroyo_worker_messages_recv": ("counter", "Rows that a node has received."),
    "arroyo_worker_messages_sent": ("counter", "Rows that a node has sent."),
    "arroyo_udf_in_flight": ("gauge", "Calls of functions under way."),
    "arroyo_udf_held_rows": ("gauge", "Rows in an operator."),
    "arroyo_udf_held_by_order_rows": ("gauge", "Rows that have ended and wait for an earlier one."),
    "arroyo_udf_watermark_lag_seconds": ("gauge", "Seconds by which a watermark is behind the source's."),
    "arroyo_udf_outcomes_total": ("counter", "Rows answered, by outcome."),
    "arroyo_udf_checkpoint_epoch": ("gauge", "The latest epoch that was committed."),
    "arroyo_udf_checkpoint_duration_seconds": ("gauge", "Seconds that the latest checkpoint took."),
    "arroyo_udf_restarts": ("gauge", "Restarts of a job in a row."),
}
_OF_OPERATOR = {
    "in_flight": "arroyo_udf_in_flight",
    "held": "arroyo_udf_held_rows",
    "held_by_order": "arroyo_udf_held_by_order_rows",
    "lag": "arroyo_udf_watermark_lag_seconds",
}


class _Exposition:
    """The text, as it grows."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = defaultdict(list)

    def add(self, name: str, value: float | None, **labels: object) -> None:
        """None: it is not known."""
        if value is not None:
            told = ",".join(f'{label}="{_escaped(str(one))}"' for label, one in labels.items())
            self._lines[name].append(f"{name}{{{told}}} {value:.15g}")

    def add_numbers(self, numbers: Mapping[str, Any], job_id: str, names: Mapping[int, str]) -> None:
        for (node, name, index), count in _counts(numbers).items():
            labels = {"job_id": job_id, "node_id": node, "subtask_idx": index, "operator_name": names.get(node, "")}
            if name != "backpressure":
                self.add(f"arroyo_worker_{name}", count, **labels)
        for node_id, one in upgraded(numbers).get("nodes", {}).items():
            of_node: Mapping[str, Any] = one
            labels = {"job_id": job_id, "node_id": node_id, "operator_name": of_node.get("name", "")}
            for key, metric in _OF_OPERATOR.items():
                self.add(metric, of_node.get(key), **labels)
            for outcome, outcomes in of_node.get("outcomes", {}).items():
                self.add("arroyo_udf_outcomes_total", outcomes, **labels, outcome=outcome)

    def add_checkpoint(self, taken: Checkpoint, job_id: str) -> None:
        self.add("arroyo_udf_checkpoint_epoch", taken.epoch, job_id=job_id)
        if taken.finish_time is not None:
            seconds = (taken.finish_time - taken.start_time) / 1e6
            self.add("arroyo_udf_checkpoint_duration_seconds", seconds, job_id=job_id)

    def text(self) -> str:
        told: list[str] = []
        for name, (kind, help_) in _HELP.items():
            if name in self._lines:
                told += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}", *self._lines[name]]
        return "\n".join(told) + "\n"


def _exposition(parts: Parts) -> str:
    told = _Exposition()
    states = dict.fromkeys(STATES, 0)
    with parts.database.read() as session:
        for pipeline, job, status in rows.all_listed(session):
            user = status.state == "Failed" and status.failure_domain == "user"
            state = "UserFailed" if user else status.state
            states[state] = states.get(state, 0) + 1
            if status.state in rows.TERMINAL:
                continue
            told.add("arroyo_udf_restarts", status.restarts, job_id=job.id)
            found = history.numbers(session, job.id)
            if found:
                told.add_numbers(found[-1].numbers, job.id, _names(pipeline.graph))
            taken = history.checkpoints(session, job.id)
            if taken:
                told.add_checkpoint(taken[-1], job.id)
    for state, count in states.items():
        told.add("arroyo_controller_jobs", count, state=state)
    return told.text()


def _names(graph: Mapping[str, Any]) -> dict[int, str]:
    return {node["node_id"]: node["operator"] for node in graph.get("nodes", [])}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
