"""Databases and messages of earlier versions (see kept/make.py): this program opens them and goes on."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from clusters import EMPTY, settings_in
from simulations import Simulation
from test_database import made

from arroyo_udf_plugin.cluster.controller.report_writer import Notes
from arroyo_udf_plugin.cluster.database import connections, history, pipelines, udfs
from arroyo_udf_plugin.cluster.database.database import KEY_FILE, LATEST, Database
from arroyo_udf_plugin.cluster.database.models import Base
from arroyo_udf_plugin.cluster.generation import run
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.reports import upgraded
from arroyo_udf_plugin.cluster.schedulers import protocol
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.cluster.states import Event, State
from arroyo_udf_plugin.cluster.task import JobReport, Task
from arroyo_udf_plugin.engine.execution.stopping import StopRequest

KEPT = Path(__file__).parent / "kept"
REVISIONS = sorted(path.name.partition(".")[0] for path in KEPT.glob("*.sqlite.sql"))


def loaded(folder: Path, revision: str) -> Path:
    """A file of SQLite, with its key beside it."""
    file = folder / "cluster.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((KEPT / f"{revision}.sqlite.sql").read_text())
        connection.execute("PRAGMA journal_mode = WAL")
    shutil.copy(KEPT / "test.key", folder / KEY_FILE)
    return file


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Database]]:
    """Opens a kept database of each kind."""
    opened: list[Database] = []

    def load_one(revision: str) -> Database:
        if request.param == "sqlite":
            opened.append(Database.open(f"sqlite:///{loaded(tmp_path, revision)}"))
        else:
            opened.append(Database.open(request.getfixturevalue("postgresql"), KEPT / "test.key"))
            with opened[-1].engine.begin() as connection:
                connection.exec_driver_sql("DROP SCHEMA public CASCADE")
                connection.exec_driver_sql("CREATE SCHEMA public")
                connection.exec_driver_sql((KEPT / f"{revision}.postgresql.sql").read_text().replace("%", "%%"))
        return opened[-1]

    yield load_one
    for database in opened:
        database.close()


def test_the_present_revision_and_the_one_before_are_kept() -> None:
    assert REVISIONS[-1] == LATEST
    assert len(REVISIONS) > 1
    assert [path.name for path in sorted(KEPT.glob("*.messages.json"))] == [f"{one}.messages.json" for one in REVISIONS]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_kept_database_becomes_one_of_this_program(load: Callable[[str], Database], revision: str) -> None:
    database = load(revision)
    assert database.migrate() == revision
    database.check()
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    with database.read() as session:
        (profile,) = connections.profiles(session)
        (table,) = connections.tables(session, 10).rows
        (udf,) = udfs.listed(session)
        assert (profile.config, table.consumers, udf.artifact) == ({"uri": "a secret"}, 7, "ab" * 32)
        (version,) = udfs.versions(session, udf.id)
        assert (version.number, version.language, version.definition) == (1, udf.language, udf.definition)
        whole = pipelines.get(session, "pl_Running")
        assert whole.job.env_vars == {"TOKEN": "secret of the environment"}
        assert whole.pipeline.program["variables"] == {"CP_1_URI": "secret of a profile"}
        assert whole.status.settings["env_vars"] == whole.job.env_vars
        assert [row.epoch for row in history.checkpoints(session, whole.job.id)] == [7]
        assert (whole.status.epoch, whole.status.history, whole.job.restore) == (7, 0, None)
        assert [row.message for row in history.logged(session, whole.job.id, 9).rows] == ["Running"]
        assert len(pipelines.listed(session, 10).rows) == 7
    with database.begin() as session:
        newer = made(session)
        assert newer.pipeline.serial > whole.pipeline.serial


INTERRUPTED = """
import os, sys
from pathlib import Path
from arroyo_udf_plugin.cluster.database import database

upgrade = database._upgrade

def upgrade_and_die(connection):
    upgrade(connection)
    os._exit(9)

database._upgrade = upgrade_and_die
database.Database.open(sys.argv[1], Path(sys.argv[2])).migrate()
"""


def test_a_program_that_dies_while_it_migrates_leaves_the_database_as_it_was(load: Callable[[str], Database]) -> None:
    database = load(REVISIONS[0])
    tables = sqlalchemy.inspect(database.engine).get_table_names()
    url = database.engine.url.render_as_string(hide_password=False)
    for _ in range(2):  # the copy of the first one is in the way of nobody
        died = subprocess.run([sys.executable, "-c", INTERRUPTED, url, str(KEPT / "test.key")])
        assert died.returncode == 9
        assert database.revision == REVISIONS[0]
        assert sqlalchemy.inspect(database.engine).get_table_names() == tables
    assert database.migrate() == REVISIONS[0]
    database.check()


def test_programs_that_start_at_once_migrate_one_at_a_time(load: Callable[[str], Database]) -> None:
    database = load(REVISIONS[0])
    found: list[str | None] = []

    def start() -> None:
        url = database.engine.url.render_as_string(hide_password=False)
        with closing(Database.open(url, KEPT / "test.key")) as another:
            found.append(another.migrate())

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [REVISIONS[0], LATEST, LATEST, LATEST]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_controller_goes_on_with_the_jobs_of_a_kept_database(tmp_path: Path, revision: str) -> None:
    file = loaded(tmp_path, revision)
    with closing(Database.open(f"sqlite:///{file}")) as database:
        database.migrate()
    with closing(Simulation(file)) as simulation:
        simulation.start()
        simulation.settle(3)
        found = {state: simulation.get(f"pl_{state}").status for state in ("Running", "CheckpointStopping", "Stopped")}
        assert (found["Running"].state, found["Running"].generation) == (State.RUNNING, 3)
        assert [found[state].state for state in ("CheckpointStopping", "Stopped")] == [State.STOPPED] * 2


def messages(revision: str) -> Any:
    return json.loads((KEPT / f"{revision}.messages.json").read_text())


def _of(heard: list[JobReport], name: str) -> list[Any]:
    return [value for report in heard if (value := getattr(report, name))]


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_kept_worker_tells_is_understood(
    tmp_path: Path, database: Database, records: Records, revision: str
) -> None:
    told, heard = messages(revision), list[JobReport]()
    scheduler = ProcessScheduler(heard.append, settings_in(tmp_path))
    task = Task.of_json(told["task"])
    scheduler._add(task)
    scheduler._serve()
    try:
        secret = protocol.secret_of(protocol.key_of(tmp_path), task.job_id, task.generation)
        for report in told["reports"]:
            path = f"/v1/{task.job_id}/{task.generation}/reports"
            assert protocol.ask(tmp_path, path, secret, [report], 10) == (200, {})
    finally:
        scheduler._stop_serving()
    for name in ("epoch", "retained"):  # by these nobody begins anew
        told_before = [one[name] for one in told["reports"] if one.get(name)]
        assert [list(one) if name == "retained" else one for one in _of(heard, name)] == told_before
    events = [report.event for report in heard]
    assert [event for event in events if event is not None] == [Event.STARTED, Event.SAVED]
    with database.begin() as session:
        job = made(session).job.id
        notes = Notes(records)
        for report in heard:
            notes.add(JobReport(**vars(report) | {"job_id": job, "generation": 0}))
        notes.write(session)
        assert history.checkpoints(session, job)
    notes.written()
    assert upgraded(records.numbers(job)[-1].numbers)["nodes"]
    assert len(records.output(job).read()) == 1


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_kept_task_runs(tmp_path: Path, revision: str) -> None:
    """A new worker under a controller of before, when the program is exchanged while it runs."""
    told = json.loads(json.dumps(messages(revision)["task"]).replace("/nowhere", str(tmp_path)))
    told["program"]["pipeline"]["source"] |= {"rows": 5}
    heard: list[JobReport] = []
    run(Task.of_json(told | {"of a later version": 1}), StopRequest(), heard.append)
    assert heard[-1].event is Event.FINISHED
    assert os.listdir(tmp_path / "out")


def test_a_worker_of_another_version_is_told_to_go(tmp_path: Path) -> None:
    scheduler = ProcessScheduler(lambda report: None, settings_in(tmp_path))
    scheduler._serve()
    try:
        status, answer = protocol.ask(tmp_path, "/v2/job_1/1/orders", "secret", {}, 10)
        assert status == protocol.GONE
        assert answer == {"error": "workers must speak version v1, not v2: the job goes on in a new one"}
    finally:
        scheduler._stop_serving()


def test_a_message_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    scheduler = ProcessScheduler(lambda report: None, settings_in(tmp_path))
    task = Task("job_1", 1, EMPTY, 1, 1.0, None)
    scheduler._add(task)
    scheduler._serve()
    try:
        secret = protocol.secret_of(protocol.key_of(tmp_path), "job_1", 1)
        for wrong in ([{"job_id": "job_1", "generation": 1, "event": "melted"}], [{"event": 1}], 5):
            status, answer = protocol.ask(tmp_path, "/v1/job_1/1/reports", secret, wrong, 10)
            assert (status, answer["error"].partition(":")[0]) == (400, "this message is not understood")
    finally:
        scheduler._stop_serving()
