"""The controller: makes jobs what their users wish.

    a change, a report, a deadline, a look ──► reconcile ──► database, then the scheduler

`reconcile` compares the wish and the fact of a job, which are in the database, with what runs, and takes the step that
is due (see `watched.py`); then it compares again, until nothing is due. It may be called at any time and as often as
one likes: what wakes it carries nothing but the job's id. So a wake-up that is lost is a delay: every few seconds there
is a look at all jobs that are not as they are wished.

Guarantees: a new state is in the database before anything is done for it, and a start has its generation there before;
so another controller finds what this one has begun. All writes are the leader's (see `jobs.fence`); a controller that
does not lead stands by. Reports of another generation than the job's change nothing. A job that is lost is started
again: the first time at once, then with back-off, up to a limit in a row. An error of the user is not retried.
Failures of the database delay, and lose nothing. Nothing that a worker, the database or the scheduler says ends the
loop; whatever else does gives the lead back. Durations are measured by a clock that nobody sets.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal

from sqlalchemy.orm import Session

from ..configuration import Settings
from ..database import jobs, pipelines
from ..database.database import Database, LeaderLock, now
from ..database.errors import Deposed, NotFound, is_outage
from ..database.pipelines import WholeJob
from ..database.sealing import opened
from ..functions.artifacts import LIBRARIES
from ..monitoring.metrics import Families, Meters
from ..monitoring.tracing import JobSpans, Tracing
from ..records import Records
from ..schedulers.dispatching import Schedulers
from ..schedulers.interface import How, Scheduler
from ..states import RUNS, SETTLED, Action, Event, State, next_state
from ..task import JobReport, Task, Tell
from ..wishes import to_restore, wanted
from .deadlines import Deadlines, is_exhausted
from .removal import Remover, tidy_files, tidy_rows
from .report_writer import Notes, facts_of, log
from .watched import Due, Watched
from .work import Act, Timers, Work

_log = logging.getLogger(__name__)

Word = JobReport | Literal["wake", "stop"]

_STOPS: dict[Action, How] = {Action.SAVE: "save", Action.DRAIN: "drain", Action.CANCEL: "cancel", Action.KILL: "kill"}
_DEATHS = 2  # in a row, after which the jobs that ran are isolated
_LOCK_EVERY = 1.0
_BEAT_EVERY = 5.0
_LOOK_EVERY = 5.0
_TIDY_EVERY = 60.0
_AFTER_BUG = 5.0  # seconds until the job is looked at again
_AT_ONCE = 100  # jobs that are read by one query
_OWN = "controller"  # the name of the controller's own timers and acts


class Controller:
    """make_scheduler: of jobs of this machine; it gets what to tell reports to. clock: in seconds; it only goes
    forward. elsewhere: makes other schedulers, by their names."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        make_scheduler: Callable[[Tell], Scheduler],
        clock: Callable[[], float] = time.monotonic,
        elsewhere: Mapping[str, Callable[[Tell], Scheduler]] = MappingProxyType({}),
    ) -> None:
        self.id = secrets.token_hex(8)
        self._database, self._settings, self._limits = database, settings, settings.pipeline
        self._clock = clock
        self._words: queue.SimpleQueue[Word] = queue.SimpleQueue()
        tell = self._words.put
        others = {name: make(tell) for name, make in elsewhere.items()}
        self._schedulers = Schedulers(tell, make_scheduler(tell), others)
        self._lock = LeaderLock(database)
        self._timers = Timers()
        self._work = Work(clock)
        self._notes = Notes(Records.configured(settings))
        self._meters = Meters()
        self._tracing = Tracing(settings.traces.endpoint, "controller")
        self._spans = JobSpans(self._tracing)
        self._remover = Remover(database)
        self._deadlines = Deadlines(self._limits)
        self._watched: dict[str, Watched] = {}
        self._term: int | None = None
        self._leads_since = 0.0
        self._thread: threading.Thread | None = None
        self._every(0.0, _LOCK_EVERY, "lead", self._lead)
        for seconds, what, act in (
            (_BEAT_EVERY, "beat", self._beat),
            (_LOOK_EVERY, "look at all", partial(self._look, True)),
            (_TIDY_EVERY, "tidy", self._tidy),
        ):
            self._every(seconds, seconds, what, partial(self._if_leading, act))

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
        return self._schedulers.workers()

    def tell(self, families: Families) -> None:
        """Metrics."""
        families.add("arroyo_udf_controller_leads", int(self.leads))
        families.add("arroyo_udf_controller_refused_messages_total", self._schedulers.refused)
        self._meters.tell(families)

    # ---- The loop ----

    def run(self) -> None:
        try:
            while self.turn(self._patience()):
                pass
            self._schedulers.close()
            self._say_last()
        except BaseException:
            _log.critical("the controller has ended: start its program again", exc_info=True)
            self._schedulers.let_go()
        finally:
            self._term = None
            self._remover.close()
            self._lock.release()
            self._tracing.close()

    def turn(self, patience: float | None = 0.0) -> bool:
        """Waits for a word, for so many seconds, and does all that there is to do. False: it was asked to stop."""
        words = self._hear(patience)
        for word in words if self._term is not None else ():
            self._guarded(_OWN, partial(self._take, word))
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
        if not isinstance(word, JobReport):
            if word == "wake":
                self._add(_OWN, "look", self._look)
            return
        self._notes.add(word)
        self._meters.note([word])
        self._spans.note([word])
        if self._notes.wait:
            self._add(_OWN, "note", self._note)
        watched = self._watched.get(word.job_id)
        if word.event is not None and watched is not None:
            watched.hear(word)
            self._reconcile_soon(word.job_id)

    def _add(self, name: str, what: str, act: Act) -> None:
        self._work.add((name, what), partial(self._guarded, name, act))

    def _reconcile_soon(self, *job_ids: str) -> None:
        self._add(job_ids[0], f"reconcile {','.join(job_ids[1:])}", partial(self._reconcile, job_ids))

    def _after(self, seconds: float, job_id: str) -> None:
        self._timers.set(job_id, self._clock() + seconds, partial(self._reconcile_soon, job_id))

    def _every(self, first: float, seconds: float, what: str, act: Act) -> None:
        """It goes on, whatever happens in it."""

        def again() -> None:
            self._every(seconds, seconds, what, act)
            self._add(_OWN, what, act)

        self._timers.set(_OWN, self._clock() + first, again)

    def _if_leading(self, act: Act) -> None:
        if self._term is not None:
            act()

    def _guarded(self, name: str, act: Act) -> None:
        """Raises failures of the database only. name: of a job that is looked at again after a bug, or `_OWN`."""
        try:
            act()
        except Deposed:
            self._resign()
        except Exception as error:
            if is_outage(error):
                self._meters.database_failed()
                raise
            _log.exception("a bug")
            if name != _OWN:
                self._after(_AFTER_BUG, name)

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
                lead = jobs.lead(session, self.id)
                job_ids = jobs.open_jobs(session)
                running = jobs.in_states(session, RUNS)
            self._term, self._leads_since = lead.term, self._clock()  # as soon as it is committed
            _log.info("this controller leads, with term %d", lead.term)
            if lead.deaths >= _DEATHS:
                _log.warning("the controllers before have died %d times in a row: jobs are isolated", lead.deaths)
                self._schedulers.isolate(running)
            self._reconcile_all(job_ids)
            self._add(_OWN, "look", self._look)  # what the leader before has left

    def _beat(self) -> None:
        with self._writing() as session:
            jobs.beat(session, self._clock() - self._leads_since >= self._limits.healthy_duration)

    def _resign(self) -> None:
        """Another controller leads."""
        _log.warning("another controller leads: this one stands by")
        self._lock.release()
        self._schedulers.let_go()
        for job_id in self._watched:
            self._timers.drop(job_id)
        self._watched.clear()
        self._work.clear()
        self._notes.clear()
        self._remover.want(())
        self._term = None

    # ---- Jobs ----

    def _look(self, is_at_all: bool = False) -> None:
        """At the jobs whose wishes have changed; or at all that are not as they are wished."""
        with self._database.read() as session:
            job_ids = jobs.unfulfilled(session)
            if is_at_all:
                job_ids = sorted({*job_ids, *jobs.under_way(session)})
            leftovers = jobs.leftovers(session)
        self._reconcile_all(job_ids)
        self._remover.want(leftovers)

    def _reconcile_all(self, job_ids: Sequence[str]) -> None:
        for start in range(0, len(job_ids), _AT_ONCE):
            self._reconcile_soon(*job_ids[start : start + _AT_ONCE])

    def _reconcile(self, job_ids: Sequence[str]) -> None:
        """Compares jobs with their wishes. One that fails holds no other back."""
        try:
            with self._database.read() as session:
                whole_jobs = pipelines.of_jobs(session, job_ids)
        except Exception as error:
            if is_outage(error) or len(job_ids) == 1:
                raise
            for job_id in job_ids:  # one of them cannot be read, such as by a secret that nobody opens
                self._reconcile_soon(job_id)
            return
        for job_id in {*job_ids} - {whole.job.id for whole in whole_jobs}:
            self._forget(job_id)
        for whole in whole_jobs:
            self._guarded(whole.job.id, partial(self._if_leading, partial(self._reconcile_one, whole)))

    def _reconcile_one(self, whole: WholeJob) -> None:
        job, status = whole.job, whole.status
        watched = self._watched.get(job.id) or self._watch(whole)
        if watched.state is not State(status.state):  # of a step whose commit was not answered
            self._enter(whole, watched)
        if watched.due(whole, self._clock()) is not None:
            self._step(job.id, watched)
            return
        self._ask(whole, watched)
        if watched.state not in SETTLED:
            return
        if job.fulfilled != job.revision:
            with self._writing() as session:
                jobs.fulfil(session, job.id, job.revision)
        if watched.state.is_terminal:
            self._forget(job.id)

    def _watch(self, whole: WholeJob) -> Watched:
        """A job that this controller has not seen since it leads: whether it runs is asked of the scheduler."""
        job_id, state, generation = whole.job.id, State(whole.status.state), whole.status.generation
        watched = Watched(state, self._clock())
        lasted = max(0.0, (now() - whole.status.state_since) / 1e6)
        self._enter(whole, watched, lasted)
        if state in RUNS and not self._scheduler_of(whole).take_over(self._task(whole)):
            watched.hear(JobReport(job_id, generation, Event.ORPHANED))
        watched.started = generation
        self._watched[job_id] = watched
        return watched

    def _step(self, job_id: str, watched: Watched) -> None:
        """Stores what is due. Then the job is looked at again, until nothing is."""
        with self._writing() as session:
            try:
                whole = pipelines.of_job(session, job_id, for_update=True)
            except NotFound:
                return
            due = watched.due(whole, self._clock())
            if due is None:
                return
            due = self._sharpened(whole, due)
            before, generation = State(whole.status.state), whole.status.generation
            state = next_state(before, due.event)
            assert state is not None
            facts = facts_of(whole, due, state, self._restarts(whole)) | {"controller": self.id}
            log(session, whole, due, state)
            if not jobs.write(session, job_id, state=str(before), generation=generation, facts=facts):
                raise Deposed("another controller writes")
            wish = wanted(whole.job, whole.status)
            if state in SETTLED and (wish is None or next_state(state, wish) is None):
                jobs.fulfil(session, job_id, whole.job.revision)
        about = {"job_id": job_id, "generation": whole.status.generation}
        _log.info("%s: %s -> %s", due.event, before, state, extra=about)
        self._meters.moved(due.event, state)
        self._spans.moved(job_id, whole.status.generation, state)
        self._enter(whole, watched, due=due)
        self._ask(whole, watched)
        self._reconcile_soon(job_id)

    def _sharpened(self, whole: WholeJob, due: Due) -> Due:
        """A job that is lost once too often is not started again."""
        if due.event not in (Event.LOST, Event.LATE):
            return due
        if next_state(State(whole.status.state), due.event) is not State.RECOVERING:
            return due
        outage = "" if due.report is None else due.report.outage
        is_over = is_exhausted(self._limits, whole.job, self._restarts(whole), outage)
        return due._replace(event=Event.EXHAUSTED) if is_over else due

    def _restarts(self, whole: WholeJob) -> int:
        """In a row."""
        watched = self._watched[whole.job.id]
        is_healthy = watched.state is State.RUNNING and self._clock() - watched.since >= self._limits.healthy_duration
        return 0 if is_healthy else whole.status.restarts

    def _forget(self, job_id: str) -> None:
        self._watched.pop(job_id, None)
        self._notes.forget(job_id)
        self._meters.forget(job_id)
        self._spans.forget(job_id)
        self._timers.drop(job_id)

    # ---- What the scheduler is asked for ----

    def _ask(self, whole: WholeJob, watched: Watched) -> None:
        job_id, generation = whole.job.id, whole.status.generation
        action = watched.to_ask(whole)
        if action is None:
            return
        if action is Action.START:
            watched.started = generation
            self._start(whole, watched)
        elif action is Action.CLEAR:
            self._scheduler_of(whole).clear(job_id, generation)
        elif action is Action.RESCALE:
            self._scheduler_of(whole).rescale(self._task(whole))
        else:
            self._scheduler_of(whole).stop(job_id, generation, _STOPS[action])
        watched.asked = action

    def _scheduler_of(self, whole: WholeJob) -> Scheduler:
        return self._schedulers.of(whole.job.scheduler)

    def _start(self, whole: WholeJob, watched: Watched) -> None:
        try:
            self._scheduler_of(whole).start(self._task(whole))
        except Exception as error:  # no thread, no memory: a generation that is lost
            _log.exception("job %s cannot be started", whole.job.id)
            message = f"it cannot be started: {error}"
            watched.hear(JobReport(whole.job.id, whole.status.generation, Event.LOST, message=message))

    def _task(self, whole: WholeJob) -> Task:
        job = whole.job
        return Task(
            job_id=job.id,
            generation=whole.status.generation,
            program=whole.opened_program,
            parallelism=job.parallelism,
            checkpoint_interval=job.checkpoint_interval_micros / 1e6,
            place=None if job.place is None else f"{job.place}/{whole.status.history}",
            environment=opened(job.env_vars),
            drain_time=self._limits.drain_time,
            resume_at=whole.status.epoch,
            restore=to_restore(job, whole.status),
            retain=self._limits.retained_checkpoints,
            retain_for=self._limits.retained_time,
            libraries=str(self._settings.functions / LIBRARIES),
            trace_parent=self._spans.parent(job.id),
            slices=job.slices,
        )

    # ---- Time ----

    def _enter(self, whole: WholeJob, watched: Watched, lasted: float = 0.0, due: Due | None = None) -> None:
        """lasted: since when the job has been in its state."""
        state, since = State(whole.status.state), self._clock() - lasted
        is_late = due is not None and due.event is Event.LATE
        outage = "" if due is None or due.report is None else due.report.outage
        watched.enter(state, since, self._deadlines.of(whole, since, self._clock(), outage), is_late)
        self._timers.drop(whole.job.id)
        if watched.deadline is not None:
            self._after(watched.deadline[0] - self._clock(), whole.job.id)

    # ---- What jobs have told, and what nobody needs ----

    def _note(self) -> None:
        try:
            with self._writing() as session:
                self._notes.write(session)
        except Exception as error:
            if not is_outage(error):
                self._notes.drop()
            raise
        self._notes.written()

    def _say_last(self) -> None:
        """What jobs have told while they stopped, and that nobody leads. How they ended is nobody's: the next
        controller starts them again."""
        if self._term is None:
            return
        for word in self._hear(0.0):
            if isinstance(word, JobReport):
                self._notes.add(word)
        try:
            self._note()
            with self._writing() as session:
                jobs.give_up(session)
        except Exception as error:
            _log.warning("the last checkpoints are not in the database: %s", error)

    def _tidy(self) -> None:
        tidy_rows(self._database, self._writing, self._settings)
        with self._database.read() as session:
            generations = jobs.open_generations(session)
        tidy_files(self._settings, generations)
