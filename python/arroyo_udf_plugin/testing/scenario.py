"""What a simulation runs: a pipeline, its input in phases, and the rows that must come out."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..engine.connectors.interface import Sink, Source, Stage
from ..engine.connectors.source import Rows
from ..engine.execution.planned import PlannedPipeline
from ..engine.operators.blocks import Block, Columns
from ..engine.operators.event_time import EventClock
from ..engine.operators.failures import Failures
from ..engine.operators.operator import Operator
from ..engine.operators.routes import Place, Routes
from ..engine.operators.stages import Dead
from ..engine.pipeline.description import Pipeline
from ..engine.pipeline.plan import plan
from .elsewhere import Elsewhere

Opened = Callable[[int], contextlib.AbstractContextManager[PlannedPipeline]]
Row = Any


@dataclasses.dataclass(frozen=True)
class Phase:
    """prepare: brings input, while no engine runs. expected: the rows of all phases so far, by a model. is_replay: the
    pipeline's dead letters are replayed, after it has read the rest of its source."""

    prepare: Callable[[], None]
    expected: Sequence[Row]
    is_replay: bool = False


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A pipeline that runs to its end in each phase, resumed from the second one on.

    folder: everything is below it; it is emptied for each schedule. opened: the pipeline with so many slices.
    shown: the rows that its sinks show. place: of the checkpoints, a folder or a URL; None: without.
    is_ordered: rows come in the order of `expected`. urls: object stores that it writes to. elsewhere: what else it
    writes to. until: when it is stopped, because its source does not end; it is asked after each epoch.
    """

    name: str
    folder: Path
    opened: Opened
    shown: Callable[[], list[Row]]
    phases: Sequence[Phase]
    place: str | None
    is_ordered: bool = False
    urls: Sequence[str] = ()
    elsewhere: Sequence[Elsewhere] = ()
    until: Callable[[], bool] | None = None


def described(pipeline: Callable[[int], Pipeline]) -> Opened:
    """Opens pipelines from their descriptions. pipeline: one with so many slices."""

    @contextlib.contextmanager
    def opened(width: int) -> Iterator[PlannedPipeline]:
        with contextlib.closing(plan(pipeline(width))) as planned:
            yield planned

    return opened


@dataclasses.dataclass
class _Input:
    source: Source
    columns: Columns
    idle_seconds: float | None = None
    failures: Failures = dataclasses.field(default_factory=Failures)

    def event_time(self) -> EventClock | None:
        return None

    def admit(self, rows: Rows) -> Sequence[Block | Dead]:
        assert not rows.refused, "a source of a simulation refuses no rows"
        return [self.columns.block(rows)]


class Straight:
    """A pipeline without operators, of a source and sinks that need not be ours.

    sink: makes a slice's sink, as `interface.Sink` has it: sink(schema, slice, stage).
    """

    name = "simulated"
    routes = Routes.in_a_row(0, 1)
    drifts = ()

    def __init__(self, source: Source, sink: Callable[[pa.Schema, int, Stage | None], Sink], parallelism: int) -> None:
        self.parallelism, self._sink = parallelism, sink
        self.inputs = [_Input(source, Columns(source.schema))]

    def hidden(self, text: str) -> str:
        return text

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        return {"source": self.inputs[0].source.name}

    @property
    def plugin_hashes(self) -> Mapping[str, str]:
        return {}

    def operators(self) -> list[Operator]:
        return []

    def sinks(self, slice: int, stage: Stage | None) -> list[Sink]:
        return [self._sink(self.inputs[0].source.schema, slice, stage)]

    def letters(self, slice: int, stage: Stage | None) -> Sink | None:
        return None

    def left(self, block: Block, place: Place) -> Block:
        return block

    def entered(self, block: Block, place: int, input: int) -> Block:
        return block

    def letter(self, dead: Dead) -> pa.RecordBatch:
        raise AssertionError("it has no operators whose rows could fail")


def straight(source: Callable[[], Source], sink: Callable[[pa.Schema, int, Stage | None], Sink]) -> Opened:
    """Opens pipelines of these."""

    @contextlib.contextmanager
    def opened(width: int) -> Iterator[PlannedPipeline]:
        with contextlib.closing(source()) as own:
            yield Straight(own, sink, width)

    return opened
