"""What running jobs report, written down: checkpoints and output of workers in the database, numbers and rows of
previews in files (see `records.py`); and the facts and the log line of a step of a job.

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

from ..database import history, jobs
from ..database.database import now
from ..database.pipelines import WholeJob
from ..preview_rows import Shown
from ..records import Records
from ..reports import CheckpointReport
from ..states import Event, State
from ..task import NOTHING_RUNS, JobReport
from ..wishes import settings as settings_of
from .watched import Due

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
    checkpoints: dict[int, JobReport] = field(default_factory=dict)
    shown: deque[Shown] = field(default_factory=lambda: deque(maxlen=_KEPT_OUTPUTS))
    output: deque[JobReport] = field(default_factory=lambda: deque(maxlen=_KEPT_OUTPUTS))

    @property
    def waits(self) -> bool:
        known = self.numbers is not None or self.comes_to is not None
        return bool(known or self.checkpoints or self.shown or self.output)

    def add(self, report: JobReport) -> None:
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

    def add(self, report: JobReport) -> None:
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
        there = {job_id: waiting for job_id, waiting in self._waiting.items() if job_id in generations}
        current = {job_id: waiting for job_id, waiting in there.items() if waiting.number == generations[job_id]}
        self._current = current
        histories = jobs.histories(session, sorted(current))
        for job_id, waiting in current.items():
            for _, report in sorted(waiting.checkpoints.items()):
                assert report.checkpoint is not None
                _write_checkpoint(session, report, report.checkpoint, histories[job_id])
            if waiting.comes_to is not None:
                epoch, retained = waiting.comes_to
                jobs.came_to(session, job_id, epoch)
                history.retain(session, job_id, histories[job_id], retained)
        for job_id, waiting in there.items():
            for report in waiting.output:
                history.log(session, job_id, report.generation, "info", report.message, report.details)
            for message in {report.message for report in waiting.output}:
                history.drop_logged(session, job_id, message, _KEPT_OUTPUTS)

    def written(self) -> None:
        """What waited for the database is there. Only now is it certain that this controller leads."""
        for job_id, waiting in self._current.items():
            if waiting.numbers is not None:
                self._records.count(job_id, waiting.numbers)
            if waiting.shown:
                self._records.show(job_id, waiting.shown)
        self._current = {}
        for waiting in self._waiting.values():
            waiting.written()
        self._waiting.clear()

    def drop(self) -> None:
        """What waits cannot be written."""
        for waiting in self._waiting.values():
            waiting.drop()
        self._waiting.clear()

    def forget(self, job_id: str) -> None:
        self._latest.pop(job_id, None)
        self._records.forget(job_id)

    def clear(self) -> None:
        self._latest.clear()
        self._waiting.clear()


def _write_checkpoint(session: Session, report: JobReport, taken: CheckpointReport, history_: int) -> None:
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


_UNSAVED = (Event.LOST, Event.CUT_OFF, Event.LATE, Event.ORPHANED)


def facts_of(whole: WholeJob, due: Due, state: State, restarts: int) -> dict[str, Any]:
    """state: the new one. restarts: how often in a row the job has been started again so far."""
    job, status, report = whole.job, whole.status, due.report
    facts: dict[str, Any] = {"state": str(state)}
    if state is State.SCHEDULING:
        facts |= {
            "generation": status.generation + 1,
            "restart_nonce": job.restart_nonce,
            "history": job.history,
            "epoch": status.epoch if job.history == status.history else 0,
            "settings": settings_of(job),
        }
    if state is State.COMPILING and State(status.state).is_terminal:
        facts |= {"restarts": 0, "failure_message": None, "failure_domain": None}
    if state is State.RUNNING:
        is_new = status.start_time is None or status.finish_time is not None
        facts |= {"start_time": now() if is_new else status.start_time, "finish_time": None}
        facts["restored"] = status.restart_nonce
        facts["tasks"] = report.tasks if report is not None else status.tasks
    if due.event is Event.RESCALED and report is not None:
        facts["settings"] = {**status.settings, "parallelism": report.parallelism}
    if state is State.RECOVERING and not (report is not None and report.outage):
        facts["restarts"] = restarts + 1
    if state is State.FAILING and report is not None:
        facts |= {"failure_message": history.storable(report.message), "failure_domain": report.domain}
    if (reason := unsaved(whole, due, state)) is not None:
        facts |= {"failure_message": history.storable(reason), "failure_domain": _domain(report)}
    if state.is_terminal:
        facts["finish_time"] = max(now(), status.start_time or 0)  # the clock may have been set back
    return facts


def unsaved(whole: WholeJob, due: Due, state: State) -> str | None:
    """Why a job stops without the checkpoint that its user has asked for. None: it has it, or nobody has asked."""
    before, report = State(whole.status.state), due.report
    if due.event not in _UNSAVED or state not in (State.STOPPING, State.STOPPED):
        return None
    is_asked = before is State.CHECKPOINT_STOPPING or (before is State.STOPPING and whole.job.stop == "graceful")
    why = "its worker is gone" if report is None or not report.message else report.message
    if not is_asked or why == NOTHING_RUNS:
        return None
    return f"stopped without a last checkpoint, so it goes on from the one before: {why}"


def log(session: Session, whole: WholeJob, due: Due, state: State) -> None:
    """Errors, and when a job starts or ends. whole: before the step."""
    job_id, generation, report = whole.job.id, whole.status.generation, due.report
    details = "" if report is None else report.details
    if (reason := unsaved(whole, due, state)) is not None:
        history.log(session, job_id, generation, "error", reason, details, error_domain=_domain(report))
    if report is not None and report.message and state in (State.RECOVERING, State.FAILING):
        domain = report.domain
        history.log(session, job_id, generation, "error", report.message, details, error_domain=domain)
    elif due.event is Event.LATE:
        text = f"{whole.status.state} takes too long: {state}"
        history.log(session, job_id, generation, "warn", text, error_domain="internal")
    elif state is State.RUNNING or state.is_terminal:
        history.log(session, job_id, generation, "info", str(state))


def _domain(report: JobReport | None) -> str:
    return "internal" if report is None else report.domain
