"""What running jobs report, written to the database: numbers, checkpoints, rows of previews, output of workers.

Guarantees: reports of an older generation are ignored. Numbers that have not changed are not written, so that a job
without rows costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from .database import history
from .database.models import JobStatus
from .database.opened import Database
from .states import Event
from .taken import Taken
from .task import Report

_KEPT_CHECKPOINTS = 100  # of each job
_KEPT_OUTPUTS = 100  # of the workers of each job


@dataclass(frozen=True)
class _Noted:
    """The latest of a job."""

    numbers: Mapping[str, Any] | None = None
    epoch: int = 0
    is_last: bool = False


class Notes:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: dict[str, _Noted] = {}

    def forget(self, job_id: str) -> None:
        self._noted.pop(job_id, None)

    def note(self, reports: Sequence[Report]) -> None:
        """In one transaction; in none, if nothing has changed."""
        latest = {report.job_id: report for report in reports if report.numbers is not None}
        changed = [report for report in latest.values() if self._of(report) != self._noted.get(report.job_id)]
        told = [report for report in reports if report.shown or (report.event is None and report.message)]
        if not changed and not told:
            return
        with self._database.begin() as session:
            for report in filter(lambda report: _is_current(session, report), [*told, *changed]):
                self._write(session, report)
        self._noted |= {report.job_id: self._of(report) for report in changed}

    def _of(self, report: Report) -> _Noted:
        before = self._noted.get(report.job_id, _Noted())
        taken = report.checkpoint
        epoch = before.epoch if taken is None else taken["epoch"]
        return _Noted(report.numbers, epoch, report.event is Event.SAVED)

    def _write(self, session: Session, report: Report) -> None:
        for batch in report.shown:
            history.put_output(session, report.job_id, **batch)
        if report.event is None and report.message:
            history.log(session, report.job_id, report.generation, "info", report.message, report.details)
            history.drop_logged(session, report.job_id, report.message, _KEPT_OUTPUTS)
        if report.numbers is None:
            return
        history.count(session, report.job_id, report.numbers)
        before, now = self._noted.get(report.job_id, _Noted()), self._of(report)
        if report.checkpoint is not None and (before.epoch, before.is_last) != (now.epoch, now.is_last):
            _write_checkpoint(session, report, report.checkpoint)


def _is_current(session: Session, report: Report) -> bool:
    status = session.get(JobStatus, report.job_id)
    return status is not None and status.generation == report.generation


def _write_checkpoint(session: Session, report: Report, taken: Taken) -> None:
    finish = int(taken["at"] * 1e6)
    start = finish - int(taken["seconds"] * 1e6)
    history.checkpoint(
        session,
        report.job_id,
        taken["epoch"],
        generation=report.generation,
        state="ready",
        start_time=start,
        finish_time=finish,
        checkpoint_type="stopping" if report.event is Event.SAVED else "scheduled",
        events=taken.get("events", [{"event": "Checkpointing", "start_time": start, "finish_time": finish}]),
        operators=taken.get("operators"),
    )
    history.drop_checkpoints(session, report.job_id, taken["epoch"] - _KEPT_CHECKPOINTS, taken["epoch"])
