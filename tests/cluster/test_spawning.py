"""A spare process becomes the next worker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import Cluster, settings_in
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.cluster.schedulers.spawning import Spawned, Spawner
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Pipeline

pytestmark = pytest.mark.cluster


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    with contextlib.closing(Spawner()) as made:
        yield made


def taken(spawner: Spawner, tmp_path: Path, **environment: str) -> Spawned:
    with (tmp_path / "output").open("ab") as output:
        return spawner.take(environment, output)


def spare_of(spawner: Spawner) -> Spawned:
    spare = spawner._spare
    assert spare is not None
    return spare


def test_a_spare_process_is_taken_once_and_another_one_prepared(spawner: Spawner, tmp_path: Path) -> None:
    spawner.prepare()
    spare = spare_of(spawner)
    spawner.prepare()
    assert spare_of(spawner) is spare
    with contextlib.closing(taken(spawner, tmp_path).channel), contextlib.closing(spare.channel):
        other = taken(spawner, tmp_path)
        assert other.process.pid != spare.process.pid
        other.end()
        spare.end()


def test_a_generation_with_an_environment_gets_a_new_process(spawner: Spawner, tmp_path: Path) -> None:
    spawner.prepare()
    own = taken(spawner, tmp_path, PYTHONPATH="/nowhere")
    assert own.process.pid != spare_of(spawner).process.pid
    environment = Path(f"/proc/{own.process.pid}/environ")
    until(lambda: environment.read_bytes() != b"", "the exec of the process, which the kernel has begun")
    assert b"PYTHONPATH=/nowhere" in environment.read_bytes().split(b"\0")
    own.end()


def test_a_spare_process_that_was_killed_is_not_taken(spawner: Spawner, tmp_path: Path) -> None:
    spawner.prepare()
    spare = spare_of(spawner).process
    spare.kill()
    spare.wait()
    other = taken(spawner, tmp_path)
    assert other.process.pid != spare.pid
    other.end()


def test_no_spare_process_outlives_its_controller() -> None:
    program = """
import time
from arroyo_udf_plugin.cluster.schedulers.spawning import Spawner
spawner = Spawner()
spawner.prepare()
print(spawner._spare.process.pid, flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        spare = int(controller.stdout.readline())
        assert worker_files.started_at(spare) is not None
        controller.kill()
    until(lambda: worker_files.started_at(spare) is None, "the spare process to end")


def test_a_job_whose_worker_is_killed_goes_on_in_the_spare_process(database: Database, tmp_path: Path) -> None:
    """And it is a worker as any other: found by its lock, with output of its own, and killed again."""
    schedulers: list[ProcessScheduler] = []
    settings = settings_in(tmp_path)

    def scheduler(tell: object) -> ProcessScheduler:
        schedulers.append(ProcessScheduler(tell, settings))  # type: ignore[arg-type]
        return schedulers[-1]

    def worker() -> worker_files.Living:
        (found,) = worker_files.living(protocol.folder_of(tmp_path), cluster.get(posted).job.id)
        return found

    with contextlib.closing(Cluster(database, settings, scheduler)) as cluster:
        posted = cluster.post(Pipeline(name="p", source=Impulse(rate=10), sinks=[Blackhole()]))
        cluster.await_state(posted, "Running")
        for generation in (2, 3):
            until(lambda: schedulers[0]._spawner._spare is not None, "a spare process")
            spare = spare_of(schedulers[0]._spawner).process.pid
            os.kill(worker().pid, signal.SIGKILL)
            cluster.await_state(posted, "Running", generation=generation)
            assert worker().pid == spare
            output = tmp_path / "logs" / f"{cluster.get(posted).job.id}-{generation}.log"
            assert os.path.samefile(f"/proc/{spare}/fd/1", output)
            assert os.path.samefile(f"/proc/{spare}/fd/0", os.devnull)
