"""Programs of Flink and its store are killed under load, and jobs change their parallelism: every row is there once.

The job calls an async function for each number, and sums the numbers of each second. It takes 60 seconds, without the
time in which it does not run: a job that ends before it was killed is a failure.
"""

from __future__ import annotations

import collections
import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sessions import FlinkJob, Session

import object_store_server

ROWS = 60_000
START = datetime.datetime(2026, 1, 1)

FUNCTIONS = """
import asyncio
from arroyo_udf_plugin import udf

@udf
async def rest(number: int) -> int:
    await asyncio.sleep(0.005)
    return number % 7
"""

QUERY = """
CREATE TABLE numbers (counter BIGINT, event_time TIMESTAMP(9), WATERMARK FOR event_time) WITH (
  connector = 'impulse', event_rate = '1000', message_count = '{rows}', event_time_interval = '1 ms',
  start = '2026-01-01T00:00:00Z', partitions = '8');
CREATE TABLE rests (counter BIGINT, rest BIGINT) WITH (
  connector = 'filesystem', path = '{out}/rests', format = 'json', type = 'sink');
CREATE TABLE sums (second TIMESTAMP, rest BIGINT, rows BIGINT, sum BIGINT) WITH (
  connector = 'filesystem', path = '{out}/sums', format = 'json', type = 'sink');
CREATE VIEW called AS SELECT counter, event_time, rest(counter) AS rest FROM numbers;
INSERT INTO rests SELECT counter, rest FROM called;
INSERT INTO sums SELECT window.start, rest, rows, sum FROM (
  SELECT tumble(interval '1 second') AS window, rest, count(*) AS rows, sum(counter) AS sum FROM called
  GROUP BY window, rest);
"""


class Load:
    """A job under way."""

    def __init__(self, job: FlinkJob, out: Path) -> None:
        self.job, self._out = job, out

    def check(self) -> None:
        """Awaits its end, and compares all of its rows."""
        self.job.await_state("FINISHED")
        assert sorted((row["counter"], row["rest"]) for row in self._rows("rests")) == [(n, n % 7) for n in range(ROWS)]
        sums: dict[tuple[str, int], list[int]] = collections.defaultdict(list)
        for n in range(ROWS):
            second = START + datetime.timedelta(seconds=n // 1000)
            sums[second.isoformat(), n % 7].append(n)
        got = [(row["second"][:19], row["rest"], row["rows"], row["sum"]) for row in self._rows("sums")]
        assert sorted(got) == sorted((*key, len(numbers), sum(numbers)) for key, numbers in sums.items())

    def _rows(self, sink: str) -> Iterator[dict[str, Any]]:
        """Of all files that Flink has finished."""
        for file in (self._out / sink).glob("part-*"):
            yield from map(json.loads, file.read_text().splitlines())


Begin = Callable[[str], Load]


@pytest.fixture
def begin(
    session_cluster: Session, build_for_flink: Callable[..., Path], described: Callable[..., Any], tmp_path: Path
) -> Begin:
    """Starts the job with its checkpoints at a place, and returns when it has some."""

    def begin_with(place: str) -> Load:
        out = tmp_path / "out"
        library = build_for_flink(FUNCTIONS, "rest")
        job = session_cluster.submit(described(QUERY.format(rows=ROWS, out=out), library), place=place)
        job.await_running(2)
        job.await_checkpoints(2)
        return Load(job, out)

    return begin_with


@pytest.fixture
def load(begin: Begin, tmp_path: Path) -> Load:
    """Its checkpoints are in a folder."""
    return begin((tmp_path / "state").as_uri())


def test_programs_are_killed(load: Load, session_cluster: Session) -> None:
    for role in ("taskmanager-0", "jobmanager", "taskmanager-1"):
        killed = session_cluster.kill(role)
        session_cluster.await_new(role, killed)
        session_cluster.await_slots(4)
        load.job.await_running(2)
        load.job.await_checkpoints(1)
        assert load.job.state() == "RUNNING"
    load.check()


def test_the_store_is_killed(begin: Begin, s3_server: object_store_server.Server, tmp_path: Path) -> None:
    """It has the checkpoints. The output is elsewhere: after SIGKILL this server, unlike S3, has forgotten the uploads
    that are not complete, with which Flink makes files visible."""
    load = begin(f"s3://flink/{tmp_path.name}")
    s3_server.kill()
    load.job.await_checkpoints(1, "failed")
    s3_server.restart()
    load.job.await_running(2)
    load.job.await_checkpoints(1)
    load.check()


def test_the_parallelism_changes(load: Load, session_cluster: Session, tmp_path: Path) -> None:
    for parallelism in (4, 1, 2):
        load.job.rescale(parallelism)
        load.job.await_checkpoints(1)
    session_cluster.kill("taskmanager-1")
    load.job.await_running(2)
    load.job.await_checkpoints(1)
    place = load.job.stop_with_savepoint((tmp_path / "savepoint").as_uri())
    load.job = session_cluster.again(load.job, savepoint=place, parallelism=3)
    load.job.await_running(3)
    load.check()
