"""What happened to jobs: checkpoints and log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from .database import LogKept, now
from .errors import NotFound
from .models import TERMINAL, CheckpointRow, JobLog, JobRow, JobStatus, PipelineRow, new_id
from .paging import RowPage, page


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
    kept = LogKept.of(session)
    session.add(
        JobLog(
            id=new_id("jlm"),
            job_id=job_id,
            created_at=now(),
            generation=generation,
            level=level,
            message=_cut(storable(message), kept.entry_bytes),
            details=_cut(storable(details), kept.entry_bytes),
            operator_id=operator_id,
            task_index=task_index,
            error_domain=error_domain,
        )
    )
    _keep_latest(session, kept.entries, JobLog.job_id == job_id)


def _cut(text: str, most_bytes: int) -> str:
    """Its begin and its end, if it is longer: of a traceback, both are needed."""
    encoded = text.encode()
    if len(encoded) <= most_bytes:
        return text
    half = most_bytes // 2
    begin, end = encoded[:half].decode(errors="ignore"), encoded[-half:].decode(errors="ignore")
    return f"{begin}\n({len(encoded) - 2 * half:,} bytes are left out here)\n{end}"


def storable(text: str) -> str:
    """Without what a database refuses: zeros, and halves of characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def logged(
    session: Session,
    job_id: str,
    limit: int,
    starting_after: str | None = None,
    levels: Sequence[str] = ("info", "warn", "error"),
) -> RowPage[JobLog]:
    """Newest first."""
    query = select(JobLog).where(JobLog.job_id == job_id, JobLog.level.in_(levels))
    rows = page(session, query, JobLog.serial, JobLog.id, limit, starting_after)
    return RowPage([row[0] for row in rows.rows], rows.has_more)


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
        CheckpointRow(
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


def checkpoints(session: Session, job_id: str) -> Sequence[CheckpointRow]:
    """Those that are ready or under way, by epoch."""
    query = select(CheckpointRow).where(CheckpointRow.job_id == job_id, CheckpointRow.state != "failed")
    return session.scalars(query.order_by(CheckpointRow.epoch)).all()


def retain(session: Session, job_id: str, history: int, epochs: Collection[int]) -> None:
    """These, of this history, and no others can be gone back to."""
    is_retained = and_(CheckpointRow.history == history, CheckpointRow.epoch.in_(epochs))
    known = update(CheckpointRow).where(CheckpointRow.job_id == job_id, CheckpointRow.retained != is_retained)
    session.execute(known.values(retained=is_retained).execution_options(synchronize_session=False))


def one_checkpoint(session: Session, job_id: str, epoch: int) -> CheckpointRow:
    """Raises NotFound."""
    row = session.get(CheckpointRow, (job_id, epoch))
    if row is None:
        raise NotFound("Checkpoint not found")
    return row


def drop_checkpoints(session: Session, job_id: str, before: int, after: int) -> None:
    """Forgets epochs before the one, unless they are retained, and after the other: those are of a history that a
    start without state ended."""
    outside = or_(and_(CheckpointRow.epoch < before, CheckpointRow.retained.is_(False)), CheckpointRow.epoch > after)
    session.execute(delete(CheckpointRow).where(CheckpointRow.job_id == job_id, outside))


class Latest(NamedTuple):
    """Of a job: restarts in a row, and its last checkpoint."""

    job_id: str
    restarts: int
    checkpoint: CheckpointRow | None


def latest(session: Session) -> list[Latest]:
    """Of the jobs that have not ended, without previews: one row of each table for a job."""
    taken = aliased(CheckpointRow)
    epoch = select(func.max(taken.epoch)).where(taken.job_id == JobRow.id, taken.state != "failed")
    query = (
        select(JobRow.id, JobStatus.restarts, CheckpointRow)
        .join(JobStatus, JobStatus.job_id == JobRow.id)
        .join(PipelineRow, PipelineRow.id == JobRow.pipeline_id)
        .outerjoin(
            CheckpointRow, and_(CheckpointRow.job_id == JobRow.id, CheckpointRow.epoch == epoch.scalar_subquery())
        )
        .where(JobStatus.state.not_in(TERMINAL), PipelineRow.is_preview.is_(False))
    )
    return [Latest(*row) for row in session.execute(query)]
