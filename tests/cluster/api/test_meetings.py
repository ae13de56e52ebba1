"""Requests that meet others at the same moment, and a database that does not answer: told as that, never a 500."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from sqlalchemy import func, select, text

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import connections
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobRow, PipelineRow
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.functions.messages import PlanResult
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.records import Records

TABLE = {"name": "ticks", "connector": "impulse", "config": {"event_rate": 5}}


class Slow(Builder):
    """Plans everything, and does something else meanwhile."""

    def __init__(self, folder: Path, meanwhile: Callable[[], None]) -> None:
        super().__init__(folder)
        self._meanwhile = meanwhile

    async def plan(self, name: str, query: str, *more: Any, **others: Any) -> PlanResult:
        self._meanwhile()
        return PlanResult(
            description={"operators": [], "sinks": []},
            graph={},
            tables=["ticks"] if "ticks" in query else [],
        )


def test_a_table_that_is_deleted_while_its_query_is_planned_is_a_conflict(database: Database, tmp_path: Path) -> None:
    def delete() -> None:
        with database.begin() as session:
            connections.delete_table(session, made["id"])

    with Client(create_app(ApiParts(database, Slow(tmp_path / "functions", delete), Records(tmp_path)))) as api:
        made = api.post("/api/v1/connection_tables", json=TABLE).json()
        answer = api.post("/api/v1/pipelines", json={"name": "p", "query": "SELECT * FROM ticks", "parallelism": 1})
        assert (answer.status_code, list(answer.json())) == (409, ["error"])
    with database.read() as session:
        assert [session.scalar(select(func.count()).select_from(table)) for table in (PipelineRow, JobRow)] == [0, 0]


def test_a_pipeline_that_is_deleted_while_it_is_planned_anew_is_not_found(
    database: Database, tmp_path: Path, stored: Any
) -> None:
    whole = stored("Stopped", program=JobProgram({"operators": [], "sinks": []}, {}))

    def delete() -> None:
        with database.begin() as session:
            session.delete(session.merge(whole.pipeline))

    with Client(create_app(ApiParts(database, Slow(tmp_path / "functions", delete), Records(tmp_path)))) as api:
        answer = api.post(f"/api/v1/pipelines/{whole.pipeline.id}/restart", json={"replan": True})
        assert (answer.status_code, answer.json()) == (404, {"error": "Pipeline not found"})


def test_a_database_that_fails_is_no_bug_and_secrets_are_not_in_the_log(
    api: Client, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with database.begin() as session:
        session.execute(text("ALTER TABLE connection_profiles RENAME TO gone"))
    asked = {"name": "x", "connector": "sqlite", "config": {"uri": "sqlite:very-secret.db"}}
    answer = api.post("/api/v1/connection_profiles", json=asked)
    assert (answer.status_code, answer.json()) == (503, {"error": "database not available: repeat the request later"})
    told = [record for record in caplog.records if record.name == "arroyo_udf_plugin.api"]
    assert [record.levelname for record in told] == ["WARNING"]
    assert "POST /api/v1/connection_profiles" in told[0].getMessage()
    assert "secret" not in caplog.text
    assert "parameters: (" not in caplog.text


def test_what_is_unexpected_is_told_in_the_log_only(
    api: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*arguments: Any, **more: Any) -> None:
        raise ZeroDivisionError("a bug in here")

    monkeypatch.setattr(connections, "create_profile", fails)
    asked = {"name": "x", "connector": "sqlite", "config": {"uri": "sqlite:very-secret.db"}}
    answer = api.post("/api/v1/connection_profiles", json=asked)
    assert (answer.status_code, answer.json()) == (500, {"error": "Something went wrong"})
    assert "a bug in here" in caplog.text
    assert "very-secret" not in caplog.text
