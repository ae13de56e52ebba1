"""What requests and answers of our own endpoints look like."""

from __future__ import annotations

from typing import Literal

from ...tokens import Role
from ..shapes import Answer, Micros
from ..shapes.jobs import FailureReason
from ..shapes.pipelines import Language, SchedulerName, StopType


class Identity(Answer):
    """Who the caller is, and what he talks to."""

    name: str
    role: Role
    version: str
    asks_for_token: bool
    """False: everybody may do everything, and nobody logs in."""
    schedulers: list[SchedulerName]
    """Those that a new pipeline may choose; the first is taken if it chooses none."""


FindingKind = Literal[
    "failed", "crash", "stuck", "blocked", "order", "stalled", "failing", "timeouts", "retries", "slow"
]
"""failed: the job has ended so. crash: the worker dies. stuck: calls ignore their cancellation. blocked: a call holds
the event loop. order: rows have ended, and wait for an earlier one. stalled: calls are under way, and none ends.
failing, timeouts: rows end so. retries: rows wait for another call. slow: rows come faster than they leave."""


class StreamFinding(Answer):
    """What holds a stream back, or goes wrong, at one node. The first of several is the worst."""

    kind: FindingKind
    node_id: int | None
    """None: the job as a whole."""
    name: str
    """Of the node, for people."""
    text: str
    """What is seen, in numbers, and what to do."""


class PipelineLine(Answer):
    """A line of the list of pipelines. Rates are rows in a second."""

    id: str
    job_id: str
    name: str
    tags: dict[str, str]
    state: str
    state_since: Micros
    stop: StopType
    created_at: Micros
    rows_in: float | None
    """From sources; None: not known, or it does not run."""
    rows_out: float | None
    """Into sinks."""
    lag: float | None
    """Seconds of event time by which the slowest node is behind the source."""
    finding: StreamFinding | None
    failure_reason: FailureReason | None
    waits_for: str | None


class Overview(Answer):
    """Some pipelines, the newest first, and how many there are that fit, by state."""

    data: list[PipelineLine]
    total: int
    states: dict[str, int]


class WaitingRow(Answer):
    """The row that a function has had longest: others wait for it where results keep their order."""

    file: str
    row: int
    since: Micros


class SourceGauge(Answer):
    """What a source tells of what it reads, over all slices. name: "lag", "retained" or "unread"; connectors of others
    may have further ones. unit: "bytes", "messages" or "seconds"."""

    name: str
    value: float
    unit: str


class NodeCounts(Answer):
    """What a node has counted since its generation began, and what it does now, over all slices."""

    node_id: int
    name: str
    operator: str
    rows_in: int
    rows_out: int
    bytes_in: int
    bytes_out: int
    blocked: float
    """Seconds in which it had rows that those behind it did not take, the most of a slice."""
    gauges: list[SourceGauge]
    """Of sources alone."""
    in_flight: int
    held: int
    held_by_order: int
    backing_off: int
    stuck: int
    retries: int
    loop_blocked: int
    outcomes: dict[str, int]
    latency: dict[str, int]
    """Rows by how long they took: the number of a bucket, four for each doubling, and its rows."""
    latency_max: float
    lag: float | None
    watermark: Micros | None
    oldest: WaitingRow | None


class Point(Answer):
    """What a generation had counted at a time."""

    at: Micros
    generation: int
    nodes: list[NodeCounts]


class Complaint(Answer):
    """What a function's runtime has said in the job's log, with the stack of the call."""

    kind: Literal["stuck", "blocked", "failed"]
    at: Micros
    text: str
    stack: str


class Live(Answer):
    """A running pipeline. points: those after the time that was asked for, by time; the last one may be old, because
    a job that does nothing counts nothing."""

    now: Micros
    state: str
    state_since: Micros
    generation: int
    restarts: int
    """In a row."""
    points: list[Point]
    findings: list[StreamFinding]
    complaints: list[Complaint]
    """The newest first."""


class Use(Answer):
    """A pipeline that uses a function. is_current: it has the library that the function has now."""

    id: str
    name: str
    state: str
    is_current: bool


class FunctionVersion(Answer):
    """A definition that a function has, or has had."""

    number: int
    """From 1."""
    language: Language
    definition: str
    created_at: Micros


class FunctionUse(Answer):
    name: str
    language: Language
    signature: str | None
    """None: it cannot be built any more."""
    pipelines: list[Use]
    versions: list[FunctionVersion]
    """The newest first: that is the one that it has."""
