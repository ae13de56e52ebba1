"""A pipeline from its description to its end, in this process.

    summary = run_pipeline(Pipeline(name="speeds", source=..., operators=[...], sinks=[...]))

Guarantees: errors have no values of variables.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Iterator

from ...errors import ArroyoUdfError, InvalidArgument, service_of
from ..pipeline.description import Checkpoints, Pipeline
from ..pipeline.plan import Planned, plan
from ..pipeline.problems import InvalidPipeline, Problem, in_keys
from ..pipeline.replayed import Choice, ReplayCounts, replaying
from .progress import PipelineSummary, Progress
from .restoring import Restored, Restoring, planned_restore, restore
from .retention import NUMBER, USUAL, Retention
from .runner import Interval, run
from .stopping import StopRequest
from .store import Store, open_store


def run_pipeline(
    pipeline: Pipeline,
    *,
    resume: bool | None = None,
    allow_changed_plugin: bool = False,
    stop: StopRequest | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    progress_every: float | None = None,
) -> PipelineSummary:
    """Runs a pipeline to its end, or until `stop` is requested.

    resume: True: there must be checkpoints to go on from; False: there must be none; None: it goes on if there are
    some, and else begins. allow_changed_plugin: also if a plugin is another one by now.
    progress: called at the start, after each checkpoint, every `progress_every` seconds, and at the end.
    Raises InvalidPipeline for a description that cannot be run, before anything has started, and what `runner.run`
    raises.
    """
    planned = plan(pipeline)
    with contextlib.closing(planned):
        return run_planned(
            planned,
            resume=resume,
            allow_changed_plugin=allow_changed_plugin,
            stop=stop,
            progress=progress,
            progress_every=progress_every,
        )


def run_planned(
    planned: Planned,
    *,
    resume: bool | None = None,
    allow_changed_plugin: bool = False,
    stop: StopRequest | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    progress_every: float | None = None,
    only_moves: bool = False,
    replays: bool = False,
    at_least: int = 0,
) -> PipelineSummary:
    """As `run_pipeline`; leaves source and plugins open. only_moves, replays, at_least: see `runner.run`."""
    checkpoints = planned.resolved.checkpoints if planned.resolved.has_checkpoints else None
    with _for_pipelines(planned):
        return run(
            planned,
            checkpoints=None if checkpoints is None else _store(checkpoints),
            interval=Interval() if checkpoints is None else _interval(planned, checkpoints),
            retention=USUAL if checkpoints is None else _retention(checkpoints),
            resume=resume,
            at_least=at_least,
            allow_changed_plugin=allow_changed_plugin,
            replays=replays,
            stop=stop,
            progress=progress,
            progress_every=progress_every,
            only_moves=only_moves,
        )


def restore_pipeline(
    pipeline: Pipeline,
    epoch: int | str,
    *,
    doubles: Collection[str] = (),
    allow_changed_plugin: bool = False,
    tell: Callable[[Restoring], None] = lambda restoring: None,
) -> Restored:
    """Goes back to a checkpoint of a pipeline that does not run, or to a savepoint by its name; `run_pipeline` goes on
    from there.

    doubles, tell: see `restoring.restore`. Raises as `run_pipeline` does.
    """
    planned = plan(pipeline)
    with contextlib.closing(planned):
        return restore_planned(planned, epoch, doubles=doubles, allow_changed_plugin=allow_changed_plugin, tell=tell)


def restore_planned(
    planned: Planned,
    epoch: int | str,
    *,
    doubles: Collection[str] = (),
    allow_changed_plugin: bool = False,
    at_least: int = 0,
    tell: Callable[[Restoring], None] = lambda restoring: None,
) -> Restored:
    """As `restore_pipeline`; leaves source and plugins open. at_least: see `runner.run`."""
    checkpoints = _checkpoints_of(planned)
    with _for_pipelines(planned):
        return restore(
            planned,
            _store(checkpoints),
            epoch,
            doubles=doubles,
            allow_changed_plugin=allow_changed_plugin,
            at_least=at_least,
            retention=_retention(checkpoints),
            tell=tell,
        )


def look_at_restore(planned: Planned, epoch: int | str, *, allow_changed_plugin: bool = False) -> Restoring:
    """What `restore_planned` would do."""
    checkpoints = _checkpoints_of(planned)
    with _for_pipelines(planned):
        return planned_restore(planned, _store(checkpoints), epoch, allow_changed_plugin=allow_changed_plugin)


def _checkpoints_of(planned: Planned) -> Checkpoints:
    if not planned.resolved.has_checkpoints:
        raise InvalidArgument("--restore needs the place of the checkpoints: name it with --checkpoints")
    assert planned.resolved.checkpoints is not None
    return planned.resolved.checkpoints


def replay_planned(
    planned: Planned,
    choice: Choice,
    *,
    stop: StopRequest | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    progress_every: float | None = None,
    at_least: int = 0,
) -> tuple[PipelineSummary, ReplayCounts]:
    """Runs the dead letters of a pipeline again that wait, from its checkpoints on and into its sinks. Plugins may be
    others by now: mended ones are what a replay is for. When all is done, it ends as a run that was stopped.
    at_least: see `runner.run`.

    Raises InvalidArgument for a pipeline whose letters cannot be replayed, and what `run_pipeline` raises.
    """
    stop = stop or StopRequest()

    def ended() -> None:
        if not stop.requests:  # it is nobody's stop, which has its time
            stop.timeout = math.inf
            stop.request()

    with _for_pipelines(planned):
        replayed, counts = replaying(planned, choice, ended)
    summary = run_planned(
        replayed,
        resume=True,
        allow_changed_plugin=True,
        replays=True,
        at_least=at_least,
        stop=stop,
        progress=progress,
        progress_every=progress_every,
    )
    return summary, counts


def _store(checkpoints: Checkpoints) -> Store:
    try:
        return open_store(checkpoints.place or "")
    except (ArroyoUdfError, OSError) as error:
        raise InvalidPipeline([Problem(("checkpoints", "place"), str(error), service=service_of(error))]) from error


def _retention(checkpoints: Checkpoints) -> Retention:
    return Retention(checkpoints.retain or NUMBER, checkpoints.retain_for or 0.0)


def _interval(planned: Planned, checkpoints: Checkpoints) -> Interval:
    if checkpoints.every is None and checkpoints.every_rows is None:
        return Interval(None) if planned.answers_at_the_end else Interval()
    return Interval(checkpoints.every, checkpoints.every_rows)


@contextlib.contextmanager
def _for_pipelines(planned: Planned) -> Iterator[None]:
    """Errors have no values of variables, and name keys."""

    def cleaned(text: str) -> str:
        return planned.hidden(in_keys(text))

    try:
        yield
    except InvalidPipeline as error:
        raise InvalidPipeline(
            [dataclasses.replace(problem, text=cleaned(problem.text)) for problem in error.problems]
        ) from None
    except (ArroyoUdfError, OSError) as error:
        error.args = tuple(cleaned(argument) if isinstance(argument, str) else argument for argument in error.args)
        if isinstance(error, OSError) and isinstance(error.filename, str):
            error.filename = cleaned(error.filename)
        if planned.secrets:
            raise error from None  # the errors before it have their own texts
        raise
