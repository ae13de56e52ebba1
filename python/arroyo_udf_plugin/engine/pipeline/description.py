"""The models of a description: `Pipeline` and its parts. Each key's text below it is its help in errors and schema.

The models of operators are in kinds/, those of sources and sinks beside their connectors.

    Pipeline(
        name="speeds",
        source=Files(paths=["flights.parquet"]),
        operators=[Functions(plugin="speeds.py", calls=["speed = mph(distance, air_time)"])],
        sinks=[Parts(path="speeds")],
    )

Assumes: what takes more than the description itself to check is checked by `plan`.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pydantic

from ..connectors.described import Described, Input, Output, Period, Seconds, Several
from ..connectors.registry import sink_models, source_models
from .kinds import OPERATORS
from .kinds.kind import DescribedOperator, Name

if TYPE_CHECKING:
    SourceModel = Input
    SinkModel = Output


class EventTime(Described):
    """When the events happened that the rows tell of."""

    later: ClassVar[frozenset[str]] = frozenset({"computed", "watermark"})

    column: str
    """The source's column of timestamps or dates, or one of `computed`."""
    computed: dict[str, str] = pydantic.Field(default_factory=dict)
    """Columns in place of the source's, for `column` and `watermark`: an expression in DataFusion's SQL for each name,
    such as at = "to_timestamp_millis(ms)"."""
    watermark: str | None = None
    """An expression in SQL for the watermark after a row, in place of the event time in `column`."""
    lateness: Seconds = 0.0
    """How late a row may come after rows with later event times."""
    idle: Seconds | None = None
    """After so long without a row, the source holds the watermark back no more; without it, never."""


class NamedSource(Described):
    """A further source."""

    source: SourceModel
    """Where rows come from."""
    event_time: EventTime | None = None
    """For watermarks."""


class Checkpoints(Described):
    """Where the state is kept, so that a pipeline goes on where it has been, and how often."""

    place: str | None = None
    """A folder, or the URL of an object store, such as s3://bucket/folder; `--checkpoints` names another one. Without a
    place there are no checkpoints."""
    every: Period | None = None
    """The time from one checkpoint to the next; default: 10 s, if `every_rows` is not set either."""
    every_rows: Annotated[int, pydantic.Field(ge=1)] | None = None
    """The rows that are read from one checkpoint to the next; with `every`, whatever comes first."""
    retain: Annotated[int, pydantic.Field(ge=1)] | None = None
    """How many checkpoints are kept, to go back to one of them; default: 3."""
    retain_for: Period | None = None
    """Checkpoints that are not older are kept, too. Each start reads what all of them say."""

    later = frozenset({"retain_for"})


def _kind(value: Any) -> Any:
    """Which operator it is: `type` may be left out."""
    return value.get("type", "functions") if isinstance(value, dict) else getattr(value, "type", "functions")


if TYPE_CHECKING:
    OperatorModel = DescribedOperator
else:  # one of those that there are
    _TAGGED = [Annotated[model, pydantic.Tag(model.model_fields["type"].default)] for model in OPERATORS]
    OperatorModel = Annotated[functools.reduce(operator.or_, _TAGGED), pydantic.Discriminator(_kind)]


class Pipeline(Described):
    """One or more sources, operators, one or more sinks."""

    name: Name
    """A name by which databases and checkpoints know the pipeline: letters, digits, `_`, `.` and `-`."""
    source: SourceModel
    """Where rows come from."""
    sources: dict[Name, NamedSource] = pydantic.Field(default_factory=dict)
    """Further sources, by names for the `after` and `inputs` of operators."""
    operators: Several[OperatorModel] = ()
    """What rows pass through, in this order, or where `after` says."""
    sinks: Annotated[Several[SinkModel], pydantic.Field(min_length=1)]
    """Where rows go; each gets all of them, or those of the operator that `after` names."""
    dead_letters: SinkModel | None = None
    """Where rows go whose policy is "dead_letter"."""
    event_time: EventTime | None = None
    """The event time of `source`, for watermarks."""
    parallelism: Annotated[int, pydantic.Field(ge=1, le=1024)] = 1
    """How many slices run side by side. Each is a copy of the chain over a share of the source."""
    checkpoints: Checkpoints | None = None
    """Without them, outputs appear at the end, and an interrupted run starts anew."""

    @property
    def has_checkpoints(self) -> bool:
        return self.checkpoints is not None and self.checkpoints.place is not None

    def partitioned(self) -> Pipeline:
        """With sources that keep as many partitions as there are slices now, whatever the parallelism will be."""
        sources = {
            name: source.model_copy(update={"source": source.source.partitioned(self.parallelism)})
            for name, source in self.sources.items()
        }
        return self.model_copy(update={"source": self.source.partitioned(self.parallelism), "sources": sources})


def described(pipeline: Described) -> dict[str, Any]:
    """The description as data for JSON. Variables stay `${NAME}`."""
    return pipeline.model_dump(mode="json", by_alias=True, warnings=False)


def schema() -> dict[str, Any]:
    """The JSON schema of descriptions."""
    return Pipeline.model_json_schema() | {"$schema": "https://json-schema.org/draft/2020-12/schema"}


if not TYPE_CHECKING:
    # At the end, because this imports the packages that have connectors, which may import this file.
    SourceModel = Annotated[functools.reduce(operator.or_, source_models()), pydantic.Field(discriminator="type")]
    SinkModel = Annotated[functools.reduce(operator.or_, sink_models()), pydantic.Field(discriminator="type")]
    NamedSource.model_rebuild()
    Pipeline.model_rebuild()
