"""Jobs: what becomes of pipelines."""

from __future__ import annotations

from typing import Annotated

import fastapi
from sqlalchemy.orm import Session

from ..database import history
from ..database import pipelines as rows
from ..database.errors import NotFound
from ..database.pipelines import Whole
from .failures import Refusal
from .pages import After, Labels, Limit, States, chosen, most
from .parts import ThePart
from .shapes.base import Listed, Page
from .shapes.jobs import Job, JobLogMessage, Level
from .told import job_of, log_of

router = fastapi.APIRouter(tags=["jobs"])
_LEVELS: tuple[Level, ...] = ("error", "warn", "info")


def job_at(session: Session, id: str, job_id: str) -> Whole:
    """The job of a pipeline. Raises NotFound."""
    whole = rows.get(session, id)
    if whole.job.id != job_id:
        raise NotFound("Job not found")
    return whole


@router.get("/jobs")
def every_job(parts: ThePart, labels: Labels = None, states: States = None) -> Listed[Job]:
    """Those of all pipelines, the newest first, without previews."""
    asked = chosen(labels, states)
    with parts.database.read() as session:
        return Listed(
            data=[job_of(pipeline.id, job, status) for pipeline, job, status in rows.all_listed(session, asked)]
        )


@router.get("/pipelines/{id}/jobs")
def of_pipeline(parts: ThePart, id: str) -> Listed[Job]:
    """There is one."""
    with parts.database.read() as session:
        _, job, status = rows.get(session, id)
        return Listed(data=[job_of(id, job, status)])


@router.get("/pipelines/{id}/jobs/{job_id}/errors")
def errors(
    parts: ThePart,
    id: str,
    job_id: str,
    limit: Limit = 10,
    starting_after: After = None,
    level: Annotated[Level, fastapi.Query(description="This level and worse ones.")] = "error",
) -> Page[JobLogMessage]:
    """What went wrong, the newest first; with level=warn or info also what users should know."""
    with parts.database.read() as session:
        job = job_at(session, id, job_id).job
        levels = _LEVELS[: _LEVELS.index(level) + 1]
        try:
            found = history.logged(session, job.id, most(limit), starting_after, levels)
        except NotFound as error:
            raise Refusal(400, str(error)) from None
        return Page(data=[log_of(row) for row in found.rows], has_more=found.has_more)
