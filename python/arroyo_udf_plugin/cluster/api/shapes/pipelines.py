"""Pipelines, their graphs, and what is wrong with a query.

Functions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from . import Answer, Asked, Micros

StopType = Literal["none", "checkpoint", "graceful", "immediate", "force"]
Parallelism = Annotated[int, pydantic.Field(ge=1, le=1024)]
SHORTEST_INTERVAL, LONGEST_INTERVAL = 1_000_000, 86_400_000_000
Interval = Annotated[int, pydantic.Field(ge=SHORTEST_INTERVAL, le=LONGEST_INTERVAL)]
"""From one checkpoint to the next: a second to a day."""
Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]
Query = Annotated[str, pydantic.Field(max_length=1 << 20)]
Variables = dict[Annotated[str, pydantic.Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)], str]
SchedulerName = Literal["local", "flink"]
"""local: on the controller's machine."""
Tags = dict[Annotated[str, pydantic.Field(min_length=1, max_length=256)], str]


class PipelineNode(Answer):
    node_id: int
    operator: str
    """The connector of a source or sink, or the kind of an operator."""
    description: str
    parallelism: int


class PipelineEdge(Answer):
    src_id: int
    dest_id: int
    key_type: str
    value_type: str
    edge_type: Literal["Forward", "Shuffle", "LeftJoin", "RightJoin"]


class PipelineGraph(Answer):
    nodes: list[PipelineNode]
    edges: list[PipelineEdge]


class Pipeline(Answer):
    id: str
    name: str
    query: str
    udfs: list[Udf]
    checkpoint_interval_micros: Micros
    stop: StopType
    created_at: Micros
    action: StopType | None
    """What the button would set `stop` to."""
    action_text: str
    """What is written on the button."""
    action_in_progress: bool
    graph: PipelineGraph
    preview: bool
    state_url: str | None
    tags: dict[str, str]
    waits_for: str | None
    """As its job's."""
    scheduler: str
    """Where it runs: local, on the controller's machine, or flink."""


class PipelinePost(Asked):
    name: Name
    query: Query
    parallelism: Parallelism = 1
    udfs: list[Udf] | None = None
    checkpoint_interval_micros: Interval | None = None
    state_url: Annotated[str, pydantic.Field(max_length=2000)] | None = None
    tags: Tags | None = None
    env_vars: Variables | None = None
    scheduler_config: dict[str, Any] | None = None
    scheduler: SchedulerName | None = None
    """Where it runs; default: as the cluster is configured. Previews are local."""


class PipelinePatch(Asked):
    """What is not named stays as it is."""

    tags: Tags | None = None
    """Instead of those that it has."""
    parallelism: Parallelism | None = None
    checkpoint_interval_micros: Interval | None = None
    stop: StopType | None = None
    env_vars: Variables | None = None
    scheduler_config: dict[str, Any] | None = None


class PipelineRestart(Asked):
    force: bool | None = None
    """End the workers at once, without a checkpoint."""
    ignore_state: bool | None = None
    """Start from the beginning, without the state in checkpoints."""
    discard_state: bool | None = None
    """The same: the state is given up, and rows are read, and come, again."""
    replan: bool | None = None
    """Plan the query anew, with the saved functions, tables and profiles as they are now."""
    query: Query | None = None
    """Run this query from now on. It goes on from the last checkpoint if the state fits to it."""
    scheduler: SchedulerName | None = None
    """Run it there from now on. The query is planned anew, and sources go on where they were; the job must have
    stopped."""

    @property
    def discards(self) -> bool:
        return bool(self.ignore_state or self.discard_state)

    @property
    def replans(self) -> bool:
        return bool(self.replan) or self.query is not None or self.scheduler is not None


class ActionPost(Asked):
    """What is to be done with all pipelines that fit: `labels`, `states`, or both must be there."""

    action: Literal["stop", "start", "restart"]
    labels: Tags | None = None
    """Tags that they have."""
    states: list[str] | None = None
    """Of their jobs: one of these."""
    how: StopType | None = None
    """Of a stop; default: checkpoint."""
    force: bool | None = None
    ignore_state: bool | None = None
    """As of a restart."""


class ActionRefused(Answer):
    id: str
    error: str


class ActionResult(Answer):
    done: list[str]
    """Ids of the pipelines whose wish was changed."""
    refused: list[ActionRefused]
    """Those that stay as they are, and why."""


class PreviewPost(PipelinePost):
    """The same as for a pipeline. A preview has a name, a parallelism and checkpoints of its own."""

    name: Name = "preview"
    enable_sinks: bool = False
    """The query's own sinks get the rows, too."""


class ValidateQueryPost(PipelinePost):
    """The same as for a pipeline."""

    name: Name = "query"


class Location(Answer):
    """Both count from 1."""

    line: int
    column: int


class Span(Answer):
    start: Location
    end: Location
    """The first position after it."""


class SqlDiagnostic(Answer):
    message: str
    span: Span | None


class QueryValidationResult(Answer):
    graph: PipelineGraph | None
    errors: list[SqlDiagnostic]


Language = Literal["python", "rust", "c"]
Definition = Annotated[str, pydantic.Field(max_length=1 << 20)]


class Udf(Asked):
    """A function of one pipeline, which travels with it."""

    definition: Definition
    """Its source, with one function."""
    language: Language = "rust"


Prefix = Annotated[str, pydantic.Field(pattern=r"^/([^/]+/)*$", max_length=200)]
"""The folder in which it is shown: "/" or "/a/b/"."""
Description = Annotated[str, pydantic.Field(max_length=10_000)]


class UdfPost(Asked):
    prefix: Prefix = "/"
    definition: Definition
    language: Language = "rust"
    description: Description | None = None


class UdfPatch(Asked):
    """What is not named stays as it is."""

    prefix: Prefix | None = None
    definition: Definition | None = None
    language: Language | None = None
    description: Description | None = None


class ValidateUdfPost(Asked):
    definition: Definition
    language: Language = "rust"


class GlobalUdf(Answer):
    """A function that every query may call."""

    id: str
    prefix: str
    name: str
    language: Language
    created_at: Micros
    updated_at: Micros
    definition: str
    description: str | None
    dylib_url: str | None
    """The library that was built of it."""


class UdfValidationResult(Answer):
    udf_name: str | None
    errors: list[str]
