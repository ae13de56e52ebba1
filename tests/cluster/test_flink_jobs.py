"""Jobs on Flink under a controller, and jobs that move there; Flink is a fake one (see fake_flink.py)."""

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from clusters import Cluster, settings_in
from fake_flink import FakeFlink, FakeJob
from test_controller import counters, counting
from waiting import until

from arroyo_udf_plugin.cluster.api.failures import Refusal
from arroyo_udf_plugin.cluster.api.placing import taken_along
from arroyo_udf_plugin.cluster.configuration import FlinkSettings
from arroyo_udf_plugin.cluster.crossing import positions_of
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers.embedded import EmbeddedScheduler
from arroyo_udf_plugin.cluster.schedulers.flink import watching
from arroyo_udf_plugin.cluster.schedulers.flink.scheduler import FlinkScheduler
from arroyo_udf_plugin.cluster.schedulers.flink.submission import flink_id
from arroyo_udf_plugin.engine.connectors.location import Location, location_of
from arroyo_udf_plugin.engine.execution.epoch_files import EpochFiles
from arroyo_udf_plugin.engine.execution.manifest import SliceState, StateFile
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.operators.state import framed
from arroyo_udf_plugin.errors import InvalidArgument


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFlink]:
    monkeypatch.setattr(watching, "LOOK_EVERY", 0.01)
    with FakeFlink() as fake:
        yield fake


def on(flink: FakeFlink, database: Database, folder: Path) -> Cluster:
    """A controller whose jobs may run in threads or on Flink."""
    jar = folder / "flink-python-2.3.0.jar"
    jar.write_bytes(b"a jar")
    settings = FlinkSettings(url=flink.url, python_jar=jar, runner="/opt/runner.py")
    elsewhere = {"flink": partial(FlinkScheduler, settings=settings)}
    return Cluster(database, settings_in(folder), EmbeddedScheduler, elsewhere)


@pytest.fixture
def cluster(flink: FakeFlink, database: Database, tmp_path: Path) -> Iterator[Cluster]:
    with closing(on(flink, database, tmp_path)) as made:
        yield made


def job_of(flink: FakeFlink, cluster: Cluster, posted: str) -> FakeJob:
    whole = cluster.get(posted)
    return flink.jobs[flink_id(whole.job.id, whole.status.generation)]


def arguments(asked: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(asked["programArgsList"][3])
    return loaded


def test_a_job_runs_on_flink_stops_and_goes_on_with_another_parallelism(
    flink: FakeFlink, cluster: Cluster, tmp_path: Path
) -> None:
    posted = cluster.post(counting(tmp_path), scheduler="flink", slices=8)
    assert cluster.await_state(posted, "Running").status.tasks == 2
    job_of(flink, cluster, posted).checkpoint()
    until(lambda: cluster.get(posted).status.epoch == 1, "the checkpoint")
    flink.rescales = "never"
    cluster.change(posted, parallelism=3)
    cluster.await_state(posted, "Running", generation=2)
    cluster.change(posted, stop="checkpoint")
    status = cluster.await_state(posted, "Stopped").status
    assert (status.epoch, status.restarts) == (3, 0)  # each stop takes a savepoint
    first, second = flink.submits
    assert (first["parallelism"], second["parallelism"]) == (1, 3)
    assert second["savepointPath"].endswith("/flink/g000001/savepoints/savepoint-2")
    assert {arguments(asked)["slices"] for asked in flink.submits} == {8}


def test_a_job_is_rescaled_in_place(flink: FakeFlink, cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path), scheduler="flink", slices=8, parallelism=2)
    cluster.await_state(posted, "Running")
    for parallelism in (4, 1):
        cluster.change(posted, parallelism=parallelism)
        until(lambda: cluster.get(posted).status.settings["parallelism"] == parallelism, "another parallelism")  # noqa: B023
        assert job_of(flink, cluster, posted).parallelism == parallelism
    status = cluster.await_state(posted, "Running").status
    assert (status.generation, status.restarts, len(flink.submits)) == (1, 0, 1)


def test_a_lost_job_goes_on_from_its_newest_checkpoint(flink: FakeFlink, cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path), scheduler="flink", slices=8)
    cluster.await_state(posted, "Running")
    job = job_of(flink, cluster, posted)
    job.checkpoint()
    job.throw("java.lang.Exception: no slots", "FAILED")
    assert cluster.await_state(posted, "Running", generation=2).status.restarts == 1
    assert flink.submits[1]["savepointPath"].endswith(f"/flink/g000001/{job.id}/chk-1")


def test_the_next_controller_goes_on_with_jobs_of_flink(flink: FakeFlink, database: Database, tmp_path: Path) -> None:
    with closing(on(flink, database, tmp_path)) as first:
        posted = first.post(counting(tmp_path), scheduler="flink", slices=8)
        first.await_state(posted, "Running")
    with closing(on(flink, database, tmp_path)) as second:
        second.change(posted, stop="immediate")
        assert second.await_state(posted, "Stopped").status.generation == 1
    assert [job.state for job in flink.jobs.values()] == ["CANCELED"]


def test_without_flink_jobs_of_this_machine_run(flink: FakeFlink, cluster: Cluster, tmp_path: Path) -> None:
    flink.is_away = True
    waiting = cluster.post(counting(tmp_path), scheduler="flink", slices=8)
    cluster.await_state(cluster.post(counting(tmp_path, rows=10)), "Finished")
    assert counters(tmp_path) == list(range(10))
    flink.is_away = False
    assert cluster.await_state(waiting, "Running").status.restarts == 0


def test_a_job_of_a_scheduler_that_is_not_configured_says_so(database: Database, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, allowed_restarts=0)
    with closing(Cluster(database, settings)) as cluster:
        posted = cluster.post(counting(tmp_path), scheduler="flink", slices=8)
        assert "set flink.url" in str(cluster.await_state(posted, "Failed").status.failure_message)


def test_a_stopped_job_moves_with_the_positions_of_its_sources(
    flink: FakeFlink, cluster: Cluster, tmp_path: Path
) -> None:
    """They are given until there is a checkpoint."""
    posted = cluster.post(counting(tmp_path, rate=1000, partitions=2))
    cluster.await_state(posted, "Running")
    until(lambda: bool(counters(tmp_path)), "rows")
    cluster.change(posted, stop="checkpoint")
    whole = cluster.await_state(posted, "Stopped")
    restore = taken_along(whole, discards=False)
    assert restore is not None
    rows = sum(position["row"] - 1 for position in restore["positions"]["source"].values())
    assert rows == len(counters(tmp_path))
    with cluster.database.begin() as session:
        pipelines.move(session, posted, "flink", 8)
        pipelines.restart(session, posted, ignore_state=True, restore=restore)
    cluster.await_state(posted, "Running", generation=2)
    job_of(flink, cluster, posted).throw("java.lang.Exception: no slots", "FAILED")
    cluster.await_state(posted, "Running", generation=3)
    job_of(flink, cluster, posted).checkpoint()
    until(lambda: cluster.get(posted).status.epoch == 1, "the checkpoint")
    cluster.restart(posted)
    cluster.await_state(posted, "Running", generation=4)
    given = [arguments(asked)["positions"] for asked in flink.submits]
    assert given == [restore["positions"], restore["positions"], None]


SHUFFLED = {
    "nodes": [{"node_id": 0, "description": "source impulse"}, {"node_id": 1, "description": "TumblingWindow"}],
    "edges": [{"src_id": 0, "dest_id": 1, "edge_type": "Shuffle"}],
}


def test_what_does_not_move_is_refused_by_name(flink: FakeFlink, cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, rate=1000), graph=SHUFFLED)
    cluster.await_state(posted, "Running")
    until(lambda: bool(counters(tmp_path)), "rows")
    cluster.change(posted, stop="checkpoint")
    whole = cluster.await_state(posted, "Stopped")
    with pytest.raises(Refusal, match="TumblingWindow: windows and joins keep rows"):
        taken_along(whole, discards=False)
    assert taken_along(whole, discards=True) is None
    place = location_of(str(whole.job.place)).child("0")
    _put_in_flight(place, rows=3)
    with pytest.raises(InvalidArgument, match="geocode has 3 rows in flight"):
        positions_of(place, {}, ["source"], 0)
    with pytest.raises(InvalidArgument, match="has no checkpoint 99 of this job"):
        positions_of(place, {}, ["source"], 99)


def _put_in_flight(place: Location, rows: int) -> None:
    """Rows into the state of the newest checkpoint."""
    files = EpochFiles(open_store(place))
    number = files.numbers()[-1]
    sink = pa.BufferOutputStream()
    for batch in (pa.record_batch({"a": [1] * rows}), pa.record_batch({"b": [1.5][:0]})):
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
    state = framed(bytes(sink.getvalue()))
    files.store.put("states/x.arrow", state)
    slices = (SliceState(watermark=None, operators=(StateFile.of("geocode", "states/x.arrow", state), None)),)
    manifest = files.read(number).model_copy(update={"slices": slices})
    files.store.put(files.name(number), manifest.written())


def test_a_job_does_not_move_before_it_has_stopped(flink: FakeFlink, cluster: Cluster, tmp_path: Path) -> None:
    whole = cluster.await_state(cluster.post(counting(tmp_path, rate=1000)), "Running")
    with pytest.raises(Refusal, match="its job is Running"):
        taken_along(whole, discards=True)
