"""What running jobs report, written down: checkpoints and output of workers in the database, numbers and rows of
previews in files (see `records.py`).

    notes.add(report)                   as it comes
    notes.write(session)                all that waits for the database, in one transaction
    notes.written()                     after that is committed: the rest

Guarantees: of an older generation, only its output is written. Of numbers the latest are written, of everything else
all; but for the oldest, if the database fails for so long that it becomes too much. What has not changed is not
written, so that a job without rows costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from .database import history, jobs
from .records import Records
from .shown import Shown
from .states import Event
from .taken import Taken
from .task import Report

Kept = tuple[int, tuple[int, ...]]
"""The newest epoch, and those that one can go back to."""

_KEPT_CHECKPOINTS = 100  # of each job
_KEPT_OUTPUTS = 100  # of the workers of each job, and batches of rows that wait


@dataclass
class _Generation:
    """The latest of a job. noted, epoch, is_last, came_to: the numbers, the checkpoint and the newest epoch that are in
    the database. The others wait to be written; comes_to: that epoch, with those that are retained; output: also of
    generations before."""

    number: int
    noted: Mapping[str, Any] | None = None
    epoch: int | None = None
    is_last: bool = False
    came_to: Kept = (0, ())
    comes_to: Kept | None = None
    numbers: Mapping[str, Any] | None = None
    checkpoints: dict[int, Report] = field(default_factory=dict)
    shown: deque[Shown] = field(default_factory=lambda: deque(maxlen=_KEPT_OUTPUTS))
    output: deque[Report] = field(default_factory=lambda: deque(maxlen=_KEPT_OUTPUTS))

    @property
    def waits(self) -> bool:
        known = self.numbers is not None or self.comes_to is not None
        return bool(known or self.checkpoints or self.shown or self.output)

    def add(self, report: Report) -> None:
        if report.numbers is not None and report.numbers != self.noted:
            self.numbers = report.numbers
        taken, is_last = report.checkpoint, report.event is Event.SAVED
        if taken is not None and (taken["epoch"], is_last) != (self.epoch, self.is_last):
            self.checkpoints[taken["epoch"]] = report
            if len(self.checkpoints) > _KEPT_CHECKPOINTS:
                del self.checkpoints[min(self.checkpoints)]
        kept = report.epoch, tuple(report.retained)
        if report.epoch and kept != self.came_to:
            self.comes_to = kept
        self.shown.extend(report.shown)

    def written(self) -> None:
        if self.numbers is not None:
            self.noted = self.numbers
        if self.comes_to is not None:
            self.came_to = self.comes_to
        if self.checkpoints:
            self.epoch = max(self.checkpoints)
            self.is_last = self.checkpoints[self.epoch].event is Event.SAVED
        self.drop()

    def drop(self) -> None:
        self.numbers = self.comes_to = None
        for waiting in (self.checkpoints, self.shown, self.output):
            waiting.clear()


class Notes:
    def __init__(self, records: Records) -> None:
        self._records = records
        self._latest: dict[str, _Generation] = {}  # of each job
        self._waiting: dict[str, _Generation] = {}
        self._current: dict[str, _Generation] = {}  # those that wait, of the generations in the database

    @property
    def wait(self) -> bool:
        """Whether there is something to write."""
        return bool(self._waiting)

    def add(self, report: Report) -> None:
        before = self._latest.get(report.job_id)
        if before is None or before.number < report.generation:
            now = _Generation(report.generation)
            if before is not None:
                now.output = before.output
            self._latest[report.job_id] = before = now
        if report.event is None and report.message:
            before.output.append(report)
        if before.number == report.generation:
            before.add(report)
        if before.waits:
            self._waiting[report.job_id] = before

    def write(self, session: Session) -> None:
        """In a transaction of the leader."""
        generations = jobs.generations(session, sorted(self._waiting))
        there = {job_id: one for job_id, one in self._waiting.items() if job_id in generations}
        current = {job_id: one for job_id, one in there.items() if one.number == generations[job_id]}
        self._current = current
        histories = jobs.histories(session, sorted(current))
        for job_id, one in current.items():
            for _, report in sorted(one.checkpoints.items()):
                assert report.checkpoint is not None
                _write_checkpoint(session, report, report.checkpoint, histories[job_id])
            if one.comes_to is not None:
                epoch, retained = one.comes_to
                jobs.came_to(session, job_id, epoch)
                history.retain(session, job_id, histories[job_id], retained)
        for job_id, one in there.items():
            for report in one.output:
                history.log(session, job_id, report.generation, "info", report.message, report.details)
            for message in {report.message for report in one.output}:
                history.drop_logged(session, job_id, message, _KEPT_OUTPUTS)

    def written(self) -> None:
        """What waited for the database is there. Only now is it certain that this controller leads."""
        for job_id, one in self._current.items():
            if one.numbers is not None:
                self._records.count(job_id, one.numbers)
            if one.shown:
                self._records.show(job_id, one.shown)
        self._current = {}
        for one in self._waiting.values():
            one.written()
        self._waiting.clear()

    def drop(self) -> None:
        """What waits cannot be written."""
        for one in self._waiting.values():
            one.drop()
        self._waiting.clear()

    def forget(self, job_id: str) -> None:
        self._latest.pop(job_id, None)
        self._records.forget(job_id)

    def clear(self) -> None:
        self._latest.clear()
        self._waiting.clear()


def _write_checkpoint(session: Session, report: Report, taken: Taken, history_: int) -> None:
    finish = int(taken["at"] * 1e6)
    start = finish - int(taken["seconds"] * 1e6)
    history.checkpoint(
        session,
        report.job_id,
        taken["epoch"],
        generation=report.generation,
        history=history_,
        state="ready",
        start_time=start,
        finish_time=finish,
        checkpoint_type="stopping" if report.event is Event.SAVED else "scheduled",
        events=taken.get("events", [{"event": "Checkpointing", "start_time": start, "finish_time": finish}]),
        operators=taken.get("operators"),
    )
    history.drop_checkpoints(session, report.job_id, taken["epoch"] - _KEPT_CHECKPOINTS, taken["epoch"])
