"""The controller: makes jobs what their users wish.

    database ──pending wishes──► consider ──event──► step ──► database, then the scheduler
    scheduler ──reports──────────────────────event──►

One thread does one act after the other (see `work.py`): words from a queue (wake-ups, reports of generations, a stop)
and timers only say what there is to do. A wake-up carries nothing: what there is to do is read from the database.

Guarantees: a new state is in the database before anything is done for it, and a start has its generation there before;
so another controller finds what this one has begun. All writes are the leader's (see `jobs.fence`); a controller that
does not lead stands by. Reports of another generation than the job's change nothing. A job that is lost is started
again: the first time at once, then with back-off, up to a limit in a row. An error of the user is not retried.
Failures of the database delay, and lose nothing: an act is done again when the database answers. If nobody knows
whether a step was committed, the database tells it then, and what follows is done. After a bug the job is taken over
anew, as by another controller. Durations are measured by a clock that nobody sets.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from .configuration import Settings
from .database import jobs, pipelines
from .database.errors import Deposed, NotFound, is_outage
from .database.leading import LeaderLock
from .database.opened import Database, now
from .database.pipelines import Whole
from .facts import facts_of, log
from .functions.artifacts import LIBRARIES
from .monitoring.families import Families
from .monitoring.meters import Meters
from .monitoring.spans import JobSpans
from .monitoring.tracing import Tracing
from .noting import Notes
from .removal import Remover
from .restarts import backoff, is_exhausted
from .schedulers.interface import How, Scheduler
from .states import Action, Event, State, Step, next_step
from .task import Report, Task, Tell
from .tidying import tidy_files, tidy_rows
from .timers import Timers
from .wishes import to_restore, wanted
from .work import Act, Work

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

_TIDY_EVERY = 60.0
_LOCK_EVERY = 1.0
_AFTER_BUG = 5.0  # seconds until the job is taken over anew
_TAKEN_AT_ONCE = 100  # jobs that are read by one query
_OWN = "controller"  # the name of the controller's own timers and acts


@dataclass
class _Watched:
    """A job that is not at its end. since: when it came into its state, by the clock of the controller. considered: the
    wish that was acted on, and the state in which it was."""

    state: State
    since: float
    considered: tuple[State, Event, int] | None = None


class _Unsure(NamedTuple):
    """A step whose transaction has not been answered yet. before, after: state and generation."""

    job_id: str
    step: Step
    before: tuple[str, int]
    after: tuple[str, int]


class Controller:
    """make_scheduler: gets what to tell reports to. clock: in seconds; it only goes forward."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        make_scheduler: Callable[[Tell], Scheduler],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = secrets.token_hex(8)
        self._database, self._settings, self._limits = database, settings, settings.pipeline
        self._clock = clock
        self._words: queue.SimpleQueue[Word] = queue.SimpleQueue()
        self._scheduler = make_scheduler(self._words.put)
        self._lock = LeaderLock(database)
        self._timers = Timers()
        self._work = Work(clock)
        self._notes = Notes()
        self._meters = Meters()
        self._tracing = Tracing(settings.traces.endpoint, "controller")
        self._spans = JobSpans(self._tracing)
        self._remover = Remover(database)
        self._watched: dict[str, _Watched] = {}
        self._unsure: _Unsure | None = None
        self._term: int | None = None
        self._thread: threading.Thread | None = None
        self._every(0.0, _LOCK_EVERY, "lead", self._lead)
        self._every(_TIDY_EVERY, _TIDY_EVERY, "tidy", self._tidy)

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
        while self.turn(self._patience()):
            pass
        self._scheduler.close()
        if self._term is not None:
            self._note_last()
        self._remover.close()
        self._lock.release()
        self._tracing.close()

    def turn(self, patience: float | None = 0.0) -> bool:
        """Waits for a word, for so many seconds, and does all that there is to do. False: it was asked to stop."""
        words = self._hear(patience)
        if self._term is not None:
            for word in words:
                self._take(word)
        if "stop" in words:
            return False
        for act in self._timers.due(self._clock()):
            act()
        self._work.do()
        return True

    def _patience(self) -> float | None:
        again, due = self._work.again_at, self._timers.next
        until = due if again is None else again  # while the database fails, nothing else is done
        return None if until is None else max(0.0, until - self._clock())

    def _hear(self, timeout: float | None) -> list[Word]:
        words: list[Word] = []
        with contextlib.suppress(queue.Empty):
            words.append(self._words.get(timeout=timeout))
            while True:
                words.append(self._words.get_nowait())
        return words

    def _take(self, word: Word) -> None:
        if not isinstance(word, Report):
            if word == "wake":
                self._add(_OWN, "look", self._look)
            return
        self._notes.add(word)
        self._meters.note([word])
        self._spans.note([word])
        if self._notes.wait:
            self._add(_OWN, "note", self._note)
        if word.event is not None:
            act = partial(self._step, word.job_id, word.event, word)
            self._add(word.job_id, f"{word.event} {word.generation}", act)

    def _add(self, name: str, what: str, act: Act) -> None:
        self._work.add((name, what), partial(self._guarded, name, act))

    def _after(self, seconds: float, name: str, what: str, act: Act) -> None:
        self._timers.set(name, self._clock() + seconds, partial(self._add, name, what, act))

    def _every(self, first: float, seconds: float, what: str, act: Act) -> None:
        """It goes on, whatever happens in it."""

        def again() -> None:
            self._every(seconds, seconds, what, act)
            self._add(_OWN, what, act)

        self._timers.set(_OWN, self._clock() + first, again)

    def _guarded(self, name: str, act: Act) -> None:
        """Raises failures of the database only."""
        try:
            if self._unsure is None or not self._was_written(self._unsure):
                act()
        except Deposed:
            self._resign()
        except Exception as error:
            if is_outage(error):
                self._meters.database_failed()
                raise
            self._unsure = None
            _log.exception("a bug")
            if name != _OWN:
                self._after(_AFTER_BUG, name, "take over", partial(self._take_over, [name]))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Session]:
        """A transaction. Raises Deposed if another controller leads."""
        with self._database.begin() as session:
            if self._term is None:
                raise Deposed("another controller leads")
            jobs.fence(session, self.id, self._term)
            yield session

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
            for start in range(0, len(found), _TAKEN_AT_ONCE):
                some = found[start : start + _TAKEN_AT_ONCE]
                self._add(_OWN, f"take over {start}", partial(self._take_over, some))
            self._add(_OWN, "look", self._look)  # what the leader before has left

    def _resign(self) -> None:
        """Another controller leads."""
        _log.warning("another controller leads: this one stands by")
        self._lock.release()
        self._scheduler.let_go()
        for job_id in self._watched:
            self._timers.drop(job_id)
        self._watched.clear()
        self._work.clear()
        self._notes.clear()
        self._remover.want(())
        self._unsure = self._term = None

    def _take_over(self, job_ids: Sequence[str]) -> None:
        try:
            with self._database.read() as session:
                found = pipelines.of_jobs(session, job_ids)
        except Exception as error:
            if is_outage(error) or len(job_ids) == 1:
                raise
            for job_id in job_ids:  # one of them cannot be read, such as by a secret that nobody opens
                self._add(job_id, "take over", partial(self._take_over, [job_id]))
            return
        for whole in found:
            self._guarded(whole.job.id, partial(self._take_over_one, whole))  # one that fails holds no other back

    def _take_over_one(self, whole: Whole) -> None:
        job_id, state = whole.job.id, State(whole.status.state)
        if state.is_terminal:
            self._watch(whole)
        elif self._scheduler.take_over(self._task(whole)):
            self._enter(whole)
            self._act(whole, _REPEATED.get(state, Action.NONE))
        else:
            self._watch(whole)
            self._add(job_id, "orphaned", partial(self._step, job_id, Event.ORPHANED))
        if whole.job.pending or wanted(whole.job, whole.status) is not None:
            self._add(job_id, "consider", partial(self._consider, job_id))

    # ---- Wishes ----

    def _look(self) -> None:
        with self._database.read() as session:
            pending = jobs.pending(session)
            leftovers = jobs.leftovers(session)
        for job_id in pending:
            self._add(job_id, "consider", partial(self._consider, job_id))
        self._remover.want(leftovers)

    def _consider(self, job_id: str) -> None:
        """Acts on the wish, if it has not been acted on in this state."""
        try:
            with self._database.read() as session:
                whole = pipelines.of_job(session, job_id)
        except NotFound:
            self._forget(job_id)
            return
        watched = self._watch(whole)
        event = wanted(whole.job, whole.status)
        considering = None if event is None else (watched.state, event, whole.job.revision)
        if event is not None and considering != watched.considered and self._step(job_id, event):
            watched.considered = considering
            return  # and it is considered again
        if whole.job.pending:  # only now, because a crash before would lose the wish
            with self._writing() as session:
                jobs.seen(session, job_id, whole.job.revision)
        if watched.state.is_terminal:
            self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        self._watched.pop(job_id, None)
        self._notes.forget(job_id)
        self._meters.forget(job_id)
        self._spans.forget(job_id)
        self._timers.drop(job_id)

    # ---- Events ----

    def _note(self) -> None:
        try:
            with self._writing() as session:
                self._notes.write(session)
        except Exception as error:
            if not is_outage(error):
                self._notes.drop()
            raise
        self._notes.written()

    def _note_last(self) -> None:
        """What jobs have told while they stopped. How they ended is nobody's: the next controller starts them again."""
        for word in self._hear(0.0):
            if isinstance(word, Report):
                self._notes.add(word)
        try:
            self._guarded(_OWN, self._note)
        except SQLAlchemyError as error:
            _log.warning("the last checkpoints are not in the database: %s", error)

    def _step(self, job_id: str, event: Event, report: Report | None = None) -> bool:
        """Whether the event has an effect."""
        with self._writing() as session:
            try:
                whole = pipelines.of_job(session, job_id, for_update=True)
            except NotFound:
                return False
            status = whole.status
            if report is not None and report.generation != status.generation:
                return False
            event = self._sharpened(whole, event)
            step = next_step(State(status.state), event)
            if step is None:
                return False
            facts = facts_of(whole, step, report, self._restarts(whole))
            before = status.state, status.generation
            after = str(step.state), facts.get("generation", status.generation)
            log(session, whole, event, step, report)
            self._unsure = _Unsure(job_id, step, before, after)
            facts["controller"] = self.id
            if not jobs.write(session, job_id, state=before[0], generation=before[1], facts=facts):
                raise Deposed("another controller writes")
        self._unsure = None
        about = {"job_id": job_id, "generation": whole.status.generation}
        _log.info("%s: %s -> %s", event, before[0], step.state, extra=about)
        self._meters.moved(event, step.state)
        self._follow(whole, step)
        return True

    def _was_written(self, unsure: _Unsure) -> bool:
        """After the database has failed: if the step is in the database, does what follows."""
        with self._writing() as session:
            found = pipelines.of_jobs(session, [unsure.job_id])
        self._unsure = None
        for whole in found:
            found_in = whole.status.state, whole.status.generation
            if found_in == unsure.after != unsure.before:  # a step that changes nothing can be done twice
                self._follow(whole, unsure.step)
                return True
        return False

    def _follow(self, whole: Whole, step: Step) -> None:
        """whole: with the new state."""
        job_id = whole.job.id
        self._spans.moved(job_id, whole.status.generation, step)
        self._add(job_id, "consider", partial(self._consider, job_id))
        self._enter(whole)
        self._act(whole, step.action)

    def _sharpened(self, whole: Whole, event: Event) -> Event:
        never_started = event is Event.LATE and whole.status.state == State.SCHEDULING
        if event is not Event.LOST and not never_started:
            return event
        return Event.EXHAUSTED if is_exhausted(self._limits, whole.job, self._restarts(whole)) else event

    def _restarts(self, whole: Whole) -> int:
        """In a row."""
        watched = self._watch(whole)
        is_healthy = watched.state is State.RUNNING and self._clock() - watched.since >= self._limits.healthy_duration
        return 0 if is_healthy else whole.status.restarts

    # ---- Actions ----

    def _act(self, whole: Whole, action: Action) -> None:
        job_id, generation = whole.job.id, whole.status.generation
        if action is Action.START:
            self._start(whole)
        elif action is Action.CLEAR:
            self._scheduler.clear(job_id, generation)
        elif action is Action.WAIT:
            self._scheduler.clear(job_id, generation)
            self._happens_after(job_id, backoff(self._limits, whole.status.restarts), Event.RETRY)
        elif action in _STOPS:
            self._scheduler.stop(job_id, generation, _STOPS[action])

    def _start(self, whole: Whole) -> None:
        try:
            self._scheduler.start(self._task(whole))
        except Exception as error:  # no thread, no memory: a generation that is lost
            _log.exception("job %s cannot be started", whole.job.id)
            message = f"it cannot be started: {error}"
            self._words.put(Report(whole.job.id, whole.status.generation, Event.LOST, message=message))

    def _task(self, whole: Whole) -> Task:
        job, pipeline = whole.job, whole.pipeline
        return Task(
            job_id=job.id,
            generation=whole.status.generation,
            program=pipeline.program,
            parallelism=job.parallelism,
            checkpoint_interval=job.checkpoint_interval_micros / 1e6,
            place=None if job.place is None else f"{job.place}/{whole.status.history}",
            environment=job.env_vars,
            drain_time=self._limits.drain_time,
            resume_at=whole.status.epoch,
            restore=to_restore(job, whole.status),
            retain=self._limits.retained_checkpoints,
            retain_for=self._limits.retained_time,
            libraries=str(self._settings.functions / LIBRARIES),
            trace_parent=self._spans.parent(job.id),
        )

    # ---- Time ----

    def _watch(self, whole: Whole) -> _Watched:
        """Since when a job has been in its state: known from its past, if this controller has not seen it begin."""
        job_id, state = whole.job.id, State(whole.status.state)
        watched = self._watched.get(job_id)
        if watched is None or watched.state is not state:
            lasted = 0.0 if watched is not None else max(0.0, (now() - whole.status.state_since) / 1e6)
            watched = self._watched[job_id] = _Watched(state, self._clock() - lasted)
        return watched

    def _enter(self, whole: Whole) -> None:
        """Sets the time that the state may take."""
        job_id, state = whole.job.id, self._watch(whole).state
        self._timers.drop(job_id)
        limits = self._limits
        if state is State.SCHEDULING:
            late = Report(job_id, whole.status.generation, Event.LATE, message=f"{state} takes too long")
            self._happens_after(job_id, limits.worker_startup_time, Event.LATE, late)
        elif state is State.RECOVERING:
            self._happens_after(job_id, limits.max_backoff + limits.stop_time, Event.LATE)
        elif state not in (State.CREATED, State.RUNNING) and not state.is_terminal:
            self._happens_after(job_id, limits.stop_time, Event.LATE)
        if state is State.RUNNING and whole.job.ttl_micros is not None and whole.status.start_time is not None:
            left = min(whole.job.ttl_micros, whole.status.start_time + whole.job.ttl_micros - now())
            self._happens_after(job_id, max(0.0, left / 1e6), Event.EXPIRED)

    def _happens_after(self, job_id: str, seconds: float, event: Event, report: Report | None = None) -> None:
        self._after(seconds, job_id, str(event), partial(self._step, job_id, event, report))

    # ---- Tidying ----

    def _tidy(self) -> None:
        if self._term is None:
            return
        tidy_rows(self._database, self._writing)
        with self._database.read() as session:
            generations = jobs.open_generations(session)
        tidy_files(self._settings, generations)
