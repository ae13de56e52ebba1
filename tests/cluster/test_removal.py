"""What deleted pipelines have stored is removed while everything else goes on."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import Cluster, settings_in
from waiting import until

import object_store_server
from arroyo_udf_plugin.cluster.controller import removal
from arroyo_udf_plugin.cluster.database import jobs, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import Leftover
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Pipeline

COUNTS = Pipeline(name="counts", source=Impulse(rows=10), sinks=[Blackhole()])


@pytest.fixture
def cluster(database: Database, tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.closing(Cluster(database, settings_in(tmp_path))) as made:
        yield made


def leftovers(database: Database) -> list[str]:
    with database.read() as session:
        return list(jobs.leftovers(session))


def leave(database: Database, *places: Path | str) -> None:
    with database.begin() as session:
        session.add_all(Leftover(place=str(place)) for place in places)


def test_a_place_that_cannot_be_removed_is_told_once_and_holds_no_other_up(
    database: Database,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(removal, "_FIRST_PAUSE", 0.001)
    broken, other = tmp_path / "a file", tmp_path / "other"
    broken.write_text("")
    (other / "epochs").mkdir(parents=True)
    with caplog.at_level(logging.DEBUG, removal.__name__):
        leave(database, broken, other)
        cluster.controller.wake()
        until(lambda: leftovers(database) == [str(broken)], "the other place")
        assert not other.exists()
        until(lambda: len(caplog.records) > 2, "further tries")
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [f"{broken} cannot be removed" in record.getMessage() for record in told] == [True]
    broken.unlink()
    until(lambda: not leftovers(database), "the place that can be removed now")


def test_a_new_leader_removes_what_is_left(database: Database, tmp_path: Path) -> None:
    place = tmp_path / "left"
    place.mkdir()
    leave(database, place)
    with contextlib.closing(Cluster(database, settings_in(tmp_path))):
        until(lambda: not leftovers(database), "the removal")
    assert not place.exists()


@pytest.mark.cluster
def test_a_store_that_does_not_answer_holds_no_job_up(
    database: Database, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with object_store_server.server(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        place = f"{server.bucket('left')}/job_1"
        open_store(place).put("epochs/1", b"x")
        with stopped(server):
            leave(database, place)
            posted = cluster.post(COUNTS)
            job = cluster.await_state(posted, "Finished").job.id
            with database.begin() as session:
                pipelines.delete(session, posted)
            assert place in leftovers(database)
        until(lambda: not leftovers(database), "both places")
        assert open_store(place).names("") == []
        assert not (tmp_path / "checkpoints" / job).exists()


@contextlib.contextmanager
def stopped(server: object_store_server.Server) -> Iterator[None]:
    """It takes requests, and does not answer."""
    process = server._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)
