"""Jobs as the controller leaves them: log, checkpoints, metrics, rows."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from asgi_client import Client
from clusters import shown
from monitors import value

from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database, now
from arroyo_udf_plugin.cluster.database.pipelines import WholeJob
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.host.statistics import Latency

JOBS = importlib.import_module("arroyo_udf_plugin.cluster.api.jobs")  # the package has its router by that name


def path_of(whole: WholeJob, what: str) -> str:
    return f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/{what}"


def test_a_job_that_failed_says_why_and_whose_fault_it_is(api: Client, stored: Any) -> None:
    facts = {
        "failure_message": "no such file",
        "failure_domain": "external",
        "finish_time": 5,
        "start_time": 3,
        "tasks": 2,
    }
    whole = stored("Failed", facts=facts)
    (job,) = api.get(f"/api/v1/pipelines/{whole.pipeline.id}/jobs").json()["data"]
    assert job["failure_reason"] == {"error": "no such file", "domain": "external"}
    assert (job["start_time"], job["finish_time"], job["tasks"]) == (3, 5, 2)
    assert api.get("/api/v1/jobs").json()["data"] == [job]


def test_values_of_variables_are_never_told(api: Client, stored: Any) -> None:
    whole = stored(env_vars={"API_KEY": "very secret"})
    for path in (
        "/api/v1/jobs",
        f"/api/v1/pipelines/{whole.pipeline.id}/jobs",
        f"/api/v1/pipelines/{whole.pipeline.id}",
    ):
        assert "very secret" not in api.get(path).text
    assert list(api.get("/api/v1/jobs").json()["data"][0]["env_vars"]) == ["API_KEY"]


def test_errors_are_told_alone_and_with_a_level_more(api: Client, stored: Any, database: Database) -> None:
    whole = stored()
    with database.begin() as session:
        for n, level in enumerate(["info", "warn", "error", "error"]):
            more = {"operator_id": "town", "task_index": n, "error_domain": "user"} if level == "error" else {}
            history.log(session, whole.job.id, 1, level, f"message {n}", "details", **more)
    told = api.get(path_of(whole, "errors")).json()
    assert told["hasMore"] is False
    assert [one["message"] for one in told["data"]] == ["message 3", "message 2"]
    first = told["data"][0]
    assert set(first) == {
        "id",
        "created_at",
        "operator_id",
        "task_index",
        "level",
        "message",
        "details",
        "error_domain",
    }
    assert (first["level"], first["operator_id"], first["task_index"], first["error_domain"]) == (
        "error",
        "town",
        3,
        "user",
    )
    assert len(api.get(path_of(whole, "errors?level=warn")).json()["data"]) == 3
    assert len(api.get(path_of(whole, "errors?level=info")).json()["data"]) == 4
    page = api.get(path_of(whole, "errors?limit=1")).json()
    assert page["hasMore"] is True
    rest = api.get(path_of(whole, f"errors?limit=1&starting_after={page['data'][0]['id']}")).json()
    assert ([one["message"] for one in rest["data"]], rest["hasMore"]) == (["message 2"], False)


@pytest.mark.parametrize("what", ["errors", "checkpoints", "operator_metric_groups", "output"])
def test_a_job_of_another_pipeline_is_not_found(api: Client, stored: Any, what: str) -> None:
    one, other = stored(), stored()
    wrong = f"/api/v1/pipelines/{one.pipeline.id}/jobs/{other.job.id}/{what}"
    assert (api.get(wrong).status_code, api.get(wrong).json()) == (404, {"error": "Job not found"})
    assert api.get(f"/api/v1/pipelines/no/jobs/{one.job.id}/{what}").status_code == 404


def test_checkpoints_come_by_epoch_without_those_that_failed(api: Client, stored: Any, database: Database) -> None:
    whole = stored()
    span = {"event": "Checkpointing", "description": "all of it", "start_time": 10, "finish_time": 30}
    with database.begin() as session:
        add = {"generation": 1, "start_time": 10}
        history.checkpoint(session, whole.job.id, 2, state="ready", finish_time=30, events=[span], **add)
        history.checkpoint(session, whole.job.id, 1, state="ready", finish_time=20, checkpoint_type="stopping", **add)
        history.checkpoint(session, whole.job.id, 3, state="failed", **add)
    told = api.get(path_of(whole, "checkpoints")).json()
    assert list(told) == ["data"]
    assert told["data"] == [
        {
            "epoch": 1,
            "backend": "parquet",
            "checkpoint_type": "stopping",
            "start_time": 10,
            "finish_time": 20,
            "events": [],
        },
        {
            "epoch": 2,
            "backend": "parquet",
            "checkpoint_type": "scheduled",
            "start_time": 10,
            "finish_time": 30,
            "events": [span],
        },
    ]


def test_a_checkpoint_has_a_group_for_each_operator(api: Client, stored: Any, database: Database) -> None:
    whole = stored()
    span = {"event": "Sync", "description": "", "start_time": 11, "finish_time": 12}
    operators = {
        "town_1": {"bytes": 30, "subtasks": {"1": {"bytes": 20}, "0": {"bytes": 10, "event_spans": [span]}}},
        "select_2": {"bytes": 5},
    }
    with database.begin() as session:
        history.checkpoint(
            session, whole.job.id, 4, generation=1, state="ready", start_time=10, finish_time=30, operators=operators
        )
    told = api.get(path_of(whole, "checkpoints/4/operator_checkpoint_groups")).json()["data"]
    assert told[0] == {
        "operator_id": "town_1",
        "bytes": 30,
        "started_metadata_write": None,
        "finish_time": 30,
        "subtasks": [
            {"index": 0, "bytes": 10, "event_spans": [span]},
            {"index": 1, "bytes": 20, "event_spans": []},
        ],
    }
    assert (told[1]["operator_id"], told[1]["subtasks"]) == (
        "select_2",
        [{"index": 0, "bytes": 5, "event_spans": []}],
    )
    assert api.get(path_of(whole, "checkpoints/5/operator_checkpoint_groups")).status_code == 404


def numbers(rows_in: int, rows_out: int) -> dict[str, Any]:
    detail = {"name": "town", "rows_in": rows_in, "rows_out": rows_out, "in_flight": 3, "held": 5, "p50": 0.25}
    nodes = [(0, rows_in), (rows_in, rows_out), (rows_out, 0)]
    return {
        "rows_in": rows_in,
        "rows_out": rows_out,
        "operators": {
            str(node): {"0": {"messages_recv": got, "messages_sent": sent}} for node, (got, sent) in enumerate(nodes)
        },
        "details": [detail | {"counts": {"values": rows_out, "dropped": 2}}],
    }


def test_counts_become_rates_and_a_new_start_gives_none(
    api: Client, stored: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JOBS, "now", lambda: 7_000_000)
    whole = stored()
    assert api.get(path_of(whole, "operator_metric_groups")).json() == {"data": []}
    for at, count in ((1_000_000, 100), (3_000_000, 500), (5_000_000, 40), (6_000_000, 100)):
        records.count(whole.job.id, numbers(count, count // 2), at)
    groups = api.get(path_of(whole, "operator_metric_groups")).json()["data"]
    told = {group["node_id"]: group["metric_groups"] for group in groups}
    points = [{"time": 3_000_000, "value": 200.0}, {"time": 6_000_000, "value": 60.0}]
    half = [{"time": 3_000_000, "value": 100.0}, {"time": 6_000_000, "value": 30.0}]
    assert told == {
        0: [{"name": "messages_sent", "subtasks": [{"index": 0, "metrics": points}]}],
        1: [
            {"name": "messages_recv", "subtasks": [{"index": 0, "metrics": points}]},
            {"name": "messages_sent", "subtasks": [{"index": 0, "metrics": half}]},
        ],
        2: [{"name": "messages_recv", "subtasks": [{"index": 0, "metrics": half}]}],
    }


def test_between_two_generations_there_is_no_rate(
    api: Client, stored: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the second one has counted further by then."""
    monkeypatch.setattr(JOBS, "now", lambda: 9_000_000)
    whole = stored()
    for at, generation, count in (
        (1_000_000, 1, 100),
        (3_000_000, 1, 300),
        (5_000_000, 2, 400),
        (7_000_000, 2, 600),
    ):
        records.count(whole.job.id, passed(count, 0) | {"generation": generation}, at)
    source, _ = api.get(path_of(whole, "operator_metric_groups")).json()["data"]
    rates = next(group for group in source["metric_groups"] if group["name"] == "messages_sent")
    assert [point["time"] for point in rates["subtasks"][0]["metrics"]] == [3_000_000, 7_000_000]


def passed(count: int, blocked: float) -> dict[str, Any]:
    """Numbers of a source in two slices, and of a sink in one."""
    sent = {"messages_sent": count, "bytes_sent": 8 * count, "blocked": blocked}
    subtasks = {"0": sent, "1": {name: 2 * number for name, number in sent.items()}}
    sink = {"0": {"messages_recv": 3 * count, "bytes_recv": 24 * count}}
    return {"nodes": {"0": {"subtasks": subtasks}, "1": {"subtasks": sink}}}


def test_each_slice_has_rates_of_rows_and_bytes_and_its_backpressure(
    api: Client, stored: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment after another one has no point of its own: its rate would be by chance."""
    monkeypatch.setattr(JOBS, "now", lambda: 7_000_000)
    whole = stored()
    for at, count, blocked in (
        (1_000_000, 100, 0.0),
        (3_000_000, 500, 0.5),
        (3_001_000, 900, 0.5),
        (5_000_000, 900, 2.6),
    ):
        records.count(whole.job.id, passed(count, blocked), at)
    source, sink = api.get(path_of(whole, "operator_metric_groups")).json()["data"]
    values = {
        group["name"]: {one["index"]: [point["value"] for point in one["metrics"]] for one in group["subtasks"]}
        for group in source["metric_groups"]
    }
    assert values == {
        "messages_sent": {0: [200, 200], 1: [400, 400]},
        "bytes_sent": {0: [1600, 1600], 1: [3200, 3200]},
        "backpressure": {0: [0.25, 1.0], 1: [0.5, 1.0]},
    }
    assert [group["name"] for group in sink["metric_groups"]] == ["bytes_recv", "messages_recv"]


def test_a_job_that_has_become_idle_has_the_rate_0(
    api: Client, stored: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counts do not change, so nobody tells them again."""
    monkeypatch.setattr(JOBS, "now", lambda: 60_000_000)
    whole = stored()
    for at, count in ((1_000_000, 100), (3_000_000, 500)):
        records.count(whole.job.id, numbers(count, count // 2), at)
    first, *_ = api.get(path_of(whole, "operator_metric_groups")).json()["data"]
    (group,) = first["metric_groups"]
    assert group["subtasks"][0]["metrics"] == [{"time": 3_000_000, "value": 200.0}, {"time": 60_000_000, "value": 0.0}]


COUNTED = {
    "rows_in": 1_000_000_007,
    "rows_out": 9,
    "dropped": 3,
    "dead_letters": 1,
    "nodes": {
        "0": {
            "operator": "impulse",
            "name": "counts",
            "subtasks": {"0": {"messages_sent": 1_000_000_007, "bytes_sent": 8, "blocked": 1.5}},
            "gauges": [
                {"name": "lag", "value": 12, "unit": "messages"},
                {"name": "retained", "value": 0, "unit": "bytes"},
                {"name": "age", "value": 1, "unit": "years"},  # of a newer worker
            ],
        },
        "1": {
            "operator": "AsyncUdf",
            "name": "town",
            "subtasks": {"0": {"messages_recv": 5, "messages_sent": 5}, "1": {"messages_recv": 5, "messages_sent": 4}},
            "in_flight": 3,
            "outcomes": {"values": 7, "dropped": 2},
            "lag": 7.5,
            "watermark": 1_700_000_000_250_000,
            "latency": {"39": 5, "127": 1},
        },
        "2": {"operator": "preview", "name": "out", "subtasks": {"1": {"messages_recv": 9, "bytes_recv": 72}}},
    },
}


def test_prometheus_reads_all_jobs_by_arroyos_names(
    api: Client, stored: Any, database: Database, records: Records
) -> None:
    running = stored("Running", facts={"restarts": 2})
    stored("Failed", facts={"failure_domain": "user", "failure_message": "x"})
    with database.begin() as session:
        records.count(running.job.id, numbers(7, 7), now() - 10_000_000)
        records.count(running.job.id, COUNTED)
        taken = {"generation": 1, "state": "ready", "start_time": 1_000_000, "finish_time": 1_500_000}
        history.checkpoint(session, running.job.id, 6, **taken | {"finish_time": 1_200_000})
        history.checkpoint(session, running.job.id, 7, **taken, operators={"a": {"bytes": 30}, "b": {"bytes": 12}})
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    own = {"job_id": running.job.id}
    source = own | {"node_id": 0, "operator_name": "impulse", "name": "counts"}
    town = own | {"node_id": 1, "operator_name": "AsyncUdf", "name": "town"}
    for expected, name, labels in (
        (1, "arroyo_controller_jobs", {"state": "Running"}),
        (0, "arroyo_controller_jobs", {"state": "Failed"}),
        (1, "arroyo_controller_jobs", {"state": "UserFailed"}),
        (1_000_000_007, "arroyo_worker_messages_sent",
         own | {"node_id": 0, "subtask_idx": 0, "operator_name": "impulse"}),
        (None, "arroyo_worker_messages_recv", own | {"node_id": 0}),
        (9, "arroyo_worker_messages_recv", own | {"node_id": 2, "subtask_idx": 1, "operator_name": "preview"}),
        (72, "arroyo_worker_bytes_recv", own | {"node_id": 2}),
        (4, "arroyo_worker_deserialization_errors", own),
        (1.5, "arroyo_udf_blocked_seconds_total", own | {"node_id": 0, "subtask_idx": 0}),
        (12, "arroyo_udf_source_messages", source | {"gauge": "lag"}),
        (0, "arroyo_udf_source_bytes", source | {"gauge": "retained"}),
        (3, "arroyo_udf_in_flight", town),
        (0, "arroyo_udf_stuck_calls", town),
        (None, "arroyo_udf_in_flight", own | {"node_id": 0}),
        (2, "arroyo_udf_outcomes_total", town | {"outcome": "dropped"}),
        (7.5, "arroyo_udf_watermark_lag_seconds", town),
        (1_700_000_000.25, "arroyo_udf_watermark_timestamp_seconds", town),
        (0, "arroyo_udf_latency_seconds_bucket", town | {"le": repr(Latency.bound(36))}),
        (5, "arroyo_udf_latency_seconds_bucket", town | {"le": repr(Latency.bound(40))}),
        (6, "arroyo_udf_latency_seconds_bucket", town | {"le": "+Inf"}),
        (6, "arroyo_udf_latency_seconds_count", town),
        (7, "arroyo_udf_checkpoint_epoch", own),
        (42, "arroyo_udf_checkpoint_bytes", own),
        (0.5, "arroyo_udf_checkpoint_duration_seconds", own),
        (2, "arroyo_udf_restarts", own),
    ):  # fmt: skip
        assert value(answer.text, name, **labels) == expected, (name, labels)
    assert value(answer.text, "process_resident_memory_bytes")


def events(text: str) -> list[dict[str, str]]:
    parts = [part for part in text.split("\n\n") if part and not part.startswith(":")]
    return [dict(line.split(": ", 1) for line in part.split("\n")) for part in parts]


def put(records: Records, whole: WholeJob, count: int) -> None:
    for n in range(count):
        batch = json.dumps([{"n": n}, {"n": None}])
        records.show(whole.job.id, [shown(2 * n, timestamps=[n, n], batch=batch)])


def test_rows_of_a_job_that_has_ended_are_all_there_and_the_stream_ends(
    api: Client, stored: Any, records: Records
) -> None:
    whole = stored("Finished")
    put(records, whole, 3)
    answer = api.get(path_of(whole, "output"))
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.text)
    assert [one.get("id") for one in told] == ["0", "1", "2", None]
    assert told[-1]["event"] == "end"
    assert "event" not in told[0]
    first = json.loads(told[1]["data"])
    assert first == {
        "operator_id": "preview",
        "subtask_idx": 0,
        "timestamps": [1, 1],
        "start_id": 2,
        "batch": '[{"n": 1}, {"n": null}]',
    }
    assert len(json.loads(first["batch"])) == len(first["timestamps"])


def test_a_reader_that_comes_again_gets_what_it_has_not_had(api: Client, stored: Any, records: Records) -> None:
    """Also when the first rows are not kept any more."""
    whole = stored("Stopped")
    put(records, whole, 4)
    told = events(api.get(path_of(whole, "output"), headers={"last-event-id": "1"}).text)
    assert [one.get("id") for one in told] == ["2", "3", None]


def test_rows_are_refused_for_a_pipeline_without_preview_and_a_job_that_is_starting(api: Client, stored: Any) -> None:
    graph = {"nodes": [{"node_id": 0, "operator": "impulse", "description": "", "parallelism": 1}], "edges": []}
    assert api.get(path_of(stored("Running", graph=graph), "output")).status_code == 400
    answer = api.get(path_of(stored("Scheduling"), "output"))
    assert answer.status_code == 400
    assert "Scheduling" in answer.json()["error"]
