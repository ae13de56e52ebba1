"""Where the state of jobs lies, and that nobody begins anew because it is not there; going back."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY, Cluster, settings_in
from programs import Client, Program
from test_controller import counters, counting
from waiting import until

from arroyo_udf_plugin.cluster.configuration import Settings
from arroyo_udf_plugin.cluster.database import history, pipelines, places
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.errors import Ended
from arroyo_udf_plugin.engine.connectors.location import confined_to
from arroyo_udf_plugin.engine.execution.savepoints import Savepoints
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.pipeline import Files, Impulse, Parts, Pipeline, Table
from arroyo_udf_plugin.errors import InvalidArgument

Make = Callable[..., Cluster]


@pytest.fixture
def make(database: Database, tmp_path: Path) -> Iterator[Make]:
    """Starts controllers on one database, one after another; the last one is stopped at the end."""
    running: list[Cluster] = []

    def start(settings: Settings | None = None, **limits: Any) -> Cluster:
        for one in running:
            one.close()
        running[:] = [Cluster(database, settings or settings_in(tmp_path, **limits))]
        return running[0]

    yield start
    for one in running:
        one.close()


def run_a_while(cluster: Cluster, posted: str) -> str:
    """Until there are some checkpoints, and then no longer. Returns the job's id."""
    job = cluster.await_state(posted, "Running").job.id
    until(lambda: cluster.get(posted).status.epoch > 4, "some checkpoints")
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    return job


def retained(cluster: Cluster, job: str) -> list[int]:
    with cluster.database.read() as session:
        return [one.epoch for one in history.checkpoints(session, job) if one.retained]


def await_more(cluster: Cluster, posted: str) -> None:
    before = cluster.get(posted).status.epoch
    until(lambda: cluster.get(posted).status.epoch > before + 3, "more checkpoints")


def test_a_job_whose_checkpoints_are_not_mounted_fails_by_name_and_goes_on_when_they_are_back(
    make: Make, tmp_path: Path
) -> None:
    cluster, checkpoints = make(), tmp_path / "checkpoints"
    posted = cluster.post(counting(tmp_path, rate=2000))
    job = run_a_while(cluster, posted)
    checkpoints.rename(tmp_path / "unmounted")
    before = counters(tmp_path)
    cluster.change(posted, stop="none")
    status = cluster.await_state(posted, "Failed").status
    place = checkpoints / job / "0"
    assert status.failure_message is not None
    assert status.failure_message.startswith(f"{place} has no checkpoints, and checkpoint {status.epoch} was taken")
    assert (status.failure_domain, status.restarts) == ("external", 0)
    assert counters(tmp_path) == before
    assert not place.exists()
    (tmp_path / "unmounted").rename(checkpoints)
    cluster.restart(posted)
    cluster.await_state(posted, "Running", generation=3)
    await_more(cluster, posted)
    found = counters(tmp_path)
    assert found == list(range(len(found)))


def test_a_sink_that_knows_of_nothing_gets_no_rows_twice_either(make: Make, tmp_path: Path) -> None:
    cluster, file = make(), tmp_path / "out.db"
    table = Table(uri=f"sqlite:{file}", table="o", create=True)
    posted = cluster.post(Pipeline(name="p", source=Impulse(rate=2000), sinks=[table]))
    run_a_while(cluster, posted)
    shutil.rmtree(tmp_path / "checkpoints")
    cluster.change(posted, stop="none")
    cluster.await_state(posted, "Failed")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        rows, distinct = connection.execute("SELECT COUNT(*), COUNT(DISTINCT counter) FROM o").fetchone()
    assert rows == distinct > 0


def test_an_older_copy_of_the_checkpoints_is_refused(make: Make, tmp_path: Path) -> None:
    cluster = make()
    posted = cluster.post(counting(tmp_path, rate=2000))
    job = run_a_while(cluster, posted)
    place, copy = tmp_path / "checkpoints" / job, tmp_path / "copy"
    shutil.copytree(place, copy)
    cluster.change(posted, stop="none")
    cluster.await_state(posted, "Running", generation=2)
    await_more(cluster, posted)
    cluster.change(posted, stop="immediate")
    cluster.await_state(posted, "Stopped")
    shutil.rmtree(place)
    copy.rename(place)
    cluster.change(posted, stop="none")
    status = cluster.await_state(posted, "Failed").status
    assert f"and checkpoint {status.epoch} was taken" in (status.failure_message or "")


def test_the_checkpoints_of_another_job_are_refused(make: Make, tmp_path: Path) -> None:
    cluster = make()
    one, other = (cluster.post(counting(tmp_path / name, rate=2000)) for name in ("one", "other"))
    jobs = [run_a_while(cluster, posted) for posted in (one, other)]
    place, others = (tmp_path / "checkpoints" / job for job in jobs)
    shutil.rmtree(place)
    others.rename(place)
    with cluster.database.begin() as session:
        pipelines.get(session, one).status.epoch = 1
    cluster.change(one, stop="none")
    status = cluster.await_state(one, "Failed").status
    assert f"has checkpoints of the pipeline '{jobs[1]}-0', not of '{jobs[0]}-0'" in (status.failure_message or "")


def test_a_failed_place_is_begun_anew_only_if_somebody_says_so(make: Make, tmp_path: Path) -> None:
    cluster = make()
    pipeline = Pipeline(name="p", source=Impulse(rate=2000), sinks=[Parts(path=f"{tmp_path}/${{OUT}}")])
    posted = cluster.post(pipeline, env_vars={"OUT": "out"})
    job = run_a_while(cluster, posted)
    shutil.rmtree(tmp_path / "checkpoints")
    cluster.change(posted, stop="none")
    cluster.await_state(posted, "Failed")
    cluster.change(posted, env_vars={"OUT": "other"})
    cluster.restart(posted, ignore_state=True)
    status = cluster.await_state(posted, "Running", generation=3).status
    assert (status.history, (tmp_path / "checkpoints" / job / "1").exists()) == (1, True)


def test_a_job_stays_where_it_is_when_the_configuration_changes(make: Make, database: Database, tmp_path: Path) -> None:
    cluster = make()
    posted = cluster.post(counting(tmp_path, rate=2000))
    job = run_a_while(cluster, posted)
    other = settings_in(tmp_path).model_copy(update={"checkpoint_url": str(tmp_path / "elsewhere")})
    cluster = make(other)
    cluster.change(posted, stop="none")
    cluster.await_state(posted, "Running", generation=2)
    await_more(cluster, posted)
    found = counters(tmp_path)
    assert found == list(range(len(found)))
    assert not (tmp_path / "elsewhere").exists()
    cluster.change(posted, stop="immediate")
    cluster.await_state(posted, "Stopped")
    with database.begin() as session:
        pipelines.delete(session, posted)
    until(lambda: not (tmp_path / "checkpoints" / job).exists(), "the state to be removed")


def test_a_state_url_with_a_variable_is_resolved_once(make: Make, tmp_path: Path) -> None:
    cluster = make()
    pipeline = counting(tmp_path, rate=2000)
    posted = cluster.post(pipeline, state_url=f"{tmp_path}/${{WHERE}}", env_vars={"WHERE": "here"})
    job = run_a_while(cluster, posted)
    assert cluster.get(posted).job.place == str(tmp_path / "here" / job)
    cluster.change(posted, stop="none", env_vars={"WHERE": "there"})
    cluster.await_state(posted, "Running", generation=2)
    await_more(cluster, posted)
    found = counters(tmp_path)
    assert found == list(range(len(found)))
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://bucket/data?region=eu-west-1", "leave out '?' and what follows it"),
        ("s3://bucket/data#1", "leave out '#' and what follows it"),
        ("/state/${NOWHERE}", "NOWHERE is not among the env_vars of the pipeline"),
        ("file://host/state", "write the path of a file on this machine"),
    ],
)
def test_a_place_that_nobody_could_find_again_is_none(database: Database, url: str, why: str) -> None:
    given: dict[str, Any] = {"name": "p", "query": "", "program": EMPTY, "graph": {}, "checkpoint_interval_micros": 1}
    with database.begin() as session, pytest.raises(InvalidArgument, match=why.replace("?", r"\?")):
        pipelines.create(session, **given, state_url=url)


def test_a_job_of_an_earlier_program_gets_the_place_where_that_one_looked(database: Database, tmp_path: Path) -> None:
    given: dict[str, Any] = {"name": "p", "query": "", "program": EMPTY, "graph": {}, "checkpoint_interval_micros": 1}
    env_vars, urls = {"X": "here"}, {None: "/state", "s3://b/${X}/": "s3://b/here", "/${GONE}": "/${GONE}"}
    with database.begin() as session:
        made = {url: pipelines.create(session, **given, env_vars=env_vars).job.id for url in urls}
        preview = pipelines.create(session, **given, is_preview=True).job.id
        for url, job in made.items():
            pipelines.of_job(session, job).pipeline.state_url = url
    for checkpoints in ("/state", "/other"):  # decided once
        with database.begin() as session:
            places.decide(session, checkpoints)
    with database.read() as session:
        found = {url: pipelines.of_job(session, job).job.place for url, job in made.items()}
        assert found == {url: f"{place}/{made[url]}" for url, place in urls.items()}
        assert pipelines.of_job(session, preview).job.place is None


# ---- Going back ----


def go_back(cluster: Cluster, posted: str, **restore: Any) -> None:
    cluster.restart(posted, restore={"doubles": [], **restore})


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_running_job_goes_back_to_a_checkpoint_once(make: Make, tmp_path: Path, parallelism: int) -> None:
    cluster = make(retained_checkpoints=5)
    posted = cluster.post(counting(tmp_path, rate=2000, partitions=2))
    job = cluster.await_state(posted, "Running").job.id
    until(lambda: len(retained(cluster, job)) == 5, "five checkpoints")
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    oldest, before = retained(cluster, job)[0], len(counters(tmp_path))
    cluster.change(posted, parallelism=parallelism)
    go_back(cluster, posted, epoch=oldest)
    status = cluster.await_state(posted, "Running", generation=2).status
    assert status.restored == status.restart_nonce
    until(lambda: cluster.get(posted).status.epoch > status.epoch + 3, "more checkpoints")
    with cluster.database.read() as session:
        given_up = [one.epoch for one in history.checkpoints(session, job) if one.generation == 1 and one.retained]
    assert given_up in ([oldest], [])
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    epoch = cluster.get(posted).status.epoch
    cluster.change(posted, stop="none")  # and goes on from there, not back again
    until(lambda: cluster.get(posted).status.epoch > epoch, "a checkpoint")
    until(lambda: len(counters(tmp_path)) > before, "more rows than before")
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    found = counters(tmp_path)
    assert len(found) == len(set(found))
    assert sorted(found) == found


def test_what_would_be_doubled_is_refused_by_the_worker_and_accepted_by_name(make: Make, tmp_path: Path) -> None:
    cluster, file = make(), tmp_path / "out.db"
    table = Table(uri=f"sqlite:{file}", table="o", create=True)
    posted = cluster.post(Pipeline(name="p", source=Impulse(rate=2000), sinks=[table]))
    job = run_a_while(cluster, posted)
    oldest = retained(cluster, job)[0]
    go_back(cluster, posted, epoch=oldest)
    status = cluster.await_state(posted, "Failed").status
    assert f"going back to checkpoint {oldest} would double rows" in (status.failure_message or "")
    go_back(cluster, posted, epoch=oldest, doubles=["table"])
    cluster.await_state(posted, "Running", generation=3)


def test_a_restart_takes_a_refused_wish_back(make: Make, tmp_path: Path) -> None:
    cluster = make()
    posted = cluster.post(counting(tmp_path, rate=2000))
    run_a_while(cluster, posted)
    go_back(cluster, posted, epoch=1)
    status = cluster.await_state(posted, "Failed").status
    assert "has no checkpoint 1" in (status.failure_message or "")
    cluster.restart(posted)
    cluster.await_state(posted, "Running", generation=3)


def test_a_job_goes_back_to_a_savepoint_that_no_retention_has_removed(make: Make, tmp_path: Path) -> None:
    cluster = make(retained_checkpoints=1)
    posted = cluster.post(counting(tmp_path, rate=2000))
    job = run_a_while(cluster, posted)
    store = open_store(str(tmp_path / "checkpoints" / job / "0"))
    taken = Savepoints(store).take("before")
    cluster.change(posted, stop="none")
    cluster.await_state(posted, "Running", generation=2)
    await_more(cluster, posted)
    assert taken.epoch not in retained(cluster, job)
    go_back(cluster, posted, savepoint="before", doubles=["parts"])
    cluster.await_state(posted, "Running", generation=3)
    await_more(cluster, posted)
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    found = counters(tmp_path)
    assert found == list(range(len(found)))


def test_a_finished_job_is_not_restarted(make: Make, tmp_path: Path) -> None:
    cluster = make()
    posted = cluster.post(counting(tmp_path, rows=5))
    cluster.await_state(posted, "Finished")
    for how in ({}, {"ignore_state": True}, {"force": True}):
        with pytest.raises(Ended, match="its job has finished, and all rows are in its sinks"):
            cluster.restart(posted, **how)


# ---- Folders that may be used ----


def test_a_job_that_names_a_file_elsewhere_by_now_fails_and_reads_nothing(make: Make, tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret.csv"
    root.mkdir()
    (root / "a.csv").write_text("a\n1\n")
    secret.write_text("a\nTOPSECRET\n")
    (root / "link.csv").symlink_to(secret)
    source, sinks = Files(paths=[f"{root}/${{P}}"], watch=0.01), [Parts(path=str(root / "out"), format="csv")]
    with confined_to([root]):
        cluster = make()
        posted = cluster.post(Pipeline(name="p", source=source, sinks=sinks), env_vars={"P": "a.csv"})
        run_a_while_with_rows(cluster, posted, root)
        for place in ("link.csv", "../secret.csv"):
            cluster.change(posted, env_vars={"P": place}, stop="none")
            status = cluster.await_state(posted, "Failed").status
            assert "is outside of the folders that pipelines may use" in (status.failure_message or "")
    assert not any("TOPSECRET" in part.read_text() for part in (root / "out").glob("*.csv"))


def run_a_while_with_rows(cluster: Cluster, posted: str, root: Path) -> None:
    cluster.await_state(posted, "Running")
    until(lambda: any((root / "out").glob("part-*.csv")), "rows in the sink")
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")


LINKED = """
CREATE TABLE n WITH (connector = 'impulse', event_rate = '100');
CREATE TABLE t (a TEXT) WITH (connector = 'filesystem', type = 'source', path = '{root}/a.csv', format = 'csv');
CREATE TABLE o (a TEXT) WITH (connector = 'filesystem', type = 'sink', path = '{root}/out', format = 'json');
INSERT INTO o SELECT a FROM t UNION ALL SELECT CAST(counter AS TEXT) AS a FROM n;
"""


@pytest.mark.cluster
@pytest.mark.parametrize("scheduler", ["embedded", "process"])
def test_a_file_that_became_a_link_to_elsewhere_is_not_opened(
    start: Callable[..., Program], tmp_path: Path, scheduler: str
) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret.csv"
    root.mkdir()
    (root / "a.csv").write_text("a\nx\n")
    secret.write_text("a\nTOPSECRET\n")
    environment = {"ARROYO_UDF__FILES__ROOTS": json.dumps([str(root)])}
    program = start("cluster", tmp_path / "data", "--port", "0", "--scheduler", scheduler, environment=environment)
    client = Client(program)
    body = {"name": "p", "query": LINKED.replace("{root}", str(root)), "parallelism": 1}
    posted = client.ask("POST", "/pipelines", body | {"checkpoint_interval_micros": 1_000_000})["id"]
    client.await_state(posted, "Running")
    client.ask("PATCH", f"/pipelines/{posted}", {"stop": "checkpoint"})
    client.await_state(posted, "Stopped")
    (root / "a.csv").unlink()
    (root / "a.csv").symlink_to(secret)
    client.ask("PATCH", f"/pipelines/{posted}", {"stop": "none"})
    reason = client.await_state(posted, "Failed")["failure_reason"]
    assert f"{root}/a.csv is outside of the folders that pipelines may use: {root}" in reason["error"]
    assert reason["domain"] == "user"
