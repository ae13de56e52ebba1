"""The controller: makes jobs what their users wish.

    database ──pending wishes──► consider ──event──► step ──► database, then the scheduler
    scheduler ──reports──────────────────────event──►

One thread works on words from a queue: wake-ups, reports of generations, a stop; timers are due in between. A wake-up
carries nothing: what there is to do is read from the database.

Guarantees: a new state is in the database before anything is done for it, and a start has its generation there before;
so another controller finds what this one has begun. Only the leader writes (see `jobs.write`); a controller that does
not lead stands by. Reports of another generation than the job's change nothing. A job that is lost is started again:
the first time at once, then with back-off, up to a limit in a row. An error of the user is not retried.
A failure of the database changes nothing: the controller reads all again when it is back.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from .configuration import Settings
from .database import artifacts, history, jobs, pipelines
from .database.errors import NotFound
from .database.leading import LeaderLock
from .database.opened import Database, now
from .database.pipelines import Whole
from .functions.artifacts import LIBRARIES
from .monitoring.families import Families
from .monitoring.meters import Meters
from .monitoring.spans import JobSpans
from .monitoring.tracing import Tracing
from .noting import Notes
from .removal import Remover
from .schedulers.interface import How, Scheduler
from .states import Action, Event, State, Step, next_step
from .task import Report, Task, Tell
from .timers import Act, Timers
from .wishes import settings as settings_of
from .wishes import wanted

_log = logging.getLogger(__name__)

Word = Report | Literal["wake", "stop"]

_STOPS: dict[Action, How] = {Action.SAVE: "save", Action.DRAIN: "drain", Action.CANCEL: "cancel", Action.KILL: "kill"}
_REPEATED = {
    State.COMPILING: Action.CLEAR,
    State.RESCALING: Action.SAVE,
    State.RESTARTING: Action.SAVE,
    State.RECOVERING: Action.WAIT,
    State.CHECKPOINT_STOPPING: Action.SAVE,
    State.STOPPING: Action.CANCEL,
    State.FINISHING: Action.CLEAR,
    State.FAILING: Action.CLEAR,
}
"""What a new controller does for a job that runs: the one before may not have come to it."""

_PREVIEWS_KEPT = 3_600_000_000  # microseconds
_UNUSED_KEPT = 3_600_000_000  # microseconds; of functions that were stored for pipelines which were never created
_TIDY_EVERY = 60.0
_LOCK_EVERY = 1.0
_AGAIN = 1.0  # seconds until the database is asked again after it has failed
_OWN = "controller"  # the name of the controller's own timers


@dataclass
class _Watched:
    """A job that is not at its end. considered: the wish that was acted on, and the state in which it was."""

    considered: tuple[State, Event, int] | None = None


class Controller:
    """make_scheduler: gets what to tell reports to."""

    def __init__(self, database: Database, settings: Settings, make_scheduler: Callable[[Tell], Scheduler]) -> None:
        self.id = secrets.token_hex(8)
        self._database, self._settings, self._limits = database, settings, settings.pipeline
        self._words: queue.SimpleQueue[Word] = queue.SimpleQueue()
        self._scheduler = make_scheduler(self._words.put)
        self._lock = LeaderLock(database)
        self._timers = Timers()
        self._notes = Notes(database)
        self._meters = Meters()
        self._tracing = Tracing(settings.traces.endpoint, "controller")
        self._spans = JobSpans(self._tracing)
        self._remover = Remover(database)
        self._watched: dict[str, _Watched] = {}
        self._term: int | None = None
        self._thread: threading.Thread | None = None

    # ---- Called by others ----

    def start(self) -> None:
        """In a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="arroyo-udf-controller")
        self._thread.start()

    def wake(self) -> None:
        """There may be new wishes. Any thread."""
        self._words.put("wake")

    def stop(self) -> None:
        """Lets the jobs end with a checkpoint. Their wishes stay, so that the next controller starts them again."""
        self._words.put("stop")
        if self._thread is not None:
            self._thread.join()

    @property
    def leads(self) -> bool:
        return self._term is not None

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def workers(self) -> Sequence[tuple[str, int]]:
        """See `Scheduler.workers`."""
        return self._scheduler.workers()

    def tell(self, families: Families) -> None:
        """Metrics."""
        families.add("arroyo_udf_controller_leads", int(self.leads))
        self._meters.tell(families)

    # ---- The loop ----

    def run(self) -> None:
        self._timers.set(_OWN, time.monotonic(), self._lead)
        self._timers.set(_OWN, time.monotonic() + _TIDY_EVERY, self._tidy)
        is_stopped = False
        while not is_stopped:
            for act in self._timers.due(time.monotonic()):
                self._guarded(act)
            due = self._timers.next
            words = self._hear(None if due is None else max(0.0, due - time.monotonic()))
            is_stopped = "stop" in words
            if self._term is None or is_stopped:
                continue
            reports = [word for word in words if isinstance(word, Report)]
            self._guarded(partial(self._notes.note, reports))
            self._guarded(partial(self._meters.note, reports))
            self._guarded(partial(self._spans.note, reports))
            for report in reports:
                if report.event is not None:
                    self._guarded(partial(self._report, report))
            if "wake" in words:
                self._guarded(self._look)
        self._scheduler.close()
        self._remover.close()
        self._lock.release()
        self._tracing.close()

    def _hear(self, timeout: float | None) -> list[Word]:
        words: list[Word] = []
        with contextlib.suppress(queue.Empty):
            words.append(self._words.get(timeout=timeout))
            while True:
                words.append(self._words.get_nowait())
        return words

    def _guarded(self, act: Act) -> None:
        """When the database fails, everything is looked at again as soon as it answers."""
        try:
            act()
        except SQLAlchemyError as error:
            _log.warning("the database fails: %s", str(error).partition("\n")[0])
            self._meters.database_failed()
            for watched in self._watched.values():
                watched.considered = None
            self._timers.set(_OWN, time.monotonic() + _AGAIN, act)
        except Exception:
            _log.exception("a bug: what it was about waits for the limit of its state")

    # ---- Who leads ----

    def _lead(self) -> None:
        holds = self._lock.hold()
        if not holds and self._term is not None:
            self._resign()
        if holds and self._term is None:
            with self._database.begin() as session:
                term = jobs.lead(session, self.id)
                found = jobs.to_watch(session)
            self._term = term  # as soon as it is committed
            _log.info("this controller leads, with term %d", term)
            for job_id in found:
                self._guarded(partial(self._take_over, job_id, term))
            self.wake()  # for what the leader before has left
        self._timers.set(_OWN, time.monotonic() + _LOCK_EVERY, self._lead)

    def _resign(self) -> None:
        """Another controller leads."""
        _log.warning("another controller leads: this one stands by")
        self._lock.release()
        self._scheduler.let_go()
        for job_id in self._watched:
            self._timers.drop(job_id)
        self._watched.clear()
        self._remover.want(())
        self._term = None

    def _take_over(self, job_id: str, term: int) -> None:
        if self._term != term:
            return
        try:
            with self._database.read() as session:
                whole = pipelines.of_job(session, job_id)
        except NotFound:
            return
        state = State(whole.status.state)
        if not state.is_terminal and self._scheduler.take_over(self._task(whole)):
            self._wait_in(whole)
            self._act(whole, _REPEATED.get(state, Action.NONE))
        elif not state.is_terminal:
            self._step(job_id, Event.ORPHANED)
        self._guarded(partial(self._consider, job_id))  # if it fails, the job is not taken over twice

    # ---- Wishes ----

    def _look(self) -> None:
        with self._database.read() as session:
            pending = jobs.pending(session)
            leftovers = jobs.leftovers(session)
        for job_id in pending:
            self._guarded(partial(self._consider, job_id))  # one that fails holds no other back
        self._remover.want(leftovers)

    def _consider(self, job_id: str) -> None:
        """Acts on the wish until the job is as it should be, or on its way."""
        while self._term is not None:
            with self._database.read() as session:
                try:
                    whole = pipelines.of_job(session, job_id)
                except NotFound:
                    self._forget(job_id)
                    return
            watched = self._watched.setdefault(job_id, _Watched())
            state, event = State(whole.status.state), wanted(whole.job, whole.status)
            if event is None or watched.considered == (state, event, whole.job.revision):
                break
            watched.considered = (state, event, whole.job.revision)
            if not self._step(job_id, event):
                break
        else:
            return
        if whole.job.pending:  # only now, because a crash before would lose the wish
            with self._database.begin() as session:
                jobs.seen(session, job_id, whole.job.revision)
        if state.is_terminal:
            self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        self._watched.pop(job_id, None)
        self._notes.forget(job_id)
        self._meters.forget(job_id)
        self._spans.forget(job_id)
        self._timers.drop(job_id)

    # ---- Events ----

    def _report(self, report: Report) -> None:
        assert report.event is not None
        try:
            with self._database.read() as session:
                whole = pipelines.of_job(session, report.job_id)
        except NotFound:
            return
        if report.generation != whole.status.generation:
            return
        event = report.event
        never_started = event is Event.LATE and whole.status.state == State.SCHEDULING
        if (event is Event.LOST or never_started) and self._is_exhausted(whole):
            event = Event.EXHAUSTED
        if self._step(report.job_id, event, report):
            self._consider(report.job_id)

    def _is_exhausted(self, whole: Whole) -> bool:
        allowed = 0 if whole.job.ttl_micros is not None else self._limits.allowed_restarts
        return allowed >= 0 and self._restarts(whole) >= allowed

    def _restarts(self, whole: Whole) -> int:
        """In a row."""
        status = whole.status
        lasted = (now() - status.state_since) / 1e6
        is_healthy = status.state == State.RUNNING and lasted >= self._limits.healthy_duration
        return 0 if is_healthy else status.restarts

    def _step(self, job_id: str, event: Event, report: Report | None = None) -> bool:
        """Whether the event has an effect."""
        if self._term is None:
            return False
        with self._database.begin() as session:
            whole = pipelines.of_job(session, job_id)
            status = whole.status
            step = next_step(State(status.state), event)
            if step is None:
                return False
            before = (status.state, status.generation)
            facts = self._facts(whole, event, step, report)
            done = jobs.write(
                session,
                job_id,
                state=before[0],
                generation=before[1],
                controller=self.id,
                term=self._term,
                facts=facts,
            )
            if done:
                self._log(session, whole, event, step, report)
                session.refresh(status)
            leads = done or jobs.leads(session, self.id, self._term)
        if not leads:
            self._resign()
        if not done:  # or the pipeline has been deleted
            return False
        about = {"job_id": job_id, "generation": status.generation}
        _log.info("%s: %s -> %s", event, before[0], step.state, extra=about)
        self._meters.moved(event, step.state)
        self._spans.moved(job_id, status.generation, step)
        self._wait_in(whole)
        self._act(whole, step.action)
        return True

    def _facts(self, whole: Whole, event: Event, step: Step, report: Report | None) -> dict[str, Any]:
        job, status = whole.job, whole.status
        facts: dict[str, Any] = {"state": str(step.state)}
        if step.action is Action.START:
            facts |= {
                "generation": status.generation + 1,
                "restart_nonce": job.restart_nonce,
                "settings": settings_of(job),
            }
        if step.state is State.COMPILING and State(status.state).is_terminal:
            facts |= {"restarts": 0, "failure_message": None, "failure_domain": None}
        if step.state is State.RUNNING:
            is_new = status.start_time is None or status.finish_time is not None
            facts |= {"start_time": now() if is_new else status.start_time, "finish_time": None}
            facts["tasks"] = report.tasks if report is not None else status.tasks
        if step.state is State.RECOVERING:
            facts["restarts"] = self._restarts(whole) + 1
        if step.state is State.FAILING and report is not None:
            facts |= {"failure_message": report.message, "failure_domain": report.domain}
        if step.state.is_terminal:
            facts["finish_time"] = now()
        return facts

    def _log(self, session: Session, whole: Whole, event: Event, step: Step, report: Report | None) -> None:
        """Into the job's log: errors, and when a job starts or ends."""
        job_id, generation = whole.job.id, whole.status.generation
        if report is not None and report.message and step.state in (State.RECOVERING, State.FAILING):
            domain = report.domain
            history.log(session, job_id, generation, "error", report.message, report.details, error_domain=domain)
        elif event is Event.LATE:
            text = f"{whole.status.state} takes too long: {step.state}"
            history.log(session, job_id, generation, "warn", text, error_domain="internal")
        elif step.state is State.RUNNING or step.state.is_terminal:
            history.log(session, job_id, generation, "info", str(step.state))

    # ---- Actions ----

    def _act(self, whole: Whole, action: Action) -> None:
        job_id, generation = whole.job.id, whole.status.generation
        if action is Action.START:
            self._scheduler.start(self._task(whole))
        elif action is Action.CLEAR:
            self._scheduler.clear(job_id, generation)
        elif action is Action.WAIT:
            self._scheduler.clear(job_id, generation)
            self._after(job_id, self._backoff(whole.status.restarts), Event.RETRY)
        elif action in _STOPS:
            self._scheduler.stop(job_id, generation, _STOPS[action])

    def _task(self, whole: Whole) -> Task:
        job, pipeline = whole.job, whole.pipeline
        root = pipelines.place_of(whole, self._settings.checkpoints)
        return Task(
            job_id=job.id,
            generation=whole.status.generation,
            program=pipeline.program,
            parallelism=job.parallelism,
            checkpoint_interval=job.checkpoint_interval_micros / 1e6,
            place=None if pipeline.is_preview else f"{root}/{job.history}",
            environment=job.env_vars,
            drain_time=self._limits.drain_time,
            libraries=str(self._settings.functions / LIBRARIES),
            trace_parent=self._spans.parent(job.id),
        )

    def _backoff(self, restarts: int) -> float:
        """Before restart number `restarts`: half of it is fixed, half random."""
        if restarts <= 1:
            return 0.0
        whole = min(self._limits.max_backoff, self._limits.initial_backoff * 2.0 ** min(restarts - 2, 30))
        return whole / 2 + random.random() * whole / 2

    def _wait_in(self, whole: Whole) -> None:
        """Sets the time that the state may take."""
        job_id, state = whole.job.id, State(whole.status.state)
        self._timers.drop(job_id)
        limits = self._limits
        if state is State.SCHEDULING:
            late = Report(job_id, whole.status.generation, Event.LATE, message=f"{state} takes too long")
            self._timers.set(job_id, time.monotonic() + limits.worker_startup_time, partial(self._report, late))
        elif state is State.RECOVERING:
            self._after(job_id, limits.max_backoff + limits.stop_time, Event.LATE)
        elif state not in (State.CREATED, State.RUNNING) and not state.is_terminal:
            self._after(job_id, limits.stop_time, Event.LATE)
        if state is State.RUNNING and whole.job.ttl_micros is not None and whole.status.start_time is not None:
            left = (whole.status.start_time + whole.job.ttl_micros - now()) / 1e6
            self._after(job_id, max(0.0, left), Event.EXPIRED)

    def _after(self, job_id: str, seconds: float, event: Event) -> None:
        def act() -> None:
            if self._step(job_id, event):
                self._consider(job_id)

        self._timers.set(job_id, time.monotonic() + seconds, act)

    # ---- Tidying ----

    def _tidy(self) -> None:
        if self._term is not None:
            with self._database.begin() as session:
                for pipeline_id in jobs.old_previews(session, now() - _PREVIEWS_KEPT):
                    pipelines.delete(session, pipeline_id, self._settings.checkpoints)
                artifacts.release(session, artifacts.unused(session, now() - _UNUSED_KEPT))
        self._timers.set(_OWN, time.monotonic() + _TIDY_EVERY, self._tidy)
