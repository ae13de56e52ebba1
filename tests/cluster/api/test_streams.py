"""Streams of rows: how they wait, and what that costs."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from clusters import shown
from sqlalchemy import event

from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.api.output import _events
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobStatus
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records

OUTPUT = importlib.import_module("arroyo_udf_plugin.cluster.api.output")  # the package has its router by that name


@pytest.fixture
def parts(database: Database, records: Records, tmp_path: Path) -> ApiParts:
    return ApiParts(database, Builder(tmp_path / "functions"), records)


def finish(database: Database, job_id: str) -> None:
    with database.begin() as session:
        session.get_one(JobStatus, job_id).state = "Finished"


async def rest(stream: AsyncIterator[str]) -> list[str]:
    return [each async for each in stream]


def test_idle_streams_ask_the_database_once_for_all(
    parts: ApiParts, database: Database, records: Records, stored: Any
) -> None:
    """A hundred of them cost half a core: each read and decrypted its pipeline five times a second."""
    jobs = [stored().job.id for _ in range(4)]
    for job in jobs:
        records.show(job, [shown(0)])
    statements: list[str] = []

    async def run() -> list[list[str]]:
        streams = [_events(parts, jobs[number % 4], 0) for number in range(100)]
        for stream in streams:
            assert "id: 0" in await anext(stream)
        waiting = [asyncio.ensure_future(rest(stream)) for stream in streams]
        event.listen(database.engine, "before_cursor_execute", lambda *told: statements.append(told[2]))
        looked = parts.streams.looks
        while parts.streams.looks < looked + 10:
            await asyncio.sleep(0.05)
        asked = [one for one in statements if "SELECT" in one]
        assert 1 <= len(asked) <= 4, asked
        assert all("job_statuses.state" in one and "env_vars" not in one for one in asked)
        assert parts.streams.open == 100
        for job in jobs:
            finish(database, job)
        return await asyncio.gather(*waiting)

    told = asyncio.run(run())
    assert told == [["event: end\ndata: {}\n\n"]] * 100
    assert parts.streams.open == 0


def test_rows_come_before_the_end_though_both_come_at_once(
    parts: ApiParts, database: Database, records: Records, stored: Any
) -> None:
    job = stored().job.id

    async def run() -> list[str]:
        waiting = asyncio.ensure_future(rest(_events(parts, job, 0)))
        await asyncio.sleep(0)
        records.show(job, [shown(0), shown(1)])
        finish(database, job)
        return await waiting

    told = asyncio.run(run())
    assert [one.partition("\n")[0] for one in told] == ["id: 0", "id: 1", "event: end"]


def test_a_stream_of_a_job_that_is_deleted_ends(parts: ApiParts, database: Database, stored: Any) -> None:
    whole = stored()

    async def run() -> list[str]:
        waiting = asyncio.ensure_future(rest(_events(parts, whole.job.id, 0)))
        await asyncio.sleep(0)
        with database.begin() as session:
            session.delete(session.merge(whole.pipeline))
        return await waiting

    assert asyncio.run(run()) == ["event: end\ndata: {}\n\n"]


def test_a_quiet_stream_says_that_it_is_there(parts: ApiParts, stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OUTPUT, "_QUIET_SECONDS", 0.01)
    job = stored().job.id

    async def run() -> list[str]:
        stream = _events(parts, job, 0)
        told = [await anext(stream) for _ in range(2)]
        await stream.aclose()  # type: ignore[attr-defined]
        return told

    assert asyncio.run(run()) == [": nothing new\n\n"] * 2
    assert parts.streams.open == 0
