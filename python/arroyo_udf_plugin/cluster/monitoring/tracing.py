"""Spans for OpenTelemetry, sent as OTLP over HTTP, if `traces.endpoint` is set.

    with contextlib.closing(Tracing(endpoint, "controller")) as tracing:
        span = tracing.begin("start", job_id="job_1")
        span.parent                                     W3C's traceparent, for a child in another process
        span.end()

start         of a generation: from Scheduling until Running, in the controller; `worker start` is in it, in the worker
checkpoint    of an epoch; linked with the start of its generation, because a trace with all of them would not end
GET /api/...  of a request; in the trace of its client, if that sends a traceparent

Guarantees: without an endpoint nothing is done, and opentelemetry is not imported; a collector that fails disturbs
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Literal

from ...errors import InvalidArgument
from ...version import __version__
from ..states import State
from ..task import JobReport

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OwnSpan

    from ..security import App, Message, Receive, Scope, Send

_FLUSH_MILLIS = 3000
_HEADER = "traceparent"


class Tracing:
    """Of one program. close: sends what is left."""

    def __init__(self, endpoint: str | None, program: Literal["api", "controller", "worker"]) -> None:
        """Raises InvalidArgument if there is an endpoint, and the extra is not installed."""
        self._provider: Any = None
        if endpoint is not None:
            self._provider = _provider(endpoint, f"arroyo-udf-{program}")
            self._tracer = self._provider.get_tracer("arroyo_udf_plugin", __version__)

    def begin(
        self,
        name: str,
        *,
        parent: str | None = None,
        linked: str | None = None,
        at: float | None = None,
        is_request: bool = False,
        **attributes: str | int,
    ) -> TraceSpan:
        """parent, linked: traceparents: of the span in which this one is, of one that it belongs to. at: `time.time()`
        of its beginning; None: now."""
        if self._provider is None:
            return TraceSpan(None)
        from opentelemetry.trace import Link, SpanKind, get_current_span

        links = [] if linked is None else [Link(get_current_span(_context(linked)).get_span_context())]
        return TraceSpan(
            self._tracer.start_span(
                name,
                context=_context(parent),
                kind=SpanKind.SERVER if is_request else SpanKind.INTERNAL,
                attributes=attributes,
                links=links,
                start_time=_nanoseconds(at),
            )
        )

    def close(self) -> None:
        if self._provider is not None:
            self._provider.force_flush(_FLUSH_MILLIS)
            self._provider.shutdown()


class TraceSpan:
    def __init__(self, own: OwnSpan | None) -> None:
        self._own = own

    @property
    def parent(self) -> str | None:
        """For its children; None: there is no tracing."""
        if self._own is None:
            return None
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, set_span_in_context(self._own))
        return carrier.get(_HEADER)

    def rename(self, name: str, **attributes: str | int) -> None:
        if self._own is not None:
            self._own.update_name(name)
            self._own.set_attributes(attributes)

    def end(self, at: float | None = None, error: str | None = None) -> None:
        if self._own is not None:
            from opentelemetry.trace import Status, StatusCode

            if error is not None:
                self._own.set_status(Status(StatusCode.ERROR, error))
            self._own.end(_nanoseconds(at))


def _context(parent: str | None) -> Context:
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {} if parent is None else {_HEADER: parent}
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _nanoseconds(at: float | None) -> int:
    return time.time_ns() if at is None else int(at * 1e9)


def _provider(endpoint: str, service: str) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        text = f"traces.endpoint is set, but {error.name} is missing: pip install 'arroyo_udf_plugin[traces]'"
        raise InvalidArgument(text) from None
    resource = Resource.create({"service.name": service, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
    return provider


class JobSpans:
    """In the controller's thread."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._starting: dict[str, TraceSpan] = {}
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

    def note(self, reports: Iterable[JobReport]) -> None:
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
