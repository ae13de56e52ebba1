"""The rows of a preview, as server-sent events.

    id: 0
    data: {"operator_id": "...", "subtask_idx": 0, "timestamps": [...], "start_id": 0, "batch": "[{...}]"}

Guarantees: rows come in the order in which they were stored, and none is left out, however slow the reader is, as long
as they are kept. A reader that comes late gets those from before; one that comes again with Last-Event-ID gets what it
has not had. A job that has ended ends the stream, with an event `end`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import fastapi
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ..database.models import TERMINAL
from .dependencies import ApiParts, ThePart
from .failures import STREAM, Refusal
from .jobs import job_at

router = fastapi.APIRouter(tags=["jobs"])

_QUIET_SECONDS = 15.0
_STARTING = ("Created", "Compiling", "Scheduling", "Recovering", "Restarting", "Rescaling")


@router.get("/pipelines/{id}/jobs/{job_id}/output", response_class=StreamingResponse, responses=STREAM)
async def output(
    parts: ThePart,
    id: str,
    job_id: str,
    last_event_id: Annotated[str | None, fastapi.Header(alias="Last-Event-ID")] = None,
) -> StreamingResponse:
    """The rows that come out, as they come."""
    parts.quotas.check_stream()
    ended = await run_in_threadpool(_has_ended, parts, id, job_id)
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    events = _events(parts, job_id, _number(last_event_id), ended)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _has_ended(parts: ApiParts, id: str, job_id: str) -> bool:
    """Raises Refusal if there are no rows to wait for."""
    with parts.database.read() as session:
        whole = job_at(session, id, job_id)
    if not any("preview" in node["operator"] for node in whole.pipeline.graph.get("nodes", [])):
        raise Refusal(400, "this pipeline has no preview: its rows go to its sinks only")
    if whole.status.state in _STARTING:
        raise Refusal(400, f"the job is {whole.status.state}: ask when it is Running")
    return whole.status.state in TERMINAL


async def _events(parts: ApiParts, job_id: str, number: int, ended: bool = False) -> AsyncIterator[str]:
    """number: of the first event that the reader has not had. ended: the job has ended. A comment says that the stream
    is still there."""
    reader = parts.records.output(job_id, number)
    with parts.streams.waiting(job_id, ended) as waiting:
        while True:
            waiting.look()
            is_last = waiting.ended
            lines = await run_in_threadpool(reader.read)
            for line in lines:
                yield f"id: {line.number}\ndata: {line.text}\n\n"
            if lines:
                continue
            if is_last:
                yield "event: end\ndata: {}\n\n"
                return
            if not await waiting.more(_QUIET_SECONDS):
                yield ": nothing new\n\n"


def _number(last_event_id: str | None) -> int:
    """Of the first event that the reader has not had."""
    if last_event_id is None or not last_event_id.isdecimal() or len(last_event_id) > 15:
        return 0
    return int(last_event_id) + 1
