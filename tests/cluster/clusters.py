"""What tests of the controller use: pipelines as the API stores them, and waiting for what they do."""

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from waiting import until

from arroyo_udf_plugin.cluster.configuration import Settings, configured
from arroyo_udf_plugin.cluster.controller.controller import Controller
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Changes, Database
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.schedulers.embedded import EmbeddedScheduler
from arroyo_udf_plugin.engine.pipeline import Pipeline
from arroyo_udf_plugin.engine.pipeline.description import described


def settings_in(folder: Path, **changes: Any) -> Settings:
    limits = {"initial_backoff": 0.01, "drain_time": 2.0} | changes
    return configured(None, {"data": str(folder), "pipeline": limits}, {}).settings


def shown(number: int, **changes: Any) -> dict[str, Any]:
    """A batch of a preview, with a row."""
    own = {"operator_id": "preview", "subtask_idx": 0, "start_id": number, "timestamps": [number]}
    return own | {"batch": json.dumps([{"n": number}])} | changes


EMPTY = JobProgram({}, {})
NOWHERE: dict[str, Any] = {}


def program(pipeline: Pipeline, *libraries: Path) -> JobProgram:
    artifacts = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in libraries}
    return JobProgram(json.loads(json.dumps(described(pipeline))), artifacts)


class Cluster:
    """A database and a controller, as in `arroyo-udf cluster`."""

    def __init__(
        self, database: Database, settings: Settings, make_scheduler: Any = EmbeddedScheduler, elsewhere: Any = NOWHERE
    ) -> None:
        self.database, self.checkpoints = database, settings.checkpoints
        self.controller = Controller(database, settings, make_scheduler, elsewhere=elsewhere)
        self._changes = Changes(database, self.controller.wake)
        self.controller.start()

    def close(self) -> None:
        with closing(self._changes):
            self.controller.stop()

    def post(self, pipeline: Pipeline, *libraries: Path, **changes: Any) -> str:
        """Returns the pipeline's id."""
        given: dict[str, Any] = {"name": pipeline.name, "query": "", "graph": {}, "checkpoint_interval_micros": 10_000}
        given["checkpoints"] = self.checkpoints
        with self.database.begin() as session:
            made = pipelines.create(session, program=program(pipeline, *libraries), **given | changes)
        return made.pipeline.id

    def change(self, pipeline_id: str, **changes: Any) -> None:
        with self.database.begin() as session:
            pipelines.change(session, pipeline_id, changes)

    def restart(self, pipeline_id: str, **how: Any) -> None:
        with self.database.begin() as session:
            pipelines.restart(session, pipeline_id, **how)

    def get(self, pipeline_id: str) -> pipelines.WholeJob:
        with self.database.read() as session:
            return pipelines.get(session, pipeline_id)

    def await_state(self, pipeline_id: str, state: str, generation: int = 0) -> pipelines.WholeJob:
        def reached() -> bool:
            status = self.get(pipeline_id).status
            return status.state == state and status.generation >= generation

        try:
            until(reached, state)
        except AssertionError as error:
            raise AssertionError(f"{error}; {vars(self.get(pipeline_id).status)}") from None
        return self.get(pipeline_id)


def posting(database: Database, folder: Path) -> Cluster:
    """Without a controller. folder: of the data of the program that has one."""
    found = Cluster.__new__(Cluster)
    found.database, found.checkpoints = database, str(folder / "checkpoints")
    return found
