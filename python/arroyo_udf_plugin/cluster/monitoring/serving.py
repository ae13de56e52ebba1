"""GET /metrics, as an endpoint of a Starlette app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from .exposition import Exposition


def metrics_of(exposition: Exposition) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(request: Request) -> Response:
        """In another thread, because sources may ask the database."""
        text, content_type = await run_in_threadpool(exposition.text, request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})

    return metrics
