"""The spans of a controller and of an API.

start         of a generation: from Scheduling until Running, in the controller; `worker start` is in it, in the worker
checkpoint    of an epoch; linked with the start of its generation, because a trace with all of them would not end
GET /api/...  of a request; in the trace of its client, if that sends a traceparent
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isfunction

from ..security import App, Message, Receive, Scope, Send
from ..states import State
from ..task import Report
from .tracing import Span, Tracing


class JobSpans:
    """In the controller's thread."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._starting: dict[str, Span] = {}
        self._parents: dict[str, str | None] = {}
        self._epochs: dict[str, int] = {}

    def moved(self, job_id: str, generation: int, state: State) -> None:
        before = self._starting.pop(job_id, None)
        if before is not None:
            before.end(error=None if state is State.RUNNING else f"the job is {state}")
        if state is State.SCHEDULING:
            span = self._tracing.begin("start", job_id=job_id, generation=generation)
            self._starting[job_id], self._parents[job_id] = span, span.parent

    def parent(self, job_id: str) -> str | None:
        """The start of its generation; None: without tracing, or if another controller has started it."""
        return self._parents.get(job_id)

    def note(self, reports: Iterable[Report]) -> None:
        for report in reports:
            taken = report.checkpoint
            if taken is not None and taken["epoch"] != self._epochs.get(report.job_id):
                self._epochs[report.job_id] = taken["epoch"]
                self._tracing.begin(
                    "checkpoint",
                    linked=self.parent(report.job_id),
                    at=taken["at"] - taken["seconds"],
                    job_id=report.job_id,
                    generation=report.generation,
                    epoch=taken["epoch"],
                    bytes=taken.get("bytes", 0),
                ).end(taken["at"])

    def forget(self, job_id: str) -> None:
        self._starting.pop(job_id, None)
        self._parents.pop(job_id, None)
        self._epochs.pop(job_id, None)


class TracedRequests:
    """The layer around an app. What programs ask again and again, /health and /metrics, has no spans."""

    def __init__(self, app: App, tracing: Tracing) -> None:
        self._app, self._tracing = app, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        method, headers = scope["method"], dict(scope["headers"])
        parent = headers.get(b"traceparent", b"").decode("latin-1")
        span = self._tracing.begin(method, parent=parent or None, is_request=True)
        status = 500

        async def answer(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            route = _route(scope)
            about = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
            span.rename(f"{method} {route}".strip(), **about)
            span.end(error=f"status {status}" if status >= 500 else None)


def _route(scope: Scope) -> str:
    """The path with names instead of ids, so that all requests of a kind have one name. Empty: there is none such."""
    if not isfunction(scope.get("endpoint")):
        return ""
    names = {value: f"{{{name}}}" for name, value in scope.get("path_params", {}).items()}
    return "/".join(names.get(part, part) for part in scope["path"].split("/"))
