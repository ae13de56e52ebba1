"""Jobs, their errors, checkpoints, metrics and rows.

Checkpoints that a job can go back to.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from . import Answer, Asked, Micros

ErrorDomain = Literal["user", "external", "internal"]
Level = Literal["info", "warn", "error"]
MetricName = Literal[
    "bytes_recv", "bytes_sent", "messages_recv", "messages_sent", "backpressure", "tx_queue_size", "tx_queue_rem"
]


class FailureReason(Answer):
    error: str
    domain: ErrorDomain


class Job(Answer):
    id: str
    pipeline_id: str
    running_desired: bool
    state: str
    run_id: int
    """How often it was scheduled."""
    start_time: Micros | None
    finish_time: Micros | None
    tasks: int | None
    failure_reason: FailureReason | None
    created_at: Micros
    scheduler_config: dict[str, Any]
    env_vars: dict[str, str]
    """Values are never returned."""
    waits_for: str | None
    """Why nothing happens to a job that is not as it is wished, such as that no controller runs."""


class JobLogMessage(Answer):
    id: str
    created_at: Micros
    operator_id: str | None
    task_index: int | None
    level: Level
    message: str
    details: str
    error_domain: ErrorDomain | None


class CheckpointEventSpan(Answer):
    event: str
    description: str
    start_time: Micros
    finish_time: Micros


class Checkpoint(Answer):
    epoch: int
    backend: str
    checkpoint_type: Literal["scheduled", "stopping"]
    start_time: Micros
    finish_time: Micros | None
    events: list[CheckpointEventSpan]


class SubtaskCheckpoint(Answer):
    index: int
    bytes: int
    event_spans: list[CheckpointEventSpan]


class OperatorCheckpointGroup(Answer):
    operator_id: str
    bytes: int
    started_metadata_write: Micros | None
    finish_time: Micros | None
    subtasks: list[SubtaskCheckpoint]


class Metric(Answer):
    time: Micros
    value: float


class SubtaskMetrics(Answer):
    index: int
    metrics: list[Metric]


class MetricGroup(Answer):
    name: MetricName
    subtasks: list[SubtaskMetrics]


class OperatorMetricGroup(Answer):
    node_id: int
    metric_groups: list[MetricGroup]


class OutputData(Answer):
    """Rows of a preview, as an event of its stream."""

    operator_id: str
    subtask_idx: int
    timestamps: list[Micros]
    start_id: int
    """How many rows this subtask has sent before."""
    batch: str
    """A JSON array of the rows."""


SavepointName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=100)]


class Savepoint(Answer):
    name: str
    epoch: int
    """Of the checkpoint that it is a copy of."""
    time: str | None
    """When that was taken (RFC 3339)."""
    bytes: int
    """Of the state of all operators."""


class SavepointPost(Asked):
    name: SavepointName


class RetainedCheckpoint(Answer):
    epoch: int
    finish_time: Micros | None


class LaterRows(Answer):
    """What a sink does with the rows that it has of later checkpoints."""

    sink: str
    later_rows: Literal["none", "withdrawn", "overwritten", "doubled"]
    """none: it keeps no rows. withdrawn: it takes them back. overwritten: they stay until rows with the same key come
    again. doubled: they stay, and come again."""


class Restorable(Answer):
    checkpoints: list[RetainedCheckpoint]
    """By epoch."""
    savepoints: list[Savepoint]
    """By name."""
    sinks: list[LaterRows]


class RestorePost(Asked):
    epoch: Annotated[int, pydantic.Field(ge=1, le=2**31 - 1)] | None = None
    savepoint: SavepointName | None = None
    """One of both."""
    accept_doubles: Annotated[list[str], pydantic.Field(default_factory=list)]
    """Names of sinks that may have rows twice."""
