"""Controllers and workers that are killed at random, while users change their wishes. One seed decides all.

Whatever is killed, each job ends in the state that its user asked for, its output is that of an undisturbed run, and
nothing of it runs any more.
"""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import posting
from programs import SQL, TWICE, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster

KILLS = int(os.environ.get("KILLS", "5"))
JOBS = 2


@pytest.mark.parametrize("seed", [1, 2])
def test_jobs_survive_random_kills(
    start: Callable[..., Program], database: Database, tmp_path: Path, build_plugin: Any, seed: int
) -> None:
    rng = random.Random(seed)
    library = build_plugin(TWICE)
    client = posting(database, tmp_path)
    program = start("controller", tmp_path)
    folders = [tmp_path / str(number) for number in range(JOBS)]
    posted = []
    for folder in folders:
        pipeline = Script("query.sql", SQL.format(out=folder / "out"), [str(library)]).pipeline
        posted.append(client.post(pipeline, library, checkpoint_interval_micros=300_000))

    for _ in range(KILLS):
        at = rng.randrange(JOBS)
        seen = len(parts(folders[at]))
        more = rng.random() < 0.7
        until(lambda at=at, seen=seen, more=more: not more or len(parts(folders[at])) > seen, "rows")
        what = rng.choice(["controller", "worker", "worker", "all", "wish"])
        if what == "wish":
            client.change(posted[at], parallelism=rng.randint(1, 2))
        if what in ("worker", "all"):
            job = client.get(posted[at]).job.id
            for worker in worker_files.living(protocol.folder_of(tmp_path), job):
                worker.kill()
        if what in ("controller", "all"):
            program.end(signal.SIGKILL)
            program = start("controller", tmp_path)

    for pipeline_id in posted:
        client.change(pipeline_id, stop="checkpoint")
    for pipeline_id, folder in zip(posted, folders, strict=True):
        job = client.await_state(pipeline_id, "Stopped").job.id
        assert doubles(folder) == expected(len(doubles(folder)))
        until(lambda job=job: not list(worker_files.living(protocol.folder_of(tmp_path), job)), "workers to be gone")
    assert program.end(signal.SIGTERM) == 0
