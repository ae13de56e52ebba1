"""Numbers of a running pipeline.

Slices count in plain attributes, without locks; the coordinator reads them, at any time, for the view. So the numbers
of one moment may be some rows apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..host.statistics import Latency
from ..operator.operator import Operator
from ..operator.stages import Counts

Ended = Literal["finished", "resumable", "cut off"]


@dataclass
class OperatorCounter:
    """Of one operator in one slice. watermark: the latest that has left it."""

    rows_in: int = 0
    rows_out: int = 0
    watermark: int | None = None


class SliceNumbers:
    """Of one slice.

    dropped, dead_letters: rows that could not be read.
    watermark: the latest of its source. held_at_epoch: rows in the operators at the latest epoch.
    """

    def __init__(self, operators: int) -> None:
        self.rows_in = 0
        self.rows_out = 0
        self.dropped = 0
        self.dead_letters = 0
        self.watermark: int | None = None
        self.held_at_epoch = 0
        self.operators = [OperatorCounter() for _ in range(operators)]


@dataclass(frozen=True)
class OperatorProgress:
    """An operator, over all slices.

    in_flight: calls under way. held: rows that have not left it, with those in flight. held_by_order: those of them
    that have ended, and wait for an earlier row. lag: seconds of event time by
    which its watermark is behind the source's; None: without event time. counts: rows answered, by outcome.
    p50, p99: seconds that a row took; None: not measured.
    """

    name: str
    rows_in: int
    rows_out: int
    in_flight: int
    held: int
    held_by_order: int
    lag: float | None
    counts: Counts
    p50: float | None
    p99: float | None


@dataclass(frozen=True)
class CheckpointProgress:
    """epoch: the latest that was committed. epochs: how many this engine has committed, without its fence.
    seconds: how long the latest took. at: when it was committed, as `time.time()`; None: never."""

    epoch: int
    epochs: int = 0
    seconds: float = 0.0
    at: float | None = None


@dataclass(frozen=True)
class Progress:
    """A pipeline so far.

    rows_in: read from the source. rows_out: written to each sink. dropped, dead_letters: of those that could not be
    read, by the source's policy. total: rows of the source; None: unknown.
    checkpoint: None: without checkpoints.
    """

    seconds: float
    rows_in: int
    rows_out: int
    dropped: int
    dead_letters: int
    total: int | None
    operators: tuple[OperatorProgress, ...]
    checkpoint: CheckpointProgress | None


@dataclass(frozen=True)
class Summary:
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


def of_operators(slices: Sequence[tuple[SliceNumbers, Sequence[Operator]]]) -> Iterable[OperatorProgress]:
    """slices: each slice's numbers and its operators."""
    for place, first in enumerate(slices[0][1]):
        own = [operators[place] for _, operators in slices]
        numbers = [each.operators[place] for each, _ in slices]
        statistics = [one for operator in own for one in operator.statistics()]
        latency = _together([one.latency for one in statistics])
        stages = [stage for operator in own for stage in operator.stages]
        yield OperatorProgress(
            name=first.name,
            rows_in=sum(each.rows_in for each in numbers),
            rows_out=sum(each.rows_out for each in numbers),
            in_flight=sum(one.running for one in statistics),
            held=sum(operator.held_rows for operator in own),
            held_by_order=sum(one.held for one in statistics),
            lag=_lag([(each.watermark, each.operators[place].watermark) for each, _ in slices]),
            counts=_sum([stage.counts for stage in stages]),
            p50=latency.p50,
            p99=latency.p99,
        )


def _lag(watermarks: Sequence[tuple[int | None, int | None]]) -> float | None:
    """watermarks: of each slice's source and operator."""
    lags = [(source - own) / 1e9 for source, own in watermarks if source is not None and own is not None]
    return max(lags) if lags else None


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(**{one.name: sum(getattr(each, one.name) for each in counts) for one in dataclasses.fields(Counts)})


def _together(latencies: Sequence[Latency]) -> Latency:
    counts = tuple(map(sum, zip(*(each.counts for each in latencies), strict=True)))
    return Latency(counts, max((each.max for each in latencies), default=0.0))
