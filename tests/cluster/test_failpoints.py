"""A program that is killed between two steps: afterwards everything ends as if it had not been."""

import http.client
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster, posting
from programs import SQL, TWICE, Client, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster


class Restarting:
    """A program that is started again when it has been killed."""

    def __init__(self, start: Callable[..., Program], name: str, folder: Path, moment: str, *arguments: str) -> None:
        self.failed = folder / "failed"
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent / "failing"), os.environ.get("PYTHONPATH")]))
        environment = {"PYTHONPATH": path, "FAIL_AT": moment, "FAILED": str(self.failed)}
        self._start = lambda: start(name, folder, *arguments, environment=environment)
        self.program = self._start()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def restarted() -> bool:
            if self.program.process.poll() is not None:
                self.program.end(signal.SIGKILL)
                self.program = self._start()
            return condition()

        until(restarted, what)


def await_state(controller: Restarting, client: Cluster, pipeline: str, state: str, generation: int = 0) -> None:
    def reached() -> bool:
        status = client.get(pipeline).status
        return status.state == state and status.generation >= generation

    controller.until(reached, f"{state}, generation {generation}")


OF_THE_CONTROLLER = ("starting", "spawned", "stopping", "clearing", "taken over", "heard", "heard the end")
OF_THE_WORKER = ("unregistered", "registered", "committed", "ended", "told")


@pytest.mark.parametrize("moment", OF_THE_CONTROLLER + OF_THE_WORKER)
def test_a_kill_between_two_steps_changes_nothing(
    start: Callable[..., Program], database: Database, tmp_path: Path, build_plugin: Any, moment: str
) -> None:
    library = build_plugin(TWICE)
    client = posting(database, tmp_path)
    pipeline = Script("query.sql", SQL.format(out=tmp_path / "out"), [str(library)]).pipeline
    controller = Restarting(start, "controller", tmp_path, moment)
    posted = client.post(pipeline, library, checkpoint_interval_micros=200_000)
    await_state(controller, client, posted, "Running")
    controller.until(lambda: bool(parts(tmp_path)), "rows")
    if moment == "taken over":
        controller.program.end(signal.SIGKILL)
    client.change(posted, parallelism=2)
    generation = client.get(posted).status.generation
    await_state(controller, client, posted, "Running", generation + 1)
    seen = len(parts(tmp_path))
    controller.until(lambda: len(parts(tmp_path)) > seen, "more rows")
    client.change(posted, stop="checkpoint")
    await_state(controller, client, posted, "Stopped")
    controller.until(controller.failed.exists, "the moment")
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
    job = client.get(posted).job.id
    controller.until(lambda: not list(worker_files.living(protocol.folder_of(tmp_path), job)), "workers to be gone")
    assert controller.program.end(signal.SIGTERM) == 0


def test_an_api_that_is_killed_between_a_function_and_its_pipeline_leaves_no_half(
    start: Callable[..., Program], tmp_path: Path
) -> None:
    api = Restarting(start, "api", tmp_path, "stored", "--port", "0")
    body = {
        "name": "doubles",
        "query": SQL.format(out=tmp_path / "out"),
        "parallelism": 1,
        "udfs": [{"definition": TWICE, "language": "python"}],
    }
    with pytest.raises((OSError, http.client.HTTPException)):
        Client(api.program).ask("PUT", "/pipelines/doubles", body)
    api.program.process.wait(60)
    api.until(lambda: api.program.process.poll() is None, "the next API")
    client = Client(api.program)
    assert client.ask("GET", "/pipelines")["data"] == []
    client.ask("PUT", "/pipelines/doubles", body)
    assert client.job("doubles")["state"] == "Created"
