"""Spans as a collector receives them: OTLP over HTTP, decoded with OpenTelemetry's own messages."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from clusters import posting
from programs import SQL, TWICE, Program
from waiting import until

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.monitoring.tracing import JobSpans, TracedRequests, Tracing
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.states import State
from arroyo_udf_plugin.cluster.task import JobReport
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import InvalidArgument

CLIENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    """spans: (service, span), as they came."""

    def __init__(self) -> None:
        messages = importlib.import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
        self.spans: list[tuple[str, Any]] = []
        spans = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = messages.ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                for each in request.resource_spans:
                    (service,) = [
                        one.value.string_value for one in each.resource.attributes if one.key == "service.name"
                    ]
                    spans.extend((service, span) for scope in each.scope_spans for span in scope.spans)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def named(self, name: str) -> list[Any]:
        return [span for _, span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    with made.server:
        yield made
        made.server.shutdown()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_without_an_endpoint_there_are_no_spans_and_no_parents() -> None:
    with closing(Tracing(None, "api")) as tracing:
        span = tracing.begin("start", parent=CLIENT, job_id="job_1")
        assert span.parent is None
        span.end(error="no matter")


def test_without_the_extra_the_setting_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(
        InvalidArgument, match=r"traces.endpoint is set, but .* pip install 'arroyo_udf_plugin\[traces\]'"
    ):
        Tracing("http://127.0.0.1:1/v1/traces", "api")


def test_a_request_is_a_span_in_the_trace_of_its_client(
    collector: Collector, database: Database, tmp_path: Path
) -> None:
    tracing = Tracing(collector.url, "api")
    app = TracedRequests(create_app(ApiParts(database, Builder(tmp_path / "functions"), Records(tmp_path))), tracing)
    with Client(app) as api:
        api.get("/api/v1/pipelines/pl_1", headers={"traceparent": CLIENT})
        api.get("/health/live")
        api.get("/metrics")
        api.get("/api/v1/nothing/of/this")
    tracing.close()
    (service, span), (_, unknown) = collector.spans
    assert unknown.name == "GET"
    assert (service, span.name) == ("arroyo-udf-api", "GET /api/v1/pipelines/{id}")
    assert attributes(span)["http.response.status_code"] == 404
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == tuple(CLIENT.split("-")[1:3])


def test_a_start_that_fails_is_an_error_and_checkpoints_are_linked_with_their_start(collector: Collector) -> None:
    tracing = Tracing(collector.url, "controller")
    spans = JobSpans(tracing)
    spans.moved("job_1", 1, State.SCHEDULING)
    spans.moved("job_1", 1, State.RECOVERING)
    spans.moved("job_1", 2, State.SCHEDULING)
    spans.moved("job_1", 2, State.RUNNING)
    report = JobReport("job_1", 2, checkpoint={"epoch": 1, "seconds": 0.5, "at": 1_700_000_000.5, "bytes": 9})
    spans.note([report, report, JobReport("job_1", 2)])
    tracing.close()
    first, second = collector.named("start")
    assert (first.status.code, first.status.message) == (2, "the job is Recovering")
    assert second.status.code == 0
    (checkpoint,) = collector.named("checkpoint")
    assert attributes(checkpoint) == {"job_id": "job_1", "generation": 2, "epoch": 1, "bytes": 9}
    assert (checkpoint.start_time_unix_nano, checkpoint.end_time_unix_nano) == (
        1_700_000_000 * 10**9,
        17000000005 * 10**8,
    )
    assert [link.span_id for link in checkpoint.links] == [second.span_id]
    assert checkpoint.trace_id != second.trace_id


@pytest.mark.cluster
def test_a_worker_starts_within_the_start_of_its_generation(
    start: Callable[..., Program],
    collector: Collector,
    database: Database,
    tmp_path: Path,
    build_plugin: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARROYO_UDF__TRACES__ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    library = build_plugin(TWICE)
    start("controller", tmp_path)
    client = posting(database, tmp_path)
    pipeline = Script("query.sql", SQL.format(out=tmp_path / "out"), [str(library)]).pipeline
    posted = client.post(pipeline, library, checkpoint_interval_micros=200_000)
    job = client.await_state(posted, "Running").job.id
    until(lambda: all(map(collector.named, ("start", "worker start", "checkpoint"))), "spans of all kinds")
    (generation,), (worker,) = collector.named("start"), collector.named("worker start")
    assert attributes(worker) == attributes(generation) == {"job_id": job, "generation": 1}
    assert (worker.trace_id, worker.parent_span_id) == (generation.trace_id, generation.span_id)
    assert generation.start_time_unix_nano <= worker.start_time_unix_nano < worker.end_time_unix_nano
    assert {service for service, _ in collector.spans} == {"arroyo-udf-controller", "arroyo-udf-worker"}
