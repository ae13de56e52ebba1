"""The scheduler `flink`, against a JobManager that the test drives (see fake_flink.py)."""

import json
import logging
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY
from fake_flink import FakeFlink, FakeJob, write_snapshot
from waiting import until

from arroyo_udf_plugin.cluster.configuration import FlinkSettings
from arroyo_udf_plugin.cluster.schedulers.flink import following, watching
from arroyo_udf_plugin.cluster.schedulers.flink.scheduler import FlinkScheduler
from arroyo_udf_plugin.cluster.schedulers.flink.snapshots import newest_of
from arroyo_udf_plugin.cluster.schedulers.flink.submission import flink_id
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task

RESTARTING = "java.lang.Exception: Connection to taskmanager lost\n\tat java.lang.Thread.run"
USERS = """java.lang.RuntimeException: Error while waiting for BeamPythonFunctionRunner flush
\tat org.apache.flink.X
Caused by: java.lang.RuntimeException: Error received from SDK harness: Traceback (most recent call last):
  File "sdk_worker.py", line 311, in _execute
    response = task()
arroyo_udf_plugin.errors.RowError: row 4 of orders.csv: no tail

\tat org.apache.beam.Y
"""


class Driven:
    """Schedulers of one fake Flink; the latest is asked."""

    def __init__(self, flink: FakeFlink, folder: Path) -> None:
        self.flink, self.folder = flink, folder
        self.place = str(folder / "job_1" / "0")
        self.jar = folder / "flink-python-2.3.0.jar"
        self.jar.write_bytes(b"a jar")
        self._told: queue.SimpleQueue[JobReport] = queue.SimpleQueue()
        self.scheduler = self.another()

    def another(self) -> FlinkScheduler:
        settings = FlinkSettings(url=self.flink.url, python_jar=self.jar, runner="/opt/runner.py")
        self.scheduler = FlinkScheduler(self._told.put, settings)
        return self.scheduler

    def close(self) -> None:
        self.scheduler.close()

    def task(self, generation: int = 1, **changes: Any) -> Task:
        given: dict[str, Any] = {"parallelism": 2, "checkpoint_interval": 10.0, "place": self.place, "slices": 8}
        return Task("job_1", generation, EMPTY, **given | changes)

    def start(self, generation: int = 1, **changes: Any) -> FakeJob:
        """Until it is told to be started."""
        self.scheduler.start(self.task(generation, **changes))
        report = self.told(Event.STARTED)
        assert (report.job_id, report.generation, report.tasks) == ("job_1", generation, 2)
        return self.job(generation)

    def job(self, generation: int = 1) -> FakeJob:
        return self.flink.jobs[flink_id("job_1", generation)]

    def told(self, event: Event | None, fits: Callable[[JobReport], bool] = lambda report: True) -> JobReport:
        """The next one; only reports of a job that goes on may come before it."""
        while True:
            report = self._told.get(timeout=60)
            if report.event is event and fits(report):
                return report
            assert report.event is None, report

    def is_silent(self) -> bool:
        return self._told.empty()

    def await_looks(self) -> None:
        """Until it has looked at what is the case now."""
        seen = self._looks()
        until(lambda: self._looks() >= seen + 3, "looks")

    def _looks(self) -> int:
        return self.flink.requests.count("GET /jobs/overview")


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    with FakeFlink() as fake:
        yield fake


@pytest.fixture
def driven(flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driven]:
    monkeypatch.setattr(watching, "LOOK_EVERY", 0.01)
    with closing(Driven(flink, tmp_path)) as made:
        yield made


def test_a_job_is_submitted_saved_and_goes_on_from_its_savepoint(driven: Driven) -> None:
    job = driven.start()
    (asked,) = driven.flink.submits
    assert asked["entryClass"] == "org.apache.flink.client.python.PythonDriver"
    assert asked["programArgsList"][:3] == ["-py", "/opt/runner.py", "--job"]
    assert json.loads(asked["programArgsList"][3]) == {
        "version": 1,
        "pipeline": {"name": "job_1"},
        "slices": 8,
        "checkpoint_interval": 10.0,
        "place": f"file://{driven.place}/flink/g000001",
        "positions": None,
    }
    assert (asked["parallelism"], "savepointPath" in asked) == (2, False)
    assert asked["flinkConfiguration"]["execution.checkpointing.interval"] == "10000 ms"
    job.checkpoint()
    report = driven.told(None)
    assert report.checkpoint is not None
    assert (report.epoch, report.checkpoint["epoch"], report.checkpoint["seconds"]) == (1, 1, 0.2)
    driven.scheduler.stop("job_1", 1, "save")
    saved = driven.told(Event.SAVED)
    assert (saved.epoch, job.drained) == (2, False)
    driven.start(2, resume_at=2)
    again = driven.flink.submits[1]
    assert again["savepointPath"] == f"file://{driven.place}/flink/g000001/savepoints/savepoint-2"
    assert again["claimMode"] == "CLAIM"
    assert driven.flink.jars == ["flink-python-2.3.0.jar"]  # uploaded once


def test_a_job_has_started_when_all_its_tasks_run(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = driven.flink.take

    def take_slowly(asked: dict[str, Any]) -> FakeJob:
        job = taken(asked)
        job.started = 1
        return job

    monkeypatch.setattr(driven.flink, "take", take_slowly)
    driven.scheduler.start(driven.task())
    until(lambda: bool(driven.flink.jobs), "the job")
    driven.await_looks()
    assert driven.is_silent()
    driven.job().started = 2
    driven.told(Event.STARTED)


@pytest.mark.parametrize("how", ["drain", "cancel", "kill"])
def test_each_stop_ends_it(driven: Driven, how: Any) -> None:
    job = driven.start()
    driven.scheduler.stop("job_1", 1, how)
    driven.told(Event.SAVED if how == "drain" else Event.CUT_OFF)
    assert (job.state, job.drained) == (("FINISHED", True) if how == "drain" else ("CANCELED", None))


def test_a_rescaling_that_another_controller_began_is_told_when_the_job_runs_so(driven: Driven) -> None:
    job = driven.start()
    driven.flink.rescales = "late"
    driven.scheduler.rescale(driven.task(parallelism=4))
    driven.await_looks()
    driven.close()
    scheduler = driven.another()
    scheduler.take_over(driven.task(parallelism=4))
    driven.told(Event.STARTED)
    scheduler.rescale(driven.task(parallelism=4))
    driven.await_looks()
    assert driven.is_silent()
    job.parallelism = 4
    report = driven.told(Event.RESCALED)
    assert (report.generation, report.tasks, report.parallelism) == (1, 2, 4)


def test_a_job_that_flink_does_not_rescale_in_time_is_saved(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "IN_PLACE", 0.1)
    driven.start()
    driven.flink.rescales = "late"
    driven.scheduler.rescale(driven.task(parallelism=4))
    assert driven.told(Event.SAVED).epoch == 1


def test_a_savepoint_that_fails_is_taken_again(driven: Driven) -> None:
    driven.start()
    driven.flink.failing_stops = ["E: not all tasks run"]
    driven.scheduler.stop("job_1", 1, "save")
    assert "E: not all tasks run" in driven.told(None, lambda report: bool(report.message)).details
    driven.told(Event.SAVED)


def test_a_job_that_ends_by_itself_is_finished(driven: Driven) -> None:
    """Also after a stop whose savepoint is there, but that failed afterwards."""
    job = driven.start()
    job.save(f"{job.folder}/savepoints")
    job.checkpoint()
    job.finish()
    driven.told(Event.FINISHED)


@pytest.mark.parametrize("ends", [Event.SAVED, Event.LOST])
def test_what_flink_has_in_its_cache_is_not_the_end(driven: Driven, ends: Event) -> None:
    driven.flink.cached_for = 0.5
    job = driven.start()
    job.checkpoint()
    driven.told(None)
    if ends is Event.LOST:
        job.throw(RESTARTING, "FAILED")
        assert "taskmanager lost" in driven.told(ends).message
    else:
        driven.scheduler.stop("job_1", 1, "save")
        assert driven.told(ends).epoch == 2


def test_a_submit_that_is_refused_although_it_was_taken_is_found(driven: Driven) -> None:
    driven.flink.submit = "taken and refused"
    driven.start()
    assert len(driven.flink.submits) == 1


def test_a_submit_that_is_refused_is_lost(driven: Driven) -> None:
    driven.flink.submit = "refused"
    driven.scheduler.start(driven.task())
    lost = driven.told(Event.LOST)
    assert "was answered with 400: E: Python process exits with code: 1" in lost.message


def test_a_submit_without_an_answer_is_looked_for_and_not_repeated(driven: Driven) -> None:
    driven.flink.submit = "silent"
    driven.scheduler.start(driven.task())
    until(lambda: bool(driven.flink.submits), "the submit")
    driven.await_looks()
    driven.flink.take(driven.flink.submits[0])
    driven.told(Event.STARTED)
    assert len(driven.flink.submits) == 1


def test_a_submit_that_takes_effect_after_all_is_cancelled_by_the_next_generation(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LATE_SUBMIT", 0.1)
    driven.flink.submit = "silent"
    driven.scheduler.start(driven.task())
    assert "was not answered" in driven.told(Event.LOST).message
    driven.flink.submit = "taken"
    driven.start(2)
    late = driven.flink.take(driven.flink.submits[0])
    until(lambda: late.state == "CANCELED", "the older generation to be cancelled")
    assert driven.job(2).state == "RUNNING"


def test_without_its_checkpoints_a_job_does_not_begin_anew(driven: Driven) -> None:
    driven.scheduler.start(driven.task(3, resume_at=5))
    wrong = driven.told(Event.WRONG)
    assert f"{driven.place}/flink must have checkpoint 5" in wrong.message
    assert not driven.flink.submits


def test_a_job_that_cannot_be_restored_is_lost_and_says_where_to_look(driven: Driven) -> None:
    """Flink has no exception of it."""
    driven.scheduler.start(driven.task())
    until(lambda: bool(driven.flink.jobs), "the job")
    driven.job().state = "FAILED"
    lost = driven.told(Event.LOST)
    assert "JobManager's log" in lost.message


def test_a_failed_job_is_told_within_a_second(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    job = driven.start()
    began = time.monotonic()
    job.throw(RESTARTING, "FAILED")
    lost = driven.told(Event.LOST)
    assert time.monotonic() - began < 1.0
    assert (lost.message, lost.domain) == ("java.lang.Exception: Connection to taskmanager lost", "external")


def test_restarts_of_flink_are_in_the_log_and_the_job_goes_on(driven: Driven) -> None:
    job = driven.start()
    job.throw(RESTARTING, "RESTARTING")
    assert driven.told(None).details == RESTARTING
    job.state = "RUNNING"
    driven.await_looks()
    assert driven.is_silent()


def test_an_error_of_the_user_is_not_restarted(driven: Driven) -> None:
    job = driven.start()
    job.throw(USERS, "RESTARTING")
    wrong = driven.told(Event.WRONG)
    assert (wrong.message, wrong.domain) == ("RowError: row 4 of orders.csv: no tail", "user")
    assert job.state == "CANCELED"


def test_while_flink_is_away_nothing_is_concluded(driven: Driven, caplog: pytest.LogCaptureFixture) -> None:
    job = driven.start()
    caplog.set_level(logging.INFO, "arroyo_udf_plugin")
    driven.flink.is_away = True
    driven.scheduler.stop("job_1", 1, "save")
    driven.await_looks()
    assert driven.is_silent()
    assert job.state == "RUNNING"
    driven.flink.is_away = False
    driven.told(Event.SAVED)
    away, back = [record.message for record in caplog.records if record.name.startswith("arroyo_udf_plugin")]
    assert "no JobManager leads" in away
    assert "answers again" in back


def test_a_start_waits_for_flink(driven: Driven) -> None:
    driven.flink.is_away = True
    driven.scheduler.start(driven.task())
    driven.await_looks()
    driven.flink.is_away = False
    driven.told(Event.STARTED)


def test_a_job_that_flink_has_forgotten_is_lost(driven: Driven) -> None:
    driven.start()
    driven.flink.jobs.clear()
    assert "does not know the job any more" in driven.told(Event.LOST).message


def test_the_next_controller_finds_its_jobs(driven: Driven) -> None:
    job = driven.start()
    driven.scheduler.close()
    assert job.state == "RUNNING"
    job.throw(RESTARTING, "RUNNING")
    assert driven.another().take_over(driven.task())
    driven.told(Event.STARTED)
    driven.scheduler.stop("job_1", 1, "cancel")
    driven.told(Event.CUT_OFF)
    assert len(driven.flink.submits) == 1


def test_a_job_that_the_next_controller_does_not_find_is_orphaned(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LATE_SUBMIT", 0.1)
    driven.scheduler.take_over(driven.task())
    driven.told(Event.ORPHANED)


def test_clear_cancels_all_generations_up_to_this_one(driven: Driven) -> None:
    job = driven.start(2)
    older = driven.flink.take(driven.flink.submits[0] | {"jobId": flink_id("job_1", 1)})
    newer = driven.flink.take(driven.flink.submits[0] | {"jobId": flink_id("job_1", 3)})
    driven.scheduler.clear("job_1", 2)
    driven.told(Event.READY)
    assert [each.state for each in (older, job, newer)] == ["CANCELED", "CANCELED", "RUNNING"]


def test_nothing_is_ready_while_flink_is_away(driven: Driven) -> None:
    driven.flink.is_away = True
    driven.scheduler.clear("job_1", 1)
    driven.await_looks()
    assert driven.is_silent()
    driven.flink.is_away = False
    driven.told(Event.READY)


def test_a_stop_of_a_generation_that_is_being_cleared_is_answered(driven: Driven) -> None:
    job = driven.start()
    driven.flink.is_away = True
    driven.scheduler.clear("job_1", 1)
    driven.scheduler.stop("job_1", 1, "save")
    assert driven.told(Event.LOST).generation == 1
    driven.flink.is_away = False
    driven.told(Event.READY)
    assert job.state == "CANCELED"


def test_a_stop_of_what_does_not_run_is_lost(driven: Driven) -> None:
    driven.scheduler.stop("job_1", 7, "save")
    assert driven.told(Event.LOST).generation == 7


def test_the_newest_generation_that_has_a_snapshot_wins(tmp_path: Path) -> None:
    """And of it the highest number, whatever its kind; unfinished ones have no _metadata."""
    assert newest_of(str(tmp_path)) is None
    folder = tmp_path / "flink"
    write_snapshot(folder / "g000001" / flink_id("job_1", 1) / "chk-12", 12)
    write_snapshot(folder / "g000002" / "savepoints" / "savepoint-a", 9)
    write_snapshot(folder / "g000002" / flink_id("job_1", 2) / "chk-10", 10)
    (folder / "g000003" / flink_id("job_1", 3) / "chk-11").mkdir(parents=True)
    newest = newest_of(str(tmp_path))
    assert newest is not None
    assert (newest.generation, newest.number) == (2, 10)
    assert newest.url == f"file://{folder}/g000002/{flink_id('job_1', 2)}/chk-10"
