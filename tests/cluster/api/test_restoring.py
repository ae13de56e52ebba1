"""Going back over the API, savepoints, restarts with another query, and where state may be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_client import Client
from waiting import until

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.engine.execution.epoch_files import EpochFiles
from arroyo_udf_plugin.engine.execution.store import open_store
from conftest import CACHE, Stored

API = "/api/v1/pipelines"
SINKS = {"sinks": [{"type": "table", "uri": "sqlite:x", "table": "t"}, {"type": "parts", "path": "/out"}]}


def described(**more: Any) -> JobProgram:
    return JobProgram({"name": "p", "source": {"type": "impulse"}, **SINKS} | more, {})


@pytest.fixture
def confined(database: Database, records: Records, tmp_path: Path) -> Iterator[Client]:
    root = tmp_path / "allowed"
    root.mkdir()
    builder = Builder(tmp_path / "functions", cache=CACHE, roots=[str(root)])
    with Client(create_app(ApiParts(database, builder, records, roots=[str(root)]))) as client:
        yield client
        client.run(builder.close())


def test_new_values_of_variables_are_checked_like_a_query(confined: Client, stored: Stored, tmp_path: Path) -> None:
    program = described(source={"type": "files", "paths": ["${P}"]}, sinks=[{"type": "blackhole"}])
    whole = stored(program=program, env_vars={"P": str(tmp_path / "allowed" / "a.csv")})
    path = f"{API}/{whole.pipeline.id}"
    for outside in (str(tmp_path / "secret.csv"), f"{tmp_path}/allowed/x://../../secret.csv", f"file://{tmp_path}/a"):
        refused = confined.patch(path, json={"env_vars": {"P": outside}})
        assert (refused.status_code, refused.json()["error"].partition(":")[0]) == (400, "env_vars")
    assert confined.patch(path, json={"env_vars": {"P": str(tmp_path / "allowed" / "b.csv")}}).status_code == 200


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://bucket/data?region=eu-west-1", "leave out '?'"),
        ("s3://bucket/data#x", "leave out '#'"),
        ("/state/${WHERE}", "WHERE is not among the env_vars"),
    ],
)
def test_a_place_that_cuts_itself_off_is_refused(shared: Client, url: str, why: str) -> None:
    query = "CREATE TABLE n WITH (connector = 'impulse', event_rate = '1'); SELECT counter FROM n;"
    refused = shared.post(API, json={"name": "p", "query": query, "parallelism": 1, "state_url": url})
    assert refused.status_code == 400
    assert why in refused.json()["error"]


def test_a_finished_pipeline_is_not_restarted(api: Client, stored: Stored) -> None:
    whole = stored("Finished")
    for body in ({}, {"ignore_state": True}, {"force": True}):
        answer = api.post(f"{API}/{whole.pipeline.id}/restart", json=body)
        assert answer.status_code == 409
        assert answer.json()["error"].startswith("its job has finished, and all rows are in its sinks")


def test_to_discard_the_state_is_arroyos_ignore_state(api: Client, stored: Stored, database: Database) -> None:
    for body in ({"ignore_state": True}, {"discard_state": True}):
        whole = stored("Failed")
        assert api.post(f"{API}/{whole.pipeline.id}/restart", json=body).status_code == 200
        with database.read() as session:
            found = session.get(type(whole.job), whole.job.serial)
            assert found is not None
            assert found.history == 1


def test_what_sinks_do_with_later_rows_is_said_first_and_doubles_are_accepted_by_name(
    api: Client, stored: Stored, database: Database, tmp_path: Path, woken: list[str]
) -> None:
    whole = stored("Running", program=described(), checkpoints=str(tmp_path))
    place, job = f"{tmp_path}/{whole.job.id}/0", whole.job.id
    with database.begin() as session:
        for epoch in (6, 7, 8):
            told = {"generation": 1, "state": "ready", "start_time": 1, "finish_time": 10 * epoch}
            history.checkpoint(session, job, epoch, **told)
        history.retain(session, job, 0, [6, 7, 8])
    for epoch in (7, 8):  # what the job has not told yet
        open_store(place).put(EpochFiles.name(epoch), b"")
    path = f"{API}/{whole.pipeline.id}/jobs/{job}/restore"
    assert api.get(path).json() == {
        "checkpoints": [{"epoch": 7, "finish_time": 70}, {"epoch": 8, "finish_time": 80}],
        "savepoints": [],
        "sinks": [{"sink": "table", "later_rows": "doubled"}, {"sink": "parts", "later_rows": "withdrawn"}],
    }
    for body, status, text in (
        ({}, 400, "name what to go back to: either epoch or savepoint"),
        ({"epoch": 7, "savepoint": "x"}, 400, "name what to go back to"),
        ({"epoch": 6}, 404, "Checkpoint not found: there are 7, 8"),
        ({"savepoint": "x"}, 404, "Savepoint not found"),
        ({"epoch": 7}, 409, 'send "accept_doubles": ["table"]'),
        ({"epoch": 7, "accept_doubles": ["tabel"]}, 400, "there is no sink tabel: there are table, parts"),
    ):
        answer = api.post(path, json=body)
        assert (answer.status_code, text in answer.json()["error"]) == (status, True)
    assert not woken
    assert api.post(path, json={"epoch": 7, "accept_doubles": ["table"]}).status_code == 200
    with database.read() as session:
        found = session.get(type(whole.job), whole.job.serial)
        assert found is not None
        assert found.restore == {"epoch": 7, "doubles": ["table"], "nonce": 1}
        assert found.restart_mode == "force"
    assert woken


# ---- With a whole cluster ----

COUNT = "CREATE TABLE n WITH (connector = 'impulse', event_rate = '1000');\n"
OUT = "CREATE TABLE o WITH (connector = 'filesystem', type = 'sink', path = '{out}', format = 'json');\n"
QUERY = COUNT + OUT + "INSERT INTO o SELECT counter FROM n WHERE counter % 2 = 0;"


class Job:
    def __init__(self, client: httpx.Client, out: Path) -> None:
        self._client, self.out = client, out
        self.query = QUERY.replace("{out}", str(out))
        body = {"name": out.name, "query": self.query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
        self.id = self.ask("POST", API, body)["id"]
        self.path = f"{API}/{self.id}"
        self.job = f"{self.path}/jobs/{self.state()['id']}"

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self._client.request(method, path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def state(self) -> Any:
        return self.ask("GET", f"{API}/{self.id}/jobs")["data"][0]

    def await_state(self, state: str, generation: int = 0) -> None:
        until(lambda: self.state()["state"] == state and self.state()["run_id"] >= generation, state)

    def await_checkpoint(self) -> None:
        before = time.time_ns() // 1000

        def is_new() -> bool:
            told = self.ask("GET", f"{self.job}/checkpoints")["data"]
            return any(one["finish_time"] > before for one in told)

        until(is_new, "a checkpoint")

    def stop(self) -> None:
        self.ask("PATCH", self.path, {"stop": "checkpoint"})
        self.await_state("Stopped")


@pytest.fixture
def job(client: httpx.Client, tmp_path: Path) -> Iterator[Job]:
    one = Job(client, tmp_path / "out")
    yield one
    client.patch(one.path, json={"stop": "immediate"})
    until(lambda: one.state()["state"] in ("Stopped", "Failed"), "its end")


@pytest.mark.cluster
def test_a_savepoint_stays_and_a_stopped_job_goes_back_to_it(job: Job) -> None:
    job.await_state("Running")
    job.await_checkpoint()
    taken = job.ask("POST", f"{job.job}/savepoints", {"name": "one"})
    assert taken["name"] == "one"
    assert taken["bytes"] > 0
    assert job.ask("GET", f"{job.job}/savepoints")["data"] == [taken]
    assert "already" in job.ask("POST", f"{job.job}/savepoints", {"name": "one"}, 400)["error"]
    job.ask("POST", f"{job.job}/savepoints", {"name": "../x"}, 400)
    job.ask("POST", f"{job.job}/savepoints", {"name": "two"})
    job.ask("DELETE", f"{job.job}/savepoints/two")
    job.ask("DELETE", f"{job.job}/savepoints/two", status=404)
    job.await_checkpoint()
    job.stop()
    job.ask("POST", f"{job.job}/restore", {"savepoint": "one", "accept_doubles": ["parts"]})
    job.await_state("Running", generation=2)
    job.await_checkpoint()
    assert job.ask("GET", f"{job.job}/restore")["savepoints"] == [taken]
    job.stop()
    rows = [line for part in sorted(job.out.glob("part-*")) for line in part.read_text().splitlines()]
    assert len(rows) == len(set(rows))


@pytest.mark.cluster
def test_18_a_pipeline_is_planned_anew_after_a_rescale(job: Job) -> None:
    job.await_state("Running")
    job.ask("PATCH", job.path, {"parallelism": 2})
    job.await_state("Running", generation=2)
    job.ask("POST", f"{job.path}/restart", {"replan": True})
    job.await_state("Running", generation=3)


@pytest.mark.cluster
def test_a_changed_query_goes_on_where_the_state_fits(job: Job) -> None:
    job.await_state("Running")
    job.await_checkpoint()
    changed = job.query.replace("% 2 = 0", "% 3 = 0")
    assert job.ask("POST", f"{job.path}/restart", {"query": changed})["query"] == changed
    job.await_state("Running", generation=2)
    job.await_checkpoint()
    other = changed.replace("SELECT counter FROM", "SELECT counter, counter AS b FROM")
    refused = job.ask("POST", f"{job.path}/restart", {"query": other}, 400)["error"]
    assert "so it cannot go on: " in refused
    assert refused.endswith("send discard_state")
    assert job.ask("GET", job.path)["query"] == changed
