"""Pipelines in processes of their own: one worker for each generation (see `spawning.py`).

The worker's output goes to a file in the data folder, and from there to the job's log while it runs (see
`worker_output.py`); if it is lost, the end of its output once more, with the error.

Guarantees: a worker that ends, however, is noticed at once; one that says nothing for too long is killed. What it has
started ends with it, also daemons. Workers outlive a controller that is killed: the next one finds them by their locks
(see `worker_files.py`), and they find it at the same socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import os
import secrets
import select
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ... import failpoints
from ..configuration import Settings
from ..monitoring.exposition import WORKER, Gateway
from ..serving import Server
from ..states import Event
from ..task import NOTHING_RUNS, OUTPUT, JobReport, Task, Tell
from . import messages, protocol, worker_files
from .interface import How
from .messages import InvalidMessage
from .spawning import Spawner
from .worker_output import INSTEAD, WorkerOutput, crashed_in

_LOOK_EVERY = 1.0  # seconds between two looks at who has been silent, and at what workers have written
_LEAVES_IN = 10.0  # seconds for the process of a worker that has told its end: a function may block its threads
_LONGEST_MESSAGE = 64 << 20

_log = logging.getLogger(__name__)

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class _Orders:
    """For one worker, which waits for them. put: in any thread; more_than: in the server's loop."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self._all: list[How] = []
        self._event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, order: How) -> None:
        self._all.append(order)
        self.wake()

    def wake(self) -> None:
        if self._loop is not None and self._event is not None:
            with contextlib.suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._event.set)

    async def more_than(self, seen: int) -> list[How]:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        if len(self._all) <= seen:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), protocol.ASK_EVERY)
        return self._all[seen:]


@dataclass
class _Running:
    """ended: it has told its end, or nobody waits for it. silent: looks since it has last asked: of a controller that
    was suspended, they are few. is_let_go: it is another controller's. spawning: held until there is a process, or
    there will be none.
    """

    task: Task
    secret: str
    output: WorkerOutput
    pid: int | None = None
    process: subprocess.Popen[bytes] | None = None
    orders: _Orders = field(default_factory=_Orders)
    spawning: threading.Lock = field(default_factory=threading.Lock)
    silent: int = 0
    ended: bool = False
    is_killed: bool = False
    why: str = ""
    is_let_go: bool = False

    @property
    def job_id(self) -> str:
        return self.task.job_id

    @property
    def generation(self) -> int:
        return self.task.generation


class ProcessScheduler:
    def __init__(self, tell: Tell, settings: Settings) -> None:
        self._tell, self._data = tell, settings.data.absolute()
        self._limits = settings.pipeline
        self._worker = settings.worker
        self._roots = [str(root.absolute()) for root in settings.files.roots] or None
        self._traces = settings.traces.endpoint
        self._logging = settings.logging.format, settings.logging.level
        self._gateway = Gateway.configured(settings)
        self._folder = protocol.folder_of(self._data)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._spawner = Spawner()
        self._key = protocol.key_of(self._data)
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._serving = threading.Lock()
        self._servers: list[Server] = []  # mostly one
        self._served: tuple[int, int] | None = None
        self._closed = threading.Event()
        self.refused = 0

    # ---- Called by the controller ----

    def start(self, task: Task) -> None:
        failpoints.reached("starting")
        self._serve()
        running = self._add(task)
        threading.Thread(target=self._start, args=(running,), daemon=True).start()

    def stop(self, job_id: str, generation: int, how: How) -> None:
        failpoints.reached("stopping")
        running = self._find(job_id, generation)
        if running is not None and how == "kill":
            threading.Thread(target=self._kill, args=(job_id, generation), daemon=True).start()
        with self._lock:
            goes_on = running is not None and not running.ended
        if running is None or not goes_on:  # a worker that has told its end, and still leaves, tells nothing more
            self._tell(JobReport(job_id, generation, Event.LOST, message=NOTHING_RUNS))
        elif how != "kill":
            running.orders.put(how)

    def rescale(self, task: Task) -> None:
        self.stop(task.job_id, task.generation, "save")

    def clear(self, job_id: str, generation: int) -> None:
        failpoints.reached("clearing")
        running = self._find(job_id, generation)
        if running is not None:
            running.ended = True  # nobody waits for what it says
            running.orders.wake()

        def work() -> None:
            while self._kill(job_id, generation):
                self._closed.wait(0.01)
            worker_files.end_family(self._folder, job_id, generation, None)
            if running is not None:
                self._remove(running)
            self._tell(JobReport(job_id, generation, Event.READY))

        threading.Thread(target=work, daemon=True).start()

    def take_over(self, task: Task) -> bool:
        self._serve()
        if self._find(task.job_id, task.generation) is not None:
            return True
        workers = [worker for worker in self._living(task.job_id) if worker.generation == task.generation]
        if not workers:
            return False
        running = self._add(task)
        running.pid = workers[0].pid
        running.output.skip()
        failpoints.reached("taken over")
        threading.Thread(target=self._watch, args=(running,), daemon=True).start()
        return True

    def isolate(self, job_ids: Iterable[str]) -> None:
        """They are in processes of their own."""

    def workers(self) -> Sequence[tuple[str, int]]:
        with self._lock:
            return [(worker.job_id, worker.generation) for worker in self._running.values() if worker.pid is not None]

    def let_go(self) -> None:
        """Workers reach the next controller, at a socket of its own."""
        with self._lock:
            running, self._running = self._running, {}
        for worker in running.values():
            worker.is_let_go = True
            worker.orders.wake()
        self._spawner.release()
        self._stop_serving()

    def close(self) -> None:
        with self._lock:
            running = list(self._running.values())
        for worker in running:
            worker.orders.put("save")
        deadline = time.monotonic() + self._limits.drain_time + 5.0
        while time.monotonic() < deadline and any(self._living(worker.job_id) for worker in running):
            self._closed.wait(0.05)
        self._closed.set()
        self._spawner.close()
        for worker in running:
            self._kill(worker.job_id, worker.generation)
            worker_files.end_family(self._folder, worker.job_id, worker.generation, worker.pid)
            worker.orders.wake()
        self._stop_serving()

    # ---- Processes ----

    def _start(self, running: _Running) -> None:
        try:
            with running.spawning:
                if not (running.is_killed or running.is_let_go):
                    self._spawn(running)
            why = "the worker was stopped before it started"
        except (OSError, ValueError) as error:  # no memory, no room, a variable that no process can have
            why = f"the worker cannot start: {error}"
        if running.process is not None:
            self._watch(running)
        elif self._remove(running) and not running.is_let_go:
            self._tell(JobReport(running.job_id, running.generation, Event.LOST, message=why))

    def _spawn(self, running: _Running) -> None:
        lock = worker_files.claim(self._folder, running.job_id, running.generation)
        try:
            with running.output.create() as output:
                spawned = self._spawner.take(running.task.environment, output)
                running.process, running.pid = spawned.process, spawned.process.pid
                worker_files.sign(lock, running.pid)
                failpoints.reached("spawned")
                spawned.assign(self._assignment(running), output, lock)
        finally:
            os.close(lock)

    def _assignment(self, running: _Running) -> dict[str, Any]:
        """What a worker is to know before it asks."""
        return {
            "data": str(self._data),
            "job_id": running.job_id,
            "generation": running.generation,
            "secret": running.secret,
            "limits": self._worker.model_dump(),
            "roots": self._roots,
            "logging": self._logging,
            "traces": self._traces,
            "spawned": time.time(),
            "gateway": self._gateway and asdict(self._gateway),
        }

    def _watch(self, running: _Running) -> None:
        """Until the worker has ended; tells it, if the worker has not."""
        assert running.pid is not None
        try:
            process = os.pidfd_open(running.pid)
        except OSError:  # it has ended; or nobody can watch it, as there are too many open files
            self._kill(running.job_id, running.generation)
            self._end(running)
            return
        with os.fdopen(process, "rb", buffering=0):
            is_other = running.process is None and not self._lives(running)  # its id is another process's by now
            while not is_other and not select.select([process], [], [], _LOOK_EVERY)[0]:
                self._look(running)
        self._end(running)
        if self._gateway is not None:  # a worker that was killed has not done it
            self._gateway.delete(WORKER, worker_files.name_of(running.job_id, running.generation))

    def _look(self, running: _Running) -> None:
        if running.is_let_go:
            return
        with contextlib.suppress(OSError):
            self._serve()
            self._spawner.prepare()
            self._tell_output(running, running.output.more())
        running.silent += 1
        if running.silent * _LOOK_EVERY > (_LEAVES_IN if running.ended else self._limits.worker_heartbeat_timeout):
            running.why = f"the worker has said nothing for {running.silent * _LOOK_EVERY:.0f} s"
            self._kill(running.job_id, running.generation)

    def _end(self, running: _Running) -> None:
        running.orders.wake()
        assert running.pid is not None
        status = running.process.wait() if running.process is not None else None
        worker_files.end_family(self._folder, running.job_id, running.generation, running.pid)
        self._remove(running)
        if self._closed.is_set() or running.is_let_go:
            return
        with contextlib.suppress(OSError):
            self._spawner.prepare()
        if not running.ended:
            why = running.why or ("the worker has ended" if status is None else _ended(status))
            last = running.output.last()
            if not running.why and (function := crashed_in(last, running.task.program)) is not None:
                why = f"{why}, in the function {function}: {INSTEAD}"
            self._tell(JobReport(running.job_id, running.generation, Event.LOST, message=why, details=last))
        else:
            self._tell_output(running, running.output.rest())
        running.output.remove()

    def _tell_output(self, running: _Running, text: str) -> None:
        if text.strip():
            self._tell(JobReport(running.job_id, running.generation, message=OUTPUT, details=text))

    def _kill(self, job_id: str, generation: int) -> bool:
        """Whether there was something to kill, of this generation or an older one."""
        with self._lock:
            running = self._running.get(job_id)
        workers = [worker for worker in self._living(job_id) if worker.generation <= generation]
        if running is not None and running.generation <= generation:
            running.is_killed = True
            with running.spawning:
                if running.process is not None and running.process.poll() is None and running.pid is not None:
                    started = worker_files.started_at(running.pid)
                    if started is not None:
                        workers.append(worker_files.Living(job_id, running.generation, running.pid, started))
        for worker in workers:
            worker.kill()
        return bool(workers)

    def _living(self, job_id: str) -> list[worker_files.Living]:
        return list(worker_files.living(self._folder, job_id))

    def _lives(self, running: _Running) -> bool:
        return any(worker.pid == running.pid for worker in self._living(running.job_id))

    def _add(self, task: Task) -> _Running:
        secret = protocol.secret_of(self._key, task.job_id, task.generation)
        output = WorkerOutput(self._data / "logs" / f"{task.job_id}-{task.generation}.log")
        running = _Running(task, secret, output)
        with self._lock:
            self._running[task.job_id] = running
        return running

    def _remove(self, running: _Running) -> bool:
        """Whether it was there: no other generation has taken its place."""
        with self._lock:
            if self._running.get(running.job_id) is not running:
                return False
            del self._running[running.job_id]
        return True

    def _find(self, job_id: str, generation: int) -> _Running | None:
        with self._lock:
            running = self._running.get(job_id)
        return running if running is not None and running.generation == generation else None

    # ---- What workers ask ----

    def _serve(self) -> None:
        """Where workers look for it; anew, if a controller that does not know yet that it leads no more was there."""
        with self._serving:
            if self._closed.is_set() or (self._servers and protocol.identity(self._data) == self._served):
                return
            server = Server(self._answer, protocol.bound(self._data))
            self._served = protocol.identity(self._data)
            self._servers.append(server)
            server.__enter__()

    def _stop_serving(self) -> None:
        with self._serving:
            servers, self._servers = self._servers, []
        for server in servers:
            server.__exit__()

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
            return
        try:
            status, answer = await self._answered(scope, receive)
        except Exception as error:  # whatever it is that a worker says
            self.refused += 1
            why = str(error) if isinstance(error, InvalidMessage) else repr(error)
            _log.warning("a message to %s is refused: %s", scope["path"], why)
            status, answer = 400, {"error": f"this message is not understood: {why}"}
        body = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answered(self, scope: dict[str, Any], receive: Receive) -> tuple[int, Any]:
        parts = scope["path"].split("/")
        if len(parts) == 5 and parts[1] != protocol.VERSION:
            text = f"workers must speak version {protocol.VERSION}, not {parts[1]}: the job goes on in a new one"
            return protocol.GONE, {"error": text}
        if len(parts) != 5 or not parts[3].isdecimal():
            return 404, {"error": "there is no such path"}
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        secret = protocol.secret_of(self._key, parts[2], int(parts[3]))
        if not hmac.compare_digest(given, f"Bearer {secret}"):
            return 401, {"error": "this is not the secret of this generation"}
        with self._lock:
            running = self._running.get(parts[2])
        if running is None:  # it may be about to be taken over: its worker asks again
            return 503, {"error": "this job is not known"}
        if running.generation != int(parts[3]):
            return protocol.GONE, {"error": "this generation is not wanted any more"}
        running.silent = 0 if not running.ended else running.silent
        body = json.loads(await _body(receive))
        if parts[4] == "register":
            return 200, {"task": running.task.as_json()}
        if parts[4] == "orders":
            orders, asked = running.orders, messages.asked(body)
            seen = asked.seen if asked.of == orders.name else 0
            return 200, {"of": orders.name, "orders": await orders.more_than(seen)}
        if parts[4] == "reports":
            for said in messages.reports(body):
                report = said.report(running.job_id, running.generation)
                is_end = report.event not in (None, Event.STARTED)
                failpoints.reached("heard the end" if is_end else "heard")
                with self._lock:  # whoever stops it from now on is answered behind this
                    running.ended = running.ended or is_end
                    self._tell(report)
            return 200, {}
        return 404, {"error": "there is no such path"}


async def _body(receive: Receive) -> bytes:
    body = b""
    while len(body) <= _LONGEST_MESSAGE:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body


def _ended(status: int) -> str:
    if status == -signal.SIGXCPU:
        return "the worker has used more processor time than worker.cpu_time allows"
    return f"the worker was ended by signal {-status}" if status < 0 else f"the worker ended with status {status}"
