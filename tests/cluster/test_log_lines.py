"""Log lines of a cluster's programs, and of users' functions in workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import posting
from programs import SQL, Program
from waiting import until

from arroyo_udf_plugin.cluster import logs
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.engine.planner.script import Script

TALKING = """
import logging

from arroyo_udf_plugin import udf

@udf
async def twice(value: int) -> int:
    if value == 0:
        logging.getLogger("users").info("the first\\nrow")
    return 2 * value
"""


@contextlib.contextmanager
def shown(*arguments: Any, **own: object) -> Iterator[None]:
    """As in a program; then the tests' own logging again."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    logs.show(*arguments, **own)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
        logging.captureWarnings(False)


def test_a_json_line_has_the_fields_of_its_process_and_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("json", "info", job_id="job_1", generation=3):
        logging.getLogger("a.library").info("one\n%s", "two", extra={"operator": "town"})
        logging.getLogger("a.library").debug("too low")
    (told,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "info",
        "logger": "a.library",
        "job_id": "job_1",
        "generation": 3,
        "operator": "town",
        "message": "one\ntwo",
    }


def test_a_text_line_ends_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("text", "info"):
        logging.getLogger("a.library").info("without")
        logging.getLogger("a.library").warning("with", extra={"job_id": "job_1", "generation": 3})
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(" INFO a.library: without")
    assert second.endswith(" WARNING a.library: with [job_id=job_1 generation=3]")


def test_a_task_of_asyncios_is_no_operator(capsys: pytest.CaptureFixture[str]) -> None:
    async def talk() -> None:
        logging.getLogger("a.library").info("talked")

    async def named() -> None:
        await asyncio.create_task(talk(), name="module.town")

    with shown("json", "info"):
        asyncio.run(talk())
        asyncio.run(named())
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert "operator" not in first
    assert second["operator"] == "town"


@pytest.mark.cluster
def test_what_a_function_logs_in_a_worker_has_job_generation_and_operator(
    start: Callable[..., Program],
    database: Database,
    tmp_path: Path,
    build_plugin: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARROYO_UDF__LOGGING__FORMAT", "json")
    library = build_plugin(TALKING)
    program = start("controller", tmp_path)
    client = posting(database, tmp_path)
    pipeline = Script("query.sql", SQL.format(out=tmp_path / "out"), [str(library)]).pipeline
    job = client.await_state(client.post(pipeline, library), "Running").job.id

    def told() -> list[dict[str, Any]]:
        with database.read() as session:
            entries = history.logged(session, job, 100).rows
        written = [line for entry in entries for line in entry.details.splitlines() if line.startswith("{")]
        return [line for line in map(json.loads, written) if line["logger"] == "users"]

    until(lambda: bool(told()), "the line")
    (line,) = told()
    assert line["message"] == "the first\nrow"
    assert (line["job_id"], line["generation"], line["operator"]) == (job, 1, "twice")
    # The program's own lines are JSON, too, but for the one which says that it is ready.
    before = program.said.partition("arroyo-udf controller: ")[0]
    own = [json.loads(one) for one in before.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(one) for one in own)
