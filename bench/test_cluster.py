"""Jobs of a cluster: how fast they start, what the programs around the engine cost, and what a job costs without rows.

All but the idle jobs and streams is wall time, for a machine that is idle. Programs run as users start them, with a
data folder of their own.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin.cluster.database import jobs, pipelines
from arroyo_udf_plugin.cluster.database.database import KEY_FILE, Database
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Pipeline
from arroyo_udf_plugin.engine.pipeline.description import described
from conftest import note

TURNS = 3
IDLE_JOBS = 1000
IDLE_STREAMS = 100
IDLE_SECONDS = 10.0
SETTLED = 12.0
"""Seconds after a start: the first epoch is over, and what is measured is that nothing happens."""
BETWEEN_JOBS = 4.0
"""Seconds from one job to the next: spare processes have done their imports."""
LISTED = 10_000
COPIES = {"at_once": 16, "half": 40}
"""Of the flights, which a job reads: some seconds, beside which its start and end do not count."""
PATIENCE = 120.0

FUNCTIONS = {
    "at_once": """
from arroyo_udf_plugin import udf

@udf
async def at_once(x: int) -> int:
    return x + 1
""",
    "half": """
from arroyo_udf_plugin import udf

@udf
def half(x: int) -> float:
    return x / 2
""",
}
FIRST_ROW = """
CREATE TABLE counts (counter BIGINT) WITH (connector = 'impulse', event_rate = '1000');
SELECT at_once(counter) AS n FROM counts;
"""
IDLE = FIRST_ROW.replace("'1000'", "'0.0001'").replace("at_once(counter)", "counter")
"""Without rows."""
THROUGH = """
CREATE TABLE flights (distance BIGINT) WITH (
    connector = 'filesystem', path = '{folder}/*.parquet', format = 'parquet', type = 'source'
);
CREATE TABLE out (n {type}) WITH (connector = 'filesystem', path = '{out}', format = 'parquet', type = 'sink');
INSERT INTO out SELECT {function}(distance) AS n FROM flights;
"""


class Program:
    """A program of a cluster, from its start until it answers. seconds: how long that took."""

    def __init__(self, name: str, data: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", name, "--data", str(data), "--port", "0", *arguments]
        start = time.perf_counter()
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith(f"arroyo-udf {name}: http"):
                self._address = urlsplit(line.split()[-1])
                break
        else:
            raise AssertionError(f"{name} has not started")
        token = (data / "token").read_text().strip()
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        assert self.call("GET", "/ping") == "Pong"
        self.seconds = time.perf_counter() - start
        self._reading = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reading.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._reading.join()
            assert self._process.stderr is not None
            self._process.stderr.close()

    @contextlib.contextmanager
    def asked(self, method: str, path: str, body: Any = None) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(str(self._address.hostname), self._address.port, timeout=PATIENCE)
        text = None if body is None else json.dumps(body)
        with contextlib.closing(connection):
            connection.request(method, f"/api/v1{path}", text, self._headers)
            with connection.getresponse() as answer:
                assert answer.status == 200, answer.read()
                yield answer

    def call(self, method: str, path: str, body: Any = None) -> Any:
        with self.asked(method, path, body) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def post(self, query: str) -> str:
        """Returns the pipeline's id."""
        asked = {"name": "bench", "query": query, "parallelism": 1}
        return str(self.call("POST", "/pipelines", asked)["id"])

    def save(self, function: str) -> None:
        """So that queries can call it."""
        self.call("POST", "/udfs", {"prefix": "/", "language": "python", "definition": FUNCTIONS[function]})

    def stop(self, pipeline: str) -> None:
        self.call("PATCH", f"/pipelines/{pipeline}", {"stop": "immediate"})
        self.until(pipeline, "Stopped")

    def job(self, pipeline: str) -> Any:
        return self.call("GET", f"/pipelines/{pipeline}/jobs")["data"][0]

    def until(self, pipeline: str, state: str, run: int = 0, pause: float = 0.002) -> Any:
        """Its job, as soon as it is there. run: the least number of starts."""

        def is_there() -> bool:
            job = self.job(pipeline)
            return job["state"] in (state, "Failed") and job["run_id"] >= run

        until(is_there, pause)
        job = self.job(pipeline)
        assert job["state"] == state, job
        return job

    def with_token(self, token: str) -> Program:
        """The same program, as another user asks it."""
        found = copy.copy(self)
        found._headers = {**self._headers, "Authorization": f"Bearer {token}"}
        return found

    @property
    def memory(self) -> int:
        """Bytes."""
        return memory_of(self._process.pid)

    @property
    def cpu(self) -> float:
        """Seconds."""
        numbers = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int) -> int:
    """Bytes; what processes share is divided among them."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    (pss,) = (line.split()[1] for line in lines if line.startswith("Pss:"))
    return int(pss) * 1024


def until(condition: Callable[[], bool], pause: float = 0.002) -> None:
    patience = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < patience
        time.sleep(pause)


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
        yield Path(folder) / "data"


@contextlib.contextmanager
def database(data: Path) -> Iterator[Database]:
    """A migrated one, as the programs of this folder will find it."""
    data.mkdir(mode=0o700)
    with contextlib.closing(Database.open(f"sqlite:///{data}/cluster.sqlite", data / KEY_FILE)) as opened:
        opened.migrate()
        yield opened


def put(database: Database, number: int, run: bool = True) -> None:
    """Pipelines to which no row comes."""
    for place in range(number):
        pipeline = Pipeline(name=f"idle-{place}", source=Impulse(rate=1e-4), sinks=[Blackhole()])
        program = JobProgram(json.loads(json.dumps(described(pipeline))), {})
        with database.begin() as session:
            made = pipelines.create(
                session,
                name=pipeline.name,
                query="",
                program=program,
                graph={},
                checkpoint_interval_micros=10_000_000,
            )
            if not run:
                pipelines.change(session, made.pipeline.id, {"stop": "immediate"})


@pytest.mark.parametrize(("name", "is_new", "goal"), [("", False, 1.0), (", with a new database", True, 1.3)])
def test_ready(benchmark: Any, data: Path, name: str, is_new: bool, goal: float) -> None:
    def ready(folder: Path) -> float:
        with Program("cluster", folder) as program:
            return program.seconds

    ready(data)
    folders = [data.with_name(f"new-{turn}") if is_new else data for turn in range(TURNS)]
    seconds = benchmark.pedantic(lambda: [ready(folder) for folder in folders], rounds=1)
    note(benchmark, f"cluster: ready{name}", statistics.median(seconds), "s", None, None, goal)


@pytest.mark.parametrize(("scheduler", "goal"), [("embedded", 0.3), ("process", 0.8)])
def test_first_row(benchmark: Any, data: Path, scheduler: str, goal: float) -> None:
    """From the request that creates a pipeline until its first row has come to a reader. Its function is built."""

    def first_row() -> float:
        start = time.perf_counter()
        pipeline = program.post(FIRST_ROW)
        job = program.until(pipeline, "Running")
        with program.asked("GET", f"/pipelines/{pipeline}/jobs/{job['id']}/output") as rows:
            while not rows.readline().startswith(b"data: "):
                pass
        seconds = time.perf_counter() - start
        program.stop(pipeline)
        time.sleep(BETWEEN_JOBS)
        return seconds

    with Program("cluster", data, "--scheduler", scheduler) as program:
        program.save("at_once")
        first_row()
        seconds = benchmark.pedantic(lambda: [first_row() for _ in range(TURNS)], rounds=1)
    note(benchmark, f"{scheduler}: created until first row", statistics.median(seconds), "s", None, None, goal)


def test_killed(benchmark: Any, data: Path) -> None:
    """A worker is killed until its job runs again, with default settings."""
    with Program("cluster", data, "--scheduler", "process") as program:
        program.save("at_once")
        pipeline = program.post(FIRST_ROW)

        def restarted() -> float:
            job = program.until(pipeline, "Running")
            (worker,) = worker_files.living(protocol.folder_of(data), job["id"])
            time.sleep(BETWEEN_JOBS)
            start = time.perf_counter()
            worker.kill()
            program.until(pipeline, "Running", job["run_id"] + 1)
            return time.perf_counter() - start

        # The second restart in a row waits: a back-off, which is no speed.
        seconds = benchmark.pedantic(restarted, rounds=1)
        program.stop(pipeline)
    note(benchmark, "process: worker killed until running", seconds, "s", None, None, 0.5)


@pytest.mark.parametrize(
    ("scheduler", "function", "type_"),
    [("embedded", "at_once", "BIGINT"), ("process", "at_once", "BIGINT"), ("embedded", "half", "DOUBLE")],
)
def test_rows(benchmark: Any, data: Path, flights: pa.Table, scheduler: str, function: str, type_: str) -> None:
    """Rows per second of a query from Parquet to Parquet, against `arroyo-udf run` with checkpoints."""
    folder = data.with_name("flights")
    folder.mkdir()
    first = folder / "00.parquet"
    pyarrow.parquet.write_table(flights.select(["distance"]), first)
    for number in range(1, COPIES[function]):
        os.link(first, folder / f"{number:02}.parquet")
    source = data.with_name("functions.py")
    source.write_text(FUNCTIONS[function])
    numbers = itertools.count()

    def query() -> str:
        return THROUGH.format(folder=folder, out=data.with_name(f"out-{next(numbers)}"), function=function, type=type_)

    def bare() -> float:
        file = data.with_name(f"bare-{next(numbers)}.sql")
        file.write_text(query())
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", str(file), "--udf", str(source), "--json"]
        command += ["--checkpoints", str(file.with_suffix(".state"))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        summary = json.loads(done.stdout)
        return float(summary["rows_per_s"])

    def job() -> float:
        pipeline = program.post(query())
        found = program.until(pipeline, "Finished", pause=1.0)  # each look costs the job something
        return COPIES[function] * len(flights) / float(found["finish_time"] - found["start_time"]) * 1e6

    with Program("cluster", data, "--scheduler", scheduler) as program:
        program.save(function)
        bare(), job()
        turns = benchmark.pedantic(lambda: [(job(), bare()) for _ in range(TURNS)], rounds=1)
    subject, reference = (statistics.median(rates) for rates in zip(*turns, strict=True))
    # As time per row, so that the goal is an upper limit: a rate of 95 %.
    name = f"{scheduler}: {function} in a job"
    note(benchmark, name, 1e9 / subject, "ns/row", "arroyo-udf run", reference / subject, 1 / 0.95)


def test_page(benchmark: Any, data: Path) -> None:
    with database(data) as opened:
        put(opened, LISTED)
    with Program("api", data) as program:

        def page() -> float:
            start = time.perf_counter()
            found = program.call("GET", "/pipelines?limit=100")
            assert len(found["data"]) == 100
            return time.perf_counter() - start

        page()
        seconds = benchmark.pedantic(lambda: [page() for _ in range(20)], rounds=1)
    name = f"a page of 100 of {LISTED:,} pipelines"
    note(benchmark, name, statistics.median(seconds) * 1e3, "ms", None, None, 20.0)


@pytest.fixture(scope="module")
def idle_jobs() -> Iterator[tuple[Program, int]]:
    """A cluster that runs many jobs itself, to which no row comes; and the bytes of one without jobs."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
        data = Path(folder) / "data"
        with database(data) as opened:
            with Program("cluster", data, "--scheduler", "embedded") as program:
                time.sleep(SETTLED)
                empty = program.memory
            put(opened, IDLE_JOBS)
            with Program("cluster", data, "--scheduler", "embedded") as program:

                def are_running() -> bool:
                    with opened.read() as session:
                        return jobs.by_state(session).get("Running") == IDLE_JOBS

                until(are_running, 0.5)
                time.sleep(SETTLED)
                yield program, empty


def share(program: Program) -> float:
    """Of a processor, in the next seconds."""
    before, start = program.cpu, time.perf_counter()
    time.sleep(IDLE_SECONDS)
    return (program.cpu - before) / (time.perf_counter() - start)


def test_idle_jobs(benchmark: Any, idle_jobs: tuple[Program, int]) -> None:
    program, _ = idle_jobs
    spent = benchmark.pedantic(lambda: share(program), rounds=1)
    note(benchmark, f"embedded: {IDLE_JOBS:,} idle jobs", spent * 1e3, "ms/s", None, None, 10.0)


def test_memory_of_idle_jobs(benchmark: Any, idle_jobs: tuple[Program, int]) -> None:
    """What each of them adds to a cluster without jobs."""
    program, empty = idle_jobs
    found = benchmark.pedantic(lambda: program.memory, rounds=1)
    note(benchmark, "embedded: memory of an idle job", (found - empty) / IDLE_JOBS / 1e6, "MB", None, None, 1.2)


def test_memory_of_an_idle_process(benchmark: Any, data: Path) -> None:
    """Of the worker of a job to which no row comes; what processes share is divided among them."""
    with database(data) as opened:
        put(opened, 1)
    with Program("cluster", data, "--scheduler", "process") as program:
        until(lambda: program.call("GET", "/jobs")["data"][0]["state"] == "Running")
        time.sleep(SETTLED)
        (job,) = program.call("GET", "/jobs")["data"]
        (worker,) = worker_files.living(protocol.folder_of(data), job["id"])
        found = benchmark.pedantic(lambda: memory_of(worker.pid), rounds=1)
    note(benchmark, "process: memory of an idle job", found / 1e6, "MB", None, None, None)


def test_idle_streams(benchmark: Any, data: Path) -> None:
    """Readers of rows that do not come."""
    with Program("cluster", data, "--scheduler", "embedded") as program, contextlib.ExitStack() as open_:
        pipeline = program.post(IDLE)
        job = program.until(pipeline, "Running")
        for _ in range(IDLE_STREAMS):
            open_.enter_context(program.asked("GET", f"/pipelines/{pipeline}/jobs/{job['id']}/output"))
        time.sleep(SETTLED)
        spent = benchmark.pedantic(lambda: share(program), rounds=1)
    note(benchmark, f"{IDLE_STREAMS} idle streams of rows", spent * 1e3, "ms/s", None, None, 10.0)


def test_beside_previews(benchmark: Any, data: Path) -> None:
    """Requests of a user while another one posts previews, one after the other, as fast as they are planned."""
    over, posted = threading.Event(), threading.Event()

    def preview() -> None:
        while not over.is_set():
            asked = {"name": "bench", "query": FIRST_ROW, "parallelism": 1}
            pipeline = other.call("POST", "/pipelines/preview", asked)["id"]
            other.call("PATCH", f"/pipelines/{pipeline}", {"stop": "immediate"})
            posted.set()

    def request() -> float:
        start = time.perf_counter()
        program.call("GET", "/pipelines?limit=100")
        return time.perf_counter() - start

    with database(data) as opened:
        put(opened, 100, run=False)
    with Program("cluster", data) as program:
        program.save("at_once")
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "token", "add", "other", "--data", str(data)]
        token = subprocess.run([*command, "--role", "run"], check=True, capture_output=True, text=True).stdout
        other = program.with_token(token.split()[-1])
        previewing = threading.Thread(target=preview)
        previewing.start()
        try:
            assert posted.wait(PATIENCE)
            seconds = benchmark.pedantic(lambda: [request() for _ in range(300)], rounds=1)
        finally:
            over.set()
            previewing.join()
    name = "a page of pipelines beside a user of previews, p99"
    note(benchmark, name, statistics.quantiles(seconds, n=100)[98] * 1e3, "ms", None, None, 100.0)
