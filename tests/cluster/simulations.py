"""Workers, clocks and databases of tests: what may happen to them is decided by the test, one event after the other."""

import contextlib
import functools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy
from clusters import EMPTY, settings_in
from sqlalchemy import event

from arroyo_udf_plugin.cluster.controller.controller import Controller
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import KEY_FILE, Database
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import JobReport, Task


class Killed(BaseException):
    """A controller's process ends."""


class Faults:
    """Lets a database fail: statements and commits, before they are done or after; or lets the controller's process end
    there, or before or after it asks its scheduler. seen: how many of all these there were. statements: of these, what
    the database was asked."""

    def __init__(self, database: Database) -> None:
        self.left = 0  # failures in a row
        self.after = 0  # so many statements and commits
        self.is_done_before = False  # what fails has been done; only the answer is lost
        self.is_off = self.is_kill = False
        self.seen = self.statements = 0
        engine = database.engine
        self._raw: list[sqlite3.Connection] = []
        event.listen(engine, "connect", lambda raw, _: self._raw.append(raw))
        event.listen(engine, "before_cursor_execute", lambda *_: self._executed(is_done=False))
        event.listen(engine, "after_cursor_execute", lambda *_: self._executed(is_done=True))
        commit = engine.dialect.do_commit

        def do_commit(connection: Any) -> None:
            self._executed(is_done=False)
            commit(connection)
            self._executed(is_done=True)

        engine.dialect.do_commit = do_commit  # type: ignore[method-assign]

    def plan(self, after: int, times: int, is_done: bool, is_kill: bool = False) -> None:
        self.after, self.left, self.is_done_before, self.is_kill = after, times, is_done, is_kill

    def asked(self, is_done: bool) -> None:
        """The scheduler."""
        if self.is_kill:
            self._perhaps(is_done)
        else:
            self.seen += not is_done

    def _executed(self, is_done: bool) -> None:
        self.statements += not is_done
        self._perhaps(is_done)

    def _roll_back(self) -> None:
        """A transaction ends with its process."""
        for raw in self._raw:
            with contextlib.suppress(sqlite3.ProgrammingError):  # it is closed
                raw.rollback()
        self._raw.clear()

    def _perhaps(self, is_done: bool) -> None:
        self.seen += not is_done
        if self.is_off or self.left == 0 or is_done is not self.is_done_before:
            return
        self.after -= 1
        if self.after < 0:
            self.left -= 1
            if self.is_kill:
                self._roll_back()
                raise Killed
            lost = sqlite3.OperationalError("the connection is lost")
            raise sqlalchemy.exc.OperationalError("", {}, lost)


@dataclass
class Runs:
    """A worker. mode: starting, running, saving, cancelled, killed."""

    generation: int
    owner: "Scheduler | None"
    mode: str = "starting"
    is_cleared: bool = False


@dataclass
class World:
    """What runs, whichever controller is there. started: generations of each job, in order. asked: called before and
    after a scheduler does something. outage: by which jobs are lost. rescales: workers change their parallelism."""

    outage: str = ""
    rescales: bool = False
    asked: Callable[[bool], None] = lambda is_done: None
    workers: dict[str, Runs] = field(default_factory=dict)
    started: dict[str, list[int]] = field(default_factory=dict)

    def happen(self, job_id: str, end: Event | None = None) -> None:
        """A worker does what comes next, or ends so."""
        runs = self.workers[job_id]
        answers = {"starting": Event.STARTED, "saving": Event.SAVED, "cancelled": Event.CUT_OFF, "killed": Event.LOST}
        told = answers.get(runs.mode) if end is None or runs.mode == "killed" else end
        if told is None:
            return
        if told is Event.STARTED:
            runs.mode = "running"
        else:
            del self.workers[job_id]
        if runs.owner is not None:
            outage = self.outage if told is Event.LOST else ""
            runs.owner.tell(JobReport(job_id, runs.generation, told, tasks=1, message="it ended", outage=outage))
            if runs.is_cleared and job_id not in self.workers:
                runs.owner.tell(JobReport(job_id, runs.generation, Event.READY))

    def report_all(self) -> None:
        """Each worker says that it goes on."""
        for job_id, runs in self.workers.items():
            if runs.owner is not None:
                numbers: Any = {"rows_in": len(self.started)}
                runs.owner.tell(JobReport(job_id, runs.generation, numbers=numbers))


def asked(do: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(do)
    def wrapped(self: "Scheduler", *arguments: Any) -> Any:
        self.world.asked(False)
        found = do(self, *arguments)
        self.world.asked(True)
        return found

    return wrapped


class Scheduler:
    """Starts and stops workers of a world, as processes that outlive their controller."""

    refused = 0

    def __init__(self, world: World, tell: Callable[[JobReport], None]) -> None:
        self.world, self.tell = world, tell
        self.isolated: list[str] = []

    @asked
    def start(self, task: Task) -> None:
        started = self.world.started.setdefault(task.job_id, [])
        assert task.job_id not in self.world.workers, "two generations run at once"
        assert all(task.generation > each for each in started), "a generation is started twice"
        started.append(task.generation)
        self.world.workers[task.job_id] = Runs(task.generation, self)

    @asked
    def stop(self, job_id: str, generation: int, how: str) -> None:
        runs = self.world.workers.get(job_id)
        if runs is None or runs.generation != generation:
            self.tell(JobReport(job_id, generation, Event.LOST, message="nothing of it runs"))
        elif runs.mode != "killed":
            mode = {"save": "saving", "drain": "saving", "cancel": "cancelled", "kill": "killed"}[how]
            runs.mode = "cancelled" if runs.mode == "cancelled" and mode == "saving" else mode

    def rescale(self, task: Task) -> None:
        runs = self.world.workers.get(task.job_id)
        if self.world.rescales and runs is not None and (runs.generation, runs.mode) == (task.generation, "running"):
            self.tell(JobReport(task.job_id, task.generation, Event.RESCALED, tasks=1, parallelism=task.parallelism))
        else:
            self.stop(task.job_id, task.generation, "save")

    @asked
    def clear(self, job_id: str, generation: int) -> None:
        runs = self.world.workers.get(job_id)
        if runs is None:
            self.tell(JobReport(job_id, generation, Event.READY))
        else:
            runs.mode, runs.is_cleared, runs.owner = "killed", True, self

    @asked
    def take_over(self, task: Task) -> bool:
        job_id, generation = task.job_id, task.generation
        runs = self.world.workers.get(job_id)
        if runs is None or runs.generation != generation:
            return False
        if runs.owner is not self and runs.mode != "starting":
            self.tell(JobReport(job_id, generation, Event.STARTED, tasks=1))  # a worker says so to each new controller
        runs.owner = self
        return True

    def isolate(self, job_ids: Iterable[str]) -> None:
        self.isolated = list(job_ids)

    def workers(self) -> list[tuple[str, int]]:
        return []

    def let_go(self) -> None:
        for runs in self.world.workers.values():
            if runs.owner is self:
                runs.owner = None

    def close(self) -> None:
        pass


class Simulation:
    """Controllers of one database, with a clock and workers that do nothing by themselves. There are no threads."""

    def __init__(self, migrated: Path, **limits: Any) -> None:
        self.folder = Path(tempfile.mkdtemp())
        for path in (migrated, migrated.with_name(KEY_FILE)):
            shutil.copy(path, self.folder)
        self.database, self.faulty = self._open(), self._open()
        self.faults = Faults(self.faulty)
        self.settings = settings_in(self.folder, **{"max_backoff": 1.0} | limits)
        self.now = 0.0
        self.world = World(asked=self.faults.asked)
        self.controllers: list[Controller] = []

    def _open(self) -> Database:
        database = Database.open(f"sqlite:///{self.folder / 'cluster.sqlite'}")
        event.listen(database.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF"))
        return database

    def close(self) -> None:
        for controller in self.controllers:
            controller._lock.release()
        self.database.close()
        self.faulty.close()
        shutil.rmtree(self.folder)

    def start(self) -> Controller:
        made = Controller(self.faulty, self.settings, lambda tell: Scheduler(self.world, tell), lambda: self.now)
        self.controllers.append(made)
        return made

    def crash(self, controller: Controller) -> None:
        """What it was told is lost with it."""
        self.controllers.remove(controller)
        controller._lock.release()
        controller._schedulers.of("local").let_go()

    def post(self, **given: Any) -> str:
        """Returns the pipeline's id."""
        with self.database.begin() as session:
            made = pipelines.create(
                session,
                name="p",
                query="",
                program=EMPTY,
                graph={},
                checkpoint_interval_micros=1_000_000,
                **given,
            )
        return made.pipeline.id

    def change(self, pipeline_id: str, **changes: Any) -> None:
        with self.database.begin() as session:
            pipelines.change(session, pipeline_id, changes)

    def restart(self, pipeline_id: str, force: bool) -> None:
        with self.database.begin() as session:
            pipelines.restart(session, pipeline_id, force=force)

    def get(self, pipeline_id: str) -> pipelines.WholeJob:
        with self.database.read() as session:
            return pipelines.get(session, pipeline_id)

    def end(self, pipeline_id: str, event: Event | None) -> None:
        """The worker ends so, or does what comes next, if it runs."""
        job_id = self.get(pipeline_id).job.id
        if job_id in self.world.workers:
            self.world.happen(job_id, event)

    def turn(self) -> None:
        """Of each controller; somebody has written meanwhile."""
        for controller in list(self.controllers):
            controller.wake()
            try:
                controller.turn()
            except Killed:
                self.faulty.engine.dispose()
                self.crash(controller)
                self.start()

    def settle(self, seconds: int) -> None:
        """Everything answers, for so long."""
        for _ in range(seconds):
            is_quiet = False
            while not is_quiet:
                self.turn()
                for job_id in list(self.world.workers):
                    self.world.happen(job_id)
                is_quiet = all(controller._words.empty() for controller in self.controllers)
            self.now += 1.0
