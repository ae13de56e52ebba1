"""Checkpoints of a job, what each part of it took, and the way back: to a retained checkpoint, or to a savepoint, which
is taken here.

Savepoints are read and written in the place of the job's state, by this process; all else is a wish, and its worker
says once more, exactly, what would be doubled, before it changes anything.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

import fastapi
from fastapi.responses import Response
from sqlalchemy.orm import Session

from ...engine.execution.epoch_files import EpochFiles
from ...engine.execution.savepoints import Savepoints
from ...engine.execution.savepoints import TakenSavepoint as Taken
from ...engine.execution.store import Store, open_store
from ...engine.pipeline.routing import sink_names
from ...errors import InvalidArgument, WrongCheckpoints
from ..database import history, places
from ..database import pipelines as rows
from ..database.database import now
from ..database.models import CheckpointRow as TakenCheckpoint
from ..database.pipelines import WholeJob
from .dependencies import ApiParts, ThePart
from .failures import Refusal
from .jobs import job_at
from .responses import pipeline_of
from .shapes import Listed
from .shapes.jobs import (
    Checkpoint,
    CheckpointEventSpan,
    LaterRows,
    OperatorCheckpointGroup,
    Restorable,
    RestorePost,
    RetainedCheckpoint,
    Savepoint,
    SavepointPost,
    SubtaskCheckpoint,
)
from .shapes.pipelines import Pipeline
from .transport import JsonRoute

router = fastapi.APIRouter(tags=["jobs"], route_class=JsonRoute)
Epoch = Annotated[int, fastapi.Path(ge=0, le=2**31 - 1)]
_PATH = "/pipelines/{id}/jobs/{job_id}/checkpoints"


@router.get(_PATH)
def listed(parts: ThePart, id: str, job_id: str) -> Listed[Checkpoint]:
    """By epoch; those that are there or under way."""
    with parts.database.read() as session:
        checkpoints = history.checkpoints(session, job_at(session, id, job_id).job.id)
    time = now()
    return Listed(
        data=[
            Checkpoint(
                epoch=row.epoch,
                backend="parquet",
                checkpoint_type="stopping" if row.checkpoint_type == "stopping" else "scheduled",
                start_time=row.start_time,
                finish_time=row.finish_time,
                events=_spans(row.events, time),
            )
            for row in checkpoints
        ]
    )


@router.get(_PATH + "/{epoch}/operator_checkpoint_groups")
def groups(parts: ThePart, id: str, job_id: str, epoch: Epoch) -> Listed[OperatorCheckpointGroup]:
    """What each operator took for an epoch."""
    with parts.database.read() as session:
        row = history.one_checkpoint(session, job_at(session, id, job_id).job.id, epoch)
    time = now()
    operators = sorted(row.operators.items(), key=lambda pair: _number(pair[0]))
    return Listed(data=[_group(name, operator, row.finish_time, time) for name, operator in operators])


def _number(operator_id: str) -> int:
    """Of its node."""
    return int(operator_id.rpartition("_")[2])


def _group(name: str, operator: dict[str, Any], finish_time: int | None, time: int) -> OperatorCheckpointGroup:
    subtasks = operator.get("subtasks") or {"0": {"bytes": operator.get("bytes", 0)}}
    return OperatorCheckpointGroup(
        operator_id=name,
        bytes=operator.get("bytes", 0),
        started_metadata_write=operator.get("started_metadata_write"),
        finish_time=operator.get("finish_time", finish_time),
        subtasks=[
            SubtaskCheckpoint(
                index=int(index),
                bytes=subtask.get("bytes", 0),
                event_spans=_spans(subtask.get("event_spans", []), time),
            )
            for index, subtask in sorted(subtasks.items(), key=lambda pair: int(pair[0]))
        ],
    )


def _spans(events: list[Any], time: int) -> list[CheckpointEventSpan]:
    """A span that goes on ends now: so nobody draws it backwards."""
    return [
        CheckpointEventSpan(
            event=event["event"],
            description=event.get("description", ""),
            start_time=event["start_time"],
            finish_time=max(event.get("finish_time") or time, event["start_time"]),
        )
        for event in events
    ]


_JOB = "/pipelines/{id}/jobs/{job_id}"
_PATIENCE = 5.0  # seconds for an object store that does not answer
OneName = Annotated[str, fastapi.Path(max_length=100)]


@router.get(_JOB + "/savepoints")
def list_savepoints(parts: ThePart, id: str, job_id: str) -> Listed[Savepoint]:
    """By name: copies of checkpoints, which stay until they or the pipeline are deleted."""
    store = _state(parts, id, job_id)
    with _reading():
        return Listed(data=[_savepoint(savepoint) for savepoint in Savepoints(store).listed()])


@router.post(_JOB + "/savepoints")
def take_savepoint(parts: ThePart, id: str, job_id: str, asked: SavepointPost) -> Savepoint:
    """Copies the job's latest checkpoint, whether it runs or not."""
    store = _state(parts, id, job_id)
    with _reading():
        return _savepoint(Savepoints(store).take(asked.name))


@router.delete(_JOB + "/savepoints/{name}", response_class=Response)
def delete_savepoint(parts: ThePart, id: str, job_id: str, name: OneName) -> Response:
    """The answer is empty."""
    store = _state(parts, id, job_id)
    with _reading():
        try:
            Savepoints(store).delete(name)
        except WrongCheckpoints:
            raise Refusal(404, "Savepoint not found") from None
    return Response()


@router.get(_JOB + "/restore")
def restorable(parts: ThePart, id: str, job_id: str) -> Restorable:
    """To what the job can go back, and what its sinks then do with rows of later checkpoints."""
    with parts.database.read() as session:
        whole = job_at(session, id, job_id)
        retained = _retained(session, whole)
    if whole.job.place is None:
        there, savepoints = set[int](), list[Savepoint]()
    else:
        there, savepoints = _there(_state(parts, id, job_id)), list_savepoints(parts, id, job_id).data
    return Restorable(
        checkpoints=[
            RetainedCheckpoint(epoch=checkpoint.epoch, finish_time=checkpoint.finish_time)
            for checkpoint in retained
            if checkpoint.epoch in there
        ],
        savepoints=savepoints,
        sinks=list(_later_rows(whole)),
    )


@router.post(_JOB + "/restore")
def restore(parts: ThePart, id: str, job_id: str, asked: RestorePost) -> Pipeline:
    """Goes back, and on from there. What came later is given up; refused if a sink would have rows twice that is not
    among `accept_doubles`."""
    if (asked.epoch is None) == (asked.savepoint is None):
        raise Refusal(400, "name what to go back to: either epoch or savepoint")
    if asked.savepoint is not None and asked.savepoint not in [
        savepoint.name for savepoint in list_savepoints(parts, id, job_id).data
    ]:
        raise Refusal(404, "Savepoint not found")
    in_store = _there(_state(parts, id, job_id)) if asked.epoch is not None else set[int]()
    with parts.database.begin() as session:
        whole = job_at(session, id, job_id)
        there = [checkpoint.epoch for checkpoint in _retained(session, whole) if checkpoint.epoch in in_store]
        if asked.epoch is not None and asked.epoch not in there:
            raise Refusal(404, f"Checkpoint not found: there are {', '.join(map(str, there)) or 'none'}")
        _check_doubles(whole, asked)
        parts.quotas.check_change(session, whole, {"stop": "none"})
        to: dict[str, Any] = {"epoch": asked.epoch} if asked.savepoint is None else {"savepoint": asked.savepoint}
        pipeline = pipeline_of(rows.restart(session, id, restore=to | {"doubles": asked.accept_doubles}))
    parts.wake()
    return pipeline


def _check_doubles(whole: WholeJob, asked: RestorePost) -> None:
    fates = {sink.sink: sink.later_rows for sink in _later_rows(whole)}
    unknown = [name for name in asked.accept_doubles if name not in fates]
    if unknown:
        raise Refusal(400, f"accept_doubles: there is no sink {unknown[0]}: there are {', '.join(fates)}")
    doubled = [name for name, fate in fates.items() if fate == "doubled" and name not in asked.accept_doubles]
    if doubled:
        raise Refusal(
            409,
            f"rows of later checkpoints stay in {', '.join(doubled)}, and come again: to go back all the same, send "
            f'"accept_doubles": {json.dumps(doubled)}',
        )


def _later_rows(whole: WholeJob) -> Iterator[LaterRows]:
    described = whole.program.description()
    for name, sink in zip(sink_names(described), described.sinks, strict=True):
        yield LaterRows(sink=name, later_rows=sink.fate)
    if described.dead_letters is not None:
        yield LaterRows(sink="dead_letters", later_rows=described.dead_letters.fate)


def _there(store: Store) -> set[int]:
    """Epochs that are in the place now: the job may have gone on since it has told its last one."""
    with _reading():
        return set(EpochFiles(store).numbers())


def _retained(session: Session, whole: WholeJob) -> list[TakenCheckpoint]:
    checkpoints = history.checkpoints(session, whole.job.id)
    return [checkpoint for checkpoint in checkpoints if checkpoint.retained and checkpoint.history == whole.job.history]


def _state(parts: ApiParts, id: str, job_id: str) -> Store:
    """Raises Refusal for a job that has no checkpoints."""
    with parts.database.read() as session:
        place = places.state_of(job_at(session, id, job_id).job)
    if place is None:
        raise Refusal(400, "this job has no checkpoints")
    return open_store(place, _PATIENCE)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Errors of the place become answers."""
    try:
        yield
    except InvalidArgument as error:
        raise Refusal(409 if isinstance(error, WrongCheckpoints) else 400, str(error)) from None


def _savepoint(taken: Taken) -> Savepoint:
    return Savepoint(name=taken.name, epoch=taken.epoch, time=taken.time, bytes=taken.state_bytes)
