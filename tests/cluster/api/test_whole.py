"""From a query in a request to rows in an answer: the API, the controller and a worker, as in `arroyo-udf cluster`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import until

pytestmark = pytest.mark.cluster

PLANE = """
import asyncio
from arroyo_udf import udf

@udf
async def plane(n: int) -> str:
    await asyncio.sleep(0)
    return f"N{n}"
"""


def job_of(client: httpx.Client, pipeline: dict[str, Any]) -> dict[str, Any]:
    job: dict[str, Any] = client.get(f"/api/v1/pipelines/{pipeline['id']}/jobs").json()["data"][0]
    return job


def await_state(client: httpx.Client, pipeline: dict[str, Any], *states: str) -> dict[str, Any]:
    def reached() -> bool:
        return str(job_of(client, pipeline)["state"]) in states

    until(reached, f"{states}")
    return job_of(client, pipeline)


def rows_in(lines: Iterator[str], count: int | None) -> list[dict[str, Any]]:
    """The first rows of a stream; None: all."""
    rows: list[dict[str, Any]] = []
    for line in lines:
        if line == "event: end" or (count is not None and len(rows) >= count):
            break
        if line.startswith("data: "):
            told = json.loads(line.removeprefix("data: "))
            assert told["start_id"] == len(rows)
            rows += json.loads(told["batch"])
    return rows


def test_a_preview_of_a_query_with_an_async_function_shows_its_rows(client: httpx.Client) -> None:
    """As the page does it: validate, preview, wait, read the stream to its end."""
    query = """
        CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '1000', message_count = '50');
        SELECT plane(CAST(counter AS BIGINT)) AS tail, NULL AS nothing, event_time FROM numbers;
    """
    udfs = [{"definition": PLANE, "language": "python"}]
    valid = client.post("/api/v1/pipelines/validate_query", json={"query": query, "udfs": udfs}).json()
    assert valid["errors"] == []
    assert "AsyncUdf" in [node["operator"] for node in valid["graph"]["nodes"]]
    made = client.post("/api/v1/pipelines/preview", json={"query": query, "udfs": udfs}).json()
    job = await_state(client, made, "Running", "Finished")
    with client.stream("GET", f"/api/v1/pipelines/{made['id']}/jobs/{job['id']}/output") as stream:
        rows = rows_in(stream.iter_lines(), None)
    assert [row["tail"] for row in rows] == [f"N{n}" for n in range(50)]
    assert {row["nothing"] for row in rows} == {None}
    assert rows[0]["event_time"].endswith("Z")
    job = await_state(client, made, "Finished")
    assert (job["failure_reason"], job["finish_time"] >= job["start_time"]) == (None, True)


def test_a_pipeline_runs_stops_with_a_checkpoint_goes_on_and_is_deleted(client: httpx.Client, tmp_path: Path) -> None:
    query = f"""
        CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '500');
        CREATE TABLE out (n BIGINT)
        WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'csv', type = 'sink');
        INSERT INTO out SELECT CAST(counter AS BIGINT) AS n FROM numbers;
    """
    asked = {"name": "count", "query": query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
    made = client.post("/api/v1/pipelines", json=asked).json()
    path = f"/api/v1/pipelines/{made['id']}"
    job = await_state(client, made, "Running")
    assert client.get(path).json()["action_text"] == "Stop"
    checkpoints = f"{path}/jobs/{job['id']}/checkpoints"
    until(lambda: bool(client.get(checkpoints).json()["data"]), "a checkpoint")
    until(lambda: bool(client.get(f"{path}/jobs/{job['id']}/operator_metric_groups").json()["data"]), "metrics")
    names = {
        group["node_id"]: {one["name"] for one in group["metric_groups"]}
        for group in client.get(f"{path}/jobs/{job['id']}/operator_metric_groups").json()["data"]
    }
    recv, sent = {"messages_recv", "bytes_recv"}, {"messages_sent", "bytes_sent", "backpressure"}
    source, *operators, sink = made["graph"]["nodes"]
    ways = [(source, sent), *((operator, recv | sent) for operator in operators), (sink, recv)]
    assert names == {node["node_id"]: way for node, way in ways}
    epoch = client.get(checkpoints).json()["data"][-1]["epoch"]
    taken = client.get(f"{checkpoints}/{epoch}/operator_checkpoint_groups").json()["data"]
    assert [one["operator_id"] for one in taken] == [f"{node['operator']}_{node['node_id']}" for node, _ in ways]
    assert all(len(one["subtasks"]) == 1 and one["finish_time"] for one in taken)
    assert f'arroyo_udf_checkpoint_epoch{{job_id="{job["id"]}"}}' in client.get("/metrics").text
    assert client.patch(path, json={"stop": "checkpoint"}).json()["stop"] == "checkpoint"
    await_state(client, made, "Stopped")
    assert client.get(path).json()["action_text"] == "Start"
    before = numbers(tmp_path / "out")
    assert before == list(range(len(before)))
    assert client.patch(path, json={"stop": "none"}).status_code == 200
    until(lambda: len(numbers(tmp_path / "out")) > len(before), "more rows")
    assert client.patch(path, json={"stop": "immediate"}).status_code == 200
    stopped = await_state(client, made, "Stopped")
    assert stopped["run_id"] > job["run_id"]
    after = numbers(tmp_path / "out")
    assert after == list(range(len(after)))
    answer = client.delete(path)
    assert (answer.status_code, answer.headers["content-length"]) == (200, "0")
    assert client.get(path).status_code == 404


def numbers(folder: Path) -> list[int]:
    return sorted(int(line) for file in folder.glob("[!.]*.csv") for line in file.read_text().splitlines()[1:])


def test_a_stream_goes_on_while_the_job_runs(client: httpx.Client) -> None:
    query = "CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '100'); SELECT counter FROM numbers;"
    made = client.post("/api/v1/pipelines/preview", json={"query": query}).json()
    job = await_state(client, made, "Running")
    with client.stream("GET", f"/api/v1/pipelines/{made['id']}/jobs/{job['id']}/output") as stream:
        rows = rows_in(stream.iter_lines(), 100)
    assert [row["counter"] for row in rows] == list(range(len(rows)))
    assert client.patch(f"/api/v1/pipelines/{made['id']}", json={"stop": "immediate"}).json()["stop"] == "immediate"
    await_state(client, made, "Stopped")


def test_a_job_into_one_file_runs_without_checkpoints_and_says_so(client: httpx.Client, tmp_path: Path) -> None:
    """A stop and a start begin it anew: the file is that of an undisturbed run."""
    query = f"""
        CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '100', message_count = '200');
        CREATE TABLE out (n BIGINT) WITH (connector = 'single_file', path = '{tmp_path}/out.csv', type = 'sink');
        INSERT INTO out SELECT CAST(counter AS BIGINT) AS n FROM numbers;
    """
    asked = {"name": "one file", "query": query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
    answer = client.post("/api/v1/pipelines", json=asked)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    path = f"/api/v1/pipelines/{made['id']}"
    job = await_state(client, made, "Running")
    (told,) = client.get(f"{path}/jobs/{job['id']}/errors?level=warn").json()["data"]
    assert "out.csv: this job has no checkpoints" in told["message"]
    client.patch(path, json={"stop": "checkpoint"})
    await_state(client, made, "Stopped")
    client.patch(path, json={"stop": "none"})
    job = await_state(client, made, "Finished", "Failed")
    assert (job["state"], job["run_id"], job["failure_reason"]) == ("Finished", 2, None)
    assert numbers(tmp_path) == list(range(200))
    assert client.get(f"{path}/jobs/{job['id']}/checkpoints").json() == {"data": []}


def test_14_a_changed_function_reaches_a_pipeline_that_goes_on_from_its_checkpoint(
    client: httpx.Client, tmp_path: Path
) -> None:
    definition = "from arroyo_udf import udf\n\n@udf\ndef mark(n: int) -> str:\n    return f'{} {{n}}'\n"
    saved = {"definition": definition.format("old"), "language": "python"}
    udf = client.post("/api/v1/udfs", json=saved).json()
    query = f"""
        CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '200');
        CREATE TABLE out (m TEXT)
        WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'csv', type = 'sink');
        INSERT INTO out SELECT mark(CAST(counter AS BIGINT)) AS m FROM numbers;
    """
    asked = {"name": "marks", "query": query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
    made = client.post("/api/v1/pipelines", json=asked).json()
    path = f"/api/v1/pipelines/{made['id']}"
    await_state(client, made, "Running")
    until(lambda: bool(marks(tmp_path)), "rows")
    assert client.patch(f"/api/v1/udfs/{udf['id']}", json={"definition": definition.format("new")}).status_code == 200
    assert client.post(f"{path}/restart", json={"replan": True}).status_code == 200
    until(lambda: any(word == "new" for word, _ in marks(tmp_path)), "rows of the new function")
    client.patch(path, json={"stop": "checkpoint"})
    assert await_state(client, made, "Stopped")["failure_reason"] is None
    found = sorted(marks(tmp_path), key=lambda mark: mark[1])
    assert [n for _, n in found] == list(range(len(found)))
    words = [word for word, _ in found]
    assert words == sorted(words, reverse=True)  # first the old function, then the new one
    client.delete(path)
    client.delete(f"/api/v1/udfs/{udf['id']}")


def marks(folder: Path) -> list[tuple[str, int]]:
    lines = (line for file in (folder / "out").glob("[!.]*.csv") for line in file.read_text().splitlines()[1:])
    return [(word, int(n)) for word, _, n in (line.partition(" ") for line in lines)]


def test_34_the_end_of_one_source_is_not_the_end_of_the_job(client: httpx.Client, tmp_path: Path) -> None:
    """It takes checkpoints, stops with one, and goes on."""
    query = f"""
        CREATE TABLE few WITH (connector = 'impulse', event_rate = '1000', message_count = '5');
        CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '100');
        CREATE TABLE out (n BIGINT)
        WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'csv', type = 'sink');
        INSERT INTO out SELECT -1 - counter AS n FROM few UNION ALL SELECT counter AS n FROM numbers;
    """
    asked = {"name": "two", "query": query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
    made = client.post("/api/v1/pipelines", json=asked).json()
    path = f"/api/v1/pipelines/{made['id']}"
    job = await_state(client, made, "Running")
    until(lambda: set(range(-5, 0)) <= set(numbers(tmp_path / "out")), "all rows of the source that ends")
    epochs = f"{path}/jobs/{job['id']}/checkpoints"
    taken = len(client.get(epochs).json()["data"])
    until(lambda: len(client.get(epochs).json()["data"]) > taken, "one more checkpoint")
    assert job_of(client, made)["state"] == "Running"
    client.patch(path, json={"stop": "checkpoint"})
    assert await_state(client, made, "Stopped")["failure_reason"] is None
    before = numbers(tmp_path / "out")
    client.patch(path, json={"stop": "none"})
    until(lambda: len(numbers(tmp_path / "out")) > len(before), "more rows")
    client.patch(path, json={"stop": "checkpoint"})
    await_state(client, made, "Stopped")
    after = numbers(tmp_path / "out")
    assert after == list(range(-5, len(after) - 5))
    client.delete(path)


def test_32_a_pipeline_with_a_file_sink_starts_again_after_many_checkpoints(
    client: httpx.Client, tmp_path: Path
) -> None:
    """More than are kept: what the sink needs is in the latest one."""
    query = f"""
        CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '300');
        CREATE TABLE out (n BIGINT)
        WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'csv', type = 'sink');
        INSERT INTO out SELECT counter AS n FROM numbers;
    """
    asked = {"name": "many", "query": query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
    made = client.post("/api/v1/pipelines", json=asked).json()
    path = f"/api/v1/pipelines/{made['id']}"
    for generation in range(1, 4):
        job = await_state(client, made, "Running")
        assert job["run_id"] == generation
        epochs = f"{path}/jobs/{job['id']}/checkpoints"
        until(partial(has_epoch, client, epochs, 4 * generation), "checkpoints")
        client.patch(path, json={"stop": "immediate"})
        await_state(client, made, "Stopped")
        client.patch(path, json={"stop": "none"})
    await_state(client, made, "Running")
    client.patch(path, json={"stop": "checkpoint"})
    assert await_state(client, made, "Stopped")["failure_reason"] is None
    found = numbers(tmp_path / "out")
    assert found == list(range(len(found)))
    client.delete(path)


def has_epoch(client: httpx.Client, path: str, epoch: int) -> bool:
    return any(one["epoch"] >= epoch for one in client.get(path).json()["data"])
