"""Whether the API answers: for clients, and for programs that restart it. How a browser logs in.

GET /metrics, as an endpoint of a Starlette app.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import fastapi
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ..monitoring.exposition import Exposition
from ..tokens import Caller
from .dependencies import ApiParts, TheCaller, ThePart
from .failures import LOG, Refusal
from .shapes import Login

router = fastapi.APIRouter(tags=["ping"])


@router.get("/ping")
async def ping() -> str:
    """Always "Pong"."""
    return "Pong"


@router.post("/session", response_class=Response)
async def session(request: fastapi.Request, parts: ThePart, caller: TheCaller) -> Response:
    """Sets the cookie that logs a browser in whose page knows a token. It reads, and if the page is the API's own, it
    changes what the token may change."""
    answer = Response()
    _log_in(parts, answer, caller, request)
    return answer


@router.post("/logins")
async def new_login(parts: ThePart, caller: TheCaller) -> Login:
    """An address that logs a browser in as this caller, once, within ten minutes."""
    return Login(path=login_path(parts.logins.new(caller)))


def login_path(code: str) -> str:
    return f"/api/v1/login?code={code}"


@router.get("/login", response_class=Response, include_in_schema=False)
async def login(request: fastapi.Request, parts: ThePart, code: str = "") -> Response:
    """Sets the cookie, and goes on to the page of the API."""
    caller = parts.logins.take(code)
    if caller is None:
        raise Refusal(403, "this login was used before, or is too old: `arroyo-udf login` prints a new one")
    answer = Response(status_code=303, headers={"location": "/", "cache-control": "no-store"})
    _log_in(parts, answer, caller, request)
    return answer


def _log_in(parts: ApiParts, answer: Response, caller: Caller, request: fastapi.Request) -> None:
    cookie = None if parts.security is None else parts.security.session_cookie(caller, request.headers.get("host", ""))
    if cookie is not None:
        answer.headers["set-cookie"] = cookie


async def live(request: Request) -> JSONResponse:
    """The process answers."""
    return JSONResponse({"status": "live"})


async def ready(request: Request) -> JSONResponse:
    """It can work: the database answers, and is of its revision; and the controller of this process, if any, lives."""
    parts: ApiParts = request.app.state.parts
    try:
        await run_in_threadpool(parts.database.check)
    except Exception as error:
        LOG.warning("the database cannot be used: %s", error)  # who asks needs no token: addresses are not told
        return JSONResponse({"error": "the database cannot be used: the log says why"}, 503)
    if not parts.is_controlled():
        return JSONResponse({"error": "the controller of this program has ended: start the program again"}, 503)
    return JSONResponse({"status": "ready"})


def metrics_of(exposition: Exposition) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(request: Request) -> Response:
        """In another thread, because sources may ask the database."""
        text, content_type = await run_in_threadpool(exposition.text, request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})

    return metrics
