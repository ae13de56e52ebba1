"""State and functions of jobs in an object store, whose server is killed, keeps its data and comes back."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import program
from programs import SQL, TWICE, Client, Program, doubles, expected, parts
from waiting import until

import object_store_server
from arroyo_udf_plugin.cluster.generation import request, run
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster

SECRET = "the-secret-key-of-the-store"
UDF = {"definition": TWICE, "language": "python"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object_store_server.Server]:
    """In the environment of this process and of all that it starts. It takes any credentials."""
    with object_store_server.server(tmp_path / "s3") as server:
        for name, value in (server.environment | {"AWS_SECRET_ACCESS_KEY": SECRET}).items():
            monkeypatch.setenv(name, value)
        yield server


class Posted:
    """A pipeline of a cluster, and what it has written below `folder`."""

    def __init__(self, client: Client, folder: Path, **more: Any) -> None:
        self.client, self.folder = client, folder
        body = {"name": "doubles", "query": SQL.format(out=folder / "out"), "parallelism": 1, "udfs": [UDF]}
        self.id = client.ask("POST", "/pipelines", body | {"checkpoint_interval_micros": 1_000_000} | more)["id"]
        self.job = client.job(self.id)["id"]

    def state(self) -> str:
        state: str = self.client.job(self.id)["state"]
        return state

    def await_rows(self) -> None:
        """More than there are now."""
        seen = len(parts(self.folder))
        until(lambda: len(parts(self.folder)) > seen, "rows")

    def kill_worker(self, data: Path) -> None:
        for worker in worker_files.living(protocol.folder_of(data), self.job):
            worker.kill()

    def stop(self) -> None:
        self.client.ask("PATCH", f"/pipelines/{self.id}", {"stop": "checkpoint"})
        assert self.client.await_state(self.id, "Stopped")["failure_reason"] is None


def await_attempt(server: object_store_server.Server) -> None:
    """Until somebody asks the server, which is dead."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", int(server.address.rpartition(":")[2])))
        listening.listen()
        listening.settimeout(60)
        listening.accept()[0].close()


@pytest.mark.parametrize("told", ["checkpoint_url", "state_url"])
def test_a_job_survives_its_worker_and_the_store_and_leaves_nothing(
    start: Callable[..., Program],
    tmp_path: Path,
    server: object_store_server.Server,
    monkeypatch: pytest.MonkeyPatch,
    told: str,
) -> None:
    data, functions, state = tmp_path / "data", server.bucket("functions"), f"{server.bucket('state')}/of jobs"
    monkeypatch.setenv("ARROYO_UDF__ARTIFACT_URL", functions)
    if told == "checkpoint_url":
        monkeypatch.setenv("ARROYO_UDF__CHECKPOINT_URL", state)
    cluster = start("cluster", data, "--port", "0", "--scheduler", "process")
    client = Client(cluster)
    posted = Posted(client, tmp_path, **({"state_url": state} if told == "state_url" else {}))
    posted.await_rows()

    shutil.rmtree(data / "functions" / "libraries")  # so that the next worker fetches the function
    posted.kill_worker(data)
    client.await_state(posted.id, "Running", generation=2)
    posted.await_rows()

    server.kill()  # the worker cannot commit, and goes on when it can
    posted.kill_worker(data)
    until(lambda: client.job(posted.id)["run_id"] == 3, "a generation that waits for the store")
    await_attempt(server)
    assert posted.state() in ("Scheduling", "Recovering", "Compiling")
    server.restart()
    client.await_state(posted.id, "Running", generation=3)
    posted.await_rows()

    generation = client.job(posted.id)["run_id"]
    client.ask("PATCH", f"/pipelines/{posted.id}", {"parallelism": 2})
    client.await_state(posted.id, "Running", generation=generation + 1)
    posted.await_rows()
    posted.stop()
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))

    (tmp_path / "out").rename(tmp_path / "before")  # the next one begins anew
    client.ask("POST", f"/pipelines/{posted.id}/restart", {"ignore_state": True})
    client.await_state(posted.id, "Running", generation=generation + 2)
    posted.await_rows()
    posted.stop()
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))

    assert open_store(functions).names("")
    assert {name.split("/")[1] for name in open_store(state).names(f"{posted.job}/")} == {"0", "1"}
    log = json.dumps(client.ask("GET", f"/pipelines/{posted.id}/jobs/{posted.job}/errors?level=info"))
    assert SECRET not in cluster.said + log
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    client.ask("DELETE", f"/pipelines/{posted.id}")
    until(lambda: not open_store(state).names("") + open_store(functions).names(""), "the removal of all")


def test_a_worker_that_waits_for_the_store_goes_on_where_it_was(
    start: Callable[..., Program],
    tmp_path: Path,
    server: object_store_server.Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store is gone for a while: the same worker commits what it has, as soon as it can."""
    monkeypatch.setenv("ARROYO_UDF__CHECKPOINT_URL", server.bucket("state"))
    client = Client(start("cluster", tmp_path / "data", "--port", "0", "--scheduler", "process"))
    posted = Posted(client, tmp_path)
    posted.await_rows()
    server.kill()
    await_attempt(server)
    before = client.job(posted.id)
    numbers = f"/pipelines/{posted.id}/jobs/{posted.job}/checkpoints"
    epochs = client.ask("GET", numbers)["data"]
    server.restart()
    until(lambda: len(client.ask("GET", numbers)["data"]) > len(epochs) + 1, "further checkpoints")
    assert (client.job(posted.id)["run_id"], posted.state()) == (before["run_id"], "Running")
    posted.stop()
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))


def test_an_older_generation_that_still_runs_cannot_commit(
    server: object_store_server.Server, tmp_path: Path, build_plugin: Any
) -> None:
    """Two generations of a job at once: the store creates each epoch once, and the older one gives up."""
    library = build_plugin(TWICE)
    pipeline = program(Script("query.sql", SQL.format(out=tmp_path / "out"), [str(library)]).pipeline, library)
    place = f"{server.bucket('state')}/job_1/0"
    ends: dict[int, JobReport] = {}
    stops = {generation: StopRequest(10.0) for generation in (1, 2)}

    def work(generation: int) -> None:
        task = Task("job_1", generation, pipeline, 1, 0.1, place)

        def tell(report: JobReport) -> None:
            if report.event not in (None, Event.STARTED):
                ends[generation] = report

        run(task, stops[generation], tell)

    threads = {generation: threading.Thread(target=work, args=[generation]) for generation in (1, 2)}
    threads[1].start()
    until(lambda: bool(parts(tmp_path)), "rows of the first generation")
    threads[2].start()
    threads[1].join()
    assert ends[1].event is Event.LOST
    assert "another engine has resumed this pipeline" in ends[1].message
    seen = len(parts(tmp_path))
    until(lambda: len(parts(tmp_path)) > seen, "rows of the second generation")
    request(stops[2], "save")
    threads[2].join()
    assert ends[2].event is Event.SAVED
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
