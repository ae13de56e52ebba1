"""Functions that every query may call.

Functions are stored before something refers to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import fastapi
from fastapi.responses import Response
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from ... import failpoints
from ...errors import InvalidArgument
from ..database import places
from ..database import udfs as rows
from ..database.models import UdfRow
from ..functions.builder import BuiltFunction, InvalidFunction
from .dependencies import ApiParts, ThePart, for_admins
from .failures import Refusal
from .responses import udf_of
from .shapes import Listed
from .shapes.pipelines import GlobalUdf, Language, UdfPatch, UdfPost, UdfValidationResult, ValidateUdfPost
from .transport import JsonRoute

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
        built = await parts.builder.function(asked.definition, asked.language)
    except InvalidFunction as error:
        return UdfValidationResult(udf_name=None, errors=error.errors)
    return UdfValidationResult(udf_name=built.name, errors=[])


@router.delete("/udfs/{id}", response_class=Response, dependencies=[fastapi.Depends(for_admins)])
def delete(parts: ThePart, id: str) -> Response:
    """Pipelines that use it keep theirs. The answer is empty."""
    with parts.database.begin() as session:
        rows.delete(session, id)
    return Response()


async def _built(parts: ApiParts, definition: str, language: Language) -> BuiltFunction:
    """Raises Refusal."""
    try:
        return await parts.builder.function(definition, language)
    except InvalidFunction as error:
        raise Refusal(400, f"UDF is invalid: {error}") from None


def _url(row: UdfRow) -> str | None:
    """Of its library; Arroyo has none for Python."""
    return None if row.language == "python" or row.artifact is None else f"sha256:{row.artifact}"


Result = TypeVar("Result")
_TRIES = 5
"""Each fails only if somebody has just deleted the last pipeline with one of the functions."""


async def with_stored(
    parts: ApiParts, functions: Sequence[BuiltFunction], write: Callable[[Session, Mapping[str, str]], Result]
) -> Result:
    """What `write` returns. It gets a transaction, in which nobody removes the functions, and what programs call their
    libraries, by their paths. Raises Refusal for a store that does not answer."""

    def work() -> Result:
        for _ in range(_TRIES - 1):
            try:
                return tried()
            except places.Released:
                continue
        return tried()

    def tried() -> Result:
        stored = _reserved(parts, functions)
        try:
            names = {function.library: parts.builder.store(function, stored[function.sha256]) for function in functions}
        except InvalidArgument as error:
            raise Refusal(503, f"the functions cannot be stored: {error}") from None
        failpoints.reached("stored")
        with parts.database.begin() as session:
            places.hold(session, stored)
            return write(session, names)

    return await run_in_threadpool(work)


def _reserved(parts: ApiParts, functions: Sequence[BuiltFunction]) -> dict[str, str]:
    """Places by hash."""
    if not functions:
        return {}
    with parts.database.begin() as session:
        return {
            function.sha256: places.reserve(
                session,
                function.sha256,
                name=function.name,
                language=function.language,
                size=Path(function.library).stat().st_size,
                new_place=partial(parts.builder.new_place, function),
            )
            for function in sorted(functions, key=lambda function: function.sha256)
        }
