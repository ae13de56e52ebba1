"""Numbers of a running pipeline, of all slices together: what the view and reports of jobs tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ...host.statistics import Latency
from ..operators.failures import FailedRows, together
from ..operators.stages import Counts, Oldest
from .checkpoint_statistics import CheckpointStatistics

if TYPE_CHECKING:
    from ..connectors.interface import Gauge, Sink
    from ..operators.operator import Operator
    from .counters import NodeCounter, SliceNumbers
    from .planned import PlannedPipeline

Ended = Literal["finished", "resumable", "cut off"]


@dataclass(frozen=True)
class Subtask:
    """A node in one slice: rows, and the bytes of their Arrow columns, that have come and left. blocked: seconds in
    which it had rows that those behind it did not take yet."""

    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    blocked: float


@dataclass(frozen=True)
class NodeProgress:
    """A source, an operator or a sink. Nothing comes to a source, and nothing leaves a sink.

    subtasks: of each slice; one, if the node works in the first slice only. watermark: the lowest that has left it, of
    all slices; None: without event time.
    """

    name: str
    subtasks: tuple[Subtask, ...]
    watermark: int | None

    @property
    def rows_in(self) -> int:
        return sum(subtask.rows_in for subtask in self.subtasks)

    @property
    def rows_out(self) -> int:
        return sum(subtask.rows_out for subtask in self.subtasks)


@dataclass(frozen=True)
class SourceProgress(NodeProgress):
    """gauges: what its partitions tell, together."""

    gauges: tuple[Gauge, ...]


@dataclass(frozen=True)
class OperatorProgress(NodeProgress):
    """An operator, over all slices.

    in_flight: calls under way. held: rows that have not left it, with those in flight. held_by_order: those of them
    that have ended, and wait for an earlier row. backing_off: those that wait for their next call. stuck: calls that
    ignore their cancellation. retries: calls after a row's first. loop_blocked: how often an event loop of functions
    was found blocked.
    lag: seconds of event time by which its watermark is behind the source's; None: without event time. counts: rows
    answered, by outcome. failures: why rows failed, whatever became of them. latency: seconds that rows took.
    oldest: the row that an async function has had longest; None: it has none.
    """

    in_flight: int
    held: int
    held_by_order: int
    backing_off: int
    stuck: int
    retries: int
    loop_blocked: int
    lag: float | None
    counts: Counts
    failures: tuple[FailedRows, ...]
    latency: Latency
    oldest: Oldest | None = None


@dataclass(frozen=True)
class CheckpointProgress:
    """epoch: the latest that was committed. epochs: how many this engine has committed, without its fence.
    seconds: how long the latest took. at: when it was done, as `time.time()`; None: never. statistics: of its parts.
    retained: those that one can go back to."""

    epoch: int
    epochs: int = 0
    seconds: float = 0.0
    at: float | None = None
    statistics: CheckpointStatistics | None = None
    retained: tuple[int, ...] = ()


@dataclass(frozen=True)
class Progress:
    """A pipeline so far.

    rows_in: read from the source. rows_out: written to each sink. dropped, dead_letters: of those that could not be
    read, by the source's policy; failures: why. total: rows of the source; None: unknown.
    checkpoint: None: without checkpoints.
    """

    seconds: float
    rows_in: int
    rows_out: int
    dropped: int
    dead_letters: int
    failures: tuple[FailedRows, ...]
    total: int | None
    sources: tuple[SourceProgress, ...]
    operators: tuple[OperatorProgress, ...]
    sinks: tuple[NodeProgress, ...]
    checkpoint: CheckpointProgress | None


@dataclass(frozen=True)
class PipelineSummary:
    """A pipeline at its end.

    ended: "finished": all rows are answered and in the sinks. "resumable": stopped, with a checkpoint of everything.
        "cut off": stopped, without one; with checkpoints it can be resumed from the latest.
    in_flight: rows that were read and not answered, which a resumed engine calls again.
    close_errors: of functions whose Context failed to close.
    """

    pipeline: str
    ended: Ended
    progress: Progress
    rows_per_s: float
    in_flight: int
    close_errors: tuple[str, ...] = ()


class MeasuredSlice(Protocol):
    """A slice, as its numbers are read."""

    @property
    def numbers(self) -> SliceNumbers: ...
    @property
    def operators(self) -> Sequence[Operator]: ...
    @property
    def outputs(self) -> Sequence[Sink]: ...
    def gauges(self, source: int) -> Sequence[Gauge]: ...


def of_sources(planned: PlannedPipeline, slices: Sequence[MeasuredSlice]) -> Iterable[SourceProgress]:
    for number, input in enumerate(planned.inputs):
        counters = [slice_.numbers.sources[number] for slice_ in slices]
        gauges = _sums(gauge for slice_ in slices for gauge in slice_.gauges(number))
        yield SourceProgress(input.source.name, _subtasks(counters, is_alone=False), _watermark(counters), gauges)


def of_sinks(planned: PlannedPipeline, slices: Sequence[MeasuredSlice]) -> Iterable[NodeProgress]:
    for number, sink in enumerate(slices[0].outputs):
        counters = [slice_.numbers.sinks[number] for slice_ in slices]
        yield NodeProgress(sink.name, _subtasks(counters, planned.routes.is_alone(planned.routes.sinks[number])), None)


def of_operators(planned: PlannedPipeline, slices: Sequence[MeasuredSlice]) -> Iterable[OperatorProgress]:
    for place, first in enumerate(slices[0].operators):
        own = [slice_.operators[place] for slice_ in slices]
        counters = [slice_.numbers.operators[place] for slice_ in slices]
        statistics = [stats for operator in own for stats in operator.statistics()]
        yield OperatorProgress(
            name=first.name,
            subtasks=_subtasks(counters, planned.routes.is_alone(place)),
            watermark=_watermark(counters),
            in_flight=sum(stats.running for stats in statistics),
            held=sum(operator.held_rows for operator in own),
            held_by_order=sum(stats.held for stats in statistics),
            backing_off=sum(stats.backing_off for stats in statistics),
            stuck=sum(stats.stuck for stats in statistics),
            retries=sum(stats.retries for stats in statistics),
            loop_blocked=sum(stats.blocked for stats in statistics),
            lag=_lag(
                [
                    (slice_.numbers.watermark, counter.watermark)
                    for slice_, counter in zip(slices, counters, strict=True)
                ]
            ),
            counts=_sum([stage.counts for operator in own for stage in operator.stages]),
            failures=together(stage.failures.so_far for operator in own for stage in operator.stages),
            latency=_together([stats.latency for stats in statistics]),
            oldest=min(
                (oldest for operator in own if (oldest := operator.oldest()) is not None),
                key=lambda row: row.since,
                default=None,
            ),
        )


def _subtasks(counters: Sequence[NodeCounter], is_alone: bool) -> tuple[Subtask, ...]:
    """Of a node that is alone, what other slices have sent to it counts as its own."""
    every = tuple(
        Subtask(counter.rows_in, counter.bytes_in, counter.rows_out, counter.bytes_out, counter.blocked.seconds)
        for counter in counters
    )
    if not is_alone:
        return every
    return (Subtask(*(sum(column) for column in zip(*map(dataclasses.astuple, every), strict=True))),)


def _watermark(counters: Sequence[NodeCounter]) -> int | None:
    return min((time for counter in counters if (time := counter.watermark) is not None), default=None)


def _lag(watermarks: Sequence[tuple[int | None, int | None]]) -> float | None:
    """watermarks: of each slice's source and operator."""
    lags = [(source - own) / 1e9 for source, own in watermarks if source is not None and own is not None]
    return max(lags) if lags else None


def _sums(gauges: Iterable[Gauge]) -> tuple[Gauge, ...]:
    """Of those with the same name and unit."""
    sums: dict[tuple[str, str], Gauge] = {}
    for gauge in gauges:
        before = sums.get((gauge.name, gauge.unit))
        sums[gauge.name, gauge.unit] = gauge if before is None else gauge._replace(value=before.value + gauge.value)
    return tuple(sums.values())


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(
        **{
            field.name: sum(getattr(stage_counts, field.name) for stage_counts in counts)
            for field in dataclasses.fields(Counts)
        }
    )


def _together(latencies: Sequence[Latency]) -> Latency:
    counts = tuple(map(sum, zip(*(latency.counts for latency in latencies), strict=True)))
    return Latency(counts, max((latency.max for latency in latencies), default=0.0))
