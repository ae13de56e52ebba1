"""A disk that is full, and has room again: jobs go on, the database stays whole, and everybody answers meanwhile."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster, settings_in
from programs import SQL, TWICE, Client, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster


class Disk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """What was free."""
        with open(self.folder / "ballast", "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        (self.folder / "ballast").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A file system of its own, with 32 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("nobody but root can mount a small disk")
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_job_whose_checkpoints_have_no_room_recovers_and_goes_on(
    disk: Disk, database: Database, tmp_path: Path, build_plugin: Any
) -> None:
    library = build_plugin(TWICE)
    pipeline = Script("query.sql", SQL.format(out=tmp_path / "out"), [str(library)]).pipeline
    settings = settings_in(tmp_path, allowed_restarts=-1, max_backoff=0.1)
    with contextlib.closing(Cluster(database, settings)) as cluster:
        posted = cluster.post(pipeline, library, state_url=str(disk.folder / "state"))
        job = cluster.await_state(posted, "Running").job.id
        until(lambda: bool(parts(tmp_path)), "rows")
        disk.fill()

        def told() -> bool:
            with database.read() as session:
                rows = history.logged(session, job, 9, levels=("error",)).rows
            return any("No space left on device" in row.message for row in rows)

        until(told, "the reason")
        until(lambda: cluster.get(posted).status.state == "Recovering", "the job to recover")
        disk.free()
        seen = len(parts(tmp_path))
        until(lambda: len(parts(tmp_path)) > seen, "more rows")
        cluster.change(posted, stop="checkpoint")
        cluster.await_state(posted, "Stopped")
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))


@pytest.mark.parametrize("scheduler", ["embedded", "process"])
def test_a_cluster_without_room_answers_and_goes_on(
    start: Callable[..., Program], disk: Disk, tmp_path: Path, scheduler: str
) -> None:
    data = disk.folder / "data"
    fast = {"ARROYO_UDF__PIPELINE__ALLOWED_RESTARTS": "-1", "ARROYO_UDF__PIPELINE__MAX_BACKOFF": "0.1s"}
    program = start("cluster", data, "--port", "0", "--scheduler", scheduler, environment=fast)
    client = Client(program)
    query = {"name": "p", "query": SQL.format(out=tmp_path / "out"), "parallelism": 1}
    query |= {"udfs": [{"definition": TWICE, "language": "python"}], "checkpoint_interval_micros": 1_000_000}
    pipeline = client.ask("PUT", "/pipelines/p", query)["id"]
    client.await_state(pipeline, "Running")
    until(lambda: bool(parts(tmp_path)), "rows")
    disk.fill()
    until(lambda: "disk" in program.said or "space" in program.said, "somebody to notice it")
    assert client.job(pipeline)["state"] in ("Running", "Recovering", "Compiling", "Scheduling")
    refused = None
    for number in range(1000):  # the database's file has some room left within
        try:
            client.ask("PATCH", f"/pipelines/{pipeline}", {"parallelism": number % 2 + 1})
        except urllib.error.HTTPError as error:
            refused = error.code, json.loads(error.read())
            break
    disk.free()
    until(lambda: client.ask("PATCH", f"/pipelines/{pipeline}", {"parallelism": 1}) is not None, "the API")
    client.await_state(pipeline, "Running")
    seen = len(parts(tmp_path))
    until(lambda: len(parts(tmp_path)) > seen, "more rows")
    client.ask("PATCH", f"/pipelines/{pipeline}", {"stop": "checkpoint"})
    client.await_state(pipeline, "Stopped")
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
    assert program.end(signal.SIGTERM) == 0
    with contextlib.closing(sqlite3.connect(data / "cluster.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert refused is not None
    assert refused[0] >= 500
    assert set(refused[1]) == {"error"}
