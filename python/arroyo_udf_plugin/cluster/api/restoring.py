"""Going back: to a retained checkpoint, or to a savepoint, which is taken here.

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

from ...engine.epoch_files import EpochFiles
from ...engine.savepoints import Savepoint as Taken
from ...engine.savepoints import Savepoints
from ...engine.store import Store, open_store
from ...errors import InvalidArgument, WrongCheckpoints
from ...pipeline.description import Pipeline as Description
from ...pipeline.plan import sink_names
from ..database import history, places
from ..database import pipelines as rows
from ..database.models import Checkpoint
from ..database.pipelines import Whole
from .bodies import JsonRoute
from .failures import Refusal
from .jobs import job_at
from .parts import Parts, ThePart
from .shapes.base import Listed
from .shapes.pipelines import Pipeline
from .shapes.restoring import LaterRows, Restorable, RestorePost, RetainedCheckpoint, Savepoint, SavepointPost
from .told import pipeline_of

router = fastapi.APIRouter(tags=["jobs"], route_class=JsonRoute)

_JOB = "/pipelines/{id}/jobs/{job_id}"
_PATIENCE = 5.0  # seconds for an object store that does not answer
OneName = Annotated[str, fastapi.Path(max_length=100)]


@router.get(_JOB + "/savepoints")
def listed(parts: ThePart, id: str, job_id: str) -> Listed[Savepoint]:
    """By name: copies of checkpoints, which stay until they or the pipeline are deleted."""
    store = _state(parts, id, job_id)
    with _reading():
        return Listed(data=[_told(one) for one in Savepoints(store).listed()])


@router.post(_JOB + "/savepoints")
def take(parts: ThePart, id: str, job_id: str, asked: SavepointPost) -> Savepoint:
    """Copies the job's latest checkpoint, whether it runs or not."""
    store = _state(parts, id, job_id)
    with _reading():
        return _told(Savepoints(store).take(asked.name))


@router.delete(_JOB + "/savepoints/{name}", response_class=Response)
def delete(parts: ThePart, id: str, job_id: str, name: OneName) -> Response:
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
        there, savepoints = _there(_state(parts, id, job_id)), listed(parts, id, job_id).data
    return Restorable(
        checkpoints=[
            RetainedCheckpoint(epoch=one.epoch, finish_time=one.finish_time) for one in retained if one.epoch in there
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
    if asked.savepoint is not None and asked.savepoint not in [one.name for one in listed(parts, id, job_id).data]:
        raise Refusal(404, "Savepoint not found")
    in_store = _there(_state(parts, id, job_id)) if asked.epoch is not None else set[int]()
    with parts.database.begin() as session:
        whole = job_at(session, id, job_id)
        there = [one.epoch for one in _retained(session, whole) if one.epoch in in_store]
        if asked.epoch is not None and asked.epoch not in there:
            raise Refusal(404, f"Checkpoint not found: there are {', '.join(map(str, there)) or 'none'}")
        _check_doubles(whole, asked)
        parts.quotas.check_change(session, whole, {"stop": "none"})
        to: dict[str, Any] = {"epoch": asked.epoch} if asked.savepoint is None else {"savepoint": asked.savepoint}
        told = pipeline_of(rows.restart(session, id, restore=to | {"doubles": asked.accept_doubles}))
    parts.wake()
    return told


def _check_doubles(whole: Whole, asked: RestorePost) -> None:
    fates = {one.sink: one.later_rows for one in _later_rows(whole)}
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


def _later_rows(whole: Whole) -> Iterator[LaterRows]:
    described = Description.model_validate_json(json.dumps(whole.pipeline.program["pipeline"]))
    for name, sink in zip(sink_names(described), described.sinks, strict=True):
        yield LaterRows(sink=name, later_rows=sink.fate)
    if described.dead_letters is not None:
        yield LaterRows(sink="dead_letters", later_rows=described.dead_letters.fate)


def _there(store: Store) -> set[int]:
    """Epochs that are in the place now: the job may have gone on since it has told its last one."""
    with _reading():
        return set(EpochFiles(store).numbers())


def _retained(session: Session, whole: Whole) -> list[Checkpoint]:
    found = history.checkpoints(session, whole.job.id)
    return [one for one in found if one.retained and one.history == whole.job.history]


def _state(parts: Parts, id: str, job_id: str) -> Store:
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


def _told(one: Taken) -> Savepoint:
    return Savepoint(name=one.name, epoch=one.epoch, time=one.time, bytes=one.state_bytes)
