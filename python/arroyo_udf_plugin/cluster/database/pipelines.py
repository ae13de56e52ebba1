"""Pipelines and their jobs, as users wish them: what the API reads and writes; and what all users have together, for
limits.

Each change of a wish raises its revision, so that it differs from the one that is fulfilled; the controller takes it
from there.

Guarantees: between a look at `totals` and the end of the transaction nobody else adds to them, if he looks at them,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, case, func, select, text
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session, load_only

from ..job_program import JobProgram
from ..states import State
from ..task import LOCAL
from . import places
from .database import now, tell_changes
from .errors import Ended, InUse, NotFound, once
from .models import (
    TERMINAL,
    Artifact,
    ArtifactUse,
    ConnectionTableUse,
    JobRow,
    JobStatus,
    Leftover,
    PipelineRow,
    new_id,
)
from .paging import RowPage, page
from .places import state_location
from .sealing import opened


class WholeJob(NamedTuple):
    """A pipeline with the wish and the fact of its job."""

    pipeline: PipelineRow
    job: JobRow
    status: JobStatus

    @property
    def program(self) -> JobProgram:
        """Raises InvalidState, see `JobProgram.of_json`."""
        return JobProgram.of_json(self.pipeline.program)

    @property
    def opened_program(self) -> JobProgram:
        """Raises InvalidState, too, if no key opens its secrets."""
        return JobProgram.of_json(opened(self.pipeline.program))


def create(
    session: Session,
    *,
    name: str,
    query: str,
    program: JobProgram,
    graph: Mapping[str, Any],
    checkpoint_interval_micros: int,
    parallelism: int = 1,
    udfs: Sequence[Mapping[str, Any]] = (),
    id: str | None = None,
    tags: Mapping[str, str] | None = None,
    state_url: str | None = None,
    env_vars: Mapping[str, str] | None = None,
    scheduler_config: Mapping[str, Any] | None = None,
    is_preview: bool = False,
    ttl_micros: int | None = None,
    tables: Sequence[str] = (),
    libraries: Collection[str] = (),
    checkpoints: str | None = None,
    scheduler: str = LOCAL,
    slices: int | None = None,
) -> WholeJob:
    """Adds a pipeline with its job, which is to run. tables: ids of the connection tables it uses. libraries: hashes of
    those it has (see `places.py`). checkpoints: where jobs have their state, if `state_url` does not say it; a
    preview has none. scheduler, slices: see `JobRow`. Raises Taken, InvalidArgument for a place that is none."""
    time = now()
    pipeline = PipelineRow(
        id=id or new_id("pl"),
        name=name,
        query=query,
        udfs=[dict(udf) for udf in udfs],
        graph=dict(graph),
        program=program.as_json(),
        tags=dict(tags or {}),
        state_url=state_url,
        is_preview=is_preview,
        created_at=time,
    )
    job_id = new_id("job")
    state = None if is_preview else state_url or checkpoints or None
    job = JobRow(
        id=job_id,
        pipeline_id=pipeline.id,
        place=None if state is None else str(state_location(state, env_vars or {}).child(job_id)),
        stop="none",
        parallelism=parallelism,
        checkpoint_interval_micros=checkpoint_interval_micros,
        ttl_micros=ttl_micros,
        env_vars=dict(env_vars or {}),
        scheduler_config=dict(scheduler_config or {}),
        scheduler=scheduler,
        slices=slices,
        created_at=time,
        updated_at=time,
    )
    status = JobStatus(job_id=job_id, state="Created", state_since=time, settings={})
    with once(f"there is a pipeline {pipeline.id} already"):
        for row in (pipeline, job, status):
            session.add(row)
            session.flush()
    tell_changes(session)
    _use(session, pipeline.id, tables)
    places.use(session, pipeline.id, libraries)
    return WholeJob(pipeline, job, status)


def get(session: Session, pipeline_id: str) -> WholeJob:
    """Raises NotFound."""
    row = session.execute(_whole().where(PipelineRow.id == pipeline_id)).first()
    if row is None:
        raise NotFound("Pipeline not found")
    return WholeJob(*row)


def of_job(session: Session, job_id: str, *, for_update: bool = False) -> WholeJob:
    """for_update: nobody else changes its wish, or deletes it, in this transaction. Raises NotFound."""
    query = _whole().where(JobRow.id == job_id)
    row = session.execute(query.with_for_update(of=JobRow) if for_update else query).first()
    if row is None:
        raise NotFound("Job not found")
    return WholeJob(*row)


def of_jobs(session: Session, job_ids: Sequence[str]) -> list[WholeJob]:
    """Those that there are."""
    return [WholeJob(*row) for row in session.execute(_whole().where(JobRow.id.in_(job_ids)))]


class Chosen(NamedTuple):
    """Pipelines that have all of these tags, whose jobs are in one of these states, and whose name has this text.
    Empty: whatever they have."""

    tags: Mapping[str, str] = {}
    states: Sequence[str] = ()
    named: str = ""

    def of(self, query: Select[Any]) -> Select[Any]:
        for name, value in self.tags.items():
            query = query.where(PipelineRow.tags[name].as_string() == value)
        if self.named:
            query = query.where(PipelineRow.name.icontains(self.named, autoescape=True))
        return query.where(JobStatus.state.in_(self.states)) if self.states else query


EVERY = Chosen()


def listed(
    session: Session, limit: int, starting_after: str | None = None, chosen: Chosen = EVERY
) -> RowPage[WholeJob]:
    """Without previews."""
    rows = page(session, chosen.of(_listed()), PipelineRow.serial, PipelineRow.id, limit, starting_after)
    return RowPage([WholeJob(*row) for row in rows.rows], rows.has_more)


def all_listed(session: Session, chosen: Chosen = EVERY) -> list[WholeJob]:
    """Newest first, without previews. Of pipelines, only ids and graphs are read: there may be thousands."""
    few = chosen.of(_listed()).options(load_only(PipelineRow.id, PipelineRow.graph, raiseload=True))
    return [WholeJob(*row) for row in session.execute(few.order_by(PipelineRow.serial.desc()))]


def by_state(session: Session, chosen: Chosen = EVERY) -> dict[str, int]:
    """How many are listed, in each state that there is."""
    counting: Any = select(JobStatus.state, func.count()).select_from(PipelineRow)
    query: Select[Any] = counting.join(JobRow, JobRow.pipeline_id == PipelineRow.id)
    query = query.join(JobStatus, JobStatus.job_id == JobRow.id)
    counted = session.execute(chosen.of(query.where(PipelineRow.is_preview.is_(False))).group_by(JobStatus.state))
    return {row[0]: row[1] for row in counted}


def using(session: Session, name: str) -> list[tuple[WholeJob, str]]:
    """The pipelines that have a library of a function of this name, by name, each with its hash."""
    query = _listed().add_columns(Artifact.sha256)
    query = query.join(ArtifactUse, ArtifactUse.pipeline_id == PipelineRow.id)
    query = query.join(Artifact, Artifact.sha256 == ArtifactUse.artifact).where(Artifact.name == name)
    return [(WholeJob(*row[:3]), row[3]) for row in session.execute(query.order_by(PipelineRow.name))]


def change(session: Session, pipeline_id: str, changes: Mapping[str, Any]) -> WholeJob:
    """changes: columns of `JobRow` by name: stop, parallelism, checkpoint_interval_micros, env_vars, scheduler_config.

    A wish to run starts a failed job again. Raises NotFound.
    """
    whole = _locked(session, pipeline_id)
    if changes.get("stop") == "none" and whole.status.state == State.FAILED:
        whole.job.restart_nonce += 1
    for name, value in changes.items():
        setattr(whole.job, name, value)
    _mark(session, whole.job)
    session.flush()
    return whole


def restart(
    session: Session,
    pipeline_id: str,
    *,
    force: bool = False,
    ignore_state: bool = False,
    restore: Mapping[str, Any] | None = None,
) -> WholeJob:
    """Asks for a new start, with the state of the last checkpoint or without; it also is a wish to run. restore: what
    to go back to first, or where to begin, see `JobRow`; a last checkpoint before that would be given up, and push an
    old one out, so there is none.

    Raises NotFound, Ended for a job that has nothing left to do.
    """
    whole = _locked(session, pipeline_id)
    job = whole.job
    if whole.status.state == State.FINISHED:
        raise Ended("its job has finished, and all rows are in its sinks: to run the query again, create a pipeline")
    job.stop = "none"
    job.restart_nonce += 1
    job.restart_mode = "force" if force or restore is not None else "safe"
    job.history += ignore_state
    begins = None if ignore_state or "positions" not in (job.restore or {}) else job.restore
    job.restore = begins if restore is None else {**restore, "nonce": job.restart_nonce}
    _mark(session, job)
    session.flush()
    return whole


def move(session: Session, pipeline_id: str, scheduler: str, slices: int | None) -> None:
    """Its next generation is another scheduler's. Raises NotFound, InUse for a job that has not ended."""
    whole = _locked(session, pipeline_id)
    if whole.status.state not in TERMINAL:
        raise InUse(f"its job is {whole.status.state}: stop it, and move it when it has stopped")
    whole.job.scheduler, whole.job.slices = scheduler, slices
    session.flush()


def replan(
    session: Session,
    pipeline_id: str,
    *,
    query: str | None,
    program: JobProgram,
    graph: Mapping[str, Any],
    tables: Sequence[str],
    libraries: Collection[str],
) -> None:
    """What the next generation of its job runs. query: None: the same. tables: ids of the connection tables that it
    uses. libraries: hashes.

    Raises NotFound.
    """
    pipeline = _locked(session, pipeline_id).pipeline
    pipeline.program, pipeline.graph = program.as_json(), dict(graph)
    pipeline.query = pipeline.query if query is None else query
    session.execute(delete_rows(ConnectionTableUse).where(ConnectionTableUse.pipeline_id == pipeline_id))
    _use(session, pipeline_id, tables)
    places.use(session, pipeline_id, libraries)
    session.flush()


def _use(session: Session, pipeline_id: str, tables: Sequence[str]) -> None:
    session.add_all(ConnectionTableUse(table_id=table, pipeline_id=pipeline_id) for table in dict.fromkeys(tables))


def delete(session: Session, pipeline_id: str) -> None:
    """Its state and its libraries are removed later, by the controller.

    Raises NotFound, InUse for a job that has not ended.
    """
    whole = _locked(session, pipeline_id)
    if whole.status.state not in TERMINAL:
        raise InUse(f"its job is {whole.status.state}: stop it, and delete the pipeline when it has stopped")
    libraries = places.used_by(session, pipeline_id)
    if whole.job.place is not None:
        session.add(Leftover(place=whole.job.place))
    session.delete(whole.pipeline)
    tell_changes(session)
    session.flush()
    places.release(session, libraries)


def _mark(session: Session, job: JobRow) -> None:
    tell_changes(session)
    job.revision += 1
    job.updated_at = now()


def _locked(session: Session, pipeline_id: str) -> WholeJob:
    """Nobody else changes it in this transaction."""
    if session.execute(select(JobRow.id).where(JobRow.pipeline_id == pipeline_id).with_for_update()).first() is None:
        raise NotFound("Pipeline not found")
    return get(session, pipeline_id)


def _whole() -> Select[Any]:
    joined: Any = select(PipelineRow, JobRow, JobStatus)
    selected: Select[Any] = joined.join(JobRow, JobRow.pipeline_id == PipelineRow.id).join(
        JobStatus, JobStatus.job_id == JobRow.id
    )
    return selected


def _listed() -> Select[Any]:
    return _whole().where(PipelineRow.is_preview.is_(False))


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
    is_asked = (JobStatus.state == State.STOPPED) | (JobRow.restart_nonce != JobStatus.restart_nonce)
    counts = runs | ((JobRow.stop == "none") & is_asked & ~PipelineRow.is_preview)
    counts = counts if without_job is None else counts & (JobRow.id != without_job)
    sums = session.execute(
        select(
            func.sum(case((PipelineRow.is_preview, 0), else_=1)),
            func.sum(case((counts, JobRow.parallelism), else_=0)),
            func.sum(case((PipelineRow.is_preview & runs, 1), else_=0)),
            func.sum(case((PipelineRow.is_preview, 1), else_=0)),
        )
        .join_from(PipelineRow, JobRow, JobRow.pipeline_id == PipelineRow.id)
        .join(JobStatus, JobStatus.job_id == JobRow.id)
    ).one()
    return Totals(*(int(number or 0) for number in sums))


def alone(session: Session) -> None:
    """Others who ask for more wait for the end of this transaction. With SQLite, every writer does."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))


def ended_previews(session: Session, most: int) -> Sequence[tuple[str, str]]:
    """Ids of pipelines and jobs, the oldest first."""
    query = (
        select(PipelineRow.id, JobRow.id)
        .join(JobRow, JobRow.pipeline_id == PipelineRow.id)
        .join(JobStatus, JobStatus.job_id == JobRow.id)
        .where(PipelineRow.is_preview, JobStatus.state.in_(TERMINAL))
        .order_by(PipelineRow.serial)
        .limit(most)
    )
    return [(row[0], row[1]) for row in session.execute(query)]
