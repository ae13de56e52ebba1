"""What a step of a job writes: the facts, and a line in the job's log."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from .database import history
from .database.opened import now
from .database.pipelines import Whole
from .states import Action, Event, State, Step
from .task import Report
from .wishes import settings as settings_of


def facts_of(whole: Whole, step: Step, report: Report | None, restarts: int) -> dict[str, Any]:
    """restarts: how often in a row the job has been started again so far."""
    job, status = whole.job, whole.status
    facts: dict[str, Any] = {"state": str(step.state)}
    if step.action is Action.START:
        facts |= {
            "generation": status.generation + 1,
            "restart_nonce": job.restart_nonce,
            "history": job.history,
            "epoch": status.epoch if job.history == status.history else 0,
            "settings": settings_of(job),
        }
    if step.state is State.COMPILING and State(status.state).is_terminal:
        facts |= {"restarts": 0, "failure_message": None, "failure_domain": None}
    if step.state is State.RUNNING:
        is_new = status.start_time is None or status.finish_time is not None
        facts |= {"start_time": now() if is_new else status.start_time, "finish_time": None}
        facts["restored"] = status.restart_nonce
        facts["tasks"] = report.tasks if report is not None else status.tasks
    if step.state is State.RECOVERING:
        facts["restarts"] = restarts + 1
    if step.state is State.FAILING and report is not None:
        facts |= {"failure_message": history.storable(report.message), "failure_domain": report.domain}
    if step.state.is_terminal:
        facts["finish_time"] = max(now(), status.start_time or 0)  # the clock may have been set back
    return facts


def log(session: Session, whole: Whole, event: Event, step: Step, report: Report | None) -> None:
    """Errors, and when a job starts or ends. whole: before the step."""
    job_id, generation = whole.job.id, whole.status.generation
    if report is not None and report.message and step.state in (State.RECOVERING, State.FAILING):
        domain = report.domain
        history.log(session, job_id, generation, "error", report.message, report.details, error_domain=domain)
    elif event is Event.LATE:
        text = f"{whole.status.state} takes too long: {step.state}"
        history.log(session, job_id, generation, "warn", text, error_domain="internal")
    elif step.state is State.RUNNING or step.state.is_terminal:
        history.log(session, job_id, generation, "info", str(step.state))
