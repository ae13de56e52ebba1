"""Jobs: what becomes of pipelines, and what they do per second.

The controller keeps the counts of some minutes in files; here they become rates, for graphs of a job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Annotated, Any

import fastapi
from sqlalchemy.orm import Session

from ..database import history
from ..database import pipelines as rows
from ..database.database import now
from ..database.errors import NotFound
from ..database.pipelines import WholeJob
from ..records import Counted
from ..reports import upgraded
from .dependencies import After, Labels, Limit, States, ThePart, chosen, most
from .failures import Refusal
from .responses import job_of, log_of
from .shapes import Listed, Page
from .shapes.jobs import Job, JobLogMessage, Level, Metric, MetricGroup, MetricName, OperatorMetricGroup, SubtaskMetrics

router = fastapi.APIRouter(tags=["jobs"])
_LEVELS: tuple[Level, ...] = ("error", "warn", "info")


def job_at(session: Session, id: str, job_id: str) -> WholeJob:
    """The job of a pipeline. Raises NotFound."""
    whole = rows.get(session, id)
    if whole.job.id != job_id:
        raise NotFound("Job not found")
    return whole


@router.get("/jobs")
def every_job(parts: ThePart, labels: Labels = None, states: States = None) -> Listed[Job]:
    """Those of all pipelines, the newest first, without previews."""
    asked = chosen(labels, states)
    with parts.database.read() as session:
        return Listed(
            data=[job_of(pipeline.id, job, status) for pipeline, job, status in rows.all_listed(session, asked)]
        )


@router.get("/pipelines/{id}/jobs")
def of_pipeline(parts: ThePart, id: str) -> Listed[Job]:
    """There is one."""
    with parts.database.read() as session:
        _, job, status = rows.get(session, id)
        return Listed(data=[job_of(id, job, status)])


@router.get("/pipelines/{id}/jobs/{job_id}/errors")
def errors(
    parts: ThePart,
    id: str,
    job_id: str,
    limit: Limit = 10,
    starting_after: After = None,
    level: Annotated[Level, fastapi.Query(description="This level and worse ones.")] = "error",
) -> Page[JobLogMessage]:
    """What went wrong, the newest first; with level=warn or info also what users should know."""
    with parts.database.read() as session:
        job = job_at(session, id, job_id).job
        levels = _LEVELS[: _LEVELS.index(level) + 1]
        try:
            page = history.logged(session, job.id, most(limit), starting_after, levels)
        except NotFound as error:
            raise Refusal(400, str(error)) from None
        return Page(data=[log_of(row) for row in page.rows], has_more=page.has_more)


_COUNTED: Mapping[MetricName, str] = {
    "bytes_recv": "bytes_recv",
    "bytes_sent": "bytes_sent",
    "messages_recv": "messages_recv",
    "messages_sent": "messages_sent",
    "backpressure": "blocked",
}
"""What is shown, and the count whose rate it is."""
_SHOWN = 300_000_000
"""Microseconds."""
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
        job_at(session, id, job_id)
    return Listed(data=list(metric_groups(parts.records.numbers(job_id, now() - _SHOWN))))


def metric_groups(numbers: Sequence[Counted]) -> Iterator[OperatorMetricGroup]:
    """numbers: by time. No rate comes of the counts of two generations, or, of an older worker, of a lower one."""
    lines: dict[_Key, list[Metric]] = defaultdict(list)
    counted = [(row.at, row.numbers.get("generation"), _counts(row.numbers)) for row in _spaced(_until(now(), numbers))]
    for (since, before, then), (at, generation, counts) in pairwise(counted):
        seconds = (at - since) / 1e6
        for key, count in counts.items():
            if before == generation and seconds > 0 and count >= then.get(key, count + 1):
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


def _spaced(numbers: Sequence[Counted]) -> Sequence[Counted]:
    """Without those that come right after others, when a checkpoint is told: a rate of some milliseconds says
    nothing. The second one stays: a short job has no others."""
    kept: list[Counted] = []
    for row in numbers:
        if len(kept) < 2 or row.at - kept[-1].at >= _LEAST:
            kept.append(row)
    return kept


def _until(time: int, numbers: Sequence[Counted]) -> Sequence[Counted]:
    """With what holds now: counts that do not change are not told again, and the rate of an idle job is 0."""
    if not numbers or time - numbers[-1].at < _TOLD_AGAIN:
        return numbers
    last = numbers[-1]
    return [*numbers, Counted(time, last.numbers)]


def _counts(numbers: Mapping[str, Any]) -> dict[_Key, float]:
    """What was counted. Sources get nothing, and sinks send nothing."""
    totals: dict[_Key, float] = {}
    for node, operator in upgraded(numbers).get("nodes", {}).items():
        for index, subtask in operator["subtasks"].items():
            counts: Mapping[str, Any] = subtask
            totals |= {
                (int(node), name, int(index)): counts[count] for name, count in _COUNTED.items() if count in counts
            }
    return totals
