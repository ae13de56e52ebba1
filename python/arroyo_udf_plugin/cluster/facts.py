"""What a step of a job writes: the facts, and a line in the job's log."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from .database import history
from .database.opened import now
from .database.pipelines import Whole
from .states import Event, State
from .task import NOTHING_RUNS, Report
from .watched import Due
from .wishes import settings as settings_of

_UNSAVED = (Event.LOST, Event.CUT_OFF, Event.LATE, Event.ORPHANED)


def facts_of(whole: Whole, due: Due, state: State, restarts: int) -> dict[str, Any]:
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
    if state is State.RECOVERING and not (report is not None and report.outage):
        facts["restarts"] = restarts + 1
    if state is State.FAILING and report is not None:
        facts |= {"failure_message": history.storable(report.message), "failure_domain": report.domain}
    if (reason := unsaved(whole, due, state)) is not None:
        facts |= {"failure_message": history.storable(reason), "failure_domain": _domain(report)}
    if state.is_terminal:
        facts["finish_time"] = max(now(), status.start_time or 0)  # the clock may have been set back
    return facts


def unsaved(whole: Whole, due: Due, state: State) -> str | None:
    """Why a job stops without the checkpoint that its user has asked for. None: it has it, or nobody has asked."""
    before, report = State(whole.status.state), due.report
    if due.event not in _UNSAVED or state not in (State.STOPPING, State.STOPPED):
        return None
    is_asked = before is State.CHECKPOINT_STOPPING or (before is State.STOPPING and whole.job.stop == "graceful")
    why = "its worker is gone" if report is None or not report.message else report.message
    if not is_asked or why == NOTHING_RUNS:
        return None
    return f"stopped without a last checkpoint, so it goes on from the one before: {why}"


def log(session: Session, whole: Whole, due: Due, state: State) -> None:
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


def _domain(report: Report | None) -> str:
    return "internal" if report is None else report.domain
