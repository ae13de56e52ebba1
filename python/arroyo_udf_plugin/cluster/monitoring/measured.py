"""Numbers of jobs as samples; and those of the generations that run in this process.

    measured = Measured()
    measured.note(report)
    Exposition([measured.tell])

A report leaves out what is 0. A sample that is missing looks like a program that does not run, so it is told here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...host.statistics import Latency
from ..numbers import upgraded
from ..states import Event
from ..task import Report
from .families import Buckets, Families

_OF_SUBTASK = {
    "messages_recv": "arroyo_worker_messages_recv",
    "messages_sent": "arroyo_worker_messages_sent",
    "bytes_recv": "arroyo_worker_bytes_recv",
    "bytes_sent": "arroyo_worker_bytes_sent",
    "blocked": "arroyo_udf_blocked_seconds_total",
}
_OF_OPERATOR = {
    "in_flight": "arroyo_udf_in_flight",
    "held": "arroyo_udf_held_rows",
    "held_by_order": "arroyo_udf_held_by_order_rows",
    "backing_off": "arroyo_udf_backing_off_rows",
    "stuck": "arroyo_udf_stuck_calls",
    "retries": "arroyo_udf_retries_total",
    "loop_blocked": "arroyo_udf_loop_blocked_total",
}
_BUCKETS = range(32, 108, 4)
"""Of `Latency`, those at whose beginning one ends here: from half a millisecond to two minutes, each time twice."""


@dataclass(frozen=True)
class _Latest:
    """Of a job. checkpoint: reports tell each one once."""

    generation: int
    numbers: Mapping[str, Any]
    checkpoint: Mapping[str, Any] | None


class Measured:
    """The latest numbers of each job that has not ended. Any thread."""

    def __init__(self) -> None:
        self._latest: dict[str, _Latest] = {}

    def note(self, report: Report) -> None:
        before = self._latest.get(report.job_id)
        if before is not None and before.generation > report.generation:
            return
        if before is not None and before.generation < report.generation:
            before = None
        if report.event not in (None, Event.STARTED):
            self._latest.pop(report.job_id, None)
        elif report.numbers is not None:
            known = None if before is None else before.checkpoint
            checkpoint = known if report.checkpoint is None else report.checkpoint
            self._latest[report.job_id] = _Latest(report.generation, report.numbers, checkpoint)

    def tell(self, families: Families) -> None:
        for job_id, latest in list(self._latest.items()):
            add_numbers(families, latest.numbers, job_id)
            taken = latest.checkpoint
            if taken is not None:
                add_checkpoint(families, job_id, taken["epoch"], taken["seconds"], taken.get("bytes"))


def add_numbers(families: Families, numbers: Mapping[str, Any], job_id: str) -> None:
    told = upgraded(numbers)
    unreadable = told.get("dropped", 0) + told.get("dead_letters", 0)
    families.add("arroyo_worker_deserialization_errors", unreadable, job_id=job_id)
    for node_id, node in told.get("nodes", {}).items():
        _add_node(families, node, {"job_id": job_id, "node_id": node_id, "operator_name": node.get("operator", "")})


def _add_node(families: Families, node: Mapping[str, Any], labels: dict[str, str]) -> None:
    subtasks = node.get("subtasks", {})
    for index, counts in subtasks.items():
        for key, metric in _OF_SUBTASK.items():
            families.add(metric, counts.get(key), **labels, subtask_idx=index)
    own = {**labels, "name": node.get("name", "")}
    if "watermark" in node:
        families.add("arroyo_udf_watermark_timestamp_seconds", node["watermark"] / 1e6, **own)
    families.add("arroyo_udf_watermark_lag_seconds", node.get("lag"), **own)
    is_operator = any("messages_recv" in counts and "messages_sent" in counts for counts in subtasks.values())
    if not is_operator:
        return
    for key, metric in _OF_OPERATOR.items():
        families.add(metric, node.get(key, 0), **own)
    for outcome, count in node.get("outcomes", {}).items():
        families.add("arroyo_udf_outcomes_total", count, **own, outcome=outcome)
    if "latency" in node:
        buckets = _latency({int(bucket): rows for bucket, rows in node["latency"].items()})
        families.add_buckets("arroyo_udf_latency_seconds", buckets, **own)


def _latency(rows: Mapping[int, int]) -> Buckets:
    """rows: by buckets of `Latency`, which counts no sum: rows are taken to be in the middle of theirs."""
    counts = [0] * (len(_BUCKETS) + 1)
    for bucket, count in rows.items():
        counts[bisect_left(_BUCKETS, bucket + 1)] += count
    middles = ((Latency.bound(bucket) + Latency.bound(bucket + 1)) / 2 * count for bucket, count in rows.items())
    return Buckets([Latency.bound(bucket) for bucket in _BUCKETS], counts, sum(middles))


def add_checkpoint(families: Families, job_id: str, epoch: int, seconds: float, size: int | None) -> None:
    families.add("arroyo_udf_checkpoint_epoch", epoch, job_id=job_id)
    families.add("arroyo_udf_checkpoint_duration_seconds", seconds, job_id=job_id)
    families.add("arroyo_udf_checkpoint_bytes", size, job_id=job_id)
