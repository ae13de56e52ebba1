"""An API without a controller says so, in each answer that waits for one."""

from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from sqlalchemy import update

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import jobs
from arroyo_udf_plugin.cluster.database.database import Database, now
from arroyo_udf_plugin.cluster.database.models import JobRow, Leader
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records


def answers(api: Client, pipeline: str) -> list[Any]:
    """What is told of a pipeline and its job."""
    one = f"/api/v1/pipelines/{pipeline}"
    return [
        api.get(one).json(),
        api.get("/api/v1/pipelines").json()["data"][0],
        api.get("/api/v1/jobs").json()["data"][0],
        api.get(f"{one}/jobs").json()["data"][0],
        api.patch(one, json={"stop": "none"}).json(),
        api.post(f"{one}/restart", json={}).json(),
    ]


@pytest.mark.parametrize("leader", ["never", "dead", "ended"])
def test_an_api_without_a_controller_says_so(api: Client, stored: Any, database: Database, leader: str) -> None:
    pipeline = stored("Created").pipeline.id
    with database.begin() as session:
        if leader != "never":
            jobs.lead(session, "c")
        if leader == "dead":
            session.execute(update(Leader).values(seen_at=now() - 2 * jobs.ALIVE))
        if leader == "ended":
            jobs.give_up(session)
    for told in answers(api, pipeline):
        assert told["waits_for"] == "no controller runs: start arroyo-udf cluster, or arroyo-udf controller"


def test_an_api_with_a_controller_says_nothing(api: Client, stored: Any, database: Database) -> None:
    pipeline = stored("Created").pipeline.id
    with database.begin() as session:
        jobs.lead(session, "c")
    assert [told["waits_for"] for told in answers(api, pipeline)] == [None] * 6


def test_a_job_that_has_ended_waits_for_nobody(api: Client, stored: Any, database: Database) -> None:
    pipeline = stored("Finished").pipeline.id
    with database.begin() as session:
        session.execute(update(JobRow).values(fulfilled=JobRow.revision))
    assert api.get(f"/api/v1/pipelines/{pipeline}").json()["waits_for"] is None


def test_a_program_whose_controller_has_ended_is_not_ready(database: Database, tmp_path: Path) -> None:
    records = Records(tmp_path / "records")
    parts = ApiParts(database, Builder(tmp_path / "functions"), records, security=None, is_controlled=lambda: False)
    with Client(create_app(parts)) as client:
        answer = client.get("/health/ready")
        assert (answer.status_code, client.get("/health/live").status_code) == (503, 200)
        assert "has ended" in answer.json()["error"]
        client.run(parts.builder.close())
