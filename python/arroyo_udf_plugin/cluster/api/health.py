"""Whether the API answers: for clients, and for programs that restart it."""

from __future__ import annotations

import fastapi
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .failures import LOG
from .parts import Parts

router = fastapi.APIRouter(tags=["ping"])


@router.get("/ping")
async def ping() -> str:
    """Always "Pong"."""
    return "Pong"


@router.post("/session", response_class=Response)
async def session(request: fastapi.Request) -> Response:
    """Sets the cookie with which a browser that knows the token can open event streams."""
    parts: Parts = request.app.state.parts
    answer = Response()
    if parts.security is not None and parts.security.token is not None:
        answer.headers["set-cookie"] = parts.security.session_cookie()
    return answer


async def live(request: Request) -> JSONResponse:
    """The process answers."""
    return JSONResponse({"status": "live"})


async def ready(request: Request) -> JSONResponse:
    """It can work: the database answers, and is of its revision; and the controller of this process, if any, lives."""
    parts: Parts = request.app.state.parts
    try:
        await run_in_threadpool(parts.database.check)
    except Exception as error:
        LOG.warning("the database cannot be used: %s", error)  # who asks needs no token: addresses are not told
        return JSONResponse({"error": "the database cannot be used: the log says why"}, 503)
    if not parts.is_controlled():
        return JSONResponse({"error": "the controller of this program has ended: start the program again"}, 503)
    return JSONResponse({"status": "ready"})
