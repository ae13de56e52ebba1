"""Pipelines: what a user wants to run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import fastapi
from fastapi.responses import Response
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from ...engine.execution.epoch_files import EpochFiles
from ...engine.execution.manifest import difference
from ...engine.execution.store import open_store
from ...errors import InvalidArgument, InvalidState
from ..database import history, places
from ..database import pipelines as rows
from ..database.errors import Ended, NameTaken, NotFound
from ..database.models import id_of
from ..database.pipelines import WholeJob
from ..database.sealing import opened
from ..functions.allowed_paths import outside_of
from ..job_program import JobProgram
from ..states import State
from .dependencies import After, ApiParts, Labels, Limit, States, TheCaller, ThePart, checked, chosen, most
from .failures import Refusal
from .placing import Placement, check_change, placement, placement_of, taken_along
from .queries import PlannedQuery, plan_query
from .responses import HIDDEN, NOT_TOLD, pipeline_of
from .shapes import Page
from .shapes.pipelines import (
    LONGEST_INTERVAL,
    ActionPost,
    ActionRefused,
    ActionResult,
    Pipeline,
    PipelineGraph,
    PipelinePatch,
    PipelinePost,
    PipelineRestart,
    PreviewPost,
    QueryValidationResult,
    Udf,
    ValidateQueryPost,
)
from .transport import JsonRoute
from .udfs import with_stored

router = fastapi.APIRouter(tags=["pipelines"], route_class=JsonRoute)
_PATIENCE = 5.0  # seconds for an object store that does not answer

Key = Annotated[
    str | None,
    fastapi.Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A text of the client's, new for each pipeline: a request that is sent again makes no second one.",
    ),
]
OwnId = Annotated[str, fastapi.Path(min_length=1, max_length=200)]


@router.post("/pipelines/validate_query")
async def validate_query(parts: ThePart, asked: ValidateQueryPost) -> QueryValidationResult:
    """What a query becomes, or what is wrong with it, which is no error of this request."""
    query = await plan_query(
        parts,
        asked.query,
        asked.udfs,
        parallelism=asked.parallelism,
        environment=asked.env_vars,
        state_url=asked.state_url,
        slices=placement(parts, asked.scheduler, asked.parallelism).slices,
    )
    graph = query.planned.graph
    return QueryValidationResult(
        graph=None if graph is None else PipelineGraph.model_validate(graph), errors=query.diagnostics
    )


@router.post("/pipelines")
async def create(parts: ThePart, caller: TheCaller, asked: PipelinePost, key: Key = None) -> Pipeline:
    """Plans a query, and wishes that it runs."""
    if key is None:
        return await _created(parts, asked, None)
    return await _once(parts, id_of("pl", caller.name, key), asked, partial(_created, parts, asked))


async def _once(
    parts: ApiParts, id: str, asked: PipelinePost, create: Callable[[str], Awaitable[Pipeline]]
) -> Pipeline:
    """Makes a pipeline with this id, or tells the one that an earlier request of the same key has made."""
    made = await run_in_threadpool(_made, parts, id, asked)
    if made is not None:
        return made
    try:
        return await create(id)
    except NameTaken:  # by a request of the same key, at the same moment
        made = await run_in_threadpool(_made, parts, id, asked)
        if made is None:
            raise
        return made


def _made(parts: ApiParts, id: str, asked: PipelinePost) -> Pipeline | None:
    """Raises Refusal if another request had the same key."""
    try:
        whole = _read(parts, id)
    except NotFound:
        return None
    row = whole.pipeline
    same = row.query == asked.query and row.udfs == [udf.model_dump() for udf in asked.udfs or ()]
    if not same or (not row.is_preview and (row.name, row.tags) != (asked.name, asked.tags or {})):
        raise Refusal(409, "this Idempotency-Key was used for another request: take a new one")
    return pipeline_of(whole)


@router.put("/pipelines/{id}")
async def create_as(parts: ThePart, id: OwnId, asked: PipelinePost) -> Pipeline:
    """The same, with an id of the caller's. It never replaces a pipeline."""
    return await _created(parts, asked, id)


async def _created(parts: ApiParts, asked: PipelinePost, id: str | None) -> Pipeline:
    _with_hidden(asked.env_vars or {}, {})
    where = placement(parts, asked.scheduler, asked.parallelism)
    query = await plan_query(
        parts,
        asked.query,
        asked.udfs,
        _safe(asked.name),
        asked.parallelism,
        environment=asked.env_vars,
        state_url=asked.state_url,
        slices=where.slices,
    )
    _check_place(parts, asked)
    where.check(query.program, asked.env_vars)
    every = asked.checkpoint_interval_micros or query.checkpoint_interval or parts.checkpoint_interval
    return await _stored(
        parts,
        asked,
        query,
        id=id,
        name=asked.name,
        parallelism=asked.parallelism,
        checkpoint_interval_micros=every,
        tags=asked.tags,
        state_url=asked.state_url,
        checkpoints=parts.checkpoints,
        env_vars=asked.env_vars,
        scheduler_config=asked.scheduler_config,
        scheduler=where.scheduler,
        slices=where.slices,
        tables=query.tables,
    )


def _check_place(parts: ApiParts, asked: PipelinePost) -> None:
    """Raises Refusal for a place of the state that is none, or is outside of the folders that may be used."""
    if asked.state_url is None:
        return
    try:
        where = places.state_location(asked.state_url, asked.env_vars or {})
    except InvalidArgument as error:
        raise Refusal(400, f"state_url: {error}") from None
    if parts.roots is not None and not where.is_below([Path(root) for root in parts.roots]):
        raise Refusal(400, f"state_url: {where} is outside of the folders that pipelines may use")


@router.post("/pipelines/preview")
async def preview(parts: ThePart, caller: TheCaller, asked: PreviewPost, key: Key = None) -> Pipeline:
    """Runs a query for a minute; what comes out is in the output stream of its job."""
    if key is None:
        return await _previewed(parts, asked, None)
    return await _once(parts, id_of("pl", caller.name, "preview", key), asked, partial(_previewed, parts, asked))


async def _previewed(parts: ApiParts, asked: PreviewPost, id: str | None) -> Pipeline:
    name = f"preview_{time.time_ns() // 1_000_000}"
    sinks = "both" if asked.enable_sinks else "preview"
    _with_hidden(asked.env_vars or {}, {})
    query = await plan_query(parts, asked.query, asked.udfs, name, sinks=sinks, environment=asked.env_vars)
    return await _stored(
        parts,
        asked,
        query,
        id=id,
        name=name,
        checkpoint_interval_micros=LONGEST_INTERVAL,
        env_vars=asked.env_vars,
        is_preview=True,
        ttl_micros=parts.preview_ttl,
    )


async def _stored(parts: ApiParts, asked: PipelinePost, query: PlannedQuery, **own: Any) -> Pipeline:
    """The pipeline that was planned, with its job, which is to run. own: the rest of what `rows.create` takes."""
    program = query.program
    gone: list[str] = []

    def write(session: Session, libraries: Mapping[str, str]) -> Pipeline:
        gone[:] = parts.quotas.check_new(session, own.get("parallelism", 1), own.get("is_preview", False))
        whole = rows.create(
            session,
            query=asked.query,
            udfs=[udf.model_dump() for udf in asked.udfs or ()],
            program=program.moved(libraries),
            graph=query.planned.graph or {},
            libraries=program.artifacts.values(),
            **own,
        )
        for warning in query.planned.warnings:
            history.log(session, whole.job.id, whole.status.generation, "warn", warning)
        return pipeline_of(whole)

    stored = await with_stored(parts, query.used, write)
    for job_id in gone:
        parts.records.remove(job_id)
    parts.wake()
    return stored


@router.get("/pipelines")
def listed(
    parts: ThePart, limit: Limit = 10, starting_after: After = None, labels: Labels = None, states: States = None
) -> Page[Pipeline]:
    """The newest first, without previews."""
    asked = chosen(labels, states)
    with parts.database.read() as session:
        try:
            page = rows.listed(session, most(limit), starting_after, asked)
        except NotFound as error:
            raise Refusal(400, str(error)) from None
        return Page(data=[pipeline_of(whole) for whole in page.rows], has_more=page.has_more)


@router.get("/pipelines/{id}")
def get(parts: ThePart, id: str) -> Pipeline:
    """Previews, too."""
    with parts.database.read() as session:
        return pipeline_of(rows.get(session, id))


@router.patch("/pipelines/{id}")
def patch(parts: ThePart, id: str, asked: PipelinePatch) -> Pipeline:
    """Writes what is wished; the controller acts."""
    changes = {name: getattr(asked, name) for name in asked.model_fields_set if getattr(asked, name) is not None}
    with parts.database.begin() as session:
        whole = rows.get(session, id)
        if "tags" in changes:
            whole.pipeline.tags = changes.pop("tags")
            session.flush()
        if changes:
            if "env_vars" in changes:
                changes["env_vars"] = _with_hidden(changes["env_vars"], whole.job.env_vars)
            _check_change(parts, whole, changes)
            parts.quotas.check_change(session, whole, changes)
            rows.change(session, id, changes)
        pipeline = pipeline_of(rows.get(session, id))
    parts.wake()
    return pipeline


def _with_hidden(asked: Mapping[str, str], now: Mapping[str, Any]) -> dict[str, Any]:
    """Variables as they are asked for; those that a client knows as hidden only stay as they are. Raises Refusal."""
    for name, value in asked.items():
        if value == HIDDEN and name not in now:
            raise Refusal(400, f"env_vars.{name}: {NOT_TOLD}")
    return {name: now[name] if value == HIDDEN else value for name, value in asked.items()}


def _readable(variables: Mapping[str, Any]) -> Mapping[str, str]:
    """Raises Refusal if a secret cannot be read."""
    try:
        return opened(variables)
    except InvalidState as error:
        raise Refusal(409, f"env_vars.{error}") from None


def _opened(whole: WholeJob) -> JobProgram:
    """Raises Refusal if a secret cannot be read."""
    try:
        return whole.opened_program
    except InvalidState as error:
        raise Refusal(409, str(error)) from None


def _check_change(parts: ApiParts, whole: WholeJob, changes: Mapping[str, Any]) -> None:
    """Raises Refusal for what would never happen, and for files that may not be used."""
    if parts.roots is not None and "env_vars" in changes:
        program = _opened(whole)
        values = {**program.variables, **_readable(changes["env_vars"])}
        if (why := outside_of(program.pipeline, parts.roots, values)) is not None:
            raise Refusal(400, f"env_vars: {why}")
    check_change(whole, changes)
    if whole.pipeline.is_preview and set(changes) - {"stop"}:
        raise Refusal(400, "a preview can only be stopped: create a pipeline of its query")


@router.post("/pipelines/actions")
def act(parts: ThePart, asked: ActionPost) -> ActionResult:
    """Stops, starts or restarts all pipelines that fit, each for itself."""
    if not asked.labels and not asked.states:
        raise Refusal(400, "say which pipelines are meant: by labels, states, or both")
    if asked.how is not None and (asked.action != "stop" or asked.how == "none"):
        raise Refusal(400, "how: it says how to stop: checkpoint, graceful, immediate or force")
    which = checked(asked.labels or {}, asked.states or ())
    with parts.database.read() as session:
        ids = [whole.pipeline.id for whole in rows.all_listed(session, which)]
    result = ActionResult(done=[], refused=[])
    for id in ids:
        try:
            with parts.database.begin() as session:
                _act(parts, session, id, asked)
            result.done.append(id)
        except (Refusal, NotFound, Ended) as refused:
            result.refused.append(ActionRefused(id=id, error=str(refused)))
    parts.wake()
    return result


def _act(parts: ApiParts, session: Session, id: str, asked: ActionPost) -> None:
    """Raises Refusal, NotFound, Ended."""
    if asked.action == "stop":
        rows.change(session, id, {"stop": asked.how or "checkpoint"})
        return
    whole = rows.get(session, id)
    parts.quotas.check_change(session, whole, {"stop": "none"})
    if asked.action == "start":
        if whole.status.state == State.FINISHED:
            raise Refusal(409, "its job has finished: to run the query again, create a pipeline")
        rows.change(session, id, {"stop": "none"})
    else:
        rows.restart(session, id, force=bool(asked.force), ignore_state=bool(asked.ignore_state))


@router.post("/pipelines/{id}/restart")
async def restart(parts: ThePart, id: str, asked: PipelineRestart) -> Pipeline:
    """Starts the job anew, from its last checkpoint or without state, also if it has stopped or failed."""
    to = await run_in_threadpool(_target, parts, id, asked)
    query = await _planned_anew(parts, id, asked, to) if asked.replans else None

    def write(session: Session, libraries: Mapping[str, str]) -> Pipeline:
        whole = rows.get(session, id)
        if whole.pipeline.is_preview:
            raise Refusal(400, "a preview is not restarted: make a new one")
        parts.quotas.check_change(session, whole, {"stop": "none"})
        if query is not None:
            rows.replan(
                session,
                id,
                query=asked.query,
                program=query.program.moved(libraries),
                graph=query.planned.graph or {},
                tables=query.tables,
                libraries=query.program.artifacts.values(),
            )
        moves = to != placement_of(whole)
        restore = taken_along(whole, asked.discards) if moves else None
        if moves:
            rows.move(session, id, to.scheduler, to.slices)
        whole = rows.restart(
            session, id, force=bool(asked.force), ignore_state=asked.discards or moves, restore=restore
        )
        return pipeline_of(whole)

    pipeline = await with_stored(parts, () if query is None else query.used, write)
    parts.wake()
    return pipeline


def _target(parts: ApiParts, id: str, asked: PipelineRestart) -> Placement:
    """Where it is to run from now on."""
    whole = _read(parts, id)
    now = placement_of(whole)
    return now if asked.scheduler in (None, now.scheduler) else placement(parts, asked.scheduler, whole.job.parallelism)


async def _planned_anew(parts: ApiParts, id: str, asked: PipelineRestart, to: Placement) -> PlannedQuery:
    """A pipeline as it would be created now. Raises Refusal if it could not go on from its checkpoints."""
    pipeline, job, _ = whole = await run_in_threadpool(_read, parts, id)
    query = await plan_query(
        parts,
        pipeline.query if asked.query is None else asked.query,
        [Udf.model_validate(udf) for udf in pipeline.udfs],
        _safe(pipeline.name),
        job.parallelism if asked.discards else whole.program.parallelism,
        environment=_readable(job.env_vars),
        state_url=pipeline.state_url,
        slices=to.slices,
    )
    to.check(query.program, job.env_vars)
    if not asked.discards and not query.program.means_the_same(whole.program):
        why = await run_in_threadpool(_why_not, whole, query.planned.fingerprint or {})
        if why is not None:
            raise Refusal(400, f"the query means something else by now, so it cannot go on: {why}; send discard_state")
    return query


def _why_not(whole: WholeJob, fingerprint: Mapping[str, Any]) -> str | None:
    """Why the state in the job's checkpoints does not fit to a pipeline; None: it fits, as far as this tells."""
    place = places.state_of(whole.job)
    if place is None:
        return None
    try:
        files = EpochFiles(open_store(place, _PATIENCE))
        numbers = files.numbers()
        was = files.read(numbers[-1]).fingerprint if numbers else {}
        return difference(was, {**fingerprint, "name": was["name"]}) if was else None
    except (InvalidArgument, FileNotFoundError) as error:
        return f"its checkpoints cannot be read here ({error})"


def _read(parts: ApiParts, id: str) -> WholeJob:
    with parts.database.read() as session:
        return rows.get(session, id)


@router.delete("/pipelines/{id}", response_class=Response)
def delete(parts: ThePart, id: str) -> Response:
    """With its job and all that is known of it. The answer is empty."""
    with parts.database.begin() as session:
        rows.delete(session, id)
    parts.wake()
    return Response()


def _safe(name: str) -> str:
    """As names of pipelines in descriptions are: databases and checkpoints know the pipeline by its job."""
    safe = "".join(
        character if character.isascii() and (character.isalnum() or character in "_.-") else "_" for character in name
    ).lstrip("_.-")
    return safe[:100] or "pipeline"
