"""Limits of what the users of a cluster have together: each refuses by its name, and is a metric."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from clusters import shown
from monitors import value
from test_openapi import Quick

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.configuration import LimitSettings
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobStatus
from arroyo_udf_plugin.cluster.functions.fair_queue import Busy
from arroyo_udf_plugin.cluster.functions.messages import PlanResult
from arroyo_udf_plugin.cluster.records import Records

LIMITS = LimitSettings(pipelines=3, parallelism=6, previews=2, previews_kept=3, streams=2)
QUERY = "SELECT 1"


class Sometimes(Quick):
    """Is busy when a query says so."""

    async def plan(self, name: str, query: str, *more: Any, **others: Any) -> PlanResult:
        if query == "busy":
            raise Busy("plans", "50 plans of yours wait already: send this one when some have ended")
        return await super().plan(name, query, *more, **others)


@pytest.fixture
def parts(database: Database, records: Records, tmp_path: Path) -> ApiParts:
    return ApiParts(database, Sometimes(tmp_path / "functions"), records, limits=LIMITS)


@pytest.fixture
def api(parts: ApiParts) -> Iterator[Client]:
    with Client(create_app(parts)) as client:
        yield client


def create(api: Client, parallelism: int = 1) -> Any:
    return api.post("/api/v1/pipelines", json={"name": "x", "query": QUERY, "parallelism": parallelism})


def preview(api: Client) -> Any:
    return api.post("/api/v1/pipelines/preview", json={"query": QUERY})


def end(database: Database, pipeline_id: str, state: str = "Stopped") -> str:
    """Returns the id of its job."""
    with database.begin() as session:
        job = pipelines.get(session, pipeline_id).job
        session.get_one(JobStatus, job.id).state = state
        job.stop = "checkpoint" if state == "Stopped" else job.stop
        job_id = job.id
    return job_id


def refused(answer: Any, status: int, what: str) -> str:
    told = str(answer.json()["error"])
    assert (answer.status_code, f"(limits.{what}" in told) == (status, True), told
    assert ("retry-after" in answer.headers) == (status == 429)
    return told


def metric(api: Client, name: str, what: str) -> float | None:
    return value(api.get("/metrics").text, f"arroyo_udf_{name}", what=what)


def test_pipelines_have_a_limit(api: Client) -> None:
    made = [create(api).json()["id"] for _ in range(3)]
    assert refused(create(api), 409, "pipelines") == "there are 3 pipelines: delete one (limits.pipelines = 3)"
    assert len(api.get("/api/v1/pipelines").json()["data"]) == 3
    numbers = [metric(api, name, "pipelines") for name in ("limit", "used", "refused_total")]
    assert numbers == [3, 3, 1]
    assert len(made) == 3


def test_all_jobs_that_run_have_a_parallelism_together(api: Client, database: Database) -> None:
    first, second = create(api, 3).json()["id"], create(api, 2).json()["id"]
    told = refused(create(api, 2), 409, "parallelism")
    assert "a parallelism of 5 in all run, and this would add 2" in told
    path = f"/api/v1/pipelines/{first}"
    refused(api.patch(path, json={"parallelism": 5}), 409, "parallelism")
    assert api.patch(path, json={"parallelism": 4}).status_code == 200
    assert metric(api, "used", "parallelism") == 6
    end(database, first)
    assert create(api, 4).status_code == 200
    refused(api.patch(path, json={"stop": "none"}), 409, "parallelism")
    refused(api.post(f"{path}/restart", json={}), 409, "parallelism")
    assert api.patch(path, json={"parallelism": 9}).status_code == 200, "it does not run"
    for change in ({"stop": "immediate"}, {"parallelism": 1}, {"parallelism": 2, "stop": "none"}):
        assert api.patch(f"/api/v1/pipelines/{second}", json=change).status_code == 200, "it does not grow"


def test_previews_have_a_limit_and_old_ones_make_room(api: Client, database: Database, records: Records) -> None:
    made = [preview(api).json()["id"] for _ in range(2)]
    refused(preview(api), 429, "previews")
    jobs = [end(database, one, "Finished") for one in made]
    for job in jobs:
        records.show(job, [shown(0)])
    made.append(preview(api).json()["id"])
    assert records.jobs() == sorted(jobs)
    end(database, made[-1])
    made.append(preview(api).json()["id"])
    assert records.jobs() == [jobs[1]], "the oldest one is gone, with its rows"
    assert [api.get(f"/api/v1/pipelines/{one}").status_code for one in made] == [404, 200, 200, 200]
    assert [metric(api, name, "previews") for name in ("limit", "used", "refused_total")] == [2, 1, 1]


def test_streams_have_a_limit(api: Client, parts: ApiParts, stored: Any) -> None:
    whole = stored()
    path = f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/output"

    async def with_two() -> Any:
        with parts.streams.waiting("job_1", False), parts.streams.waiting("job_2", False):
            return await api.http.get(path)

    refused(api.run(with_two()), 429, "streams")
    assert [metric(api, name, "streams") for name in ("limit", "used", "refused_total")] == [2, 0, 1]


def test_work_that_cannot_wait_is_refused(api: Client) -> None:
    answer = api.post("/api/v1/pipelines/validate_query", json={"query": "busy"})
    assert refused(answer, 429, "queued").startswith("50 plans of yours wait already")
    assert [metric(api, name, "plans") for name in ("limit", "used", "queued", "refused_total")] == [4, 0, 0, 1]
    assert api.post("/api/v1/pipelines/validate_query", json={"query": QUERY}).status_code == 200


def test_requests_at_the_same_moment_keep_to_the_limits(api: Client) -> None:
    async def all_at_once() -> list[int]:
        asked = [api.http.post("/api/v1/pipelines", json={"name": "x", "query": QUERY}) for _ in range(10)]
        return sorted(answer.status_code for answer in await asyncio.gather(*asked))

    assert api.run(all_at_once()) == [200] * 3 + [409] * 7
