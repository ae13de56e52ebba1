"""Requests that fail: each answer has the body {"error": "..."}.

400  something is wrong with the request, such as a value against a rule: its text says what to write instead
401  who sends it is not known
403  his token has another role, or it comes from a foreign page
404  there is no such thing
409  another request has changed or deleted at the same moment what this one needs, or a limit of the cluster is reached
413  a body that is too long
415  no JSON
422  JSON of another shape, or with an unknown key
429  too many at once: it may pass later
500  our fault; the reason is in the log only
503  the database does not answer
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import fastapi
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm.exc import ObjectDeletedError, StaleDataError
from starlette.exceptions import HTTPException

from ..database.errors import Ended, InUse, NameTaken, NotFound, is_outage
from .shapes import WRONG_SHAPE, Failure

_WITH_BODY = ("post", "put", "patch")
_FAILURE = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
_RACES = (IntegrityError, StaleDataError, ObjectDeletedError)
LOG = logging.getLogger("arroyo_udf_plugin.api")
_ALWAYS = {
    400: "A wrong request, or a value against a rule",
    401: "Nobody that is known",
    403: "Another role is needed, or another origin",
    404: "There is no such thing",
    422: "Another shape",
    500: "Our fault",
    503: "The database does not answer",
}
_OF_CHANGES = {409: "It met another request, or a limit", 429: "Too many at once"}
_OF_BODIES = {413: "The body is too long", 415: "The body is no JSON"}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text} for status, text in _ALWAYS.items()
}
"""Of each endpoint; `document` adds those of some."""
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    429: {"model": Failure, "description": "Too many streams at once"},
}
_SHAPES = ("missing", "extra_forbidden", "literal_error", "enum", "json_type", WRONG_SHAPE)
"""Errors of pydantic, besides those that end with `_type`, by which JSON has another shape than is asked for."""


class Refusal(Exception):
    """A request that cannot be done. The text is for whoever sent it. retry_after: seconds until it may be done."""

    def __init__(self, status: int, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.status, self.retry_after = status, retry_after


def install(app: fastapi.FastAPI) -> None:
    """Makes an app answer so."""
    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(NotFound, _not_found)
    for kind in (NameTaken, InUse):
        app.add_exception_handler(kind, _conflict)
    app.add_exception_handler(Ended, _ended)
    app.add_exception_handler(SQLAlchemyError, _of_database)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def document(app: fastapi.FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with what is decided before and around the endpoints."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            routes=app.routes,
            servers=app.servers,
            separate_input_output_schemas=False,  # generators make a class of each
        )
        schema["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "A browser may have a session instead."}
        }
        schema["security"] = [{"token": []}]
        for methods in schema["paths"].values():
            for method, operation in methods.items():
                more = (_OF_CHANGES if method != "get" else {}) | (_OF_BODIES if method in _WITH_BODY else {})
                for status, text in more.items():
                    operation["responses"].setdefault(str(status), {"description": text, "content": _FAILURE})
        app.openapi_schema = schema
    return app.openapi_schema


def _failed(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


async def refused(request: fastapi.Request, error: Exception) -> JSONResponse:
    """The answer of a Refusal."""
    assert isinstance(error, Refusal)
    answer = _failed(error.status, str(error))
    if error.retry_after is not None:
        answer.headers["retry-after"] = f"{error.retry_after:.0f}"
    return answer


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
    """400: no JSON, a value against a rule, or a wrong part of the address. 422: JSON of another shape."""
    assert isinstance(error, RequestValidationError)
    problems: Sequence[Any] = error.errors()
    if any(problem["type"] == "missing" and problem["loc"] == ("body",) for problem in problems):
        return _failed(400, "this is not JSON: the body is empty")
    if any(problem["type"] == "json_invalid" for problem in problems):
        return _failed(400, f"this is not JSON: {problems[0]['ctx']['error']}")
    wrong_shape = any(problem["loc"][0] == "body" and _is_shape(problem["type"]) for problem in problems)
    return _failed(422 if wrong_shape else 400, "; ".join(map(_message, problems)))


def _is_shape(kind: str) -> bool:
    """Whether JSON is of another shape; if not, a value is against a rule."""
    return kind in _SHAPES or kind.endswith("_type") or kind.startswith("union_tag_")


def _message(problem: Any) -> str:
    """Without `body`, `query` and `path`; pydantic's own words do for the rest."""
    where = ".".join(str(part) for part in problem["loc"][1:])
    what = "is missing" if problem["type"] == "missing" else str(problem["msg"]).removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


async def _unexpected(request: fastapi.Request, error: Exception) -> JSONResponse:
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _failed(500, "Something went wrong")
