"""Functions that every query may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import fastapi
from fastapi.responses import Response
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from ..database import functions as rows
from ..database.models import Udf as UdfRow
from ..functions.workshop import BuiltFunction, InvalidFunction
from .bodies import JsonRoute
from .failures import Refusal
from .libraries import with_stored
from .parts import Parts, ThePart, for_admins
from .shapes.base import Listed
from .shapes.udfs import GlobalUdf, Language, UdfPatch, UdfPost, UdfValidationResult, ValidateUdfPost
from .told import udf_of

router = fastapi.APIRouter(tags=["udfs"], route_class=JsonRoute)


@router.get("/udfs")
def listed(parts: ThePart) -> Listed[GlobalUdf]:
    """By name."""
    with parts.database.read() as session:
        return Listed(data=[udf_of(row, _url(row)) for row in rows.listed(session)])


@router.post("/udfs", dependencies=[fastapi.Depends(for_admins)])
async def create(parts: ThePart, asked: UdfPost) -> GlobalUdf:
    """Builds a function, and keeps it."""
    built = await _built(parts, asked.definition, asked.language)

    def write(session: Session, _: Mapping[str, str]) -> GlobalUdf:
        row = rows.create(
            session,
            prefix=asked.prefix,
            name=built.name,
            language=asked.language,
            definition=asked.definition,
            description=asked.description,
            artifact=built.sha256,
        )
        return udf_of(row, _url(row))

    return await with_stored(parts, [built], write)


@router.patch("/udfs/{id}", dependencies=[fastapi.Depends(for_admins)])
async def change(parts: ThePart, id: str, asked: UdfPatch) -> GlobalUdf:
    """Pipelines keep theirs, until they are restarted with `replan`."""

    def now() -> tuple[str, Language]:
        with parts.database.read() as session:
            row = rows.get(session, id)
            return asked.definition or row.definition, asked.language or cast("Language", row.language)

    definition, language = await run_in_threadpool(now)
    built = await _built(parts, definition, language)
    named = {name: getattr(asked, name) for name in ("prefix", "description") if getattr(asked, name) is not None}
    made = {"name": built.name, "language": language, "definition": definition, "artifact": built.sha256}

    def write(session: Session, _: Mapping[str, str]) -> GlobalUdf:
        row = rows.change(session, id, named | made)
        return udf_of(row, _url(row))

    return await with_stored(parts, [built], write)


@router.post("/udfs/validate")
async def validate(parts: ThePart, asked: ValidateUdfPost) -> UdfValidationResult:
    """Whether a definition can be built. What is wrong with it is no error of this request."""
    try:
        built = await parts.workshop.function(asked.definition, asked.language)
    except InvalidFunction as error:
        return UdfValidationResult(udf_name=None, errors=error.errors)
    return UdfValidationResult(udf_name=built.name, errors=[])


@router.delete("/udfs/{id}", response_class=Response, dependencies=[fastapi.Depends(for_admins)])
def delete(parts: ThePart, id: str) -> Response:
    """Pipelines that use it keep theirs. The answer is empty."""
    with parts.database.begin() as session:
        rows.delete(session, id)
    return Response()


async def _built(parts: Parts, definition: str, language: Language) -> BuiltFunction:
    """Raises Refusal."""
    try:
        return await parts.workshop.function(definition, language)
    except InvalidFunction as error:
        raise Refusal(400, f"UDF is invalid: {error}") from None


def _url(row: UdfRow) -> str | None:
    """Of its library; Arroyo has none for Python."""
    return None if row.language == "python" or row.artifact is None else f"sha256:{row.artifact}"
