"""What happened to jobs: checkpoints, log, numbers, output."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, insert, or_, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from .errors import NotFound
from .ids import new_id
from .models import Checkpoint, Job, JobLog, JobNumbers, JobOutput, JobStatus, Pipeline
from .opened import now
from .paging import Page, page
from .pipelines import TERMINAL

_LOGGED_KEPT = 1000  # entries of each job
_NUMBERS_KEPT = 300_000_000  # microseconds
_OUTPUT_KEPT = 1000  # batches of each job
_OUTPUT_AT_ONCE = 20  # batches; each may have a megabyte


def log(
    session: Session,
    job_id: str,
    generation: int,
    level: str,
    message: str,
    details: str = "",
    *,
    operator_id: str | None = None,
    task_index: int | None = None,
    error_domain: str | None = None,
) -> None:
    """Adds an entry, and forgets the oldest ones."""
    session.add(
        JobLog(
            id=new_id("jlm"),
            job_id=job_id,
            created_at=now(),
            generation=generation,
            level=level,
            message=storable(message),
            details=storable(details),
            operator_id=operator_id,
            task_index=task_index,
            error_domain=error_domain,
        )
    )
    _keep_latest(session, _LOGGED_KEPT, JobLog.job_id == job_id)


def storable(text: str) -> str:
    """Without what a database refuses: zeros, and halves of characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def logged(
    session: Session,
    job_id: str,
    limit: int,
    starting_after: str | None = None,
    levels: Sequence[str] = ("info", "warn", "error"),
) -> Page[JobLog]:
    """Newest first."""
    found = select(JobLog).where(JobLog.job_id == job_id, JobLog.level.in_(levels))
    rows = page(session, found, JobLog.serial, JobLog.id, limit, starting_after)
    return Page([row[0] for row in rows.rows], rows.has_more)


def drop_logged(session: Session, job_id: str, message: str, keep: int) -> None:
    """Forgets what has this message, but for the latest."""
    _keep_latest(session, keep, JobLog.job_id == job_id, JobLog.message == message)


def _keep_latest(session: Session, keep: int, *those: ColumnElement[bool]) -> None:
    session.flush()
    oldest = select(JobLog.serial).where(*those).order_by(JobLog.serial.desc()).offset(keep - 1).limit(1)
    session.execute(delete(JobLog).where(*those, JobLog.serial < oldest.scalar_subquery()))


def checkpoint(
    session: Session,
    job_id: str,
    epoch: int,
    *,
    generation: int,
    history: int = 0,
    state: str,
    start_time: int,
    finish_time: int | None = None,
    checkpoint_type: str = "scheduled",
    events: Sequence[Mapping[str, Any]] = (),
    operators: Mapping[str, Any] | None = None,
) -> None:
    """Adds a checkpoint, or replaces what is known of it."""
    session.merge(
        Checkpoint(
            job_id=job_id,
            epoch=epoch,
            generation=generation,
            history=history,
            state=state,
            checkpoint_type=checkpoint_type,
            start_time=start_time,
            finish_time=finish_time,
            events=[dict(event) for event in events],
            operators=dict(operators or {}),
        )
    )


def checkpoints(session: Session, job_id: str) -> Sequence[Checkpoint]:
    """Those that are ready or under way, by epoch."""
    found = select(Checkpoint).where(Checkpoint.job_id == job_id, Checkpoint.state != "failed")
    return session.scalars(found.order_by(Checkpoint.epoch)).all()


def retain(session: Session, job_id: str, history: int, epochs: Collection[int]) -> None:
    """These, of this history, and no others can be gone back to."""
    is_retained = and_(Checkpoint.history == history, Checkpoint.epoch.in_(epochs))
    known = update(Checkpoint).where(Checkpoint.job_id == job_id, Checkpoint.retained != is_retained)
    session.execute(known.values(retained=is_retained).execution_options(synchronize_session=False))


def one_checkpoint(session: Session, job_id: str, epoch: int) -> Checkpoint:
    """Raises NotFound."""
    found = session.get(Checkpoint, (job_id, epoch))
    if found is None:
        raise NotFound("Checkpoint not found")
    return found


def drop_checkpoints(session: Session, job_id: str, before: int, after: int) -> None:
    """Forgets epochs before the one, unless they are retained, and after the other: those are of a history that a
    start without state ended."""
    outside = or_(and_(Checkpoint.epoch < before, Checkpoint.retained.is_(False)), Checkpoint.epoch > after)
    session.execute(delete(Checkpoint).where(Checkpoint.job_id == job_id, outside))


def count(session: Session, numbers: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds numbers of jobs of this moment, and forgets those of some minutes ago, and of a clock that went ahead."""
    if not numbers:
        return
    time = now()
    is_other = or_(JobNumbers.at < time - _NUMBERS_KEPT, JobNumbers.at >= time)
    session.execute(delete(JobNumbers).where(JobNumbers.job_id.in_(numbers), is_other))
    rows = [{"job_id": job_id, "at": time, "numbers": dict(one)} for job_id, one in numbers.items()]
    session.execute(insert(JobNumbers), rows)


def drop_numbers(session: Session, at_most: int) -> None:
    """Forgets numbers of some minutes ago, of jobs that count no more, but for the last ones of each."""
    later = aliased(JobNumbers)
    is_last = ~exists().where(later.job_id == JobNumbers.job_id, later.at > JobNumbers.at)
    key = tuple_(JobNumbers.job_id, JobNumbers.at)
    old = select(JobNumbers.job_id, JobNumbers.at).where(JobNumbers.at < now() - _NUMBERS_KEPT, ~is_last).limit(at_most)
    session.execute(delete(JobNumbers).where(key.in_(old)).execution_options(synchronize_session=False))


def numbers(session: Session, job_id: str) -> Sequence[JobNumbers]:
    """By time."""
    return session.scalars(select(JobNumbers).where(JobNumbers.job_id == job_id).order_by(JobNumbers.at)).all()


class Latest(NamedTuple):
    """Of a job: restarts in a row, and what it has last told."""

    job_id: str
    restarts: int
    numbers: Mapping[str, Any] | None
    checkpoint: Checkpoint | None


def latest(session: Session) -> list[Latest]:
    """Of the jobs that have not ended, without previews: one row of each table for a job."""
    counted, taken = aliased(JobNumbers), aliased(Checkpoint)
    at = select(func.max(counted.at)).where(counted.job_id == Job.id).scalar_subquery()
    epoch = select(func.max(taken.epoch)).where(taken.job_id == Job.id, taken.state != "failed")
    found = (
        select(Job.id, JobStatus.restarts, JobNumbers.numbers, Checkpoint)
        .join(JobStatus, JobStatus.job_id == Job.id)
        .join(Pipeline, Pipeline.id == Job.pipeline_id)
        .outerjoin(JobNumbers, and_(JobNumbers.job_id == Job.id, JobNumbers.at == at))
        .outerjoin(Checkpoint, and_(Checkpoint.job_id == Job.id, Checkpoint.epoch == epoch.scalar_subquery()))
        .where(JobStatus.state.not_in(TERMINAL), Pipeline.is_preview.is_(False))
    )
    return [Latest(*row) for row in session.execute(found)]


def put_output(
    session: Session,
    job_id: str,
    operator_id: str,
    subtask_idx: int,
    start_id: int,
    timestamps: Sequence[int],
    batch: str,
) -> None:
    """batch: a JSON array of row objects."""
    last = select(JobOutput.number).where(JobOutput.job_id == job_id).order_by(JobOutput.serial.desc())
    before = session.scalars(last.limit(1)).first()
    row = JobOutput(
        job_id=job_id,
        number=0 if before is None else before + 1,
        operator_id=storable(operator_id),
        subtask_idx=subtask_idx,
        start_id=start_id,
        timestamps=list(timestamps),
        batch=storable(batch),
    )
    session.add(row)
    session.flush()
    session.execute(delete(JobOutput).where(JobOutput.job_id == job_id, JobOutput.number <= row.number - _OUTPUT_KEPT))


def output(session: Session, job_id: str, after: int = 0) -> Sequence[JobOutput]:
    """What came after the row with that serial, in order; some of it, if there is much."""
    found = select(JobOutput).where(JobOutput.job_id == job_id, JobOutput.serial > after)
    return session.scalars(found.order_by(JobOutput.serial).limit(_OUTPUT_AT_ONCE)).all()
