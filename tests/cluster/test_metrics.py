"""The text of /metrics, and who may read it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from monitors import value
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.monitoring.exposition import Exposition
from arroyo_udf_plugin.cluster.monitoring.metrics import METRICS, Buckets, Families, Measured, Meters
from arroyo_udf_plugin.cluster.program import create_port
from arroyo_udf_plugin.cluster.schedulers import protocol
from arroyo_udf_plugin.cluster.security import Security
from arroyo_udf_plugin.cluster.states import Event, State
from arroyo_udf_plugin.cluster.task import JobReport
from arroyo_udf_plugin.cluster.tokens import Tokens
from arroyo_udf_plugin.cluster.worker import answering

TOKEN = "a token that nobody guesses"


def text_of(*sources: Any) -> str:
    return Exposition(sources).text()[0].decode()


def report(**more: Any) -> JobReport:
    nodes = {"0": {"0": {"messages_sent": 5}}, "1": {"0": {"messages_recv": 5}}}
    told = {"job_id": "job_1", "generation": 2, "numbers": {"operators": nodes, "details": []}}
    return JobReport(**told | more)


class FakeController:
    """With a worker of job_1, of generation 2."""

    leads, is_alive = True, True

    def workers(self) -> Sequence[tuple[str, int]]:
        return [("job_1", 2)]


@pytest.fixture
def port(database: Database, tmp_path: Path) -> Any:
    def make(controller: Any = None, **security: Any) -> Client:
        controller = controller or FakeController()
        return Client(create_port(controller, database, Exposition([]), tmp_path, Security(**security)))

    return make


def test_a_source_that_fails_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def failing(families: Families) -> None:
        raise OSError("the database is away")

    def other(families: Families) -> None:
        families.add("arroyo_udf_restarts", 3, job_id='a"b\\c\nd')

    with caplog.at_level(logging.WARNING):
        text = text_of(failing, other)
    assert value(text, "arroyo_udf_restarts", job_id='a"b\\c\nd') == 3
    assert "the database is away" in caplog.text


def test_only_counters_end_in_total() -> None:
    """promtool and OpenMetrics want it so."""
    for name, (kind, help_) in METRICS.items():
        assert (kind == "counter") == name.endswith("_total"), name
        assert help_.endswith("."), name


def test_a_client_may_ask_for_openmetrics() -> None:
    def tell(families: Families) -> None:
        families.add("arroyo_worker_messages_recv", 3, job_id="job_1")
        families.add("arroyo_udf_retries_total", 4, job_id="job_1")

    text, content_type = Exposition([tell]).text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    found = {family.name: family.type for family in text_string_to_metric_families(text.decode())}
    assert found["arroyo_worker_messages_recv"] == "unknown"
    assert found["arroyo_udf_retries"] == "counter"


def test_a_histogram_counts_what_is_below_each_bound() -> None:
    def tell(families: Families) -> None:
        families.add_buckets("arroyo_udf_controller_checkpoint_seconds", Buckets((0.5, 1.0), (3, 2, 1), 4.5))

    text = text_of(tell)
    name = "arroyo_udf_controller_checkpoint_seconds"
    assert [value(text, f"{name}_bucket", le=bound) for bound in ("0.5", "1.0", "+Inf")] == [3, 5, 6]
    assert (value(text, f"{name}_count"), value(text, f"{name}_sum")) == (6, 4.5)


def test_a_controller_counts_each_checkpoint_once_and_each_transition() -> None:
    meters = Meters()
    taken = {"epoch": 1, "seconds": 0.2, "at": 1.0, "bytes": 100}
    meters.note([report(checkpoint=taken), report(checkpoint=taken), report()])
    meters.note([report(checkpoint=taken | {"epoch": 2, "seconds": 99.0})])
    meters.moved(Event.LOST, State.RECOVERING)
    meters.moved(Event.RETRY, State.COMPILING)
    meters.database_failed()
    text = text_of(meters.tell)
    for expected, name, labels in (
        (1, "checkpoint_seconds_bucket", {"le": "0.25"}),
        (1, "checkpoint_seconds_bucket", {"le": "60.0"}),
        (2, "checkpoint_seconds_count", {}),
        (200, "checkpoint_bytes_total", {}),
        (1, "transitions_total", {"event": "retry", "state": "Compiling"}),
        (1, "recoveries_total", {}),
        (1, "database_failures_total", {}),
    ):
        assert value(text, f"arroyo_udf_controller_{name}", **labels) == expected, name


def test_the_numbers_of_a_generation_go_when_it_ends_and_those_of_an_older_one_are_ignored() -> None:
    def rows() -> float | None:
        return value(text_of(measured.tell), "arroyo_worker_messages_recv", job_id="job_1", node_id=1)

    measured = Measured()
    measured.note(report(event=Event.STARTED))
    assert rows() == 5
    measured.note(report(generation=1, event=Event.LOST))
    assert rows() == 5
    measured.note(report(event=Event.SAVED))
    assert rows() is None


def test_the_port_has_the_rules_of_the_api(port: Any, tmp_path: Path) -> None:
    with port(tokens=Tokens(tmp_path, TOKEN)) as client:
        for path in ("/metrics", "/targets", "/workers/job_1/2/metrics"):
            assert client.get(path).status_code == 401, path
            assert client.get(path, headers={"host": "evil.example"}).status_code == 403, path
        assert client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/health/live").json() == {"status": "live"}
        assert client.get("/health/ready").json() == {"status": "leads"}


def test_a_controller_whose_thread_has_ended_is_not_live(port: Any) -> None:
    ended = FakeController()
    ended.is_alive = False
    with port(ended) as client:
        assert client.get("/health/live").status_code == 503


def test_targets_are_at_the_address_under_which_the_controller_was_asked(port: Any) -> None:
    with port(hosts=["metrics.example"]) as client:
        (target,) = client.get("/targets", headers={"host": "metrics.example:5114"}).json()
    assert target["targets"] == ["metrics.example:5114"]
    assert target["labels"]["__metrics_path__"] == "/workers/job_1/2/metrics"
    assert target["labels"]["instance"] == "job_1-2"


def test_a_workers_metrics_are_asked_of_its_socket(port: Any, tmp_path: Path) -> None:
    folder = protocol.folder_of(tmp_path)
    folder.mkdir()
    measured = Measured()
    measured.note(report())
    with port() as client:
        assert client.get("/workers/job_1/3/metrics").status_code == 404
        assert client.get("/workers/job_1/2/metrics").status_code == 502
        with answering(tmp_path, "job_1", 2, Exposition([measured.tell])):
            (socket,) = folder.iterdir()
            assert (socket.name, socket.stat().st_mode & 0o777) == ("job_1-2.sock", 0o600)
            answer = client.get("/workers/job_1/2/metrics", headers={"accept": "application/openmetrics-text"})
            assert answer.headers["content-type"].startswith("application/openmetrics-text")
            assert value(answer.text, "arroyo_worker_messages_recv", job_id="job_1") == 5
        assert not list(folder.iterdir())
        assert json.loads(client.get("/workers/job_1/2/metrics").text)["error"].startswith("the worker of job_1")
