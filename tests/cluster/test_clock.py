"""The wall clock jumps, back and forth: nothing ends too early or too late, and no time is negative."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import Cluster, settings_in
from waiting import until

from arroyo_udf_plugin.cluster.database import history, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers.embedded import EmbeddedScheduler
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Tell
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Parts, Pipeline

DAY = 86_400.0


class Clock:
    """The wall clock of this process."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        seconds, nanoseconds = time.time, time.time_ns
        patch.setattr(time, "time", lambda: seconds() + self.ahead)
        patch.setattr(time, "time_ns", lambda: nanoseconds() + int(self.ahead * 1e9))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def cluster(database: Database, tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.closing(Cluster(database, settings_in(tmp_path))) as made:
        yield made


def endless(folder: Path) -> Pipeline:
    return Pipeline(name="p", source=Impulse(rate=1000), sinks=[Parts(path=str(folder / "out"))])


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_preview_ends_by_its_own_time(cluster: Cluster, clock: Clock, jump: float) -> None:
    """Neither at once nor a day later."""
    source = Pipeline(name="p", source=Impulse(rate=100), sinks=[Blackhole()])
    long = cluster.post(source, is_preview=True, ttl_micros=600_000_000)
    short = cluster.post(source, is_preview=True, ttl_micros=2_000_000)
    for posted in (long, short):
        until(lambda posted=posted: cluster.get(posted).status.start_time is not None, "the start")
    clock.ahead = jump
    status = cluster.await_state(short, "Stopped").status
    assert status.finish_time >= status.start_time
    assert cluster.get(long).status.state == "Running"


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_restarts_in_a_row_are_counted_whatever_the_clock_says(
    database: Database, clock: Clock, tmp_path: Path, jump: float
) -> None:
    tells: list[Tell] = []

    def scheduler(tell: Tell) -> EmbeddedScheduler:
        tells.append(tell)
        return EmbeddedScheduler(tell)

    with contextlib.closing(Cluster(database, settings_in(tmp_path, allowed_restarts=1), scheduler)) as cluster:
        posted = cluster.post(endless(tmp_path))
        job = cluster.await_state(posted, "Running").job.id
        tells[0](JobReport(job, 1, Event.LOST, message="lost"))
        cluster.await_state(posted, "Running", generation=2)
        clock.ahead = jump
        tells[0](JobReport(job, 2, Event.LOST, message="lost again"))
        status = cluster.await_state(posted, "Failed").status
    assert (status.restarts, status.generation) == (1, 2)


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_no_time_is_negative_and_lists_keep_their_order(
    cluster: Cluster, clock: Clock, tmp_path: Path, jump: float
) -> None:
    first = cluster.post(endless(tmp_path))
    job = cluster.await_state(first, "Running").job.id

    def epochs() -> list[int]:
        with cluster.database.read() as session:
            return [one.epoch for one in history.checkpoints(session, job)]

    until(lambda: len(epochs()) > 1, "checkpoints")
    clock.ahead = jump
    seen = epochs()
    until(lambda: epochs()[-1] > seen[-1] + 1, "more checkpoints")
    second = cluster.post(endless(tmp_path / "second"))
    cluster.await_state(second, "Running")
    for posted in (first, second):
        cluster.change(posted, stop="checkpoint")
        status = cluster.await_state(posted, "Stopped").status
        assert status.start_time <= status.finish_time
    with cluster.database.read() as session:
        for one in history.checkpoints(session, job):
            assert one.finish_time is None or one.start_time <= one.finish_time
        assert [one.pipeline.id for one in pipelines.listed(session, 10).rows] == [second, first]
        messages = [row.message for row in history.logged(session, job, 9, levels=("info",)).rows]
        assert (messages[0], messages[-1]) == ("Stopped", "Running")
