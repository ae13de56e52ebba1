"""Numbers of jobs as samples; and those of the generations that run in this process.

measured = Measured()
measured.note(report)
Exposition([measured.tell])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..numbers import upgraded
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
    for node, one in upgraded(numbers).get("nodes", {}).items():
        labels = {"job_id": job_id, "node_id": node, "operator_name": one.get("operator") or names.get(node, "")}
        of_node: Mapping[str, Any] = one
        for index, subtask in of_node["subtasks"].items():
            for name in _WORKER:
                families.add(f"arroyo_worker_{name}", subtask.get(name), **labels, subtask_idx=index)
        for key, metric in _OF_OPERATOR.items():
            families.add(metric, of_node.get(key), **labels)
        for outcome, count in of_node.get("outcomes", {}).items():
            families.add("arroyo_udf_outcomes_total", count, **labels, outcome=outcome)


def add_checkpoint(families: Families, job_id: str, epoch: int, seconds: float) -> None:
    families.add("arroyo_udf_checkpoint_epoch", epoch, job_id=job_id)
    families.add("arroyo_udf_checkpoint_duration_seconds", seconds, job_id=job_id)
