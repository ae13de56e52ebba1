"""The list of pipelines with what they do now; who uses a function; and who the caller is.

Guarantees: what a list costs grows with the lines that are asked for, not with the pipelines that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

import fastapi
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from ....version import __version__
from ...database import pipelines as rows
from ...database import udfs
from ...database.errors import NotFound
from ...database.models import TERMINAL
from ...database.pipelines import Chosen, WholeJob
from ...functions.builder import BuiltFunction, InvalidFunction
from ..dependencies import After, ApiParts, Labels, Limit, States, TheCaller, ThePart, chosen, most
from ..failures import Refusal
from ..placing import schedulers
from ..responses import job_of
from ..shapes.pipelines import Language, StopType
from .findings import findings
from .live import edges_of, latest_points
from .shapes import FunctionUse, FunctionVersion, Identity, Overview, PipelineLine, Point, Use

router = fastapi.APIRouter(tags=["page"])

_TOLD_AGAIN = 6_000_000
"""Microseconds after which a job that does something would have told new counts."""
Named = Annotated[str, fastapi.Query(max_length=200, description="A part of the name.")]


@router.get("/identity")
def identity(parts: ThePart, caller: TheCaller) -> Identity:
    """Whose token this is, and what it may do."""
    asks = parts.security is not None and parts.security.tokens is not None
    return Identity(
        name=caller.name,
        role=caller.role,
        version=__version__,
        asks_for_token=asks,
        schedulers=schedulers(parts),
    )


@router.get("/pipelines")
def overview(
    parts: ThePart,
    labels: Labels = None,
    states: States = None,
    named: Named = "",
    limit: Limit = 50,
    starting_after: After = None,
) -> Overview:
    """Pipelines without previews, the newest first, each with its rates and the worst that is found."""
    asked = chosen(labels, states)._replace(named=named.strip())
    with parts.database.read() as session:
        try:
            page = rows.listed(session, most(limit), starting_after, asked)
        except NotFound as error:
            raise Refusal(400, str(error)) from None
        counts = rows.by_state(session, Chosen(asked.tags, (), asked.named))
        data = [_row(parts, whole) for whole in page.rows]
    total = sum(count for state, count in counts.items() if not asked.states or state in asked.states)
    return Overview(data=data, total=total, states=counts)


def _row(parts: ApiParts, whole: WholeJob) -> PipelineLine:
    pipeline, job, status = whole
    running = status.state not in TERMINAL
    now, points = latest_points(parts, job.id, status.generation) if running else (0, [])
    rates = _rates(points, now)
    found = findings(points, edges_of(pipeline.graph), now)
    told = job_of(pipeline.id, job, status)
    return PipelineLine(
        id=pipeline.id,
        job_id=job.id,
        name=pipeline.name,
        tags=pipeline.tags,
        state=status.state,
        state_since=status.state_since,
        stop=cast("StopType", job.stop),
        created_at=pipeline.created_at,
        rows_in=rates[0],
        rows_out=rates[1],
        lag=max((node.lag for node in points[-1].nodes if node.lag is not None), default=None) if points else None,
        finding=found[0] if found else None,
        failure_reason=told.failure_reason,
        waits_for=told.waits_for,
    )


def _rates(points: Sequence[Point], now: int) -> tuple[float | None, float | None]:
    """Rows in a second, from sources and into sinks."""
    if not points:
        return None, None
    if now - points[-1].at > _TOLD_AGAIN:
        return 0.0, 0.0
    if len(points) < 2 or points[-1].generation != points[-2].generation:
        return None, None
    before, after = points[-2:]
    seconds = max((after.at - before.at) / 1e6, 0.5)
    read, written = (_passed(after, way) - _passed(before, way) for way in ("in", "out"))
    return max(0, read) / seconds, max(0, written) / seconds


def _passed(point: Point, way: str) -> int:
    """Nothing comes to a source, and nothing leaves a sink."""
    if way == "in":
        return sum(node.rows_out for node in point.nodes if not node.rows_in)
    return sum(node.rows_in for node in point.nodes if not node.rows_out)


@router.get("/udfs/{id}")
async def function_use(parts: ThePart, id: str) -> FunctionUse:
    """What a saved function looks like to a query; the pipelines that have it, of which some may have an older one; and
    its versions."""
    name, language, built = await _built(parts, id)

    def read() -> tuple[list[Use], list[FunctionVersion]]:
        with parts.database.read() as session:
            current = udfs.get(session, id).artifact
            uses = [
                Use(
                    id=whole.pipeline.id,
                    name=whole.pipeline.name,
                    state=whole.status.state,
                    is_current=sha256 == current,
                )
                for whole, sha256 in rows.using(session, name)
            ]
            return uses, [
                FunctionVersion(
                    number=row.number,
                    language=cast("Language", row.language),
                    definition=row.definition,
                    created_at=row.created_at,
                )
                for row in udfs.versions(session, id)
            ]

    uses, versions = await run_in_threadpool(read)
    signature = None if built is None else built.signature
    return FunctionUse(name=name, language=language, signature=signature, pipelines=uses, versions=versions)


@router.get("/udfs/{id}/library", response_class=Response)
async def library(parts: ThePart, id: str) -> Response:
    """The shared library of a saved function, which every engine loads."""
    name, _, built = await _built(parts, id)
    if built is None:
        raise Refusal(409, "this version cannot build the function any more: change it")
    content = await run_in_threadpool(Path(built.library).read_bytes)
    headers = {"content-disposition": f'attachment; filename="lib{name}.so"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


async def _built(parts: ApiParts, id: str) -> tuple[str, Language, BuiltFunction | None]:
    """None: it cannot be built any more."""

    def read() -> tuple[str, str, Language]:
        with parts.database.read() as session:
            row = udfs.get(session, id)
            return row.name, row.definition, cast("Language", row.language)

    name, definition, language = await run_in_threadpool(read)
    try:
        return name, language, await parts.builder.function(definition, language)
    except InvalidFunction:
        return name, language, None
