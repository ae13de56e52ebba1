"""A pipeline from the REST API to its rows, while the programs of the cluster are killed."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import SQL, TWICE, Client, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("scheduler", ["embedded", "process"])
def test_a_posted_query_survives_kills_and_loses_nothing(
    start: Callable[..., Program], tmp_path: Path, scheduler: str
) -> None:
    program = start("cluster", tmp_path, "--port", "0", "--scheduler", scheduler)
    client = Client(program)
    udf = {"definition": TWICE, "language": "python"}
    body = {"name": "doubles", "query": SQL.format(out=tmp_path / "out"), "parallelism": 1, "udfs": [udf]}
    pipeline = client.ask("POST", "/pipelines", body | {"checkpoint_interval_micros": 1_000_000})["id"]
    job = client.await_state(pipeline, "Running")
    until(lambda: bool(parts(tmp_path)), "rows")

    program.end(signal.SIGKILL)
    for worker in worker_files.living(protocol.folder_of(tmp_path), job["id"]):
        worker.kill()
    program = start("cluster", tmp_path, "--port", "0", "--scheduler", scheduler)
    client = Client(program)
    until(lambda: client.job(pipeline)["run_id"] == 2, "a new generation")
    client.await_state(pipeline, "Running")
    assert client.ask("PATCH", f"/pipelines/{pipeline}", {"stop": "checkpoint"})["action_in_progress"]
    client.await_state(pipeline, "Stopped")
    found = len(parts(tmp_path))
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))

    client.ask("PATCH", f"/pipelines/{pipeline}", {"stop": "none"})
    client.await_state(pipeline, "Running")
    until(lambda: len(parts(tmp_path)) > found, "more rows")
    client.ask("PATCH", f"/pipelines/{pipeline}", {"stop": "checkpoint"})
    assert client.await_state(pipeline, "Stopped")["failure_reason"] is None
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
    epochs = [one["epoch"] for one in client.ask("GET", f"/pipelines/{pipeline}/jobs/{job['id']}/checkpoints")["data"]]
    assert epochs == sorted(epochs)
    assert epochs
    client.ask("DELETE", f"/pipelines/{pipeline}")
    assert program.end(signal.SIGTERM) == 0
