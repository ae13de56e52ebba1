"""A generation of a job, as it runs in this process.

    run(task, stop, tell)                        to its end; tells what happens

Guarantees: nothing is raised: the last word told is how the generation has ended. A library is loaded only if it has
the bytes that were built. It goes on from the last checkpoint of its place; it begins only if nobody knows of one, and
else ends with `wrong` and the place's name. Sources have as many partitions as when the job was created.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from ..engine.connectors.location import Outside
from ..engine.connectors.preview import tapped
from ..engine.execution.embedded import restore_planned, run_planned
from ..engine.execution.progress import PipelineSummary, Progress
from ..engine.execution.stopping import StopRequest
from ..engine.pipeline.plan import Planned
from ..engine.pipeline.problems import InvalidPipeline
from ..errors import (
    BuildError,
    InternalError,
    LoadError,
    PluginEnvironmentError,
    RowError,
    UserCodeError,
    WrongCheckpoints,
    service_of,
)
from .functions.graph import graph_of
from .functions.opening import opened_job
from .preview_rows import Showing
from .reports import numbers_of, taken
from .states import Event
from .task import How, JobReport, Task, Tell

PROGRESS_EVERY = 2.0
"""Seconds from one count to the next."""

_WRONG = (RowError, UserCodeError, BuildError, LoadError, PluginEnvironmentError, WrongCheckpoints, Outside)
"""Errors that a new start would only repeat."""


def request(stop: StopRequest, how: How) -> None:
    """Asks for a stop. What has been asked for before is not asked for again."""
    while stop.requests < (2 if how == "cancel" else 1):
        stop.request()


def run(task: Task, stop: StopRequest, tell: Tell) -> None:
    """Runs it to its end."""
    try:
        with contextlib.closing(_planned(task)) as planned:
            telling = Telling(task, planned)
            summary = _run(task, telling, planned, stop, tell)
    except BaseException as error:
        tell(_failed(task, error))
        return
    event = {"finished": Event.FINISHED, "resumable": Event.SAVED, "cut off": Event.CUT_OFF}[summary.ended]
    tell(telling.report(summary.progress, event))


def _planned(task: Task) -> Planned:
    return opened_job(
        task.program,
        task.job_id,
        place=task.place,
        parallelism=task.parallelism,
        checkpoint_interval=task.checkpoint_interval,
        retain=task.retain,
        retain_for=task.retain_for,
        environment=task.environment,
        libraries=task.libraries,
    )


class Telling:
    """What a generation tells of its progress. A checkpoint is told once, and again at the end."""

    def __init__(self, task: Task, planned: Planned) -> None:
        self._task, self._graph = task, graph_of(planned)
        self._told_epoch = 0

    def report(self, now: Progress, event: Event | None) -> JobReport:
        numbers = numbers_of(self._task.generation, now, self._graph)
        epoch = 0 if now.checkpoint is None else now.checkpoint.epoch
        is_told, self._told_epoch = epoch == self._told_epoch and event in (None, Event.STARTED), epoch
        return JobReport(
            self._task.job_id,
            self._task.generation,
            event,
            tasks=sum(len(node["subtasks"]) for node in numbers["nodes"].values()),
            numbers=numbers,
            checkpoint=None if is_told else taken(now, self._graph),
            epoch=epoch,
            retained=() if now.checkpoint is None else now.checkpoint.retained,
        )


def _run(task: Task, telling: Telling, planned: Planned, stop: StopRequest, tell: Tell) -> PipelineSummary:
    last: Progress | None = None
    showing = Showing(lambda shown: tell(JobReport(task.job_id, task.generation, shown=shown)))

    def progress(now: Progress) -> None:
        nonlocal last
        before, last = last, replace(now, seconds=0.0)
        if before != last:
            tell(telling.report(now, Event.STARTED if before is None else None))
        showing.flush()

    if task.restore is not None:
        restore_planned(
            planned,
            task.restore["savepoint"] if "savepoint" in task.restore else task.restore["epoch"],
            doubles=task.restore.get("doubles", ()),
            allow_changed_plugin=True,
            at_least=task.resume_at,
        )
    with tapped(planned.name, showing.take):
        summary = run_planned(
            planned,
            allow_changed_plugin=True,  # it has the bytes that the program names: another one since then was asked for
            stop=stop,
            progress=progress,
            progress_every=PROGRESS_EVERY,
            only_moves=True,
            at_least=task.resume_at,
        )
    showing.flush()
    return summary


def _failed(task: Task, error: BaseException) -> JobReport:
    outage = _outage(error)
    wrong = isinstance(error, _WRONG) or (isinstance(error, InvalidPipeline) and not outage and _is_wrong(error, task))
    is_users = wrong and not isinstance(error, WrongCheckpoints)
    expected = isinstance(error, Exception) and not isinstance(error, InternalError)
    text = str(error) or type(error).__name__
    return JobReport(
        task.job_id,
        task.generation,
        Event.WRONG if wrong else Event.LOST,
        message=_in_a_line(text)[:500],
        details="\n".join([text, *getattr(error, "__notes__", ())]),
        domain="user" if is_users else "external" if expected else "internal",
        outage="" if wrong else outage,
    )


def _is_wrong(error: InvalidPipeline, task: Task) -> bool:
    """Of a pipeline that has run before, what it names may only be gone for a while."""
    return not task.resume_at or any(problem.error is Outside for problem in error.problems)


def _outage(error: BaseException) -> str:
    if isinstance(error, InvalidPipeline):
        return next((problem.service for problem in error.problems if problem.service), "")
    return service_of(error)


def _in_a_line(text: str) -> str:
    """What is wrong. Of a traceback the last line says it."""
    first, *others = text.splitlines()
    return f"{first}: {others[-1]}" if "Traceback (most recent call last)" in text else first
