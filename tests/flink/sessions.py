"""Session clusters for tests, and jobs that are submitted to them over REST.

with session(folder, python, "--taskmanagers", 2) as cluster:
    job = cluster.submit(described)         or cluster.run(program, argument, ...)
    job.await_state("RUNNING")
    cluster.kill("taskmanager-0")
    job.await_state("FINISHED")
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

COMMAND = (sys.executable, "-m", "arroyo_udf_plugin.cli", "flink")
ENDED = ("FINISHED", "CANCELED", "FAILED")
_PATIENCE = (
    240.0  # seconds: a Java program and its Python workers start in ten, and several times that on a busy machine
)

_IS_ALARMING = re.compile(r"\S+ \S+ ERROR|Caused by").match


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for what Flink does in its own time."""
    late = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < late, f"waited {_PATIENCE:.0f} s for {what}"
        time.sleep(0.05)  # between two looks; no result depends on its length


class Session:
    """A cluster that runs in `folder`. Made by `session`."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.process = folder, process
        self._rest = httpx.Client(base_url=self.url, timeout=_PATIENCE, trust_env=False)
        self._jar: str | None = None
        self.jobs: list[FlinkJob] = []

    def close(self) -> None:
        """The client. The cluster goes on."""
        self._rest.close()

    @property
    def about(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "flink.json").read_text())
        return content

    @property
    def url(self) -> str:
        return str(self.about["url"])

    @property
    def python_jar(self) -> Path:
        return Path(self.about["python_jar"])

    @property
    def runner(self) -> Path:
        return Path(self.about["runner"])

    @property
    def python(self) -> Path:
        return Path(self.about["python"])

    @property
    def pids(self) -> dict[str, int]:
        """By role: supervisor, jobmanager, taskmanager-0, ..., zookeeper."""
        return dict(self.about["pids"])

    def kill(self, role: str) -> int:
        """SIGKILL. Returns the process id."""
        pid = self.pids[role]
        os.kill(pid, signal.SIGKILL)
        return pid

    def await_new(self, role: str, pid: int) -> None:
        """A program in the place of this one."""
        until(lambda: self.pids[role] != pid, f"another {role} than {pid}")

    def await_slots(self, number: int) -> None:
        until(lambda: self.get("/overview").get("slots-total") == number, f"{number} slots")

    def get(self, path: str) -> dict[str, Any]:
        """{}: the JobManager does not answer, or not with 200."""
        try:
            answer = self._rest.get(path)
        except httpx.TransportError:
            return {}
        content: dict[str, Any] = answer.json() if answer.status_code == 200 else {}
        return content

    def send(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        answer = self._rest.request(method, path, **content)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        sent: dict[str, Any] = answer.json() if answer.content else {}
        return sent

    def submit(
        self,
        described: Mapping[str, Any],
        slices: int = 8,
        checkpoint_interval: float | None = 1.0,
        place: str | None = None,
        **options: Any,
    ) -> FlinkJob:
        """A pipeline, by its description. options: of `run`."""
        job = {"version": 1, "pipeline": described, "slices": slices}
        job |= {"checkpoint_interval": checkpoint_interval, "place": place}
        return self.run(self.runner, "--job", json.dumps(job), **options)

    def run(
        self,
        program: Path,
        *arguments: str,
        parallelism: int = 2,
        configuration: Mapping[str, str] | None = None,
        savepoint: str | None = None,
    ) -> FlinkJob:
        """Starts a PyFlink program. Its failure is in the JobManager's log."""
        return self._start(
            {
                "entryClass": "org.apache.flink.client.python.PythonDriver",
                "programArgsList": ["-py", str(program), *arguments],
                "parallelism": parallelism,
                "flinkConfiguration": dict(configuration or {}),
                "savepointPath": savepoint,
            }
        )

    def again(self, job: FlinkJob, savepoint: str, parallelism: int) -> FlinkJob:
        """The same program from a savepoint."""
        return self._start(job.request | {"savepointPath": savepoint, "parallelism": parallelism})

    def _start(self, request: dict[str, Any]) -> FlinkJob:
        job = FlinkJob(self, uuid.uuid4().hex, request)
        self.send("POST", f"/jars/{self._uploaded()}/run", json=request | {"jobId": job.id})
        self.jobs.append(job)
        return job

    def _uploaded(self) -> str:
        if self._jar is None:
            with self.python_jar.open("rb") as jar:
                sent = self.send("POST", "/jars/upload", files={"jarfile": (self.python_jar.name, jar)})
            self._jar = Path(sent["filename"]).name
        return self._jar

    def told(self) -> str:
        """What jobs and programs have said last, for a test that has failed."""
        parts = [f"--- job {job.id}: {text[:4000]}" for job in self.jobs for text in job.exceptions()[:2]]
        for log in sorted((self.folder / "log").glob("*.log")):
            lines = [line for line in log.read_text(errors="replace").splitlines() if _IS_ALARMING(line)]
            parts.append("\n".join([f"--- {log.name}", *lines[-10:]]))
        return "\n".join(parts)


class FlinkJob:
    def __init__(self, cluster: Session, id: str, request: dict[str, Any]) -> None:
        self.cluster, self.id, self.request = cluster, id, request
        self._path = f"/jobs/{id}"

    def state(self) -> str | None:
        """None: the JobManager does not know it, or does not answer."""
        return self.cluster.get(self._path).get("state")

    def await_state(self, *states: str) -> None:
        """One of them. Fails at once if the job has ended otherwise."""

        def reached() -> bool:
            state = self.state()
            assert state in states or state not in ENDED, f"the job is {state}: {self.exceptions()}"
            return state in states

        until(reached, f"the job to be one of {states}")

    def await_running(self, parallelism: int | None = None) -> None:
        """All of its tasks run, as many of each kind as there should be."""

        def all_run() -> bool:
            found = self.cluster.get(self._path)
            vertices = found.get("vertices", [])
            return bool(vertices) and all(
                vertex["tasks"].get("RUNNING", 0) + vertex["tasks"].get("FINISHED", 0) == vertex["parallelism"]
                and (parallelism is None or vertex["parallelism"] == parallelism)
                for vertex in vertices
            )

        until(all_run, f"tasks that run, {parallelism} of each kind")

    def exceptions(self) -> list[str]:
        history = self.cluster.get(f"{self._path}/exceptions").get("exceptionHistory", {})
        return [entry["stacktrace"] for entry in history.get("entries", [])]

    def checkpoints(self, kind: str = "completed") -> int:
        """How many there are of a kind, as the JobManager that runs now has counted."""
        return int(self.cluster.get(f"{self._path}/checkpoints").get("counts", {}).get(kind, 0))

    def await_checkpoints(self, more: int, kind: str = "completed") -> None:
        wanted = self.checkpoints(kind) + more

        def are_there() -> bool:
            assert self.state() not in ENDED, f"the job is {self.state()} before there are checkpoints"
            return self.checkpoints(kind) >= wanted

        until(are_there, f"{more} more checkpoints, {kind}")

    def rescale(self, parallelism: int) -> None:
        """Returns when it runs so."""
        path = f"{self._path}/resource-requirements"
        limits = {"lowerBound": 1, "upperBound": parallelism}
        wanted = {vertex: {"parallelism": limits} for vertex in self.cluster.get(path)}
        self.cluster.send("PUT", path, json=wanted)
        self.await_running(parallelism)

    def stop_with_savepoint(self, directory: str) -> str:
        """Returns where the savepoint is."""
        sent = self.cluster.send("POST", f"{self._path}/stop", json={"targetDirectory": directory, "drain": False})
        path = f"{self._path}/savepoints/{sent['request-id']}"
        until(lambda: self.cluster.get(path).get("status", {}).get("id") == "COMPLETED", "a savepoint")
        operation = self.cluster.get(path)["operation"]
        assert "location" in operation, f"no savepoint: {operation}"
        self.await_state("FINISHED")
        return str(operation["location"])

    def cancel(self) -> None:
        if self.state() not in (*ENDED, None):
            self.cluster.send("PATCH", f"{self._path}?mode=cancel")
            until(lambda: self.state() in (*ENDED, None), "a cancelled job")


@contextmanager
def session(
    folder: Path, python: Path, *options: object, environment: Mapping[str, str] | None = None
) -> Iterator[Session]:
    """Runs `arroyo-udf flink up` with a free port, and ends it."""
    arguments = ("up", "--python", python, "--folder", folder, "--port", 0, *options)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "output", "wb") as output:
        command = [*COMMAND, *map(str, arguments)]
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(environment or {})})

    def is_ready() -> bool:
        assert process.poll() is None, (folder / "output").read_text()
        return (folder / "flink.json").exists()

    try:
        until(is_ready, "a cluster")
        with closing(Session(folder, process)) as cluster:
            yield cluster
    finally:
        process.terminate()
        process.wait()
        subprocess.run([*COMMAND, "down", "--folder", str(folder)], check=True, stderr=subprocess.DEVNULL)
