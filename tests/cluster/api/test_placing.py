"""The scheduler that a pipeline asks for: what the API stores, and what it refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records

PATH = "/api/v1/pipelines"
COUNTED = "CREATE TABLE impulse WITH (connector = 'impulse', event_rate = '10', message_count = '3');"
TO_FOLDER = f"""{COUNTED}
CREATE TABLE out (n BIGINT) WITH (connector = 'filesystem', path = '/nowhere/out', format = 'parquet', type = 'sink');
INSERT INTO out SELECT CAST(counter AS BIGINT) AS n FROM impulse;"""


@pytest.fixture
def with_flink(database: Database, records: Records, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """An API that knows Flink."""
    builder = Builder(tmp_path / "functions")
    clients = []
    parts = ApiParts(database, builder, records, flink_slices=8, checkpoints=str(tmp_path / "checkpoints"))

    def make(**changes: Any) -> Client:
        clients.append(Client(create_app(dataclasses.replace(parts, **changes))))
        return clients[-1].__enter__()

    yield make
    for client in clients:
        client.run(builder.close())
        client.__exit__(None, None, None)


def test_without_flink_nothing_is_placed_there(api: Client) -> None:
    asked = {"name": "x", "query": TO_FOLDER, "scheduler": "flink"}
    answer = api.post(PATH, json=asked)
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "scheduler: this cluster knows no Flink: set flink.url",
    )


@pytest.mark.cluster
def test_a_pipeline_is_stored_with_its_scheduler_and_its_slices(
    with_flink: Callable[..., Client], database: Database
) -> None:
    """There are as many as its parallelism at least, and they stay."""
    client = with_flink(scheduler="flink")
    for asked, stored in (
        ({"parallelism": 12}, ("flink", 12)),
        ({}, ("flink", 8)),
        ({"scheduler": "local"}, ("local", None)),
    ):
        told = client.post(PATH, json={"name": "x", "query": TO_FOLDER} | asked).json()
        assert told["scheduler"] == stored[0], told
        with database.read() as session:
            job = pipelines.get(session, told["id"]).job
            assert (job.scheduler, job.slices) == stored
        answer = client.patch(f"{PATH}/{told['id']}", json={"parallelism": 13})
        assert answer.status_code == (200 if stored[1] is None else 400), answer.text


@pytest.mark.cluster
def test_what_cannot_run_on_flink_is_refused(with_flink: Callable[..., Client]) -> None:
    client = with_flink()
    asked = {"name": "x", "query": f"{COUNTED} SELECT counter FROM impulse;", "scheduler": "flink"}
    answer = client.post(PATH, json=asked)
    assert (answer.status_code, "Failed to plan query" in answer.json()["error"]) == (400, True)
    told = client.post(f"{PATH}/validate_query", json={"query": asked["query"], "scheduler": "flink"}).json()
    assert told["errors"]
    answer = client.post(PATH, json=asked | {"query": TO_FOLDER, "env_vars": {"TOKEN": "secret"}})
    assert (answer.status_code, "TOKEN: a job on Flink gets no values" in answer.json()["error"]) == (400, True)


@pytest.mark.cluster
def test_a_pipeline_moves_when_it_has_stopped(with_flink: Callable[..., Client], database: Database) -> None:
    client = with_flink()
    id = client.post(PATH, json={"name": "x", "query": TO_FOLDER}).json()["id"]

    def become(state: str) -> None:
        with database.begin() as session:
            pipelines.get(session, id).status.state = state

    become("Running")
    answer = client.post(f"{PATH}/{id}/restart", json={"scheduler": "flink"})
    assert (answer.status_code, answer.json()["error"]) == (
        409,
        "its job is Running: stop it, and move it when it has stopped",
    )
    become("Stopped")
    told = client.post(f"{PATH}/{id}/restart", json={"scheduler": "flink"}).json()
    with database.read() as session:
        job = pipelines.get(session, id).job
        assert (told["scheduler"], job.slices, job.history, job.stop) == ("flink", 8, 1, "none")
    back = client.post(f"{PATH}/{id}/restart", json={"scheduler": "local"})
    assert (back.status_code, "send discard_state" in back.json()["error"]) == (400, True)
    told = client.post(f"{PATH}/{id}/restart", json={"scheduler": "local", "discard_state": True}).json()
    assert told["scheduler"] == "local"
