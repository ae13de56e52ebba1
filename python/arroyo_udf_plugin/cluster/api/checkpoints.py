"""Checkpoints of a job, and what each part of it took."""

from __future__ import annotations

from typing import Annotated, Any

import fastapi

from ..database import history
from ..database.opened import now
from .jobs import job_at
from .parts import ThePart
from .shapes.base import Listed
from .shapes.jobs import Checkpoint, CheckpointEventSpan, OperatorCheckpointGroup, SubtaskCheckpoint

router = fastapi.APIRouter(tags=["jobs"])
Epoch = Annotated[int, fastapi.Path(ge=0, le=2**31 - 1)]
_PATH = "/pipelines/{id}/jobs/{job_id}/checkpoints"


@router.get(_PATH)
def listed(parts: ThePart, id: str, job_id: str) -> Listed[Checkpoint]:
    """By epoch; those that are there or under way."""
    with parts.database.read() as session:
        found = history.checkpoints(session, job_at(session, id, job_id).job.id)
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
            for row in found
        ]
    )


@router.get(_PATH + "/{epoch}/operator_checkpoint_groups")
def groups(parts: ThePart, id: str, job_id: str, epoch: Epoch) -> Listed[OperatorCheckpointGroup]:
    """What each operator took for an epoch."""
    with parts.database.read() as session:
        row = history.one_checkpoint(session, job_at(session, id, job_id).job.id, epoch)
    time = now()
    operators = sorted(row.operators.items(), key=lambda pair: _number(pair[0]))
    return Listed(data=[_group(name, told, row.finish_time, time) for name, told in operators])


def _number(operator_id: str) -> int:
    """Of its node."""
    return int(operator_id.rpartition("_")[2])


def _group(name: str, told: dict[str, Any], finish_time: int | None, time: int) -> OperatorCheckpointGroup:
    subtasks = told.get("subtasks") or {"0": {"bytes": told.get("bytes", 0)}}
    return OperatorCheckpointGroup(
        operator_id=name,
        bytes=told.get("bytes", 0),
        started_metadata_write=told.get("started_metadata_write"),
        finish_time=told.get("finish_time", finish_time),
        subtasks=[
            SubtaskCheckpoint(
                index=int(index), bytes=one.get("bytes", 0), event_spans=_spans(one.get("event_spans", []), time)
            )
            for index, one in sorted(subtasks.items(), key=lambda pair: int(pair[0]))
        ],
    )


def _spans(events: list[Any], time: int) -> list[CheckpointEventSpan]:
    """A span that goes on ends now: so nobody draws it backwards."""
    return [
        CheckpointEventSpan(
            event=one["event"],
            description=one.get("description", ""),
            start_time=one["start_time"],
            finish_time=max(one.get("finish_time") or time, one["start_time"]),
        )
        for one in events
    ]
