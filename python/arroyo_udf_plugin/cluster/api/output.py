"""The rows of a preview, as server-sent events.

    id: 0
    data: {"operator_id": "...", "subtask_idx": 0, "timestamps": [...], "start_id": 0, "batch": "[{...}]"}

Guarantees: rows come in the order in which they were stored, and none is left out, however slow the reader is, as long
as the database keeps them. A reader that comes late gets those from before; one that comes again with Last-Event-ID
gets what it has not had. A job that has ended ends the stream, with an event `end`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import fastapi
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ..database import history
from ..database import pipelines as rows
from ..database.errors import NotFound
from .failures import Refusal
from .jobs import job_at
from .parts import Parts, ThePart
from .shapes.jobs import OutputData

router = fastapi.APIRouter(tags=["jobs"])

_POLL_SECONDS = 0.2
_QUIET_SECONDS = 15.0
_STARTING = ("Created", "Compiling", "Scheduling", "Recovering", "Restarting", "Rescaling")


@router.get("/pipelines/{id}/jobs/{job_id}/output", response_class=StreamingResponse)
async def output(
    parts: ThePart,
    id: str,
    job_id: str,
    last_event_id: Annotated[str | None, fastapi.Header(alias="Last-Event-ID")] = None,
) -> StreamingResponse:
    """The rows that come out, as they come."""
    await run_in_threadpool(_check, parts, id, job_id)
    after = _number(last_event_id)
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return StreamingResponse(_events(parts, job_id, after), media_type="text/event-stream", headers=headers)


def _check(parts: Parts, id: str, job_id: str) -> None:
    with parts.database.read() as session:
        whole = job_at(session, id, job_id)
    if not any("preview" in node["operator"] for node in whole.pipeline.graph.get("nodes", [])):
        raise Refusal(400, "this pipeline has no preview: its rows go to its sinks only")
    if whole.status.state in _STARTING:
        raise Refusal(400, f"the job is {whole.status.state}: ask when it is Running")


async def _events(parts: Parts, job_id: str, number: int) -> AsyncIterator[str]:
    """number: of the first event that the reader has not had. A comment says that the stream is still there."""
    serial, quiet = 0, 0.0
    while True:
        ended, found = await run_in_threadpool(_read, parts, job_id, serial)
        for serial, its_number, data in found:  # noqa: B007 (the last one is where to go on)
            if its_number >= number:
                yield f"id: {its_number}\ndata: {data}\n\n"
        if found:
            quiet = 0.0
            continue
        if ended:
            yield "event: end\ndata: {}\n\n"
            return
        if quiet >= _QUIET_SECONDS:
            yield ": nothing new\n\n"
            quiet = 0.0
        await asyncio.sleep(_POLL_SECONDS)
        quiet += _POLL_SECONDS


def _read(parts: Parts, job_id: str, serial: int) -> tuple[bool, list[tuple[int, int, str]]]:
    """Whether the job had ended before, and the events behind a serial number."""
    with parts.database.read() as session:
        try:
            ended = rows.of_job(session, job_id).status.state in rows.TERMINAL
        except NotFound:
            return True, []
        return ended, [
            (
                row.serial,
                row.number,
                OutputData(
                    operator_id=row.operator_id,
                    subtask_idx=row.subtask_idx,
                    timestamps=row.timestamps,
                    start_id=row.start_id,
                    batch=row.batch,
                ).model_dump_json(),
            )
            for row in history.output(session, job_id, serial)
        ]


def _number(last_event_id: str | None) -> int:
    """Of the first event that the reader has not had."""
    if last_event_id is None or not last_event_id.isdecimal() or len(last_event_id) > 15:
        return 0
    return int(last_event_id) + 1
