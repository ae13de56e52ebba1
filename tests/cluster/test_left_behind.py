"""What functions leave behind: it keeps no job from going on, ends with its worker, and no stranger is taken for it."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster, settings_in
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.engine.pipeline import Blackhole, Functions, Impulse, Pipeline, Sql

DAEMON = """
def daemon(file):
    import os, time
    if os.fork() == 0:
        os.setsid()
        with open(file + ".part", "w") as told:
            told.write(str(os.getpid()))
        os.rename(file + ".part", file)
        time.sleep(1000)
        os._exit(0)
"""
WORKER = f"""
import os, sys
from pathlib import Path
from arroyo_udf_plugin.cluster.schedulers import worker_files
{DAEMON}
folder = Path(sys.argv[1])
lock = worker_files.claim(folder, "job_1", 3)
worker_files.sign(lock, os.getpid())
worker_files.mark(worker_files.marker_of(folder, "job_1", 3))
daemon(str(folder.parent / "daemon"))
print("held", flush=True)
sys.stdin.read()
"""


def ended(pid: int) -> bool:
    return worker_files.started_at(pid) is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workers"
    made.mkdir()
    return made


@pytest.fixture
def left(folder: Path) -> Iterator[tuple[int, int]]:
    """The ids of a worker that has been killed, and of the daemon that it has left."""
    environment = {**os.environ, worker_files.MARKER: worker_files.UNMARKED}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"held\n"
        until((folder.parent / "daemon").exists, "the daemon")
        (living,) = worker_files.living(folder, "job_1")
        living.kill()
        worker.wait()
    daemon = int((folder.parent / "daemon").read_text())
    assert not ended(daemon)
    yield worker.pid, daemon
    with contextlib.suppress(ProcessLookupError):
        os.kill(daemon, signal.SIGKILL)


def test_what_holds_the_lock_of_a_worker_that_has_ended_is_no_worker(folder: Path, left: tuple[int, int]) -> None:
    assert not list(worker_files.living(folder, "job_1"))


def test_a_daemon_ends_with_its_worker(folder: Path, left: tuple[int, int]) -> None:
    worker, daemon = left
    worker_files.end_family(folder, "job_1", 3, worker)
    assert ended(daemon)
    assert not list(worker_files.living(folder, "job_1"))
    assert not list(folder.iterdir())


def test_tidying_ends_what_a_worker_has_left(folder: Path, left: tuple[int, int]) -> None:
    """Nobody may have noticed its end."""
    worker_files.remove_ended(folder, "job_1-3")
    assert ended(left[1])
    assert not list(folder.iterdir())


def test_a_stranger_with_the_id_of_a_worker_is_not_killed(folder: Path, left: tuple[int, int]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as stranger:
        started = worker_files.started_at(stranger.pid)
        assert started is not None
        file = os.open(folder / "job_1-3", os.O_RDWR)
        os.pwrite(file, f"{stranger.pid} {started - 1:<30}".encode(), 0)
        os.close(file)
        assert not list(worker_files.living(folder, "job_1"))
        worker_files.remove_ended(folder, "job_1-3")
        worker_files.end_family(folder, "job_1", 3, stranger.pid)
        worker_files.Living("job_1", 3, stranger.pid, started - 1).kill()
        assert not ended(stranger.pid)
        stranger.communicate(b"\n")
        assert stranger.returncode == 0


def test_a_lock_that_an_older_program_has_signed_is_a_workers(folder: Path) -> None:
    lock = worker_files.claim(folder, "job_1", 3)
    os.pwrite(lock, f"{os.getpid():<20}".encode(), 0)
    (found,) = worker_files.living(folder, "job_1")
    os.close(lock)
    assert found.pid == os.getpid()


@pytest.mark.cluster
def test_a_function_that_leaves_a_daemon_holds_no_job_up(database: Database, tmp_path: Path, build_plugin: Any) -> None:
    library = build_plugin(
        f"from arroyo_udf_plugin import udf\n{DAEMON}\ndone = []\n\n@udf\ndef f(n: int) -> int:\n"
        f"    if not done:\n        done.append(1)\n        daemon({str(tmp_path / 'daemon')!r})\n    return n\n"
    )
    settings = settings_in(tmp_path)
    calls = [Sql(select={"n": "CAST(counter AS BIGINT)"}), Functions(plugin=str(library), calls=["x = f(n)"])]
    pipeline = Pipeline(name="p", source=Impulse(rate=100), operators=calls, sinks=[Blackhole()])
    with contextlib.closing(Cluster(database, settings, lambda tell: ProcessScheduler(tell, settings))) as cluster:
        posted = cluster.post(pipeline, library)
        job = cluster.await_state(posted, "Running").job.id
        until((tmp_path / "daemon").exists, "the daemon")
        daemon = int((tmp_path / "daemon").read_text())
        (tmp_path / "daemon").unlink()
        (worker,) = worker_files.living(protocol.folder_of(tmp_path), job)
        os.kill(worker.pid, signal.SIGTERM)  # as systemd sends it to all processes of a unit
        cluster.await_state(posted, "Running", generation=2)
        assert ended(daemon)
        cluster.change(posted, stop="force")
        cluster.await_state(posted, "Stopped")
