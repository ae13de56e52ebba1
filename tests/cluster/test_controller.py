"""Jobs under a controller, with pipelines that run in its process."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from clusters import EMPTY, Cluster, program, settings_in
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from waiting import until

from arroyo_udf_plugin.cluster.controller import watched
from arroyo_udf_plugin.cluster.database import history, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobRow, JobStatus
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.wishes import wanted
from arroyo_udf_plugin.engine.pipeline import (
    Blackhole,
    Checkpoints,
    Functions,
    Impulse,
    NamedSource,
    Parts,
    Pipeline,
    Sql,
    Union,
)


@pytest.fixture
def make(database: Database, tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Starts controllers on one database; all are stopped at the end."""
    with contextlib.ExitStack() as stack:

        def start(**limits: Any) -> Cluster:
            return stack.enter_context(contextlib.closing(Cluster(database, settings_in(tmp_path, **limits))))

        yield start


@pytest.fixture
def cluster(make: Callable[..., Cluster]) -> Cluster:
    return make()


def counting(folder: Path, *operators: Any, **source: Any) -> Pipeline:
    out = folder / "out"
    return Pipeline(name="counts", source=Impulse(**source), operators=operators, sinks=[Parts(path=str(out))])


def counters(folder: Path) -> list[int]:
    """What the sink has, in order."""
    parts = [str(path) for path in (folder / "out").glob("part-*.parquet")]
    return sorted(ds.dataset(parts).to_table(columns=["counter"])["counter"].to_pylist()) if parts else []


def test_a_pipeline_runs_to_its_end(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, rows=1000))
    whole = cluster.await_state(posted, "Finished")
    status = whole.status
    assert counters(tmp_path) == list(range(1000))
    assert (status.generation, status.restarts, status.failure_message) == (1, 0, None)
    assert status.start_time is not None
    assert status.finish_time is not None
    assert whole.job.created_at <= status.start_time <= status.finish_time
    with cluster.database.read() as session:
        assert Records(tmp_path).numbers(whole.job.id)[-1].numbers["rows_out"] == 1000
        assert history.checkpoints(session, whole.job.id)
        assert [row.message for row in history.logged(session, whole.job.id, 9).rows] == ["Finished", "Running"]


def test_a_job_stops_with_a_checkpoint_and_goes_on_where_it_was(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, rate=1000, rows=2000), checkpoint_interval_micros=60_000_000)
    cluster.await_state(posted, "Running")
    cluster.change(posted, stop="checkpoint")
    whole = cluster.await_state(posted, "Stopped")
    found = counters(tmp_path)
    assert found == list(range(len(found)))
    with cluster.database.read() as session:
        (checkpoint,) = history.checkpoints(session, whole.job.id)
        assert (checkpoint.checkpoint_type, checkpoint.state) == ("stopping", "ready")
        assert checkpoint.finish_time is not None
    cluster.change(posted, stop="none")
    assert cluster.await_state(posted, "Finished").status.generation == 2
    assert counters(tmp_path) == list(range(2000))


def test_a_checkpoint_comes_after_so_many_rows_if_the_query_says_so(cluster: Cluster, tmp_path: Path) -> None:
    pipeline = counting(tmp_path, rate=1000).model_copy(update={"checkpoints": Checkpoints(every_rows=10)})
    cluster.post(pipeline, checkpoint_interval_micros=86_400_000_000)
    until(lambda: len(counters(tmp_path)) >= 10, "rows in the sink, which come with a checkpoint")


@pytest.mark.parametrize("how", ["immediate", "force", "graceful"])
def test_each_stop_stops(cluster: Cluster, tmp_path: Path, how: str) -> None:
    posted = cluster.post(counting(tmp_path, rate=1000))
    cluster.await_state(posted, "Running")
    cluster.change(posted, stop=how)
    assert cluster.await_state(posted, "Stopped").status.finish_time is not None


def test_a_job_that_is_stopped_before_anybody_saw_it_never_runs(database: Database, make: Any, tmp_path: Path) -> None:
    with database.begin() as session:
        made = pipelines.create(
            session, name="p", query="", program=EMPTY, graph={}, checkpoint_interval_micros=1_000_000
        )
        pipelines.change(session, made.pipeline.id, {"stop": "immediate"})
    assert make().await_state(made.pipeline.id, "Stopped").status.generation == 0


def await_rows(folder: Path) -> None:
    """More than there are."""
    seen = len(counters(folder))
    until(lambda: len(counters(folder)) > seen, "rows")


def test_a_rescaled_job_goes_on_with_other_slices(cluster: Cluster, tmp_path: Path) -> None:
    """Each partition where it was."""
    posted = cluster.post(counting(tmp_path, rate=1000, partitions=3))
    cluster.await_state(posted, "Running")
    await_rows(tmp_path)
    cluster.change(posted, parallelism=3)
    cluster.await_state(posted, "Running", generation=2)
    await_rows(tmp_path)
    cluster.change(posted, stop="checkpoint")
    status = cluster.await_state(posted, "Stopped").status
    assert (status.generation, status.settings["parallelism"], status.restarts) == (2, 3, 0)
    for partition in range(3):
        found = [n for n in counters(tmp_path) if n % 3 == partition]
        assert found == [partition + 3 * n for n in range(len(found))]


def test_a_rescaled_job_of_two_sources_goes_on_with_other_slices(cluster: Cluster, tmp_path: Path) -> None:
    """Their partitions stay as they were."""
    pipeline = counting(tmp_path, Union(name="both", inputs=("source", "again")), rate=1000)
    posted = cluster.post(pipeline.model_copy(update={"sources": {"again": NamedSource(source=Impulse(rate=1000))}}))
    cluster.await_state(posted, "Running")
    await_rows(tmp_path)
    cluster.change(posted, parallelism=2)
    cluster.await_state(posted, "Running", generation=2)
    await_rows(tmp_path)
    cluster.change(posted, stop="checkpoint")
    status = cluster.await_state(posted, "Stopped").status
    assert (status.generation, status.settings["parallelism"], status.restarts) == (2, 2, 0)
    found = counters(tmp_path)
    longer = sorted(set(found))
    shorter = [n for n in longer if found.count(n) == 2]
    assert longer == list(range(len(longer)))
    assert shorter == list(range(len(found) - len(longer)))


def test_a_restart_takes_the_state_along(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, rate=1000))
    cluster.await_state(posted, "Running")
    until(lambda: bool(counters(tmp_path)), "rows")
    cluster.restart(posted)
    assert cluster.await_state(posted, "Running", generation=2).status.restart_nonce == 1
    cluster.restart(posted, force=True)
    cluster.await_state(posted, "Running", generation=3)
    seen = len(counters(tmp_path))
    until(lambda: len(counters(tmp_path)) > seen, "rows")
    found = counters(tmp_path)
    assert found == list(range(len(found)))


def test_a_restart_without_state_begins_anew(cluster: Cluster, tmp_path: Path) -> None:
    """Its rows go to another folder, because those of before stay."""
    pipeline = Pipeline(name="p", source=Impulse(rate=1000), sinks=[Parts(path=f"{tmp_path}/${{PLACE}}/out")])
    posted = cluster.post(pipeline, env_vars={"PLACE": "a"})
    job = cluster.await_state(posted, "Running").job.id
    await_rows(tmp_path / "a")
    with cluster.database.begin() as session:
        pipelines.change(session, posted, {"env_vars": {"PLACE": "b"}})
        pipelines.restart(session, posted, ignore_state=True)
    cluster.await_state(posted, "Running", generation=2)
    await_rows(tmp_path / "b")
    assert counters(tmp_path / "b")[0] == 0
    assert sorted(path.name for path in (tmp_path / "checkpoints" / job).iterdir()) == ["0", "1"]


def test_a_row_that_fails_is_the_users_error_and_is_not_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    wrong = Sql(select={"x": "1 / (counter - 5)"})
    posted = cluster.post(counting(tmp_path, wrong, rows=10))
    whole = cluster.await_state(posted, "Failed")
    assert (whole.status.failure_domain, whole.status.restarts, whole.status.generation) == ("user", 0, 1)
    assert whole.status.failure_message is not None
    with cluster.database.read() as session:
        (row, *_) = history.logged(session, whole.job.id, 9, levels=("error",)).rows
        assert (row.message, row.error_domain) == (whole.status.failure_message, "user")


def test_a_wish_to_run_starts_a_failed_job_again(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, Sql(select={"x": "1 / (counter - 5)"}), rows=10))
    cluster.await_state(posted, "Failed")
    cluster.change(posted, stop="none")
    assert cluster.await_state(posted, "Failed", generation=2).status.restarts == 0


def test_a_lost_job_is_started_again_up_to_the_limit(make: Callable[..., Cluster], tmp_path: Path) -> None:
    """The folder of the output is a file: that may pass."""
    cluster = make(allowed_restarts=2, max_backoff=0.01)
    posted = cluster.post(counting(tmp_path, rate=1000))
    cluster.await_state(posted, "Running")
    until(lambda: bool(counters(tmp_path)), "rows")
    (tmp_path / "out").rename(tmp_path / "away")
    (tmp_path / "out").write_text("")
    whole = cluster.await_state(posted, "Failed")
    assert (whole.status.failure_domain, whole.status.restarts, whole.status.generation) == ("external", 2, 3)


def test_jobs_go_on_under_the_next_controller(make: Callable[..., Cluster], tmp_path: Path) -> None:
    first = make()
    posted = first.post(counting(tmp_path, rate=1000))
    first.await_state(posted, "Running")
    first.controller.stop()
    assert first.get(posted).status.state == "Running"
    second = make()
    second.await_state(posted, "Running", generation=2)
    await_rows(tmp_path)
    second.change(posted, stop="checkpoint")
    second.await_state(posted, "Stopped")
    assert counters(tmp_path) == list(range(len(counters(tmp_path))))


def test_a_second_controller_stands_by(make: Callable[..., Cluster], tmp_path: Path) -> None:
    first = make()
    posted = first.post(counting(tmp_path, rate=1000))
    first.await_state(posted, "Running")
    second = make()
    assert first.controller.leads
    assert not second.controller.leads
    first.controller.stop()
    second.await_state(posted, "Running", generation=2)
    assert second.controller.leads


def test_a_preview_ends_by_itself_and_is_not_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, rate=1000), is_preview=True, ttl_micros=100_000)
    status = cluster.await_state(posted, "Stopped").status
    assert status.start_time is not None
    assert status.finish_time is not None
    assert status.finish_time - status.start_time >= 100_000
    cluster.change(posted, stop="none")
    until(lambda: (job := cluster.get(posted).job).fulfilled == job.revision, "the controller to see it")
    assert cluster.get(posted).status.generation == 1


def test_a_library_that_was_exchanged_is_not_loaded(cluster: Cluster, tmp_path: Path) -> None:
    library = tmp_path / "f.so"
    library.write_bytes(b"one")
    function = Functions(plugin=str(library), calls=["x = f(counter)"])
    pipeline = counting(tmp_path, function, rows=1)
    cluster.controller.stop()  # until the library has been exchanged
    posted = cluster.post(pipeline, library)
    library.write_bytes(b"two")
    with contextlib.closing(Cluster(cluster.database, settings_in(tmp_path))) as second:
        status = second.await_state(posted, "Failed").status
    assert status.failure_message == f"{library} is not the library that was built: create the function again"
    assert status.failure_domain == "user"


def test_a_deleted_pipeline_leaves_no_state(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(counting(tmp_path, rows=10))
    job = cluster.await_state(posted, "Finished").job.id
    place = tmp_path / "checkpoints" / job
    assert place.exists()
    with cluster.database.begin() as session:
        pipelines.delete(session, posted)
    until(lambda: not place.exists(), "the state to be removed")


def test_each_job_has_its_own_environment(cluster: Cluster, tmp_path: Path) -> None:
    pipeline = Pipeline(name="p", source=Impulse(rows=5), sinks=[Parts(path=f"{tmp_path}/${{PLACE}}")])
    for place in ("a", "b"):
        cluster.await_state(cluster.post(pipeline, env_vars={"PLACE": place}), "Finished")
    assert [ds.dataset(tmp_path / place).count_rows() for place in ("a", "b")] == [5, 5]


def test_async_python_functions_run_in_a_job(cluster: Cluster, tmp_path: Path, build_plugin: Any) -> None:
    library = build_plugin(
        """
        import asyncio

        from arroyo_udf_plugin import udf

        @udf
        async def twice(value: int) -> int:
            await asyncio.sleep(0)
            return 2 * value
        """
    )
    one = Sql(select={"n": "CAST(counter AS BIGINT)"})
    function = Functions(plugin=str(library), calls=["double = twice(n)"])
    pipeline = Pipeline(
        name="p", source=Impulse(rows=500), operators=[one, function], sinks=[Parts(path=str(tmp_path / "out"))]
    )
    cluster.await_state(cluster.post(pipeline, library), "Finished")
    found = ds.dataset(tmp_path / "out").to_table().sort_by("n")
    assert found["double"] == pa.chunked_array([[2 * n for n in range(500)]])


def test_jobs_are_taken_over_though_the_database_fails_meanwhile(
    make: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make()
    posted = [first.post(Pipeline(name="p", source=Impulse(rate=1000), sinks=[Blackhole()])) for _ in range(3)]
    for one in posted:
        first.await_state(one, "Running")
    first.controller.stop()
    failures = iter(range(2))
    of_job = pipelines.of_job

    def failing(session: Session, job_id: str, **how: bool) -> pipelines.WholeJob:
        if next(failures, None) is not None:
            raise OperationalError("SELECT", {}, Exception("the server closed the connection"))
        return of_job(session, job_id, **how)

    monkeypatch.setattr(pipelines, "of_job", failing)
    second = make()
    for one in posted:
        second.await_state(one, "Running", generation=2)


def test_a_job_that_cannot_be_considered_holds_no_other_back(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[str] = []

    def failing(job: JobRow, status: JobStatus) -> Event | None:
        if job.pipeline_id == posted[0]:
            raise RuntimeError("of this job only")
        return wanted(job, status)

    monkeypatch.setattr(watched, "wanted", failing)
    one = Pipeline(name="p", source=Impulse(rows=5), sinks=[Blackhole()])
    given: dict[str, Any] = {"name": "p", "query": "", "graph": {}, "checkpoint_interval_micros": 1_000_000}
    with cluster.database.begin() as session:  # one transaction, so that the controller sees both at once
        for _ in range(2):
            posted.append(pipelines.create(session, program=program(one), **given).pipeline.id)
    cluster.await_state(posted[1], "Finished")


def test_a_job_that_never_starts_is_tried_as_often_as_one_that_is_lost(
    make: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make(worker_startup_time=0.02, allowed_restarts=1)
    monkeypatch.setattr(cluster.controller._schedulers.of("local"), "start", lambda task: None)
    posted = cluster.post(counting(tmp_path, rows=1))
    status = cluster.await_state(posted, "Failed").status
    assert (status.generation, status.restarts, status.failure_domain) == (2, 1, "internal")
    assert status.failure_message == "Scheduling takes too long"
