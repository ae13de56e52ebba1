"""What a wish means for a job in its state: the event that the controller acts on."""

from __future__ import annotations

from typing import Any

from .database.models import JobRow, JobStatus
from .database.sealing import opened
from .states import Event, State

_STOPS = {
    "checkpoint": Event.STOP_CHECKPOINT,
    "graceful": Event.STOP_GRACEFUL,
    "immediate": Event.STOP_IMMEDIATE,
    "force": Event.STOP_FORCE,
}


def settings(job: JobRow) -> dict[str, Any]:
    """What a running job has taken from its wish; another value needs a new generation."""
    return {
        "parallelism": job.parallelism,
        "checkpoint_interval_micros": job.checkpoint_interval_micros,
        "env_vars": opened(job.env_vars),
    }


def to_restore(job: JobRow, status: JobStatus) -> dict[str, Any] | None:
    """What its next generation goes back to first: see `JobRow.restore`. None: nothing, or a generation has done it.
    Positions stay until the job has a checkpoint."""
    restore = job.restore
    return restore if restore is not None and ("positions" in restore or restore["nonce"] > status.restored) else None


def is_forced(job: JobRow, status: JobStatus) -> bool:
    """Whether a restart is asked for that takes no checkpoint."""
    return job.restart_nonce != status.restart_nonce and job.restart_mode == "force"


def wanted(job: JobRow, status: JobStatus) -> Event | None:
    """None: it is as it should be."""
    if job.stop != "none":
        return _STOPS[job.stop]
    if job.restart_nonce != status.restart_nonce:
        return Event.RESTART_FORCE if is_forced(job, status) else Event.RESTART
    if status.state == State.RUNNING:
        wish = settings(job)
        changed = {name for name, value in wish.items() if status.settings.get(name) != value}
        if changed == {"parallelism"}:
            return Event.RESCALE
        return Event.RESTART if changed else None
    if status.state == State.STOPPED and job.ttl_micros is not None:
        return None  # a preview runs once
    return Event.RUN
