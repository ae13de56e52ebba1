"""The scheduler `flink` on a real Flink: jobs stop, go on, are rescaled, survive their controller, and move there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from clusters import Cluster, settings_in
from waiting import until

from arroyo_udf_plugin.cluster.api.placing import taken_along
from arroyo_udf_plugin.cluster.configuration import FlinkSettings
from arroyo_udf_plugin.cluster.database import history, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers.embedded import EmbeddedScheduler
from arroyo_udf_plugin.cluster.schedulers.flink.rest import ENDED
from arroyo_udf_plugin.cluster.schedulers.flink.scheduler import FlinkScheduler
from arroyo_udf_plugin.cluster.schedulers.flink.submission import flink_id
from arroyo_udf_plugin.engine.pipeline import Impulse, Parts, Pipeline

if TYPE_CHECKING:
    from sessions import Session

PARTITIONS = 4
ON_FLINK = {"scheduler": "flink", "slices": 4, "checkpoint_interval_micros": 1_000_000}


@pytest.fixture
def start(session_cluster: Session, tmp_path: Path) -> Iterator[Callable[[], Cluster]]:
    """Starts controllers on one database."""
    settings = FlinkSettings(
        url=session_cluster.url,
        python_jar=Path(session_cluster.python_jar),
        runner=str(session_cluster.runner),
    )
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(contextlib.closing(Database.open(f"sqlite:///{tmp_path / 'cluster.sqlite'}")))
        database.migrate()
        elsewhere = {"flink": partial(FlinkScheduler, settings=settings)}

        def start_one() -> Cluster:
            made = Cluster(database, settings_in(tmp_path), EmbeddedScheduler, elsewhere)
            return stack.enter_context(contextlib.closing(made))

        yield start_one
    for job in session_cluster.get("/jobs/overview")["jobs"]:  # jobs outlive their controllers
        if job["state"] not in ENDED:
            session_cluster.send("PATCH", f"/jobs/{job['jid']}?mode=cancel")


def counting(folder: Path, **source: object) -> Pipeline:
    source = {"rate": 500, "partitions": PARTITIONS} | source
    return Pipeline(name="counts", source=Impulse.model_validate(source), sinks=[Parts(path=str(folder / "out"))])


def rows(folder: Path) -> list[int]:
    """The number of each row in the sink, in order."""
    parts = [str(path) for path in (folder / "out").glob("part-*.parquet")]
    if not parts:
        return []
    table = ds.dataset(parts).to_table()
    return sorted(table["counter"].to_pylist())


def check(folder: Path) -> None:
    """Each row of each partition is there once, up to the last one."""
    found = rows(folder)
    for partition in range(PARTITIONS):
        own = [number for number in found if number % PARTITIONS == partition]
        assert own == list(range(partition, PARTITIONS * len(own), PARTITIONS))


def await_more_rows(folder: Path) -> None:
    seen = len(rows(folder))
    until(lambda: len(rows(folder)) > seen, "rows")


def test_a_job_runs_to_its_end(start: Callable[[], Cluster], tmp_path: Path) -> None:
    cluster = start()
    cluster.await_state(cluster.post(counting(tmp_path, rows=1000), **ON_FLINK), "Finished")
    assert rows(tmp_path) == list(range(1000))


def test_a_job_is_stopped_and_rescaled_and_has_each_row_once(start: Callable[[], Cluster], tmp_path: Path) -> None:
    cluster = start()
    posted = cluster.post(counting(tmp_path), **ON_FLINK)
    cluster.await_state(posted, "Running")
    await_more_rows(tmp_path)
    until(lambda: cluster.get(posted).status.epoch > 0, "a checkpoint")
    cluster.change(posted, parallelism=2)
    until(lambda: cluster.get(posted).status.settings["parallelism"] == 2, "two tasks of each kind")
    assert cluster.get(posted).status.generation == 1
    await_more_rows(tmp_path)
    cluster.change(posted, stop="checkpoint")
    stopped = cluster.await_state(posted, "Stopped")
    with cluster.database.read() as session:
        assert history.checkpoints(session, stopped.job.id)[-1].checkpoint_type == "stopping"
    cluster.change(posted, stop="none", parallelism=1)
    cluster.await_state(posted, "Running", generation=2)
    await_more_rows(tmp_path)
    cluster.change(posted, stop="checkpoint")
    assert cluster.await_state(posted, "Stopped").status.restarts == 0
    check(tmp_path)


def test_a_job_goes_on_without_its_controller(
    session_cluster: Session, start: Callable[[], Cluster], tmp_path: Path
) -> None:
    first = start()
    posted = first.post(counting(tmp_path), **ON_FLINK)
    first.await_state(posted, "Running")
    first.close()
    await_more_rows(tmp_path)
    second = start()
    second.change(posted, stop="immediate")
    whole = second.await_state(posted, "Stopped")
    assert whole.status.generation == 1
    second.change(posted, stop="none")
    second.await_state(posted, "Running", generation=2)
    await_more_rows(tmp_path)
    second.change(posted, stop="checkpoint")
    second.await_state(posted, "Stopped")
    check(tmp_path)


def test_a_stopped_job_moves_to_flink(start: Callable[[], Cluster], tmp_path: Path) -> None:
    cluster = start()
    posted = cluster.post(counting(tmp_path), checkpoint_interval_micros=1_000_000)
    cluster.await_state(posted, "Running")
    await_more_rows(tmp_path)
    cluster.change(posted, stop="checkpoint")
    whole = cluster.await_state(posted, "Stopped")
    with cluster.database.begin() as session:
        pipelines.move(session, posted, "flink", 4)
        pipelines.restart(session, posted, ignore_state=True, restore=taken_along(whole, discards=False))
    cluster.await_state(posted, "Running", generation=2)
    await_more_rows(tmp_path)
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    check(tmp_path)


def test_a_job_that_somebody_else_ends_is_noticed(
    session_cluster: Session, start: Callable[[], Cluster], tmp_path: Path
) -> None:
    cluster = start()
    posted = cluster.post(counting(tmp_path), **ON_FLINK)
    job_id = cluster.await_state(posted, "Running").job.id
    until(lambda: cluster.get(posted).status.epoch > 0, "a checkpoint")
    session_cluster.send("PATCH", f"/jobs/{flink_id(job_id, 1)}?mode=cancel")
    cluster.await_state(posted, "Running", generation=2)
    cluster.change(posted, stop="immediate")
    cluster.await_state(posted, "Stopped")
    check(tmp_path)
