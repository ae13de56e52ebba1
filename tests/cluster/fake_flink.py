"""A JobManager for tests: its REST API with the traps of the real one, over jobs that do what the test says.

    with FakeFlink() as flink:
        flink.url
        flink.jobs[id].fail(stack)

Answers have the fields of Flink 2.3. Checkpoints are files that begin as Flink's do.
"""

import copy
import json
import re
import shutil
import struct
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ENDED = ("FAILED", "CANCELED", "FINISHED")


def write_snapshot(folder: Path, number: int) -> None:
    folder.mkdir(parents=True)
    (folder / "_metadata").write_bytes(struct.pack(">iiq", 0x4960672D, 6, number) + bytes(4))


@dataclass
class FakeJob:
    """started: of its two tasks, how many run. exceptions: the newest first."""

    id: str
    asked: dict[str, Any]
    state: str = "RUNNING"
    started: int = 2
    number: int = 0
    completed: dict[str, Any] | None = None
    savepoint: dict[str, Any] | None = None
    exceptions: list[dict[str, Any]] = field(default_factory=list)
    drained: bool | None = None
    parallelism: int = 1

    @property
    def folder(self) -> Path:
        return Path(self.asked["flinkConfiguration"]["execution.checkpointing.dir"].removeprefix("file://"))

    def checkpoint(self) -> None:
        """The next one; Flink removes the one before."""
        self.number += 1
        chosen = self.folder / self.id / f"chk-{self.number}"
        shutil.rmtree(self.folder / self.id, ignore_errors=True)
        write_snapshot(chosen, self.number)
        self.completed = self._snapshot(chosen)

    def save(self, folder: str) -> str:
        self.number += 1
        chosen = Path(folder.removeprefix("file://")) / f"savepoint-{self.number}"
        write_snapshot(chosen, self.number)
        self.savepoint = self._snapshot(chosen)
        return f"file:{chosen}"

    def finish(self) -> None:
        """By itself, or after a savepoint: Flink then removes its checkpoints."""
        shutil.rmtree(self.folder / self.id, ignore_errors=True)
        self.state = "FINISHED"

    def throw(self, stack: str, state: str) -> None:
        self.exceptions.insert(0, {"exceptionName": "E", "stacktrace": stack, "timestamp": time.time_ns() // 10**6})
        self.state = state

    def _snapshot(self, folder: Path) -> dict[str, Any]:
        now = time.time_ns() // 1_000_000
        own = {"id": self.number, "external_path": f"file:{folder}", "state_size": 265, "status": "COMPLETED"}
        return own | {"trigger_timestamp": now - 200, "latest_ack_timestamp": now, "end_to_end_duration": 200}


class FakeFlink:
    """is_away: 503. cached_for: seconds in which what is told of one job may be old. submit: what happens at the next
    submits: "taken", "refused", "taken and refused", "silent" (it is taken when the test says so, and not answered).
    failing_stops: why savepoints fail, in order. rescales: when it changes the parallelism of a job: "at once", "late"
    (when the test says so), "never"."""

    def __init__(self) -> None:
        self.jobs: dict[str, FakeJob] = {}
        self.jars: list[str] = []
        self.submits: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.is_away = False
        self.cached_for = 0.0
        self._cached: dict[str, tuple[float, FakeJob]] = {}
        self.submit = "taken"
        self.failing_stops: list[str] = []
        self.rescales = "at once"
        self._operations: dict[str, dict[str, Any]] = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Tests are silent."""

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fake.requests.append(f"{self.command} {self.path}")
                answer = (503, _error("ongoing leader election")) if fake.is_away else fake._answer(self, body)
                if answer is None:
                    self.close_connection = True
                    return
                content = json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_PUT = _handle

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "FakeFlink":
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, asked: dict[str, Any]) -> FakeJob:
        job = FakeJob(asked["jobId"], asked, parallelism=asked["parallelism"])
        path = asked.get("savepointPath")
        if path is not None:
            try:
                _, _, job.number = struct.unpack_from(">iiq", (_path(path) / "_metadata").read_bytes())
            except FileNotFoundError:
                job.state, job.started = "FAILED", 0  # the answer is 200 all the same, and there is no exception
        self.jobs[job.id] = job
        return job

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any] | None:
        method, path = handler.command, handler.path
        if path == "/jobs/overview":
            return 200, {"jobs": [_line(job) for job in list(self.jobs.values())]}
        if path == "/jars":
            return 200, {"address": self.url, "files": [{"id": f"1_{name}", "name": name} for name in self.jars]}
        if path == "/jars/upload":
            (name,) = re.findall(rb'filename="([^"]+)"', body)
            self.jars.append(name.decode())
            return 200, {"filename": f"/upload/1_{name.decode()}", "status": "success"}
        if path.startswith("/jars/"):
            return self._submitted(json.loads(body))
        id, _, rest = path.removeprefix("/jobs/").partition("?")[0].partition("/")
        job = self.jobs.get(id)
        if job is None:
            return (500 if rest == "status" else 404), _error(f"Job {id} not found")
        return self._of_job(job, f"{method} {rest}", body)

    def _submitted(self, asked: dict[str, Any]) -> tuple[int, Any] | None:
        self.submits.append(asked)
        if self.submit == "silent":
            return None
        if self.submit != "refused" and asked["jobId"] not in self.jobs:
            self.take(asked)
        if self.submit == "taken":
            return 200, {"jobid": asked["jobId"]}
        return 400, _error("Could not execute application.\nCaused by: E: Python process exits with code: 1")

    def _of_job(self, job: FakeJob, call: str, body: bytes) -> tuple[int, Any]:
        if call == "GET exceptions":
            return 200, {"exceptionHistory": {"entries": self._old(job).exceptions, "truncated": False}}
        if call == "GET checkpoints":
            old = self._old(job, "checkpoints")
            return 200, {"latest": {"completed": old.completed, "savepoint": old.savepoint, "failed": None}}
        if call == "PATCH ":
            job.state = "CANCELED"
            return 202, {}
        if call == "POST stop":
            return 202, {"request-id": self._stop(job, json.loads(body))}
        if call == "GET resource-requirements":
            limits = {"lowerBound": 1, "upperBound": job.parallelism}
            return 200, {vertex: {"parallelism": limits} for vertex in ("source", "sink")}
        if call == "PUT resource-requirements":
            return self._rescaled(job, json.loads(body))
        if call.startswith("GET savepoints/"):
            operation = self._operations.get(call.rpartition("/")[2])
            return (404, _error("no such operation")) if operation is None else (200, operation)
        old = self._old(job)
        return 200, {"jid": job.id, "state": old.state, "vertices": [{"parallelism": old.parallelism}] * 2}

    def _rescaled(self, job: FakeJob, asked: dict[str, Any]) -> tuple[int, Any]:
        if self.rescales == "never":
            return 500, _error("the scheduler of this job does not support it")
        (wanted,) = {limits["parallelism"]["upperBound"] for limits in asked.values()}
        if self.rescales == "at once":
            job.parallelism = wanted
        return 200, {}

    def _old(self, job: FakeJob, what: str = "") -> FakeJob:
        """Checkpoints are in a cache of their own."""
        known = self._cached.get(job.id + what)
        if known is None or time.monotonic() >= known[0]:
            known = self._cached[job.id + what] = time.monotonic() + self.cached_for, copy.deepcopy(job)
        return known[1]

    def _stop(self, job: FakeJob, asked: dict[str, Any]) -> str:
        number = f"{len(self._operations):032x}"
        job.drained = asked["drain"]
        if self.failing_stops:
            ended: dict[str, Any] = {"failure-cause": {"class": "E", "stack-trace": self.failing_stops.pop(0)}}
        else:
            ended = {"location": job.save(asked["targetDirectory"])}
            job.finish()
        self._operations[number] = {"status": {"id": "COMPLETED"}, "operation": ended}
        return number


def _line(job: FakeJob) -> dict[str, Any]:
    tasks = {"total": 2, "running": job.started, "finished": 0, "initializing": 2 - job.started}
    if job.state != "RUNNING":
        tasks |= {"running": 0, "finished": 2 if job.state == "FINISHED" else 0}
    return {"jid": job.id, "name": "x", "state": job.state, "tasks": tasks}


def _path(url: str) -> Path:
    return Path(url.removeprefix("file://").removeprefix("file:"))


def _error(text: str) -> dict[str, Any]:
    return {"errors": [f"org.apache.flink.RestHandlerException: {text}\n\tat java.lang.Thread.run"]}
