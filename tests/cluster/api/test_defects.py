"""Symptoms that were seen in Arroyo's engine. An engine like this one could share them; it does not.

The numbers are those of a list of 37 defects. ELSEWHERE says which test in another file stands for one, and OF_PAGES
what our page does instead, where it is a matter of a page alone.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from clusters import shown
from sqlalchemy import event as events
from sqlalchemy import func, select, text, update

from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.api.output import _events
from arroyo_udf_plugin.cluster.api.responses import button
from arroyo_udf_plugin.cluster.configuration import PipelineSettings, configured
from arroyo_udf_plugin.cluster.controller.deadlines import backoff
from arroyo_udf_plugin.cluster.database import history, jobs, pipelines
from arroyo_udf_plugin.cluster.database.database import Database, now
from arroyo_udf_plugin.cluster.database.models import ConnectionTableUse, JobLog, JobRow, JobStatus, PipelineRow
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.errors import InvalidArgument

HERE = Path(__file__)
ELSEWHERE = {
    4: "../test_states.py::test_force_stops_from_every_state",
    5: "../test_states.py::test_no_state_waits_for_ever",
    9: "../test_controller.py::test_jobs_are_taken_over_though_the_database_fails_meanwhile",
    14: "test_changes.py::test_14_a_restart_plans_anew_only_when_asked",
    17: "test_page.py::test_the_page_may_ask_no_other_host",
    20: "test_functions.py::test_the_same_text_is_built_once_and_a_damaged_library_again",
    28: "../test_states.py::test_force_stops_from_every_state",
    29: "../test_controller.py::test_a_deleted_pipeline_leaves_no_state",
    31: "../test_processes.py::test_a_killed_worker_is_replaced_and_loses_nothing",
    32: "test_whole.py::test_32_a_pipeline_with_a_file_sink_starts_again_after_many_checkpoints",
    33: "../test_controller.py::test_a_job_that_never_starts_is_tried_as_often_as_one_that_is_lost",
    34: "test_whole.py::test_34_the_end_of_one_source_is_not_the_end_of_the_job",
    36: "test_whole.py::test_a_preview_of_a_query_with_an_async_function_shows_its_rows",
}
OF_PAGES = {
    16: "it opens the output stream at the same place as all else of the API (web/src/pipelines/rows.tsx)",
    35: "its buttons send what is written on them, whatever the last answer was (web/src/pipelines/actions.tsx)",
}

QUERY = "CREATE TABLE t WITH (connector = 'impulse'); SELECT counter FROM t;"
PROFILE = {"name": "place", "connector": "sqlite", "config": {"uri": "sqlite:x.db"}}


def test_each_defect_has_a_test_or_a_reason() -> None:
    here = {int(number) for number in re.findall(r"^def test_(\d+)_", HERE.read_text(), re.MULTILINE)}
    for told in ELSEWHERE.values():
        file, _, name = told.partition("::")
        assert f"def {name}(" in (HERE.parent / file).read_text(), told
    assert sorted(here | ELSEWHERE.keys() | OF_PAGES.keys()) == list(range(1, 38))


def test_1_rows_of_the_same_time_are_not_left_out_of_pages(api: Client, stored: Any, database: Database) -> None:
    ids = [stored("Stopped").pipeline.id for _ in range(7)][::-1]
    with database.begin() as session:
        for row in session.scalars(select(PipelineRow)):
            row.created_at = 1_000_000
    seen: list[str] = []
    after = ""
    for _ in range(4):
        told = api.get(f"/api/v1/pipelines?limit=2{after}").json()
        seen += [one["id"] for one in told["data"]]
        after = f"&starting_after={seen[-1]}"
    assert (seen, told["hasMore"]) == (ids, False)


def test_1_an_unknown_starting_after_does_not_end_a_list_silently(api: Client, stored: Any) -> None:
    whole = stored()
    job = f"pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/errors"
    for path in ("pipelines", "connection_tables", job):
        answer = api.get(f"/api/v1/{path}?starting_after=pl_nothing")
        assert answer.status_code == 400
        assert "pl_nothing" in answer.json()["error"]


def test_2_a_refused_pipeline_does_not_block_its_id(shared: Client) -> None:
    asked = {"name": "x", "query": QUERY, "parallelism": 1}
    for wrong in ({"checkpoint_interval_micros": 5}, {"query": "SELECT a FROM b"}, {"parallelism": 0}):
        assert shared.request("PUT", "/api/v1/pipelines/pl_refused", json=asked | wrong).status_code in (400, 422)
    assert shared.get("/api/v1/pipelines/pl_refused").status_code == 404
    assert shared.request("PUT", "/api/v1/pipelines/pl_refused", json=asked).status_code == 200


def test_2_a_pipeline_is_stored_with_its_job_or_not_at_all(
    api: Client, database: Database, monkeypatch: pytest.MonkeyPatch, stored: Any
) -> None:
    def fails(*arguments: Any, **more: Any) -> None:
        raise RuntimeError("the status cannot be written")

    monkeypatch.setattr(pipelines, "JobStatus", fails)
    with pytest.raises(RuntimeError):
        stored()
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(PipelineRow)) == 0


def test_3_a_state_of_a_newer_version_has_a_button_that_does_nothing() -> None:
    assert button("Dreaming", True) == ("Dreaming", None, True)


def test_6_start_of_a_failed_job_starts_it(api: Client, stored: Any, database: Database, woken: list[str]) -> None:
    whole = stored("Failed", stop="checkpoint")
    path = f"/api/v1/pipelines/{whole.pipeline.id}"
    told = api.get(path).json()
    assert (told["action"], told["action_text"]) == ("none", "Start")
    assert api.patch(path, json={"stop": "none"}).status_code == 200
    with database.read() as session:
        job = pipelines.get(session, whole.pipeline.id).job
    assert (job.stop, job.restart_nonce) == ("none", whole.job.restart_nonce + 1)
    assert job.fulfilled != job.revision
    assert woken == ["woken"]


def test_7_restart_of_a_stopped_job_is_a_wish_to_run(api: Client, stored: Any, database: Database) -> None:
    whole = stored("Stopped", stop="checkpoint")
    path = f"/api/v1/pipelines/{whole.pipeline.id}"
    told = api.post(f"{path}/restart", json={"ignore_state": True}).json()
    assert (told["stop"], told["action_text"]) == ("none", "Starting")
    with database.read() as session:
        job = pipelines.get(session, whole.pipeline.id).job
    assert job.fulfilled != job.revision
    assert job.history == whole.job.history + 1  # without the state of before


def test_8_the_thousandth_restart_in_a_row_waits_no_longer_than_the_limit() -> None:
    limits = PipelineSettings(allowed_restarts=-1, max_backoff=7.0)
    pauses = [backoff(limits, restarts) for restarts in range(1001)]
    assert pauses[:2] == [0.0, 0.0]
    assert all(3.5 <= pause <= 7.0 for pause in pauses[20:])


def test_10_a_wish_is_found_without_reading_every_job_ever_made(database: Database, stored: Any) -> None:
    """Rows that are read, when a wish wakes the controller."""
    for _ in range(20):
        stored("Finished")
    with database.begin() as session:
        session.execute(update(JobRow).values(fulfilled=JobRow.revision))
    whole = stored("Stopped", stop="checkpoint")
    with database.begin() as session:
        pipelines.change(session, whole.pipeline.id, {"stop": "none"})
    asked: list[str] = []
    events.listen(database.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    with database.read() as session:
        assert list(jobs.unfulfilled(session)) == [whole.job.id]
        (query,) = [one for one in asked if one.startswith("SELECT")]
        plan = session.execute(text(f"EXPLAIN QUERY PLAN {query}")).all()
        assert "ix_jobs_unfulfilled" in str(plan), (query, plan)
        assert list(jobs.open_jobs(session)) == [whole.job.id]


def test_11_what_is_wrong_with_a_function_is_told_when_it_is_created_too(shared: Client) -> None:
    answer = shared.post("/api/v1/udfs", json={"definition": "import no_such_module\nx = 1", "language": "python"})
    assert answer.status_code == 400
    told = answer.json()["error"]
    assert told.startswith("UDF is invalid")
    assert "no_such_module" in told


def test_11_functions_are_looked_at_without_another_service_and_with_a_login_if_there_is_one(shared: Client) -> None:
    assert shared.post("/api/v1/udfs/validate", json={"definition": "", "language": "python"}).status_code == 200


def test_12_a_missing_compiler_is_told_and_not_installed(
    shared: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    definition = "use arroyo_udf_plugin::udf;\n\n#[udf]\nfn twelve(n: i64) -> i64 {\n    n\n}\n"
    told = shared.post("/api/v1/udfs/validate", json={"definition": definition, "language": "rust"}).json()
    assert told["udf_name"] is None
    assert "cargo" in told["errors"][0] or "rustc" in told["errors"][0], told


def test_13_secrets_are_not_told(api: Client, stored: Any) -> None:
    stored(env_vars={"TOKEN": "secret-1"})
    api.post("/api/v1/connection_profiles", json=PROFILE | {"config": {"uri": "sqlite:secret-2"}})
    for path in ("jobs", "pipelines", "connection_profiles", "connection_tables"):
        assert "secret-" not in api.get(f"/api/v1/{path}").text


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"bind_address": "0.0.0.0", "no_token": True}, "api.no_token"),
        ({"bind_address": "0.0.0.0", "token": "t"}, "--insecure"),
        ({"bind_address": "0.0.0.0", "token": "t", "insecure": True}, "files.roots"),
    ],
)
def test_13_nobody_listens_to_others_without_saying_so(
    database: Database, tmp_path: Any, flags: dict[str, Any], told: str
) -> None:
    settings = configured(None, {"data": str(tmp_path / "data"), "api": flags}, {}).settings
    with pytest.raises(InvalidArgument, match=told):
        ApiParts.configured(database, settings, lambda: None)
    settings = configured(None, {"data": str(tmp_path / "data")}, {}).settings
    assert ApiParts.configured(database, settings, lambda: None).security is not None


def streamed(
    parts: ApiParts, job_id: str, count: int, between: Callable[[int], Awaitable[None]]
) -> list[dict[str, Any]]:
    """The first events of a stream; between: what happens after each."""

    async def read() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        stream = _events(parts, job_id, 0)
        async for event in stream:
            if event.startswith("id: "):
                found.append(json.loads(event.partition("data: ")[2]))
                await between(len(found))
            if len(found) == count or event.startswith("event: end"):
                break
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    return asyncio.run(read())


def test_15_a_slow_reader_and_a_late_one_get_all_rows(
    database: Database, records: Records, stored: Any, tmp_path: Any
) -> None:
    whole = stored("Running")
    parts = ApiParts(database, Builder(tmp_path / "functions"), records)

    def put(n: int) -> None:
        records.show(whole.job.id, [shown(n)])

    put(0)  # before anybody looks

    async def more(seen: int) -> None:
        """More batches than a channel would hold come while the reader is busy with the first one."""
        if seen == 1:
            for n in range(1, 101):
                put(n)
        if seen == 101:
            with database.begin() as session:
                session.get_one(JobStatus, whole.job.id).state = "Finished"

    found = streamed(parts, whole.job.id, 200, more)
    assert [one["start_id"] for one in found] == list(range(101))


def test_15_the_end_of_one_subtask_is_not_the_end_of_the_stream(
    database: Database, records: Records, stored: Any, tmp_path: Any
) -> None:
    whole = stored("Running")
    parts = ApiParts(database, Builder(tmp_path / "functions"), records)

    async def more(seen: int) -> None:
        """Subtask 0 has said its last word; the job goes on."""
        if seen < 3:
            records.show(whole.job.id, [shown(seen - 1, subtask_idx=1)])

    records.show(whole.job.id, [shown(0)])
    assert [one["subtask_idx"] for one in streamed(parts, whole.job.id, 3, more)] == [0, 1, 1]


def test_18_metrics_are_not_smoothed_and_outlive_the_controller(api: Client, stored: Any, records: Records) -> None:
    """They are in files; a change of the rate is there in the next count."""
    whole = stored()
    time = now() - 8_000_000
    counts = [0, 1000, 2000, 2010]
    for second, count in enumerate(counts):
        numbers = {"operators": {"1": {"0": {"messages_recv": count}}, "2": {"0": {}}}}
        records.count(whole.job.id, numbers, time + second * 1_000_000)
    path = f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/operator_metric_groups"
    (group,) = [one for one in api.get(path).json()["data"] if one["node_id"] == 1]
    (metrics,) = [one["subtasks"][0]["metrics"] for one in group["metric_groups"] if one["name"] == "messages_recv"]
    assert [one["value"] for one in metrics[:3]] == [1000, 1000, 10]


def test_19_a_refused_wish_is_told_with_the_reason(api: Client, stored: Any) -> None:
    """As an error, so that a page cannot take it for done."""
    path = f"/api/v1/pipelines/{stored(is_preview=True).pipeline.id}"
    for method, where, body, told in (
        ("PATCH", path, {"stop": "soon"}, "stop"),
        ("PATCH", path, {"parallelism": 2}, "only be stopped"),
        ("POST", f"{path}/restart", {}, "not restarted"),
        ("PATCH", "/api/v1/pipelines/pl_0", {"stop": "none"}, "Pipeline not found"),
    ):
        answer = api.request(method, where, json=body)
        assert answer.status_code in (400, 404, 422)
        assert told in answer.json()["error"]


def test_21_states_of_all_pipelines_are_one_request_and_errors_have_ids(
    api: Client, stored: Any, database: Database
) -> None:
    wholes = [stored(state) for state in ("Running", "Failed", "Stopped")]
    listed = {one["pipeline_id"]: one["state"] for one in api.get("/api/v1/jobs").json()["data"]}
    assert [listed[whole.pipeline.id] for whole in wholes] == ["Running", "Failed", "Stopped"]
    whole = wholes[0]
    with database.begin() as session:
        for _ in range(3):
            history.log(session, whole.job.id, 1, "error", "the same")
        session.flush()
        session.execute(update(JobLog).values(created_at=1_700_000_000_000_000))
    errors = api.get(f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/errors").json()["data"]
    assert len({one["id"] for one in errors}) == 3


def test_22_a_span_that_goes_on_does_not_end_before_it_begins(api: Client, stored: Any, database: Database) -> None:
    whole = stored()
    span = {"event": "Async", "description": "", "start_time": 1_700_000_000_000_000, "finish_time": 0}
    operators = {"a_1": {"bytes": 1, "subtasks": {"0": {"bytes": 1, "event_spans": [span]}}}}
    with database.begin() as session:
        add = {"generation": 1, "state": "inprogress", "start_time": span["start_time"]}
        history.checkpoint(session, whole.job.id, 1, events=[span], operators=operators, **add)
    path = f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/checkpoints"
    (checkpoint,) = api.get(path).json()["data"]
    (group,) = api.get(f"{path}/1/operator_checkpoint_groups").json()["data"]
    for told in (checkpoint["events"][0], group["subtasks"][0]["event_spans"][0]):
        assert told["finish_time"] > told["start_time"]
    assert checkpoint["finish_time"] is None


def test_23_the_interval_of_impulse_is_microseconds_as_its_form_says(shared: Client) -> None:
    table = {"name": "interval", "connector": "impulse", "config": {"event_rate": 5, "event_time_interval": 1500}}
    assert shared.post("/api/v1/connection_tables", json=table).status_code == 200
    made = shared.post("/api/v1/pipelines/validate_query", json={"query": "SELECT counter FROM interval;"})
    assert made.json()["errors"] == []
    from arroyo_udf_plugin.cluster.api.connectors import catalogue, form_of
    from arroyo_udf_plugin.engine.connectors.table_options import interval_seconds

    options = form_of(catalogue()["impulse"].table, table["config"]).options()  # type: ignore[arg-type]
    assert interval_seconds(options["event_time_interval"]) == pytest.approx(1500e-6)


def test_24_an_unknown_connector_is_a_wrong_request_that_names_it(api: Client) -> None:
    for path in ("connection_tables", "connection_profiles"):
        answer = api.post(f"/api/v1/{path}", json={"name": "t", "connector": "pigeon", "config": {}})
        assert answer.status_code == 400
        assert "pigeon" in answer.json()["error"]


def test_24_errors_name_fields_that_exist(api: Client) -> None:
    asked = {"name": "t", "connector": "sqlite", "config": {}}
    assert api.post("/api/v1/connection_tables", json=asked).json()["error"].startswith("connection_profile_id:")


def test_25_single_file_is_source_and_sink_under_the_name_that_sql_uses(api: Client) -> None:
    (found,) = [one for one in api.get("/api/v1/connectors").json()["data"] if one["id"] == "single_file"]
    assert (found["source"], found["sink"]) == (True, True)


def test_26_retries_can_be_seen(api: Client, stored: Any, database: Database) -> None:
    whole = stored()
    with database.begin() as session:
        history.log(session, whole.job.id, 1, "warn", "a worker was lost; starts again")
    path = f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/errors"
    assert api.get(path).json()["data"] == []
    assert len(api.get(f"{path}?level=warn").json()["data"]) == 1


def test_27_a_parallelism_that_can_never_run_is_refused(api: Client, stored: Any) -> None:
    """There are no slots to wait for; and a box that has one subtask only is not shown with more."""
    path = f"/api/v1/pipelines/{stored().pipeline.id}"
    answer = api.patch(path, json={"parallelism": 1025})
    assert (answer.status_code, "parallelism" in answer.json()["error"]) == (400, True)
    nodes = api.patch(path, json={"parallelism": 1024}).json()["graph"]["nodes"]
    assert [one["parallelism"] for one in nodes] == [1024, 1024, 1]


def test_30_wrong_parts_of_an_address_have_the_error_body(api: Client, stored: Any) -> None:
    whole = stored()
    job = f"pipelines/{whole.pipeline.id}/jobs/{whole.job.id}"
    for path in ("pipelines?limit=abc", f"{job}/checkpoints/x/operator_checkpoint_groups", f"{job}/errors?level=loud"):
        answer = api.get(f"/api/v1/{path}")
        assert answer.status_code == 400
        assert list(answer.json()) == ["error"]


def test_37_sqlite_has_the_constraints_too(api: Client, stored: Any, database: Database) -> None:
    """Names differ by more than case, what is in use is not deleted, and nothing is deleted silently."""
    profile = api.post("/api/v1/connection_profiles", json=PROFILE).json()
    assert api.post("/api/v1/connection_profiles", json=PROFILE).status_code == 400
    asked = {"name": "out", "connector": "sqlite", "connection_profile_id": profile["id"], "config": {}}
    table = api.post("/api/v1/connection_tables", json=asked).json()
    assert api.post("/api/v1/connection_tables", json=asked | {"name": "OUT"}).status_code == 400
    whole = stored("Stopped")
    with database.begin() as session:
        session.add(ConnectionTableUse(table_id=table["id"], pipeline_id=whole.pipeline.id))
    for path in (f"connection_profiles/{profile['id']}", f"connection_tables/{table['id']}"):
        answer = api.delete(f"/api/v1/{path}")
        assert answer.status_code == 400
        assert "use it" in answer.json()["error"]
    assert api.get("/api/v1/connection_tables").json()["data"][0]["consumers"] == 1
    assert api.delete(f"/api/v1/pipelines/{whole.pipeline.id}").status_code == 200
    assert api.delete(f"/api/v1/connection_tables/{table['id']}").status_code == 200
    assert api.delete(f"/api/v1/connection_profiles/{profile['id']}").status_code == 200
