"""What the engine is given: a pipeline whose parts fit together. `pipeline.plan` makes one of a description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ..connectors.interface import Sink, Source, Stage
from ..connectors.source import Rows
from ..operators.blocks import Block
from ..operators.failures import Failures
from ..operators.operator import Operator
from ..operators.routes import Place, Routes
from ..operators.stages import Dead
from ..operators.watermarks import Clock, DriftBound


class PlannedInput(Protocol):
    """A source of a pipeline.

    idle_seconds: after which a source without rows holds no watermark back; None: it always does.
    failures: of rows that could not be read.
    """

    @property
    def source(self) -> Source: ...
    @property
    def idle_seconds(self) -> float | None: ...
    @property
    def failures(self) -> Failures: ...

    def event_time(self) -> Clock | None:
        """A new one for a slice."""

    def admit(self, rows: Rows) -> Sequence[Block | Dead]:
        """The source's rows, as the operators take them; those that could not be read, by policy."""


class PlannedPipeline(Protocol):
    """A pipeline.

    fingerprint: what must be the same for a resume. parallelism: the number of slices. inputs: the sources.
    routes: between operators. drifts: how far sources may be ahead of each other.
    """

    @property
    def name(self) -> str: ...
    def hidden(self, text: str) -> str:
        """A text for people, without the values of variables."""

    @property
    def fingerprint(self) -> Mapping[str, Any]: ...
    @property
    def parallelism(self) -> int: ...
    @property
    def inputs(self) -> Sequence[PlannedInput]: ...
    @property
    def plugin_hashes(self) -> Mapping[str, str]:
        """Of those whose functions make states, by names of these."""

    @property
    def routes(self) -> Routes: ...
    @property
    def drifts(self) -> Sequence[DriftBound]: ...

    def operators(self) -> list[Operator]:
        """New ones for a slice, not started."""

    def sinks(self, slice: int, stage: Stage | None) -> list[Sink]:
        """New ones for a slice. stage: None: without checkpoints."""

    def letters(self, slice: int, stage: Stage | None) -> Sink | None:
        """As `sinks`, for dead letters."""

    def left(self, block: Block, place: Place) -> Block:
        """A block that has left an operator, or a source, as operators and sinks take it that follow."""

    def entered(self, block: Block, place: int, input: int) -> Block:
        """The same block, as an operator with several inputs takes it from this one."""

    def letter(self, dead: Dead) -> pa.RecordBatch:
        """Dead letters as rows of their sink."""
