"""The demo of the cluster: a query as a job, whose worker and controller are killed on the way.

`make cluster-demo` runs it, in both settings; `demo.py 50000` takes that many flights. The API and the controller of a
cluster are started, with worker processes. Over the REST API come two async functions, `plane` (SQLite) and `user_name`
(PostgreSQL), and the query ../flights/delays.sql, which has both, a tumbling window, and a table in PostgreSQL as its
sink. The last line says whether that table equals the reference; exit status 1 if it does not.

The cluster keeps everything in a folder, with SQLite as its database. With `--state s3` its database is PostgreSQL, and
checkpoints and functions are on a local S3 server, which is killed, too.

Each kill waits for checkpoints that it sees, so it is in the middle of the job; a job that ends before is a failure.
Guarantees: when it ends, and after Ctrl-C or SIGTERM, no process and no folder of it is left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import asyncpg

from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files
from arroyo_udf_plugin.engine.execution.store import open_store

sys.path += [str(Path(__file__).resolve().parents[1] / "flights"), str(Path(__file__).resolve().parents[2] / "scripts")]
import nycflights

import object_store_server

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent
PATIENCE = 600.0  # seconds: longer than anything takes here, on any machine
CHECKPOINT_EVERY = 1_000_000  # microseconds


class Program:
    """A program of the cluster, in a session of its own: Ctrl-C reaches the demo alone, which then ends it."""

    def __init__(self, name: str, data: Path, *options: str) -> None:
        self._name = name
        self.log = data / f"{name}.log"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "arroyo_udf_plugin.cli", name, "--data", str(data / "cluster"), *options],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )

    def said(self) -> str:
        """What it says when it is ready."""
        start = f"arroyo-udf {self._name}: "

        def line() -> str | None:
            if self.process.poll() is not None:
                sys.exit(f"arroyo-udf {self._name} has ended:\n{self.log.read_text()}")
            return next((each for each in self.log.read_text().splitlines() if each.startswith(start)), None)

        return awaited(line, f"arroyo-udf {self._name}").removeprefix(start)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """By a signal that lets it tidy up; if that takes too long, by one that does not."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


class Cluster:
    """API and controller over a data folder, with a job. job: its id, when it is posted.

    database: options for another database than SQLite. checkpoints: where those are.
    """

    def __init__(self, folder: Path, database: Sequence[str], checkpoints: str) -> None:
        self._folder, self._database = folder, database
        self._data = folder / "cluster"
        self._checkpoints = open_store(checkpoints)
        self.api = Program("api", folder, "--port", "0", *database)
        self.start_controller()
        self.job = self._pipeline = ""

    def start_controller(self) -> None:
        self.controller = Program("controller", self._folder, *self._database)

    def end(self) -> None:
        """Of everything, also of workers that have no controller."""
        self.controller.end()
        self.api.end()
        for worker in self.workers():
            worker.kill()
        awaited(lambda: not self.workers(), "the end of the workers")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        token = (self._data / "token").read_text().strip()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{self.api.said()}/api/v1{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.read().decode()}")

    def post(self, query: Path, environment: dict[str, str]) -> None:
        body = {"name": query.stem, "query": query.read_text(), "env_vars": environment}
        posted = self.ask("POST", "/pipelines", body | {"checkpoint_interval_micros": CHECKPOINT_EVERY})
        self._pipeline = posted["id"]
        self.job = self.now()["id"]

    def now(self) -> dict[str, Any]:
        """The job, as the API tells it."""
        found: dict[str, Any] = self.ask("GET", f"/pipelines/{self._pipeline}/jobs")["data"][0]
        if found["state"] == "Failed":
            sys.exit(f"the job has failed: {found['failure_reason']}")
        return found

    def epoch(self) -> int:
        """The number of its last checkpoint, whether or not there is a controller to ask; 0: there is none."""
        names = map(Path, self._checkpoints.names(f"{self.job}/"))
        return max((int(name.stem) for name in names if name.match("epochs/*.json")), default=0)

    def await_epoch(self, least: int) -> int:
        """The number of the last checkpoint, as soon as there are so many. The job must go on after it."""

        def epoch() -> int:
            if self.now()["state"] == "Finished":
                sys.exit("the job has ended before it could be killed: take more flights")
            found = self.epoch()
            return found if found >= least else 0

        found: int = awaited(epoch, f"checkpoint {least}")
        return found

    def reported_epoch(self) -> int:
        """The last one that the API knows of: the worker tells its controller."""
        found = self.ask("GET", f"/pipelines/{self._pipeline}/jobs/{self.job}/checkpoints")["data"]
        return max((each["epoch"] for each in found), default=0)

    def delete(self) -> None:
        """The pipeline; waits until nothing of its state is left."""
        self.ask("DELETE", f"/pipelines/{self._pipeline}")
        awaited(lambda: not self._checkpoints.names(f"{self.job}/"), "the removal of its state")

    def workers(self) -> list[worker_files.Living]:
        return list(worker_files.living(protocol.folder_of(self._data), self.job)) if self.job else []


def awaited(look: Callable[[], Any], what: str) -> Any:
    """What `look` finds, as soon as it is true."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > deadline:
            sys.exit(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.05)
    return found


class Steps:
    """Says what was done, and how long it took."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def done(self, text: str) -> None:
        now = time.perf_counter()
        print(f"{now - self._start:5.1f} s  {text}", flush=True)
        self._start = now


@contextlib.contextmanager
def running_cluster(folder: Path, database: Sequence[str], checkpoints: str) -> Iterator[Cluster]:
    cluster = Cluster(folder, database, checkpoints)
    try:
        yield cluster
    finally:
        cluster.end()


def add_database(address: str) -> str:
    """Of the cluster, in the server of the users; its address."""

    async def add() -> None:
        connection = await asyncpg.connect(address)
        await connection.execute("CREATE DATABASE cluster")
        await connection.close()

    asyncio.run(add())
    return address.replace("/postgres?", "/cluster?")


def use_object_store(server: object_store_server.Server) -> str:
    """For the programs of the cluster: their credentials are in the environment. Returns where checkpoints are."""
    os.environ.update(server.environment)
    checkpoints = f"{server.bucket('flights')}/checkpoints"
    os.environ["ARROYO_UDF__CHECKPOINT_URL"] = checkpoints
    os.environ["ARROYO_UDF__ARTIFACT_URL"] = "s3://flights/functions"
    return checkpoints


def run(folder: Path, most: int | None, on_s3: bool) -> bool:
    """Whether the table equals the reference. most: so many flights."""
    steps = Steps()
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(nycflights.users())
        flights = nycflights.extract_flights(folder)
        lines, planes = nycflights.put_in_order(flights, most), nycflights.read_planes()
        nycflights.make_database(planes, folder / "planes.sqlite")
        steps.done(f"{len(lines) - 1:,} flights in a file, {len(planes):,} planes in SQLite, users in PostgreSQL")

        server, database, checkpoints = None, [], str(folder / "cluster" / "checkpoints")
        if on_s3:
            server = stack.enter_context(object_store_server.server(folder / "s3"))
            database, checkpoints = ["--database", add_database(address)], use_object_store(server)
            steps.done("a database for the cluster in PostgreSQL, a bucket for checkpoints and functions")

        cluster = stack.enter_context(running_cluster(folder, database, checkpoints))
        cluster.controller.said()
        steps.done(f"arroyo-udf api and arroyo-udf controller: ready at {cluster.api.said()}")

        for file in (HERE / "plane.py", EXAMPLES / "user_name" / "batched.py"):
            udf = cluster.ask("POST", "/udfs", {"definition": file.read_text(), "language": "python"})
            steps.done(f"POST /udfs: {udf['name']} is built")

        places = {"FLIGHTS": str(flights), "FLIGHTS_DB": str(folder / "planes.sqlite"), "USERS_DB": address}
        cluster.post(EXAMPLES / "flights" / "delays.sql", places)
        awaited(lambda: cluster.now()["state"] == "Running", "Running")
        steps.done("POST /pipelines: delays.sql is Running in a worker")

        epoch = cluster.await_epoch(3)
        steps.done(f"it has committed checkpoint {epoch}")

        [worker] = cluster.workers()
        worker.kill()
        awaited(lambda: cluster.now()["run_id"] == 2 and cluster.now()["state"] == "Running", "the next generation")
        steps.done(f"worker {worker.pid} killed by SIGKILL: generation 2 is Running")
        epoch = cluster.await_epoch(epoch + 2)
        steps.done(f"it has committed checkpoint {epoch}")

        cluster.controller.kill()
        alone = cluster.await_epoch(epoch + 1)
        steps.done(f"controller killed by SIGKILL: the worker goes on, and has committed checkpoint {alone}")
        cluster.start_controller()
        awaited(lambda: cluster.reported_epoch() >= alone, "the worker's report")
        generation = cluster.now()["run_id"]
        steps.done(f"controller started again: generation {generation} goes on, and has told it checkpoint {alone}")

        if server is not None:
            server.kill()
            server.restart()
            epoch = cluster.await_epoch(alone + 1)
            steps.done(f"S3 server killed by SIGKILL and started again: checkpoint {epoch} is committed")

        awaited(lambda: cluster.now()["state"] == "Finished", "Finished")
        steps.done(f"Finished in generation {cluster.now()['run_id']}, with checkpoint {cluster.epoch()}")

        found = nycflights.found_delays(address)
        is_equal = found == nycflights.expected_delays(lines, planes)
        steps.done(f"{len(found):,} days of carriers compared, row by row")

        cluster.delete()
        steps.done("DELETE /pipelines: its state is removed")
    return is_equal


def end(number: int, frame: FrameType | None) -> None:
    """Once: the second Ctrl-C must not interrupt what the first one tidies up."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("flights", type=int, nargs="?", help="so many flights; default: all")
    parser.add_argument("--state", choices=["folder", "s3"], default="folder", help="where the cluster keeps its state")
    told = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="cluster-demo-") as folder:
            is_equal = run(Path(folder), told.flights, told.state == "s3")
    except nycflights.postgresql.NoPostgresql as error:
        sys.exit(f"no PostgreSQL: {error}")
    print(f"equal to the reference: {'yes' if is_equal else 'NO'}")
    sys.exit(not is_equal)


if __name__ == "__main__":
    main()
