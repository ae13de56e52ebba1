"""The dead letters of a job, run again in a child process as in one of its workers: with its libraries, its environment
and its checkpoints.

A generation of the job that is started meanwhile ends the replay, as any newer engine ends an older one. What was
committed by then stays.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ...engine.connectors.location import confined_to
from ...engine.execution.embedded import replay_planned
from ...engine.pipeline.replayed import Choice
from ...errors import ArroyoUdfError, Fenced, WrongCheckpoints
from ..job_program import JobProgram
from .messages import ReplayRequest, ReplayResult
from .opening import opened_job

_OWN = "TMPDIR"
"""The child keeps its own: what it leaves there is removed with it."""


def replayed(asked: ReplayRequest) -> ReplayResult:
    """What is wrong is in the answer."""
    os.environ.update({name: text for name, text in asked.inherited.items() if name != _OWN} | asked.environment)
    os.chdir(asked.folder)
    with confined_to(None if asked.roots is None else list(map(Path, asked.roots))):
        try:
            return _replayed(asked)
        except (ArroyoUdfError, OSError) as error:
            return ReplayResult(error=str(error), is_conflict=isinstance(error, Fenced | WrongCheckpoints))


def _replayed(asked: ReplayRequest) -> ReplayResult:
    rows = [(file, number, number) for file, number in asked.rows]
    edits = {(file, number): values for file, number, values in asked.edits}
    planned = opened_job(
        JobProgram.of_json(asked.program),
        asked.job_id,
        place=asked.place,
        parallelism=asked.parallelism,
        checkpoint_interval=asked.checkpoint_interval,
        retain=asked.retain,
        retain_for=asked.retain_for,
        environment=asked.environment,
        libraries=asked.libraries,
    )
    with contextlib.closing(planned):
        summary, counts = replay_planned(planned, Choice(rows, asked.again, edits), at_least=asked.resume_at)
    progress = summary.progress
    operators = [operator.counts for operator in progress.operators]
    return ReplayResult(
        rows_in=progress.rows_in,
        rows_out=progress.rows_out,
        failed=progress.dead_letters + sum(one.dead_letters for one in operators),
        dropped=progress.dropped + sum(one.dropped for one in operators),
        nulled=sum(one.nulled for one in operators),
        replayed_before=counts.replayed_before,
        unread=counts.unread,
        late=counts.late,
        of_windows=counts.of_windows,
    )
