"""A worker: the process of one generation of a job. `arroyo-udf worker`, started by the process scheduler.

    by its standard input, a socket: {"data": folder, "job_id", "generation", "secret", "limits", "gateway", "logging",
    "traces", "spawned", "roots"}, with the descriptors of its output and its lock (see `schedulers/protocol.py`)

A spare worker waits for that, and does meanwhile what takes long.

Three threads: this one runs the pipeline, one sends reports, one asks for orders. Others answer with metrics, and send
them to a Pushgateway. Metrics are served by HTTP on a Unix socket in the data folder, beside the worker's lock:

    curl --unix-socket workers/job_4fGh7Kx9Qz-3.sock http://worker/metrics

The controller's port leads there (see `program.py`), so that there is one address, token and certificate, and no secret
of the cluster in a process that runs code of users.

Guarantees: it ends when its controller does not know it any more, and, with a checkpoint, when there has been no
controller for 30 s; a controller that comes back before takes it over. Reports arrive in order, each at least once.
Nobody but this user can connect to the socket. It goes when the worker ends; that of one that was killed, with its lock
(see `worker_files.py`). `worker.memory` and `worker.cpu_time` hold for this process and each one that it starts;
functions cannot raise them.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import math
import os
import queue
import resource
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

from .. import failpoints
from ..engine.connectors.location import confined_to
from ..engine.datafusion.feed import warm
from ..engine.execution.stopping import StopRequest
from ..errors import InvalidArgument
from .generation import request, run
from .logs import show
from .monitoring.exposition import WORKER, Exposition, Gateway
from .monitoring.metrics import Measured
from .monitoring.tracing import Tracing
from .schedulers import protocol, worker_files
from .states import Event
from .task import JobReport, Task

ALONE = 30.0
"""Seconds without a controller, after which a worker stops."""
_AGAIN = 0.1
_TIMEOUT = 10.0

_log = logging.getLogger(__name__)


class Gone(Exception):
    """The controller does not know this generation any more."""


class WorkerRefused(Gone):
    """The controller does not understand what it is told."""


class Alone(Exception):
    """There is no controller."""


class Worker:
    def __init__(self, assignment: dict[str, Any]) -> None:
        self._data = Path(assignment["data"])
        self._job_id, self._generation, self._secret = (
            assignment["job_id"],
            assignment["generation"],
            assignment["secret"],
        )
        self._reports: queue.SimpleQueue[JobReport | None] = queue.SimpleQueue()
        self._heard = time.monotonic()
        self._stop = StopRequest()
        self._started: JobReport | None = None
        self._measured = Measured()
        # Not of a controller that runs on while the package is upgraded:
        self._traces, self._spawned = assignment.get("traces"), assignment.get("spawned", time.time())
        self._trace_parent: str | None = None
        self._gateway = Gateway(**assignment["gateway"]) if assignment.get("gateway") else None

    def run(self) -> None:
        """Raises Gone, Alone."""
        failpoints.reached("unregistered")
        task = Task.of_json(self._ask("register", {})["task"])
        failpoints.reached("registered")
        self._stop.timeout = task.drain_time
        self._trace_parent = task.trace_parent
        reporting = threading.Thread(target=self._guarded, args=(self._report,), name="arroyo-udf-reports")
        reporting.start()
        listening = threading.Thread(target=self._guarded, args=(self._listen,), name="arroyo-udf-orders", daemon=True)
        listening.start()
        with self._monitored():
            run(task, self._stop, self._hear)
        self._reports.put(None)
        reporting.join()
        failpoints.reached("told")

    def _hear(self, report: JobReport) -> None:
        if report.event is Event.STARTED:
            self._started = replace(report, numbers=None, checkpoint=None)
            if self._traces is not None:  # aside, because opentelemetry is slow to import
                threading.Thread(target=self._trace, args=(time.time(),), daemon=True).start()
        elif report.event is not None:
            failpoints.reached("ended")
        elif self._started is not None and report.epoch:  # which is told again to each new controller
            self._started = replace(self._started, epoch=report.epoch, retained=report.retained)
        self._measured.note(report)
        self._reports.put(report)

    def _trace(self, started: float) -> None:
        about = {"job_id": self._job_id, "generation": self._generation}
        with contextlib.closing(Tracing(self._traces, "worker")) as tracing:
            tracing.begin("worker start", parent=self._trace_parent, at=self._spawned, **about).end(started)

    @contextlib.contextmanager
    def _monitored(self) -> Iterator[None]:
        exposition = Exposition([self._measured.tell])
        name = worker_files.name_of(self._job_id, self._generation)
        with contextlib.ExitStack() as stack:
            stack.enter_context(answering(self._data, self._job_id, self._generation, exposition))
            if self._gateway is not None:
                stack.enter_context(self._gateway.pushing(exposition, WORKER, name))
            yield

    def _guarded(self, work: Any) -> None:
        """Without its controller, a worker ends."""
        try:
            work()
        except Alone:
            _log.warning("there is no controller: the worker stops with a checkpoint")
            request(self._stop, "save")
        except Gone as error:
            _log.warning("%s", error)
            request(self._stop, "cancel")

    def _report(self) -> None:
        while (report := self._reports.get()) is not None:
            try:
                self._ask("reports", [report.as_json()])
            except WorkerRefused as error:
                _log.warning("a report is left out: %s", error)

    def _listen(self) -> None:
        name, seen = "", 0
        while True:
            answer = self._ask("orders", {"of": name, "seen": seen})
            if answer["of"] != name and self._started is not None:
                self._reports.put(self._started)  # a controller that was killed may have heard it, and done nothing
            seen = len(answer["orders"]) + (seen if answer["of"] == name else 0)
            name = answer["of"]
            for order in answer["orders"]:
                request(self._stop, order)

    def _ask(self, what: str, body: Any) -> Any:
        """Until it is answered. Raises Gone, Alone."""
        path = protocol.path_of(self._job_id, self._generation, what)
        while True:
            try:
                status, answer = protocol.ask(self._data, path, self._secret, body, _TIMEOUT)
            except (OSError, http.client.HTTPException, ValueError):
                status, answer = http.client.SERVICE_UNAVAILABLE, None
            if status >= http.client.INTERNAL_SERVER_ERROR:
                if time.monotonic() - self._heard > ALONE:
                    raise Alone
                time.sleep(_AGAIN)
                continue
            self._heard = time.monotonic()
            if status == protocol.GONE:
                raise Gone(answer["error"])
            if status != http.client.OK:
                kind = WorkerRefused if status == http.client.BAD_REQUEST else Gone
                raise kind(f"the controller answers {status}: {answer}")
            return answer


def main() -> None:
    """Raises InvalidArgument if nobody has started it as a worker."""
    try:
        with socket.socket(fileno=os.dup(0)) as channel:
            if not select.select([channel], [], [], 0)[0]:
                warm()
            given = protocol.assigned(channel)
    except (OSError, ValueError):
        raise InvalidArgument("a worker is started by a controller: run `arroyo-udf controller`") from None
    if given is None:
        return
    assignment, output, lock = given  # the lock ends with this process
    worker_files.sign(lock, os.getpid())
    _redirect(output)
    worker_files.mark(
        worker_files.marker_of(
            protocol.folder_of(Path(assignment["data"])), assignment["job_id"], assignment["generation"]
        )
    )
    try:
        show(
            *assignment.get("logging", ("text", "info")),
            job_id=assignment["job_id"],
            generation=assignment["generation"],
        )
        limit(assignment["limits"])
        roots = assignment.get("roots")
        with confined_to(None if roots is None else list(map(Path, roots))):
            Worker(assignment).run()
    except (Gone, Alone) as error:
        _log.warning("%s", error)
    sys.stdout.flush()
    os._exit(0)  # threads of functions may go on for ever


def _redirect(output: int) -> None:
    """What functions print goes to the output, and they have nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, standard in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, standard)
    os.close(nothing)
    os.close(output)


@contextlib.contextmanager
def answering(data: Path, job_id: str, generation: int, exposition: Exposition) -> Iterator[None]:
    """Within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            text, content_type = exposition.text(self.headers.get("Accept", ""))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    folder, name = protocol.folder_of(data), worker_files.socket_name(job_id, generation)
    with ThreadingUnixStreamServer("", Handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = protocol.bound(folder, name)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="arroyo-udf-metrics", daemon=True)
        thread.start()
        try:
            yield
        finally:
            (folder / name).unlink(missing_ok=True)
            server.shutdown()
            thread.join()


def limit(limits: Mapping[str, float | None]) -> None:
    """limits: {"memory": bytes, "cpu_time": seconds}; None: no limit."""
    memory, cpu_time = limits["memory"], limits["cpu_time"]
    if memory is not None:
        _set_limit(resource.RLIMIT_AS, math.ceil(memory), 0)
    if cpu_time is not None:
        _set_limit(resource.RLIMIT_CPU, math.ceil(cpu_time), 1)  # SIGXCPU says why, and SIGKILL comes a second later


def _set_limit(which: int, limit: int, more: int) -> None:
    _, most = resource.getrlimit(which)
    hard = limit + more if most == resource.RLIM_INFINITY else min(limit + more, most)
    resource.setrlimit(which, (min(limit, hard), hard))
