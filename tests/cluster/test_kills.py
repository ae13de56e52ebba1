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

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusters import posting
from programs import SQL, TWICE, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.cluster

WINDOWS = """
CREATE TABLE events (at TIMESTAMP(3), k BIGINT, n BIGINT, WATERMARK FOR at AS at)
WITH (connector = 'filesystem', path = '{folder}/in', format = 'parquet', type = 'source', 'source.watch' = '20ms');
CREATE TABLE out (k BIGINT, ends BIGINT, n BIGINT, s BIGINT) WITH (
    connector = 'filesystem', path = '{folder}/out', format = 'parquet', type = 'sink'
);
CREATE VIEW counts AS
SELECT k, tumble(INTERVAL '1 second') AS w, count(*) AS n, sum(twice(n)) AS s FROM events GROUP BY k, w;
INSERT INTO out SELECT k, CAST(date_part('epoch', w.end) AS BIGINT) AS ends, n, s FROM counts;
"""
KEYS, ROWS_OF_FILE = 7, 4_000  # a row each millisecond

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


def _add_file(folder: Path, number: int) -> None:
    numbers = range(number * ROWS_OF_FILE, (number + 1) * ROWS_OF_FILE)
    columns = {"at": pa.array(numbers, pa.timestamp("ms")), "k": [n % KEYS for n in numbers], "n": list(numbers)}
    pq.write_table(pa.table(columns), folder / ".aside")
    (folder / ".aside").rename(folder / "in" / f"{number:06}.parquet")


def _counted(files: int) -> list[tuple[int, ...]]:
    """Of the windows that the last row closes."""
    sums: dict[tuple[int, int], list[int]] = {}
    for n in range(files * ROWS_OF_FILE):
        sums.setdefault((n % KEYS, n // 1000 + 1), []).append(2 * n)
    last = (files * ROWS_OF_FILE - 1) // 1000
    return sorted((k, end, len(own), sum(own)) for (k, end), own in sums.items() if end <= last)


def test_windows_of_a_job_that_is_rescaled(
    start: Callable[..., Program], database: Database, tmp_path: Path, build_plugin: Any
) -> None:
    """Whatever the number of slices, and killed in between, each window leaves once, with all its rows."""
    library, client, program = build_plugin(TWICE), posting(database, tmp_path), start("controller", tmp_path)
    (tmp_path / "in").mkdir()
    _add_file(tmp_path, 0)
    pipeline = Script("query.sql", WINDOWS.format(folder=tmp_path), [str(library)]).pipeline
    posted = client.post(pipeline, library, checkpoint_interval_micros=200_000)
    files = 1
    for width in (2, 3, 1, 2):
        seen = len(parts(tmp_path))
        _add_file(tmp_path, files)
        files += 1
        until(lambda seen=seen: len(parts(tmp_path)) > seen, "windows")
        client.change(posted, parallelism=width)
        if width == 3:
            for worker in worker_files.living(protocol.folder_of(tmp_path), client.get(posted).job.id):
                worker.kill()
    _add_file(tmp_path, files)
    wanted = _counted(files + 1)
    until(lambda: len(doubles(tmp_path)) >= len(wanted), "all windows")
    client.change(posted, stop="checkpoint")
    client.await_state(posted, "Stopped")
    assert doubles(tmp_path) == wanted
    assert program.end(signal.SIGTERM) == 0
