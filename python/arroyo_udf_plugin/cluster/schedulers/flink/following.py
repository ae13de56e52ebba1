"""One generation of a job on Flink, from its submit, or from where another controller has left it, to its end.

Guarantees: it is submitted once; if the answer is lost, it is looked for by its id. An older generation that appears,
because the answer to its submit was lost, is cancelled. While Flink restarts tasks by itself, the job goes on, and its
log says why. What a new start would only repeat is not restarted. While Flink is away, nothing is concluded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ....errors import InvalidArgument, WrongCheckpoints, service_of
from ...configuration import FlinkSettings
from ...reports import CheckpointReport
from ...states import Event
from ...task import JobReport, Task, Tell
from ..interface import How
from .failures import SEE_LOG, Reason, reason_of
from .rest import (
    ENDED,
    NO_SNAPSHOTS,
    FlinkApi,
    FlinkAway,
    FlinkRefused,
    FlinkState,
    LatestSnapshots,
    ObservedJob,
    TakenSnapshot,
)
from .snapshots import StoredSnapshot, begin_of, newest_of
from .submission import flink_id, savepoints_of, submission
from .watching import LOOK_EVERY, Watching

LATE_SUBMIT = 20.0
"""Seconds after which a submit without an answer has had no effect: its program takes two to five."""
IN_PLACE = 30.0
"""Seconds in which Flink changes the parallelism of a job; else it is saved, and started anew."""
_REPORT_EVERY = 2.0
_STOP_AGAIN = 1.0
_CACHED = 5.0
"""Seconds in which Flink's answers about checkpoints are renewed; they may be older than its answers about the job."""
_OLDER = 20
"""Generations before this one that may still appear."""
_NOT_KNOWN = "Flink does not know the job any more: its JobManager was started anew, without high availability"

_Result = TypeVar("_Result")


@dataclass
class _Rescaling:
    """until: in the time of time.monotonic(). is_asked: Flink has been asked for it."""

    until: float
    is_asked: bool = False


class Following:
    """is_new: it is to be submitted. is_muted: nobody waits for what it says."""

    def __init__(
        self, flink: FlinkApi, watching: Watching, settings: FlinkSettings, task: Task, tell: Tell, is_new: bool
    ) -> None:
        self.task = task
        self._flink, self._watching, self._settings, self._is_new = flink, watching, settings, is_new
        self._tell, self.is_muted = tell, False
        self._id = flink_id(task.job_id, task.generation)
        first = max(1, task.generation - _OLDER)
        self._older = [flink_id(task.job_id, generation) for generation in range(first, task.generation)]
        self._order: How | None = None
        self._stop: str | None = None  # the request of a stop that is under way
        self._stop_after = self._report_after = 0.0
        self._rescaling: _Rescaling | None = None
        self._refusal = ""
        self._wrong: Reason | None = None
        self._failed_at: int | None = (
            None  # the time of the newest exception that was told, here or by a controller before
        )
        self._epoch = 0
        self._has_started = False

    def order(self, how: How) -> None:
        """A softer stop does not replace a harder one."""
        if self._order not in ("cancel", "kill"):
            self._order = how

    def rescale(self, task: Task) -> None:
        """To the parallelism of that task."""
        if self._order is None:
            self.task, self._rescaling = task, _Rescaling(time.monotonic() + IN_PLACE)

    def mute(self) -> None:
        """It says nothing any more."""
        self.is_muted = True

    async def run(self) -> None:
        try:
            if await self._is_there():
                await self._follow()
        except Exception as error:
            self._say(Event.LOST, message=f"it cannot be followed: {error!r}")
            raise

    # ---- Its begin ----

    async def _is_there(self) -> bool:
        """Whether Flink has it, or has taken it. False: why not is told."""
        if self._id in await self._seen():
            return True
        if not self._is_new:
            return await self._appears(Event.ORPHANED, "Flink does not know the job")
        try:
            newest = await asyncio.to_thread(begin_of, self.task)
        except InvalidArgument as error:
            event = Event.WRONG if isinstance(error, WrongCheckpoints) else Event.LOST
            self._say(event, message=str(error), domain="external", outage=service_of(error))
            return False
        return await self._submit(submission(self.task, self._settings, newest))

    async def _submit(self, asked: Mapping[str, Any]) -> bool:
        jar = self._settings.python_jar
        assert jar is not None  # it comes with the url
        while self._order is None:
            try:
                await self._flink.run(await self._flink.jar(jar), asked)
                return True
            except FlinkRefused as error:
                if self._id in await self._seen():
                    return True
                self._say(Event.LOST, message=f"Flink has not taken the job: {error}", details=error.details)
                return False
            except FlinkAway as error:
                if not error.is_unsent:
                    return await self._appears(Event.LOST, f"the submit was not answered: {error}")
            await self._seen()  # waits until it answers
        self._say(Event.CUT_OFF, message="stopped before its start")
        return False

    async def _appears(self, otherwise: Event, message: str) -> bool:
        """Whether Flink has taken it after all. False: it is told otherwise."""
        until = time.monotonic() + LATE_SUBMIT
        while self._id not in await self._seen():
            if time.monotonic() > until:
                self._say(otherwise, message=message)
                return False
        return True

    async def _seen(self) -> Mapping[str, ObservedJob]:
        jobs = await self._watching.seen()
        for older in self._older:
            if older in jobs and not jobs[older].has_ended:
                await self._cancel(older)
        return jobs

    # ---- While it runs ----

    async def _follow(self) -> None:
        while True:
            job = (await self._seen()).get(self._id)
            if job is None:
                if await self._state() is None:
                    self._say(Event.LOST, message=_NOT_KNOWN)
                    return
                continue
            if job.runs_whole and not self._has_started:
                self._has_started = True
                self._say(Event.STARTED, tasks=job.tasks.total)
            if job.has_ended:
                await self._end(job)
                return
            try:
                await self._look_closer(job)
                await self._obey(job)
            except FlinkAway:
                continue  # the next look waits for it
            except FlinkRefused as error:  # such as of a job that ends at this moment
                self._note(f"Flink refuses: {error}", error.details)

    async def _look_closer(self, job: ObservedJob) -> None:
        """At checkpoints and failures: from time to time, and while not all tasks run."""
        now = time.monotonic()
        if now < self._report_after and job.runs_whole:
            return
        await self._tell_failures()
        if now >= self._report_after:
            self._report_after = now + _REPORT_EVERY
            latest = (await self._snapshots()).completed
            if latest is not None and latest.id > self._epoch:
                self._say(None, **self._taken(latest))

    async def _tell_failures(self) -> None:
        entries = await self._flink.exceptions(self._id)
        if self._failed_at is None:
            self._failed_at = 0 if self._is_new or not entries else entries[0].timestamp
        for entry in [entry for entry in reversed(entries) if entry.timestamp > self._failed_at]:
            self._failed_at = entry.timestamp
            reason = reason_of(entry.stack)
            if reason.is_wrong:
                self._wrong = self._wrong or reason
                self.order("cancel")
            else:
                self._say(None, message="Flink restarts tasks after a failure", details=entry.stack)

    async def _state(self) -> FlinkState | None:
        return await self._patiently(lambda: self._flink.state(self._id))

    async def _snapshots(self) -> LatestSnapshots:
        """Of a job that takes none, Flink answers with an error."""
        return NO_SNAPSHOTS if self.task.place is None else await self._flink.snapshots(self._id)

    def _taken(self, snapshot: TakenSnapshot) -> dict[str, Any]:
        self._epoch = snapshot.id
        report: CheckpointReport = {
            "epoch": snapshot.id,
            "at": snapshot.at / 1000,
            "seconds": snapshot.duration / 1000,
            "bytes": snapshot.bytes,
        }
        return {"checkpoint": report, "epoch": snapshot.id}

    # ---- Its end ----

    async def _obey(self, job: ObservedJob) -> None:
        if self._order is None and self._rescaling is not None:
            await self._rescale(job, self._rescaling)
        order, place = self._order, self.task.place
        if order is None or job.state == "CANCELLING":
            return
        if order in ("cancel", "kill") or place is None:
            await self._flink.cancel(self._id)
        elif self._stop is not None:
            await self._check_stop(self._stop)
        elif job.runs_whole and time.monotonic() >= self._stop_after:
            self._stop_after = time.monotonic() + _STOP_AGAIN
            self._stop = await self._flink.stop(self._id, savepoints_of(self.task), drain=order == "drain")

    async def _rescale(self, job: ObservedJob, rescaling: _Rescaling) -> None:
        """In place, if Flink can."""
        wanted = self.task.parallelism
        if self.task.place is None or time.monotonic() > rescaling.until:
            self.order("save")
        elif not rescaling.is_asked:
            try:
                await self._flink.rescale(self._id, wanted)
                rescaling.is_asked = True
            except FlinkRefused as error:
                self._note(f"Flink does not change the parallelism in place: {error}", error.details)
                self.order("save")
        elif job.runs_whole and await self._flink.parallelism(self._id) == wanted:
            self._rescaling = None
            self._say(Event.RESCALED, tasks=job.tasks.total, parallelism=wanted)

    async def _check_stop(self, request: str) -> None:
        """After a failure, it is asked for again, until the controller gives up."""
        try:
            result = await self._flink.stopped(self._id, request)
        except FlinkRefused as error:
            if error.status != 404:
                raise
            self._stop = None  # a new JobManager does not know it
            return
        if result.failure is not None:
            self._stop = None
            self._note("the savepoint has failed, and is tried again", result.failure)

    async def _end(self, job: ObservedJob) -> None:
        while (state := await self._state()) not in ENDED:  # Flink answers from its cache
            if state is None:
                self._say(Event.LOST, message=_NOT_KNOWN)
                return
            await asyncio.sleep(LOOK_EVERY)
        if job.state == "FINISHED":
            await self._finish(job.tasks.total)
        elif job.state == "FAILED" or self._wrong is not None:
            await self._fail()
        else:
            self._say(Event.CUT_OFF)

    async def _finish(self, tasks: int) -> None:
        """By itself, or with a savepoint. When a job has finished, Flink has removed its checkpoints."""
        try:
            newest = await asyncio.to_thread(self._newest_of_place)
        except InvalidArgument as error:
            self._say(Event.LOST, message=str(error), domain="external", outage=service_of(error))
            return
        if newest is None or newest.generation != self.task.generation:
            self._say(Event.FINISHED, tasks=tasks)
            return
        latest, until = await self._patiently(self._snapshots), time.monotonic() + _CACHED
        while (latest.savepoint is None or latest.savepoint.id < newest.number) and time.monotonic() < until:
            await asyncio.sleep(LOOK_EVERY)
            latest = await self._patiently(self._snapshots)
        if latest.completed is not None and latest.completed.id > newest.number:  # it went on after the savepoint
            self._say(Event.FINISHED, tasks=tasks)
        elif latest.savepoint is not None:
            self._say(Event.SAVED, tasks=tasks, **self._taken(latest.savepoint))
        else:
            self._say(Event.SAVED, tasks=tasks, epoch=newest.number)

    def _newest_of_place(self) -> StoredSnapshot | None:
        return None if self.task.place is None else newest_of(self.task.place)

    async def _fail(self) -> None:
        entries = await self._patiently(lambda: self._flink.exceptions(self._id))
        stack = entries[0].stack if entries else ""
        reason = self._wrong or reason_of(stack)
        text = SEE_LOG if not stack and self._wrong is None else reason.text
        event, domain = (Event.WRONG, "user") if reason.is_wrong else (Event.LOST, "external")
        self._say(event, message=text[:500], details=stack, domain=domain)

    async def _cancel(self, flink_job: str) -> None:
        """If Flink is away, or the job ends at this moment, the next look shows it."""
        try:
            await self._flink.cancel(flink_job)
        except (FlinkAway, FlinkRefused):
            return

    async def _patiently(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        while True:
            try:
                return await call()
            except FlinkAway:
                await asyncio.sleep(LOOK_EVERY)

    def _note(self, message: str, details: str) -> None:
        """The same text once."""
        if message != self._refusal:
            self._refusal = message
            self._say(None, message=message, details=details)

    def _say(self, event: Event | None, **told: Any) -> None:
        if not self.is_muted:
            self._tell(JobReport(self.task.job_id, self.task.generation, event, **told))
