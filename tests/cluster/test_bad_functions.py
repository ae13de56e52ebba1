"""Functions that crash, block, leak or are gone at the next start: their job ends as it should, others go on."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster, settings_in
from waiting import until

from arroyo_udf_plugin.cluster.configuration import Settings, configured
from arroyo_udf_plugin.cluster.database import history, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.cluster.schedulers.process import ProcessScheduler
from arroyo_udf_plugin.engine.pipeline import Blackhole, Functions, Impulse, Parts, Pipeline, Sql

pytestmark = pytest.mark.cluster

IMPORTS = """
import asyncio
import ctypes
import threading
import time

from arroyo_udf_plugin import udf
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    told = settings_in(tmp_path, allowed_restarts=1, worker_heartbeat_timeout=8.0).model_dump()
    return configured(None, told | {"worker": {"memory": "6GiB"}}, {}).settings


@pytest.fixture
def cluster(database: Database, settings: Settings) -> Iterator[Cluster]:
    made = Cluster(database, settings, lambda tell: ProcessScheduler(tell, settings))
    with contextlib.closing(made):
        yield made


@pytest.fixture
def neighbour(cluster: Cluster) -> Iterator[None]:
    """A job that goes on whatever another one does."""
    posted = cluster.post(Pipeline(name="neighbour", source=Impulse(rate=100), sinks=[Blackhole()]))
    cluster.await_state(posted, "Running")
    yield
    status = cluster.get(posted).status
    assert (status.state, status.generation) == ("Running", 1)


def calling(folder: Path, library: Path, **options: Any) -> Pipeline:
    operators = [
        Sql(select={"n": "CAST(counter AS BIGINT)"}),
        Functions(plugin=str(library), calls=["x = f(n)"], **options),
    ]
    source = Impulse(rate=200)
    return Pipeline(name="p", source=source, operators=operators, sinks=[Parts(path=str(folder / "out"))])


def no_process(cluster: Cluster, folder: Path, whole: pipelines.WholeJob) -> None:
    until(lambda: not list(worker_files.living(protocol.folder_of(folder), whole.job.id)), "the worker to be gone")


@pytest.mark.parametrize(
    ("body", "domain", "generations", "message"),
    [
        pytest.param(
            "def f(n: int) -> int:\n    return ctypes.string_at(0)",
            "internal",
            2,
            "11, in the function f: ",
            id="crashes",
        ),
        pytest.param(
            "def f(n: int) -> int:\n    ctypes.PyDLL(None).sleep(1000)", "internal", 2, "said nothing", id="lock"
        ),
        pytest.param(
            "async def f(n: int) -> int:\n    await asyncio.Event().wait()", "user", 1, "timed out", id="waits"
        ),
        pytest.param(
            "def f(n: int) -> int:\n    return len(b'x' * (8 << 30))", "user", 1, "MemoryError", id="has no memory"
        ),
    ],
)
@pytest.mark.usefixtures("neighbour")
def test_a_bad_function_fails_its_own_job_alone(
    cluster: Cluster, tmp_path: Path, build_plugin: Any, body: str, domain: str, generations: int, message: str
) -> None:
    timeout = "(timeout=0.5, max_attempts=1)" if body.startswith("async") else ""
    library = build_plugin(f"{IMPORTS}\n@udf{timeout}\n{body}\n")
    whole = cluster.await_state(cluster.post(calling(tmp_path, library), library), "Failed")
    assert message in whole.status.failure_message
    assert (whole.status.failure_domain, whole.status.generation) == (domain, generations)
    no_process(cluster, tmp_path, whole)


@pytest.mark.usefixtures("neighbour")
def test_a_function_that_crashes_in_a_process_of_its_own_is_the_users_error(
    cluster: Cluster, tmp_path: Path, build_plugin: Any
) -> None:
    library = build_plugin(f"{IMPORTS}\n@udf\ndef f(n: int) -> int:\n    return ctypes.string_at(0)\n")
    posted = cluster.post(calling(tmp_path, library, isolation="process"), library)
    whole = cluster.await_state(posted, "Failed")
    assert (whole.status.failure_domain, whole.status.generation) == ("user", 1), whole.status.failure_message
    no_process(cluster, tmp_path, whole)


def test_a_blocked_function_keeps_no_stopped_job_alive(cluster: Cluster, tmp_path: Path, build_plugin: Any) -> None:
    library = build_plugin(
        f"{IMPORTS}\n@udf(blocking=True, timeout=1000)\ndef f(n: int) -> int:\n"
        f"    threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        f"    open('{tmp_path}/called', 'w').close()\n    time.sleep(1000)\n    return n\n"
    )
    posted = cluster.post(calling(tmp_path, library), library)
    until(lambda: (tmp_path / "called").exists(), "a call")
    cluster.change(posted, stop="immediate")
    no_process(cluster, tmp_path, cluster.await_state(posted, "Stopped"))


def test_a_function_that_is_gone_at_the_next_start_is_named(
    cluster: Cluster, tmp_path: Path, build_plugin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that it needs, then its library."""
    needed = tmp_path / "modules" / "needed.py"
    needed.parent.mkdir()
    needed.write_text("")
    monkeypatch.syspath_prepend(str(needed.parent))
    path = f"{needed.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", path)
    library = build_plugin(f"{IMPORTS}\nimport needed\n\n@udf\nasync def f(n: int) -> int:\n    return n\n")
    posted = cluster.post(calling(tmp_path, library), library)
    job = cluster.await_state(posted, "Running").job.id
    needed.rename(needed.with_suffix(".away"))

    def fail_again(what: str) -> None:
        for worker in worker_files.living(protocol.folder_of(tmp_path), job):
            os.kill(worker.pid, signal.SIGKILL)
        whole = cluster.await_state(posted, "Failed")
        assert what in whole.status.failure_message
        assert whole.status.failure_domain == "user"

    fail_again("needed")
    needed.with_suffix(".away").rename(needed)
    generation = cluster.get(posted).status.generation
    cluster.restart(posted)
    cluster.await_state(posted, "Running", generation + 1)
    library.rename(library.with_suffix(".away"))
    fail_again(str(library))
    library.with_suffix(".away").rename(library)
    with cluster.database.read() as session:
        assert history.logged(session, job, 9, levels=("error",)).rows
