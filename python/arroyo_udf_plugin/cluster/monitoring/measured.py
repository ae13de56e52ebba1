"""Numbers of jobs as samples; and those of the generations that run in this process.

measured = Measured()
measured.note(report)
Exposition([measured.tell])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..states import Event
from ..task import Report
from .families import Families

_WORKER = ("bytes_recv", "bytes_sent", "messages_recv", "messages_sent")
_OF_OPERATOR = {
    "in_flight": "arroyo_udf_in_flight",
    "held": "arroyo_udf_held_rows",
    "held_by_order": "arroyo_udf_held_by_order_rows",
    "lag": "arroyo_udf_watermark_lag_seconds",
}


class Measured:
    """The latest numbers of each job that has not ended. Any thread."""

    def __init__(self) -> None:
        self._latest: dict[str, Report] = {}

    def note(self, report: Report) -> None:
        before = self._latest.get(report.job_id)
        if before is not None and before.generation > report.generation:
            return
        if report.event not in (None, Event.STARTED):
            self._latest.pop(report.job_id, None)
        elif report.numbers is not None:
            self._latest[report.job_id] = report

    def tell(self, families: Families) -> None:
        for job_id, report in list(self._latest.items()):
            add_numbers(families, report.numbers or {}, job_id, {})
            if report.checkpoint is not None:
                add_checkpoint(families, job_id, report.checkpoint["epoch"], report.checkpoint["seconds"])


def add_numbers(families: Families, numbers: Mapping[str, Any], job_id: str, names: Mapping[str, str]) -> None:
    nodes = numbers.get("operators", {})
    unused = {("0", "recv"), (str(len(nodes) - 1), "sent")}  # a source gets nothing, and a sink sends nothing
    for node, subtasks in nodes.items():
        for index, counts in subtasks.items():
            for name in _WORKER:
                if name in counts and (node, name.rpartition("_")[2]) not in unused:
                    labels = {"node_id": node, "subtask_idx": index, "operator_name": names.get(node, "")}
                    families.add(f"arroyo_worker_{name}", counts[name], job_id=job_id, **labels)
    for place, one in enumerate(numbers.get("details", []), 1):
        of_operator = {"job_id": job_id, "node_id": place, "operator_name": one["name"]}
        for key, metric in _OF_OPERATOR.items():
            families.add(metric, one.get(key), **of_operator)
        for quantile, key in (("0.5", "p50"), ("0.99", "p99")):
            families.add("arroyo_udf_call_seconds", one.get(key), **of_operator, quantile=quantile)
        for outcome, count in (one.get("counts") or {}).items():
            families.add("arroyo_udf_outcomes_total", count, **of_operator, outcome=outcome)


def add_checkpoint(families: Families, job_id: str, epoch: int, seconds: float) -> None:
    families.add("arroyo_udf_checkpoint_epoch", epoch, job_id=job_id)
    families.add("arroyo_udf_checkpoint_duration_seconds", seconds, job_id=job_id)
