"""What workers write goes to the job's log while they run, within limits; and the limits of workers."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import EMPTY
from waiting import until

from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.controller.report_writer import Notes
from arroyo_udf_plugin.cluster.database import history, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.schedulers import process, worker_output
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.cluster.schedulers.worker_output import WorkerOutput
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import OUTPUT, JobReport, Task


def task() -> Task:
    return Task("job_1", 1, EMPTY, parallelism=1, checkpoint_interval=1.0, place=None)


def test_output_is_told_in_whole_lines_and_once(tmp_path: Path) -> None:
    output = WorkerOutput(tmp_path / "logs" / "a.log")
    assert (output.more(), output.last()) == ("", "")
    with output.create() as file:
        file.write(b"one\ntwo\nth")
        file.flush()
        assert output.more() == "one\ntwo\n"
        assert output.more() == ""
        file.write(b"ree\n\xff")
        file.flush()
        assert output.more() == "three\n"
    assert output.rest() == "\ufffd"
    assert output.last() == "one\ntwo\nthree\n\ufffd"


def test_output_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_output, "TOLD", 10)
    monkeypatch.setattr(worker_output, "_LARGEST", 30)
    output = WorkerOutput(tmp_path / "a.log")
    with output.create() as file:
        file.write(b"a" * 11 + b"\n" + b"bbb\n" * 3)
        file.flush()
        assert output.more() == "[14 bytes are left out]\nb\nbbb\nbbb\n"
        file.write(b"c" * 12)  # a line that is too long is cut
        file.flush()
        assert output.more() == "[2 bytes are left out]\n" + "c" * 10
        assert (tmp_path / "a.log").stat().st_size == 0
        file.write(b"next\n")
        file.flush()
        assert output.more() == "next\n"


def test_another_controller_goes_on_with_what_is_new(tmp_path: Path) -> None:
    first, second = WorkerOutput(tmp_path / "a.log"), WorkerOutput(tmp_path / "a.log")
    with first.create() as file:
        file.write(b"before\n")
        file.flush()
        second.skip()
        file.write(b"after\n")
        file.flush()
        assert second.more() == "after\n"


def test_output_is_told_while_the_worker_runs_and_its_end_with_its_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    program = tmp_path / "worker"
    program.write_text(
        f"""#!/bin/sh
cat > {tmp_path}/told-$$
test -s {tmp_path}/told-$$ || exit
echo started >&2
read nothing < {go_on}
echo broken
exit 3
"""
    )
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(process, "_LOOK_EVERY", 0.01)
    told: list[JobReport] = []
    settings = configured(None, {"data": str(tmp_path), "worker": {"memory": "3GiB", "cpu_time": "2s"}}, {}).settings
    scheduler = ProcessScheduler(told.append, settings)
    with contextlib.closing(scheduler):
        scheduler.start(task())
        until(lambda: bool(told), "output")
        assert (told[0].event, told[0].message, told[0].details) == (None, OUTPUT, "started\n")
        go_on.write_text("\n")
        until(lambda: told[-1].event is not None, "the end")
    assert (told[-1].event, told[-1].message) == (Event.LOST, "the worker ended with status 3")
    assert told[-1].details == "started\nbroken\n"
    (text,) = filter(None, (path.read_text() for path in tmp_path.glob("told-*")))  # a spare worker was told nothing
    assert json.loads(text)["limits"] == {"memory": 3 << 30, "cpu_time": 2.0}
    assert not list((tmp_path / "logs").iterdir())


def test_the_log_keeps_the_latest_output_of_a_job_and_all_else(database: Database, tmp_path: Path) -> None:
    with database.begin() as session:
        jobs = [
            pipelines.create(session, name="p", query="", program=EMPTY, graph={}, checkpoint_interval_micros=1).job.id
            for _ in range(2)
        ]
        history.log(session, jobs[0], 0, "info", "Running")
    notes = Notes(Records(tmp_path))
    for reports in (
        [JobReport(jobs[1], 0, message=OUTPUT, details="other")],
        [JobReport(jobs[0], 0, message=OUTPUT, details=str(number)) for number in range(60)],
        [JobReport(jobs[0], 0, message=OUTPUT, details=str(number)) for number in range(60, 103)],
    ):
        for report in reports:
            notes.add(report)
        with database.begin() as session:
            notes.write(session)
        notes.written()
    with database.read() as session:
        rows = history.logged(session, jobs[0], 200).rows
        assert [row.details for row in rows] == [str(number) for number in range(102, 2, -1)] + [""]
        assert [row.details for row in history.logged(session, jobs[1], 200).rows] == ["other"]


LIMITED = """
import json, resource, sys
from arroyo_udf_plugin.cluster.worker import limit
limit(json.loads(sys.argv[1]))
if sys.argv[2] == "spin":
    while True: pass
if sys.argv[2] == "grow":
    bytearray(4 << 30)
print(resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_CPU)[0])
"""


@pytest.mark.parametrize(
    ("limits", "what", "told"),
    [
        ({"memory": None, "cpu_time": None}, "show", "-1 -1"),
        ({"memory": 3 << 30, "cpu_time": 5.5}, "show", f"{3 << 30} 6"),
        ({"memory": 3 << 30, "cpu_time": None}, "grow", "MemoryError"),
        ({"memory": None, "cpu_time": 1.0}, "spin", "signal 24"),
    ],
)
def test_workers_have_limits(limits: dict[str, float | None], what: str, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, json.dumps(limits), what], capture_output=True, text=True)
    assert told in f"{done.stdout}{done.stderr} signal {-done.returncode}"


def test_a_worker_without_processor_time_says_so() -> None:
    assert "worker.cpu_time" in process._ended(-24)
    assert process._ended(-9) == "the worker was ended by signal 9"
