"""Rows of the database as answers of the API, with the button of a pipeline: its label, the `stop` that it sets, and
whether a change is under way.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from sqlalchemy.orm import object_session

from ..database import jobs
from ..database.models import TERMINAL, JobLog, JobRow, JobStatus, UdfRow
from ..database.pipelines import WholeJob
from .shapes.jobs import ErrorDomain, FailureReason, Job, JobLogMessage, Level
from .shapes.pipelines import GlobalUdf, Language, Pipeline, PipelineGraph, StopType, Udf

HIDDEN = "********"
"""Instead of a value that is never told."""
NOT_TOLD = f"{HIDDEN} stands for a value that is not told: write the value"


NOBODY_LEADS = "no controller runs: start arroyo-udf cluster, or arroyo-udf controller"


def waits_for(job: JobRow, status: JobStatus) -> str | None:
    """Why nothing happens to a job that has not ended as it is wished. None: it has, or a controller is at it."""
    session = object_session(job)
    if session is None or (status.state in TERMINAL and job.revision == job.fulfilled):
        return None
    if "is_led" not in session.info:  # once for a list
        session.info["is_led"] = jobs.is_led(session)
    return None if session.info["is_led"] else NOBODY_LEADS


def pipeline_of(whole: WholeJob) -> Pipeline:
    row, job, status = whole
    chosen = button(status.state, job.stop == "none")
    return Pipeline(
        id=row.id,
        name=row.name,
        query=row.query,
        udfs=[Udf.model_validate(udf) for udf in row.udfs],
        checkpoint_interval_micros=job.checkpoint_interval_micros,
        stop=cast("StopType", job.stop),
        created_at=row.created_at,
        action=chosen.action,
        action_text=chosen.text,
        action_in_progress=chosen.busy,
        graph=_graph(row.graph, job.parallelism),
        preview=row.is_preview,
        state_url=row.state_url,
        tags=row.tags,
        waits_for=waits_for(job, status),
        scheduler=job.scheduler,
    )


def _graph(graph: dict[str, Any], parallelism: int) -> PipelineGraph:
    """With the parallelism that is wished by now. Boxes of which there is only one stay alone."""
    nodes = [node | {"parallelism": 1 if node.get("alone") else parallelism} for node in graph.get("nodes", [])]
    return PipelineGraph.model_validate({"nodes": nodes, "edges": graph.get("edges", [])})


def job_of(pipeline_id: str, job: JobRow, status: JobStatus) -> Job:
    failure = status.failure_message
    return Job(
        id=job.id,
        pipeline_id=pipeline_id,
        running_desired=job.stop == "none",
        state=status.state,
        run_id=status.generation,
        start_time=status.start_time,
        finish_time=status.finish_time,
        tasks=status.tasks,
        failure_reason=None
        if failure is None
        else FailureReason(error=failure, domain=cast("ErrorDomain", status.failure_domain or "internal")),
        created_at=job.created_at,
        scheduler_config=job.scheduler_config,
        env_vars=dict.fromkeys(job.env_vars, HIDDEN),
        waits_for=waits_for(job, status),
    )


def log_of(row: JobLog) -> JobLogMessage:
    return JobLogMessage(
        id=row.id,
        created_at=row.created_at,
        operator_id=row.operator_id,
        task_index=row.task_index,
        level=cast("Level", row.level),
        message=row.message,
        details=row.details,
        error_domain=cast("ErrorDomain | None", row.error_domain),
    )


def udf_of(row: UdfRow, library: str | None) -> GlobalUdf:
    return GlobalUdf(
        id=row.id,
        prefix=row.prefix,
        name=row.name,
        language=cast("Language", row.language),
        created_at=row.created_at,
        updated_at=row.updated_at,
        definition=row.definition,
        description=row.description,
        dylib_url=library,
    )


class Button(NamedTuple):
    """action: None: it does nothing now."""

    text: str
    action: StopType | None
    busy: bool


_BUSY_STOP = Button("Stop", "checkpoint", True)
_STOPPING = Button("Stopping", None, True)
_START = Button("Start", "none", False)
_FORCE = Button("Force Stop", "immediate", True)

_BUTTONS: dict[str, tuple[Button, Button]] = {
    # state: while it is wanted that the job runs, while it is not
    "Created": (_BUSY_STOP, _START),
    **dict.fromkeys(("Compiling", "Scheduling", "Rescaling", "Recovering", "Restarting"), (_BUSY_STOP, _STOPPING)),
    "Running": (Button("Stop", "checkpoint", False), _STOPPING),
    "CheckpointStopping": (_FORCE, _FORCE),
    "Stopping": (Button("Stopping", "checkpoint", True), _STOPPING),
    "Stopped": (Button("Starting", None, True), _START),
    **{state: (Button(state, None, True),) * 2 for state in ("Finishing", "Failing")},
    "Finished": (Button("Finished", None, False),) * 2,
    "Failed": (Button("Failed", None, False), _START),
}


def button(state: str, wanted: bool) -> Button:
    """wanted: that it runs. A state of a newer version has a button that does nothing."""
    both = _BUTTONS.get(state, (Button(state, None, True),) * 2)
    return both[0 if wanted else 1]
