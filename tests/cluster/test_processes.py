"""Jobs in worker processes, and programs that are killed. Outputs must equal those of undisturbed runs."""

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY, Cluster, posting, program, settings_in
from programs import SQL, TWICE, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.configuration import Settings
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task
from arroyo_udf_plugin.engine.pipeline import Functions, Impulse, Parts, Pipeline, Sql
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster


@pytest.fixture
def library(build_plugin: Any) -> Path:
    path = build_plugin(TWICE)
    assert isinstance(path, Path)
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def cluster(database: Database, settings: Settings) -> Iterator[Cluster]:
    made = Cluster(database, settings, lambda tell: ProcessScheduler(tell, settings))
    with contextlib.closing(made):
        yield made


def query(folder: Path, library: Path) -> Pipeline:
    return Script("query.sql", SQL.format(out=folder / "out"), [str(library)]).pipeline


def only_worker(cluster: Cluster, folder: Path, pipeline_id: str) -> worker_files.Living:
    (found,) = worker_files.living(protocol.folder_of(folder), cluster.get(pipeline_id).job.id)
    return found


def test_a_killed_worker_is_replaced_and_loses_nothing(cluster: Cluster, tmp_path: Path, library: Path) -> None:
    posted = cluster.post(query(tmp_path, library), library, checkpoint_interval_micros=200_000)
    cluster.await_state(posted, "Running")
    until(lambda: bool(parts(tmp_path)), "rows")
    os.kill(only_worker(cluster, tmp_path, posted).pid, signal.SIGKILL)
    status = cluster.await_state(posted, "Running", generation=2).status
    assert status.restarts == 1
    cluster.change(posted, stop="checkpoint")
    job = cluster.await_state(posted, "Stopped").job.id
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
    with cluster.database.read() as session:
        (row,) = history.logged(session, job, 9, levels=("error",)).rows
        assert row.message == "the worker was ended by signal 9"
    until(lambda: not list(worker_files.living(protocol.folder_of(tmp_path), job)), "the last worker to be gone")


def test_a_function_that_crashes_costs_only_its_job(cluster: Cluster, tmp_path: Path, build_plugin: Any) -> None:
    """The limit ends its restarts."""
    library = build_plugin(
        """
        import os

        from arroyo_udf_plugin import udf

        @udf
        def crash(value: int) -> int:
            print("before the crash", flush=True)
            os.kill(os.getpid(), 11)
            return value
        """
    )
    operators = [
        Sql(select={"n": "CAST(counter AS BIGINT)"}),
        Functions(plugin=str(library), calls=["x = crash(n)"]),
    ]
    pipeline = Pipeline(
        name="p", source=Impulse(rows=1), operators=operators, sinks=[Parts(path=str(tmp_path / "out"))]
    )
    posted = cluster.post(pipeline, library, ttl_micros=600_000_000)  # a preview is tried once
    whole = cluster.await_state(posted, "Failed")
    assert whole.status.failure_message.startswith("the worker was ended by signal 11")
    with cluster.database.read() as session:
        (row,) = history.logged(session, whole.job.id, 9, levels=("error",)).rows
        assert "before the crash" in row.details


@pytest.mark.parametrize("how", ["immediate", "force"])
def test_hard_stops_end_the_process(cluster: Cluster, tmp_path: Path, library: Path, how: str) -> None:
    posted = cluster.post(query(tmp_path, library), library)
    cluster.await_state(posted, "Running")
    job = cluster.get(posted).job.id
    cluster.change(posted, stop=how)
    cluster.await_state(posted, "Stopped")
    until(lambda: not list(worker_files.living(protocol.folder_of(tmp_path), job)), "the worker to be gone")


def test_workers_show_the_secret_of_their_generation(cluster: Cluster, tmp_path: Path, library: Path) -> None:
    posted = cluster.post(query(tmp_path, library), library)
    job = cluster.await_state(posted, "Running").job.id
    key = protocol.key_of(tmp_path)
    first, second = (protocol.secret_of(key, job, generation) for generation in (1, 2))

    def status(generation: int, secret: str, job: str = job) -> int:
        return protocol.ask(tmp_path, f"/v1/{job}/{generation}/reports", secret, [], 10)[0]

    assert status(1, first) == 200
    assert status(1, second) == 401
    assert status(2, second) == protocol.GONE
    assert status(1, protocol.secret_of(key, "job_2", 1), "job_2") == 503  # it may not have been taken over yet
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("workers.sock", "workers.key", "workers")]
    assert modes == [0o600, 0o600, 0o700]


class Schedulers:
    """Two on one folder, as of two controllers; what both tell."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._told: queue.SimpleQueue[JobReport] = queue.SimpleQueue()
        self.first, self.second = (ProcessScheduler(self._told.put, settings) for _ in range(2))
        pipeline = program(Pipeline(name="p", source=Impulse(rate=100), sinks=[Parts(path=str(folder / "out"))]))
        self.task = Task("job_1", 1, pipeline, 1, 10.0, str(folder / "state"))

    def await_event(self, event: Event) -> JobReport:
        while (report := self._told.get(timeout=60)).event is not event:
            pass
        return report

    def close(self) -> None:
        for each in (self.first, self.second):
            each.close()


@pytest.fixture
def schedulers(settings: Settings, tmp_path: Path) -> Iterator[Schedulers]:
    with contextlib.closing(Schedulers(settings, tmp_path)) as made:
        yield made


def test_a_worker_follows_the_lead_from_one_controller_to_another_and_back(schedulers: Schedulers) -> None:
    """It tells each that it has started: the one before may have died with it."""
    first, second, task = schedulers.first, schedulers.second, schedulers.task
    first.start(task)
    schedulers.await_event(Event.STARTED)
    for old, new in ((first, second), (second, first)):
        old.let_go()
        assert new.take_over(task)
        schedulers.await_event(Event.STARTED)
    assert first.take_over(task), "it may be asked again"
    first.stop("job_1", 1, "save")
    schedulers.await_event(Event.SAVED)


def test_workers_find_their_controller_although_another_one_has_taken_its_socket(schedulers: Schedulers) -> None:
    """One that was suspended, and does not know yet that it leads no more."""
    first, second, task = schedulers.first, schedulers.second, schedulers.task
    first.start(task)
    schedulers.await_event(Event.STARTED)
    assert not second.take_over(replace(task, job_id="job_2"))
    second.let_go()
    first.stop("job_1", 1, "save")
    schedulers.await_event(Event.SAVED)


def test_a_kill_ends_a_worker_that_has_not_started_yet(schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch) -> None:
    first = schedulers.first
    go_on = first._start

    def late(running: Any) -> None:
        until(lambda: running.is_killed, "the kill")
        go_on(running)

    monkeypatch.setattr(first, "_start", late)
    first.start(schedulers.task)
    first.stop("job_1", 1, "kill")
    schedulers.await_event(Event.LOST)


def test_who_stops_a_worker_that_has_told_its_end_is_answered(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process may take a while to leave."""
    first, left = schedulers.first, threading.Event()
    go_on = first._end

    def late(running: Any) -> None:
        left.wait(60)
        go_on(running)

    monkeypatch.setattr(first, "_end", late)
    first.start(schedulers.task)
    schedulers.await_event(Event.STARTED)
    first.stop("job_1", 1, "save")
    schedulers.await_event(Event.SAVED)
    for how in ("save", "kill"):
        first.stop("job_1", 1, how)
        schedulers.await_event(Event.LOST)
    left.set()


def test_an_old_controller_clears_no_newer_generation(schedulers: Schedulers, tmp_path: Path) -> None:
    first, second, task = schedulers.first, schedulers.second, schedulers.task
    first.start(replace(task, generation=2))
    schedulers.await_event(Event.STARTED)
    second.clear("job_1", 1)
    schedulers.await_event(Event.READY)
    (worker,) = worker_files.living(protocol.folder_of(tmp_path), "job_1")
    assert worker.generation == 2
    first.clear("job_1", 2)
    schedulers.await_event(Event.READY)
    assert not list(worker_files.living(protocol.folder_of(tmp_path), "job_1"))


def test_a_worker_that_cannot_start_is_lost_at_once(settings: Settings, tmp_path: Path) -> None:
    told: queue.SimpleQueue[JobReport] = queue.SimpleQueue()
    scheduler = ProcessScheduler(told.put, settings)
    (tmp_path / "logs").write_text("a file where a folder should be")
    scheduler.start(Task("job_1", 1, EMPTY, 1, 10.0, None))
    report = told.get(timeout=60)
    assert (report.event, report.message.partition(":")[0]) == (Event.LOST, "the worker cannot start")
    scheduler.close()


def test_a_controller_that_is_killed_is_followed_by_one_that_takes_its_jobs_over(
    start: Callable[..., Program], database: Database, tmp_path: Path, library: Path
) -> None:
    client = posting(database, tmp_path)
    running = start("controller", tmp_path)
    posted = client.post(query(tmp_path, library), library, checkpoint_interval_micros=200_000)
    client.await_state(posted, "Running")
    worker = only_worker(client, tmp_path, posted)
    running.end(signal.SIGKILL)
    found = len(parts(tmp_path))
    running = start("controller", tmp_path)
    until(lambda: len(parts(tmp_path)) > found, "rows")
    assert only_worker(client, tmp_path, posted) == worker
    client.change(posted, stop="checkpoint")
    assert client.await_state(posted, "Stopped").status.generation == 1
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
    assert running.end(signal.SIGINT) == 0
