"""Requests that fail: each answer has the body {"error": "..."}.

400  something is wrong with the request: its text says what to write instead
404  there is no such thing
409  another request has changed or deleted at the same moment what this one needs
415  no JSON
422  JSON of another shape
500  our fault; the reason is in the log only
503  the database does not answer
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import fastapi
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm.exc import ObjectDeletedError, StaleDataError
from starlette.exceptions import HTTPException

from ..database.errors import Ended, InUse, NotFound, Taken, is_outage
from .shapes.base import Failure

_RACES = (IntegrityError, StaleDataError, ObjectDeletedError)
LOG = logging.getLogger("arroyo_udf_plugin.api")
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text}
    for status, text in ((400, "A wrong request"), (404, "There is no such thing"), (422, "Another shape"))
}


class Refusal(Exception):
    """A request that cannot be done. The text is for whoever sent it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def install(app: fastapi.FastAPI) -> None:
    """Makes an app answer so."""
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(NotFound, _not_found)
    for kind in (Taken, InUse):
        app.add_exception_handler(kind, _conflict)
    app.add_exception_handler(Ended, _ended)
    app.add_exception_handler(SQLAlchemyError, _of_database)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _failed(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


async def _refusal(request: fastapi.Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    return _failed(error.status, str(error))


async def _not_found(request: fastapi.Request, error: Exception) -> JSONResponse:
    return _failed(404, str(error))


async def _conflict(request: fastapi.Request, error: Exception) -> JSONResponse:
    return _failed(400, str(error))


async def _ended(request: fastapi.Request, error: Exception) -> JSONResponse:
    return _failed(409, str(error))


async def _of_database(request: fastapi.Request, error: Exception) -> JSONResponse:
    """503: it does not answer. 409: what was there when the request was checked is not there any more."""
    if is_outage(error):
        LOG.warning("%s %s: the database fails: %s", request.method, request.url.path, _first_line(error))
        return _failed(503, "database not available: repeat the request later")
    if isinstance(error, _RACES):
        LOG.info("%s %s met another request: %s", request.method, request.url.path, type(error).__name__)
        return _failed(409, "another request has changed or deleted what this one needs: look again, and repeat it")
    return await _unexpected(request, error)


def _first_line(error: Exception) -> str:
    """Without the statement that failed."""
    return str(error).partition("\n")[0]


async def _http(request: fastapi.Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    text = "Not found: there is no such endpoint" if error.status_code == 404 else str(error.detail)
    answer = _failed(error.status_code, text)
    answer.headers.update(error.headers or {})
    return answer


async def _invalid(request: fastapi.Request, error: Exception) -> JSONResponse:
    """400: no JSON, or a wrong part of the address. 422: JSON of another shape."""
    assert isinstance(error, RequestValidationError)
    found: Sequence[Any] = error.errors()
    if any(one["type"] == "missing" and one["loc"] == ("body",) for one in found):
        return _failed(400, "this is not JSON: the body is empty")
    if any(one["type"] == "json_invalid" for one in found):
        return _failed(400, f"this is not JSON: {found[0]['ctx']['error']}")
    in_body = all(one["loc"][0] == "body" for one in found)
    return _failed(422 if in_body else 400, "; ".join(map(_told, found)))


def _told(one: Any) -> str:
    """Without `body`, `query` and `path`; pydantic's own words do for the rest."""
    where = ".".join(str(part) for part in one["loc"][1:])
    what = "is missing" if one["type"] == "missing" else str(one["msg"]).removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


async def _unexpected(request: fastapi.Request, error: Exception) -> JSONResponse:
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _failed(500, "Something went wrong")
