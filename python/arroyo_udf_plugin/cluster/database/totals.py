"""What all users have together: for limits.

Guarantees: between a look at it and the end of the transaction nobody else adds to it, if he looks at it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import case, func, select, text
from sqlalchemy.orm import Session

from ..states import State
from .models import TERMINAL, Job, JobStatus, Pipeline

_LOCK = 5115_0003  # PostgreSQL's number of our advisory lock


class Totals(NamedTuple):
    """pipelines: without previews. parallelism: of jobs that run, or are to run. previews: those that run. kept: all
    previews."""

    pipelines: int
    parallelism: int
    previews: int
    kept: int


def totals(session: Session, without_job: str | None = None) -> Totals:
    """without_job: its parallelism does not count."""
    runs = JobStatus.state.not_in(TERMINAL)
    is_asked = (JobStatus.state == State.STOPPED) | (Job.restart_nonce != JobStatus.restart_nonce)
    counts = runs | ((Job.stop == "none") & is_asked & ~Pipeline.is_preview)
    counts = counts if without_job is None else counts & (Job.id != without_job)
    found = session.execute(
        select(
            func.sum(case((Pipeline.is_preview, 0), else_=1)),
            func.sum(case((counts, Job.parallelism), else_=0)),
            func.sum(case((Pipeline.is_preview & runs, 1), else_=0)),
            func.sum(case((Pipeline.is_preview, 1), else_=0)),
        )
        .join_from(Pipeline, Job, Job.pipeline_id == Pipeline.id)
        .join(JobStatus, JobStatus.job_id == Job.id)
    ).one()
    return Totals(*(int(one or 0) for one in found))


def alone(session: Session) -> None:
    """Others who ask for more wait for the end of this transaction. With SQLite, every writer does."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))


def ended_previews(session: Session, most: int) -> Sequence[tuple[str, str]]:
    """Ids of pipelines and jobs, the oldest first."""
    found = (
        select(Pipeline.id, Job.id)
        .join(Job, Job.pipeline_id == Pipeline.id)
        .join(JobStatus, JobStatus.job_id == Job.id)
        .where(Pipeline.is_preview, JobStatus.state.in_(TERMINAL))
        .order_by(Pipeline.serial)
        .limit(most)
    )
    return [(row[0], row[1]) for row in session.execute(found)]
