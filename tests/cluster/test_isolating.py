"""A cluster whose jobs are threads, and a function that crashes: it ends its own job, and no other for long."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import posting, settings_in
from programs import Program
from simulations import Simulation
from waiting import until

from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.cluster.schedulers.embedded import IsolatingScheduler
from arroyo_udf_plugin.cluster.schedulers.worker_output import INSTEAD, crashed_in
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport
from arroyo_udf_plugin.engine.pipeline import Blackhole, Functions, Impulse, Pipeline, Sql

CRASH = """
import ctypes

from arroyo_udf_plugin import udf

@udf
def boom(n: int) -> int:
    return ctypes.string_at(0) if n == 3 else n
"""
STACK = """before
Fatal Python error: Segmentation fault

Current thread 0x00007f4d (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/tmp/crash.py", line 8 in boom
  File "/lib/executor.py", line 33 in run
"""


def test_jobs_are_isolated_after_the_second_death_in_a_row(migrated: Path) -> None:
    with contextlib.closing(Simulation(migrated)) as simulation:
        posted = [simulation.post() for _ in range(2)]
        ids = sorted(simulation.get(one).job.id for one in posted)
        isolated = []
        for _ in range(3):
            made = simulation.start()
            simulation.settle(1)
            isolated.append(sorted(made._schedulers.of("local").isolated))  # type: ignore[attr-defined]
            simulation.world.workers.clear()  # threads of the process
            simulation.crash(made)
        assert isolated == [[], [], ids]


def test_a_controller_that_lives_for_a_while_begins_anew(migrated: Path) -> None:
    with contextlib.closing(Simulation(migrated)) as simulation:
        simulation.post()
        for _ in range(4):
            made = simulation.start()
            simulation.settle(130)
            assert not made._schedulers.of("local").isolated  # type: ignore[attr-defined]
            simulation.crash(made)


def test_a_stack_tells_the_function() -> None:
    program = JobProgram({"operators": [{"calls": ["x = boom(n)"]}]}, {})
    assert crashed_in(STACK, program) == "boom"
    assert crashed_in(STACK, JobProgram({"operators": [{"calls": ["x = other(n)"]}]}, {})) is None
    assert crashed_in("killed", program) is None


def test_nothing_runs_when_neither_a_thread_nor_a_worker_does(tmp_path: Path) -> None:
    """A worker of a process before is killed before a thread starts."""
    told: list[JobReport] = []
    scheduler = IsolatingScheduler(told.append, settings_in(tmp_path))
    with contextlib.closing(scheduler):
        scheduler.clear("job_1", 3)
        assert [(one.event, one.generation) for one in told] == [(Event.READY, 3)]
        (protocol.folder_of(tmp_path) / "job_2-3").touch()
        scheduler.clear("job_2", 3)
        until(lambda: len(told) == 2, "the answer")
        assert not list(worker_files.living(protocol.folder_of(tmp_path), "job_2"))


@pytest.mark.cluster
def test_a_function_that_crashes_ends_its_job_and_no_other_for_long(
    start: Callable[..., Program], database: Database, tmp_path: Path, build_plugin: Any
) -> None:
    library = build_plugin(CRASH)
    client = posting(database, tmp_path)
    calls = [Sql(select={"n": "CAST(counter AS BIGINT)"}), Functions(plugin=str(library), calls=["x = boom(n)"])]
    bad = Pipeline(name="bad", source=Impulse(rate=100), operators=calls, sinks=[Blackhole()])
    posted = client.post(bad, library)
    good = client.post(Pipeline(name="good", source=Impulse(rate=100), sinks=[Blackhole()]))
    settings = {"ARROYO_UDF__PIPELINE__ALLOWED_RESTARTS": "1", "ARROYO_UDF__PIPELINE__INITIAL_BACKOFF": "0.01"}
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "cluster", "--data", str(tmp_path), "--port", "0"]
    for _ in range(2):  # it may die before it is ready
        died = subprocess.run(
            [*command, "--scheduler", "embedded"], stderr=subprocess.PIPE, text=True, env={**os.environ, **settings}
        )
        assert died.returncode == -signal.SIGSEGV
        assert "in boom" in died.stderr
    last = start("cluster", tmp_path, "--port", "0", "--scheduler", "embedded", environment=settings)
    status = client.await_state(posted, "Failed").status
    assert status.failure_message == f"the worker was ended by signal 11, in the function boom: {INSTEAD}"
    assert client.await_state(good, "Running").status.restarts == 0
    with database.read() as session:
        found = history.logged(session, client.get(posted).job.id, 9, levels=("error",)).rows
    assert len(found) == 2
    assert last.end(signal.SIGTERM) == 0
