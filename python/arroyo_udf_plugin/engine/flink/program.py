"""What a job on Flink runs: a pipeline, planned, cut into stages, and in how many slices.

    program = opened(JobArguments.model_validate_json(text))

Every process of Flink that works for the job opens it for itself, from the same text.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pydantic

from ...errors import InvalidArgument, PluginEnvironmentError
from ..connectors.described import Output
from ..connectors.kafka.sink import KafkaOutput
from ..connectors.kafka.source import KafkaInput
from ..connectors.location import location_of
from ..connectors.parts import Parts
from ..operators.operator import Operator
from ..pipeline.description import Pipeline
from ..pipeline.inputs import sources_of
from ..pipeline.plan import Planned, plan
from .cut import CutPipeline, CutStage, cut
from .java_client import properties_of
from .whole_parts import check_output

VERSION = 1
SLICES = 8
"""The usual number of slices."""
_PYARROW = 17  # before, Arrow's writer of messages took a text's offsets for those of the whole buffer


class JobArguments(pydantic.BaseModel):
    """The argument of a job.

    pipeline: the description, as JSON. slices: their number, which stays the same for all of the job's life; its
    parallelism is this number at most. checkpoint_interval: in seconds; None: there are no checkpoints. place: the
    folder, or the URL, below which Flink keeps these; None: where its configuration says.
    positions: from which sources begin, by source and partition; the first source has the name "source".
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    version: int = VERSION
    pipeline: dict[str, Any]
    slices: int = pydantic.Field(default=SLICES, ge=1, le=128)
    checkpoint_interval: float | None = pydantic.Field(default=10.0, gt=0)
    place: str | None = None
    positions: dict[str, dict[str, dict[str, Any]]] | None = None

    @pydantic.field_validator("version")
    @classmethod
    def _known(cls, version: int) -> int:
        if version != VERSION:
            raise ValueError(f"this package reads version {VERSION}: install the same version of it everywhere")
        return version


@dataclass(frozen=True)
class Program:
    """planned: open. width: the number of slices. positions: of the sources, by number.
    has_checkpoints: of Flink."""

    planned: Planned
    cut: CutPipeline
    width: int
    positions: Sequence[Mapping[str, Mapping[str, Any]]]
    has_checkpoints: bool

    @functools.cached_property
    def samples(self) -> Sequence[Operator]:
        """All operators, without rows: they know columns, and what goes where."""
        return self.planned.operators()

    def parts_of(self, sink: str) -> tuple[Parts, pa.Schema]:
        """What a sink of files is, and its rows."""
        for _, model, name, schema in self.planned.outputs():
            if name == sink and isinstance(model, Parts):
                return model, schema
        raise InvalidArgument(f"there is no sink {sink} of files")

    def topic_of(self, sink: str) -> tuple[KafkaOutput, pa.Schema]:
        """What a sink of Kafka is, and its rows."""
        for _, model, name, schema in self.planned.outputs():
            if name == sink and isinstance(model, KafkaOutput):
                return model, schema
        raise InvalidArgument(f"there is no sink {sink} of Kafka")

    def is_exactly_once(self, model: KafkaOutput) -> bool:
        return self.has_checkpoints and model.commit_mode != "at_least_once"

    def operators(self, stage: CutStage) -> dict[int, Operator]:
        """New ones for a slice, by place, not started."""
        every = self.planned.operators()
        return {place: every[place] for place in stage.operators}


def opened(arguments: JobArguments, environment: Mapping[str, str] = os.environ) -> Program:
    """The caller closes `planned`. Raises InvalidPipeline, InvalidArgument."""
    pipeline = Pipeline.model_validate_json(json.dumps(arguments.pipeline | {"parallelism": arguments.slices}))
    _check_pyarrow()
    planned = plan(pipeline.model_copy(update={"checkpoints": None}), environment, _check_rows)
    try:
        _check(planned, arguments.checkpoint_interval is not None)
        positions = arguments.positions or {}
        names = ["source", *planned.pipeline.sources]
        if unknown := sorted(set(positions) - set(names)):
            raise InvalidArgument(f"positions: there is no source {unknown[0]!r}: there are {', '.join(names)}")
        for name, input in zip(names, planned.inputs, strict=True):
            if input.declaration.model.type != "kafka":  # Flink's connector asks the cluster
                input.source.check(positions.get(name, {}))
        own = [positions.get(name, {}) for name in names]
        return Program(planned, cut(planned), arguments.slices, own, arguments.checkpoint_interval is not None)
    except BaseException:
        planned.close()
        raise


def _check_pyarrow() -> None:
    if int(pa.__version__.partition(".")[0]) < _PYARROW:
        raise PluginEnvironmentError(
            f"pyarrow {pa.__version__} damages texts between Flink's processes: in Flink's environment, run "
            f"pip install 'pyarrow>={_PYARROW}' (Apache Beam asks for an older one, and works with newer ones)"
        )


def _check_rows(model: Output, schema: pa.Schema) -> None:
    """Flink's processes reach Kafka by Flink's connector, and may be without the client of Python."""
    if isinstance(model, KafkaOutput):
        model.messages(schema, "kafka")
    else:
        model.check(schema)


def _check(planned: Planned, has_checkpoints: bool) -> None:
    for _, model, name, _ in planned.outputs():
        check_output(model)
        if isinstance(model, KafkaOutput):
            properties_of(model)
            if model.commit_mode == "exactly_once" and not has_checkpoints:
                raise InvalidArgument(f'{name}: exactly_once needs checkpoints; without, write "at_least_once"')
    for declaration in sources_of(planned.resolved):
        if isinstance(declaration.model, KafkaInput):
            properties_of(declaration.model)
        for path in getattr(declaration.model, "paths", ()):
            where = location_of(path)
            if where.path is not None and not where.path.is_absolute():
                raise InvalidArgument(
                    f"{path}: Flink's processes are in other folders: write the whole path, from / on"
                )
    for input in planned.inputs:
        if not input.source.resumable:
            raise InvalidArgument(
                f"the source {input.source.name} cannot be read again, and on Flink each source may have to be: read "
                "files, or choose the embedded engine"
            )
