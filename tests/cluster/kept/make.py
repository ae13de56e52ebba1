"""Keeps what this version of the program writes, so that later ones are tested with it (see test_kept.py).

    PYTHONPATH=scripts python tests/cluster/kept/make.py

writes <revision>.sqlite.sql, <revision>.postgresql.sql and <revision>.messages.json beside this file. Before a change
of the tables or of messages, run it with the program before the change.
"""

import dataclasses
import json
import re
import sqlite3
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import sqlalchemy

import postgresql
from arroyo_udf_plugin.cluster.database import connections, history, jobs, pipelines, udfs
from arroyo_udf_plugin.cluster.database.database import LATEST, Database
from arroyo_udf_plugin.cluster.database.models import Artifact, CheckpointRow, JobStatus, Leftover
from arroyo_udf_plugin.cluster.generation import run
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.task import JobReport, Task
from arroyo_udf_plugin.cluster.wishes import settings
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import Impulse, Parts, Pipeline
from arroyo_udf_plugin.engine.pipeline.description import described

HERE = Path(__file__).parent
KEY = HERE / "test.key"
"""It seals nothing but these tests' secrets."""

STATES = ("Created", "Scheduling", "Running", "CheckpointStopping", "Stopped", "Finished", "Failed")


def program(folder: Path) -> JobProgram:
    pipeline = Pipeline(name="kept", source=Impulse(rows=2000, rate=500), sinks=[Parts(path=str(folder / "out"))])
    return JobProgram(json.loads(json.dumps(described(pipeline))), {}, {"CP_1_URI": "secret of a profile"})


def fill(database: Database) -> None:
    with database.begin() as session:
        profile = connections.create_profile(session, name="p", connector="sqlite", config={"uri": "a secret"})
        row = connections.create_table(
            session, name="t", connector="sqlite", table_type="source", config={}, schema={}, profile_id=profile.id
        )
        session.add(Artifact(sha256="ab" * 32, name="libplane.so", language="python", size=1, created_at=1))
        session.flush()
        udfs.create(
            session, prefix="/", name="plane", language="python", definition="def plane(): ...", artifact="ab" * 32
        )
        jobs.lead(session, "a controller")
        session.add(Leftover(place="/nowhere/job_gone"))
        for number, state in enumerate(STATES):
            whole = pipelines.create(
                session,
                id=f"pl_{state}",
                name=state,
                query="SELECT 1",
                program=program(Path("/nowhere")),
                graph={"nodes": [], "edges": []},
                checkpoint_interval_micros=10_000_000,
                parallelism=2,
                udfs=[{"definition": "def f(): ...", "language": "python"}],
                tags={"team": "a"},
                env_vars={"TOKEN": "secret of the environment"},
                tables=[row.table.id],
                checkpoints="/nowhere/checkpoints",
            )
            _run(session, whole, number, state)


def _run(session: Any, whole: pipelines.WholeJob, number: int, state: str) -> None:
    job = whole.job.id
    facts: dict[str, Any] = {"state": state, "state_since": 2_000_000, "generation": number, "restarts": 1, "epoch": 7}
    if state == "CheckpointStopping":
        pipelines.change(session, whole.pipeline.id, {"stop": "checkpoint"})
    if state == "Stopped":
        pipelines.change(session, whole.pipeline.id, {"stop": "immediate"})
    if state == "Failed":
        facts |= {"failure_message": "a row failed", "failure_domain": "user", "finish_time": 3_000_000}
    if state != "Created":
        facts |= {"start_time": 1_000_000, "tasks": 6, "settings": settings(whole.job), "controller": "a controller"}
        session.add(
            CheckpointRow(
                job_id=job,
                epoch=7,
                generation=number,
                state="ready",
                checkpoint_type="scheduled",
                start_time=1_000_000,
                finish_time=1_500_000,
                events=[],
                operators={},
            )
        )
        history.log(session, job, number, "info", "Running")
    session.execute(sqlalchemy.update(JobStatus).where(JobStatus.job_id == job).values(**facts))


_MESSAGES: dict[str, Any] = {}


def messages() -> dict[str, Any]:
    """What a worker and its controller tell each other, in a run that is stopped with a checkpoint."""
    if not _MESSAGES:
        with tempfile.TemporaryDirectory() as name:
            folder, reports, stop = Path(name), list[JobReport](), StopRequest(10.0)

            def tell(report: JobReport) -> None:
                reports.append(report)
                if report.event is None and not stop.requests:
                    stop.request()

            task = Task("job_kept", 3, program(folder), 1, 0.2, f"{folder}/state", {"TOKEN": "secret"})
            run(task, stop, tell)
            reports.append(JobReport("job_kept", 3, message="output of the worker", details="a line"))
            reports.append(dataclasses.replace(reports[0], event=None, shown=[_SHOWN]))
            told = json.dumps({"task": task.as_json(), "reports": [report.as_json() for report in reports]})
            _MESSAGES.update(json.loads(told.replace(name, "/nowhere")))
    return _MESSAGES


_SHOWN = {"operator_id": "preview", "subtask_idx": 0, "start_id": 0, "timestamps": [1], "batch": '[{"x": 1}]'}


_OF_THE_SERVER = r"^(--|\\|SET |SELECT pg_catalog\.set_config|CREATE SCHEMA|COMMENT ON SCHEMA).*\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as name, postgresql.server() as server:
        file = Path(name) / "cluster.sqlite"
        for url in (f"sqlite:///{file}", server):
            database = Database.open(url, KEY)
            database.migrate()
            fill(database)
            database.close()
        with sqlite3.connect(file) as connection:
            (HERE / f"{LATEST}.sqlite.sql").write_text("\n".join(connection.iterdump()) + "\n")
        command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", "--schema=public", server]
        dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    statements = re.sub(_OF_THE_SERVER, "", dump, flags=re.M)
    (HERE / f"{LATEST}.postgresql.sql").write_text(re.sub(r"\n{2,}", "\n", statements).lstrip())
    (HERE / f"{LATEST}.messages.json").write_text(json.dumps(messages(), indent=1) + "\n")


if __name__ == "__main__":
    main()
