"""Spans for OpenTelemetry, sent as OTLP over HTTP, if `traces.endpoint` is set.

    with contextlib.closing(Tracing(endpoint, "controller")) as tracing:
        span = tracing.begin("start", job_id="job_1")
        span.parent                                     W3C's traceparent, for a child in another process
        span.end()

Guarantees: without an endpoint nothing is done, and opentelemetry is not imported; a collector that fails disturbs
nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from ...errors import InvalidArgument
from ...version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OwnSpan

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
    ) -> Span:
        """parent, linked: traceparents: of the span in which this one is, of one that it belongs to. at: `time.time()`
        of its beginning; None: now."""
        if self._provider is None:
            return Span(None)
        from opentelemetry.trace import Link, SpanKind, get_current_span

        links = [] if linked is None else [Link(get_current_span(_context(linked)).get_span_context())]
        return Span(
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


class Span:
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
