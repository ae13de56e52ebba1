"""Two APIs, two controllers, four jobs, PostgreSQL and an S3 server on one machine, and what happens to them.

    with World(folder, seed) as world:
        for _ in range(20):
            world.step()            something is killed, suspended or wished
        world.end()                 everything runs again: now all must become right

One seed decides what happens, and in which order; the machine decides where it strikes. A part that is killed is
missing for some steps, so that faults meet each other. A user whose request fails asks again at a later step.

What must hold at the end is in `World.end`.
"""

from __future__ import annotations

import http.client
import os
import random
import secrets
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from programs import TWICE, Client, Program, doubles, expected

import object_store_server
import postgresql
from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files

JOBS = 4
UNSAVED = "stopped without a last checkpoint"
RATE = 400
_PATIENCE = 240.0  # seconds in which all must become right
_MOST_STEPS_DOWN = 2
_LONGEST_PAUSE = 0.7  # seconds between two steps; no result depends on it
_MARK = "FAULT_WORLD"  # a variable of everything that runs here
_SETTINGS = {
    "ARROYO_UDF__PIPELINE__ALLOWED_RESTARTS": "-1",
    "ARROYO_UDF__PIPELINE__MAX_BACKOFF": "0.5s",
    "ARROYO_UDF__PIPELINE__STOP_TIME": "20s",
    "ARROYO_UDF__PIPELINE__DRAIN_TIME": "5s",
}
_SQL = """
CREATE TABLE counts (counter BIGINT) WITH (connector = 'impulse', event_rate = '{rate}'{count});
CREATE TABLE out (counter BIGINT, double BIGINT) WITH (
    connector = 'filesystem', path = '{out}', format = 'parquet', type = 'sink'
);
INSERT INTO out SELECT counter, twice(counter) AS double FROM counts;
"""


class Refused(Exception):
    """The API has not done it: it is not there, or its database is not."""


@dataclass
class Slot:
    """A pipeline, and what its user wants. rows: of its input; None: without an end. asked: whether the API knows."""

    number: int
    folder: Path
    state_url: str | None
    rows: int | None
    serial: int = 0
    stop: str = "none"
    is_created: bool = False
    is_leaving: bool = False
    todo: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"pipeline-{self.number}-{self.serial}"

    @property
    def out(self) -> Path:
        return self.folder / self.id


class World:
    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.said: list[str] = []
        self._folder, self._data = folder, folder / "data"
        self._mark = secrets.token_hex(8)
        self._stack = ExitStack()
        self._down: dict[str, int] = {}  # parts that are missing, and for how many more steps
        self._programs: dict[str, Program] = {}
        self._left: list[tuple[Path, int]] = []  # outputs of deleted pipelines, and how many rows they had

    def __enter__(self) -> World:
        with self._stack:
            self._database = self._stack.enter_context(postgresql.server())
            self._store = self._stack.enter_context(object_store_server.server(self._folder / "s3"))
            self._bucket = self._store.bucket("state")
            self._keep_bucket()
            self._environment = {**_SETTINGS, **self._store.environment, _MARK: self._mark}
            for name in ("api 0", "api 1", "controller 0", "controller 1"):
                self._start(name)
            self._slots = [self._new_slot(number, 0) for number in range(JOBS)]
            self._stack.callback(self._kill_all)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _keep_bucket(self) -> None:
        """The server forgets an empty one when it is killed."""
        request = urllib.request.Request(f"{self._store.address}/state/kept", b"", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()

    # ---- What happens ----

    def step(self) -> None:
        """A fault or a wish; then a moment of undisturbed work."""
        for name in [name for name, steps in self._down.items() if steps == 0]:
            self._heal(name)
        self._down = {name: steps - 1 for name, steps in self._down.items()}
        acts: dict[Callable[[], None], int] = {
            self._wish: 8,
            self._kill_worker: 4,
            self._kill_leader: 2,
            self._suspend_leader: 2,
            lambda: self._kill(self.rng.choice(["api 0", "api 1", "controller 0", "controller 1"])): 2,
            lambda: self._kill("postgresql"): 1,
            lambda: self._kill("store"): 1,
            self._kill_workers: 1,
            self._kill_everything: 1,
        }
        (act,) = self.rng.choices(list(acts), list(acts.values()))
        act()
        for number in range(JOBS):
            self._ask(number)
        threading.Event().wait(self.rng.uniform(0, _LONGEST_PAUSE))

    def _wish(self) -> None:
        slot = self.rng.choice(self._slots)
        pipeline = f"/pipelines/{slot.id}"
        what = self.rng.choice(["stop", "stop", "run", "run", "rescale", "restart", "replace"])
        if slot.is_leaving:
            return
        if what == "stop":
            slot.stop = self.rng.choice(["checkpoint", "graceful", "immediate", "force"])
            self._wants(slot, "PATCH", pipeline, {"stop": slot.stop})
        elif what == "run":
            slot.stop = "none"
            self._wants(slot, "PATCH", pipeline, {"stop": "none"})
        elif what == "rescale":
            self._wants(slot, "PATCH", pipeline, {"parallelism": self.rng.randint(1, 3)})
        elif what == "restart":
            slot.stop = "none"
            self._wants(slot, "POST", f"{pipeline}/restart", {"force": self.rng.random() < 0.5})
        else:
            slot.stop, slot.is_leaving = "immediate", True
            self._wants(slot, "PATCH", pipeline, {"stop": "immediate"})

    def _wants(self, slot: Slot, method: str, path: str, body: dict[str, Any]) -> None:
        self._say(f"{slot.id}: {method} {body}")
        slot.todo.append((f"{method} {path}", body))

    def _kill_worker(self) -> None:
        self._kill_workers(self.rng.randrange(JOBS))

    def _kill_workers(self, number: int | None = None) -> None:
        """Of a slot, or of all."""
        found = sorted(self._workers(), key=lambda one: one.pid)
        if number is not None and found:
            found = [found[number % len(found)]]
        self._say(f"SIGKILL for workers {[f'{one.job_id}-{one.generation}' for one in found]}")
        for one in found:
            one.kill()

    def _kill_leader(self) -> None:
        self._kill(self._leader())

    def _suspend_leader(self) -> None:
        name = self._leader()
        if name in self._down:
            return
        self._say(f"SIGSTOP for {name}")
        self._programs[name].process.send_signal(signal.SIGSTOP)
        self._down[name] = self.rng.randint(0, _MOST_STEPS_DOWN)

    def _kill_everything(self) -> None:
        for name in [*self._programs, "postgresql", "store"]:
            self._kill(name)
        self._kill_workers()

    def _kill(self, name: str) -> None:
        if name in self._down and name not in self._programs:
            return
        self._say(f"SIGKILL for {name}")
        if name == "postgresql":
            postgresql.kill(self._database)
        elif name == "store":
            self._store.kill()
        else:
            self._programs[name].end(signal.SIGKILL)
        self._down[name] = self.rng.randint(0, _MOST_STEPS_DOWN)

    def _heal(self, name: str) -> None:
        self._say(f"back: {name}")
        if name == "postgresql":
            postgresql.start(self._database)
        elif name == "store":
            self._store.restart()
        elif self._programs[name].process.poll() is None:
            self._programs[name].process.send_signal(signal.SIGCONT)
        elif "postgresql" in self._down:  # no program starts without its database
            return
        else:
            self._start(name)
        del self._down[name]

    # ---- The end ----

    def end(self) -> None:
        """Brings everything back, and checks what must hold."""
        for name in ("postgresql", "store", *self._programs):
            if name in self._down:
                self._heal(name)
        self._await_wishes()
        for slot in self._slots:
            slot.stop = "checkpoint" if slot.rows is None else "none"
            self._wants(slot, "PATCH", f"/pipelines/{slot.id}", {"stop": slot.stop})
        self._await_wishes()
        for slot in self._slots:
            self._check_output(slot)
            self._check_told(slot)
        self.until(lambda: not list(self._workers()), "workers of ended jobs to be gone")
        for folder, rows in self._left:
            assert doubles(folder) == expected(rows), self._story(f"{folder}: written after it was deleted")
        for name, program in self._programs.items():
            assert program.end(signal.SIGTERM) == 0, self._story(f"{name} ends with an error")
        self.until(lambda: not self._running(), "every process to be gone")

    def _await_wishes(self) -> None:
        for number in range(JOBS):
            self.until(lambda number=number: self._ask(number), f"the API to take the wishes of slot {number}")
        for slot in self._slots:
            self.until(lambda slot=slot: self._state(slot) == self._asked_state(slot), self._asked_for(slot))

    def _check_output(self, slot: Slot) -> None:
        found = doubles(slot.out)
        rows = len(found) if slot.rows is None else slot.rows
        assert found == expected(rows), self._story(f"{slot.id}: its output is not that of an undisturbed run")

    def _check_told(self, slot: Slot) -> None:
        """What the API tells of the job."""
        job = self._client().job(slot.id)
        failed = job["failure_reason"] or {"error": UNSAVED}  # its worker was killed in its last checkpoint
        assert failed["error"].startswith(UNSAVED), self._story(str(job))
        assert job["start_time"] is None or job["start_time"] <= job["finish_time"], self._story(str(job))
        path = f"/pipelines/{slot.id}/jobs/{job['id']}/checkpoints"
        epochs = [one["epoch"] for one in self._client().ask("GET", path)["data"]]
        assert epochs == sorted(set(epochs)), self._story(str(epochs))

    def _asked_state(self, slot: Slot) -> str:
        if slot.rows is not None and (slot.stop == "none" or self._state(slot) == "Finished"):
            return "Finished"
        return "Running" if slot.stop == "none" else "Stopped"

    def _asked_for(self, slot: Slot) -> str:
        return f"{slot.id} to be as asked for: stop {slot.stop}, {slot.rows} rows"

    def until(self, condition: Callable[[], bool], what: str) -> None:
        patience = time.monotonic() + _PATIENCE
        while True:
            try:
                if condition():
                    return
                last = ""
            except Refused as error:
                last = f"; {error}"
            assert time.monotonic() < patience, self._story(f"waited {_PATIENCE:.0f} s for {what}{last}")
            time.sleep(0.05)

    # ---- Users ----

    def _new_slot(self, number: int, serial: int) -> Slot:
        """Every second one has its state in the object store, and every third one an end."""
        at = number + serial
        slot = Slot(
            number,
            self._folder,
            f"{self._bucket}/{number}" if at % 2 else None,
            self.rng.randint(500, 3000) if at % 3 == 2 else None,
            serial,
        )
        self._say(f"{slot.id}: new, {slot.rows} rows, state at {slot.state_url}")
        return slot

    def _ask(self, number: int) -> bool:
        """Whether the API has taken all that the user of a slot wants so far."""
        slot = self._slots[number]
        try:
            if not slot.is_created:
                self._create(slot)
            while slot.todo:
                method, _, path = slot.todo[0][0].partition(" ")
                self._client().ask(method, path, slot.todo[0][1])
                slot.todo.pop(0)
            if slot.is_leaving:
                self._delete(slot)
            return self._slots[number] is slot and not slot.is_leaving
        except urllib.error.HTTPError as error:
            told = f"{slot.id}: refused, {error.code} {error.read().decode(errors='replace')}"
            if slot.rows is not None and slot.todo and error.code == 409 and "its job has finished" in told:
                slot.todo.pop(0)  # it was faster than its user, and is not restarted
            elif error.code < 500:
                raise AssertionError(self._story(told)) from error
            self._say(told)
        except (OSError, http.client.HTTPException, Refused) as error:
            self._say(f"{slot.id}: refused, {error!r}")
        return False

    def _create(self, slot: Slot) -> None:
        """Its id is the user's, so that it is created once."""
        count = "" if slot.rows is None else f", message_count = '{slot.rows}'"
        body = {
            "name": slot.id,
            "query": _SQL.format(rate=RATE, count=count, out=slot.out / "out"),
            "parallelism": 1,
            "udfs": [{"definition": TWICE, "language": "python"}],
            "checkpoint_interval_micros": 1_000_000,
            "state_url": slot.state_url,
        }
        try:
            self._client().ask("PUT", f"/pipelines/{slot.id}", body)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            if error.code != 400 or "already" not in text:
                raise Refused(f"{error.code} {text}") from error
        slot.is_created = True

    def _delete(self, slot: Slot) -> None:
        """As soon as it has stopped; then another one takes its place."""
        if self._state(slot) not in ("Stopped", "Finished"):
            return
        self._check_output_so_far(slot)
        rows = len(doubles(slot.out))
        try:
            self._client().ask("DELETE", f"/pipelines/{slot.id}")
        except urllib.error.HTTPError as error:
            if error.code != 404:  # the answer to an earlier one got lost
                raise
        self._left.append((slot.out, rows))
        self._slots[slot.number] = new = self._new_slot(slot.number, slot.serial + 1)
        self._create(new)

    def _check_output_so_far(self, slot: Slot) -> None:
        found = doubles(slot.out)
        assert found == expected(len(found)), self._story(f"{slot.id}: its output is not that of an undisturbed run")

    def _state(self, slot: Slot) -> str:
        try:
            return str(self._client().job(slot.id)["state"])
        except urllib.error.HTTPError as error:
            raise Refused(f"{error.code} {error.read().decode(errors='replace')}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Refused(repr(error)) from error

    def _client(self) -> Client:
        """Of any API that runs."""
        living = [name for name in ("api 0", "api 1") if name not in self._down]
        if not living:
            raise Refused("no API runs")
        return Client(self._programs[self.rng.choice(living)])

    # ---- Processes ----

    def _start(self, name: str) -> None:
        arguments = ["--database", self._database, *(["--port", "0"] if name.startswith("api") else [])]
        self._programs[name] = Program(
            name.partition(" ")[0], str(self._data), *arguments, environment=self._environment
        )

    def _leader(self) -> str:
        """The controller that has begun to lead last."""

        def term(name: str) -> int:
            said = self._programs[name].said.rpartition("leads, with term ")[2]
            number = said.partition("\n")[0]
            return int(number) if number.isdecimal() else 0

        return max(("controller 0", "controller 1"), key=term)

    def _workers(self) -> list[worker_files.Living]:
        folder = protocol.folder_of(self._data)
        jobs = {path.name.rpartition("-")[0] for path in folder.glob("*-*")}
        return [one for job in sorted(jobs) for one in worker_files.living(folder, job)]

    def _running(self) -> list[tuple[int, str]]:
        """All processes of this world, with their command lines."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if f"{_MARK}={self._mark}".encode() in (entry / "environ").read_bytes():
                        found.append((int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")))
                except OSError:
                    continue
        return found

    def _kill_all(self) -> None:
        for pid, _ in self._running():
            os.kill(pid, signal.SIGKILL)
        for program in self._programs.values():
            program.end(signal.SIGKILL)

    # ---- The story of a failure ----

    def _say(self, text: str) -> None:
        self.said.append(f"{time.monotonic():.2f} {text}")

    def _story(self, what: str) -> str:
        jobs = []
        for slot in self._slots:
            try:
                job = self._client().job(slot.id)
                path = f"/pipelines/{slot.id}/jobs/{job['id']}/errors?limit=20"
                log = [f"{one['level']} {one['message']}" for one in self._client().ask("GET", path)["data"]]
                jobs.append(f"{slot.id}: {job}\n    " + "\n    ".join(log))
            except (OSError, http.client.HTTPException, Refused) as error:
                jobs.append(f"{slot.id}: {error!r}")
        logs = [f"---- {name}\n{program.said[-6000:]}" for name, program in self._programs.items()]
        return "\n".join([what, *self.said, *jobs, *logs, f"running: {self._running()}"])
