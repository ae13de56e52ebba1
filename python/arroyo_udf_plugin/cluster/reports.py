"""What running generations report: counts (`Report.numbers`), and what a checkpoint took (`Report.checkpoint`), as
workers send them and the database keeps them.

    {"generation": 3, "rows_in": 10, "rows_out": 9,
     "nodes": {"0": {"operator": "impulse", "subtasks": {"0": {"messages_sent": 10, "bytes_sent": 80}}, ...},
               "1": {"operator": "AsyncUdf", "in_flight": 1, "outcomes": {"values": 9}, ...}, ...}}

    {"epoch": 7, "at": 1767225600.0, "seconds": 0.2, "bytes": 30,
     "events": [{"event": "Checkpointing", "start_time": 1767225599800000, "finish_time": 1767225600000000}, ...],
     "operators": {"AsyncUdf_1": {"bytes": 30, "subtasks": {"0": {"bytes": 30, "event_spans": [...]}}, ...}}}

Counts begin with the generation. A key that is missing is 0, or not known. Nodes have the numbers of the graph;
operators of a checkpoint are all nodes, each called as there, with its number, by which clients sort. Times of spans
are microseconds since 1970. A worker of an older version tells of a checkpoint only epoch, at and seconds.

Guarantees: `upgraded` understands what workers of every version tell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

import pydantic
from typing_extensions import TypedDict

from .functions.graph import numbered

if TYPE_CHECKING:
    from ..engine.execution.checkpoint_statistics import CheckpointSpan, CheckpointStatistics, Part, SliceStatistics
    from ..engine.execution.progress import NodeProgress, OperatorProgress, Progress, SourceProgress, Subtask


class SubtaskNumbers(TypedDict, total=False):
    """A node in one slice. Bytes are those of Arrow columns. Nothing comes to a source, and nothing leaves a sink.

    blocked: seconds in which it had rows that those behind it did not take yet.
    """

    messages_recv: int
    messages_sent: int
    bytes_recv: int
    bytes_sent: int
    blocked: float


class OldestRow(TypedDict):
    """since: when it was first seen to be the oldest, in microseconds since 1970."""

    file: str
    row: int
    since: int


class GaugeNumber(TypedDict):
    """What a source tells of itself: see `Gauge`."""

    name: str
    value: Annotated[float, pydantic.Field(allow_inf_nan=False)]
    unit: str


class NodeNumbers(TypedDict, total=False):
    """A source, an operator or a sink.

    operator: as in the graph. name: for people. subtasks: by their index.
    watermark: the latest that has left it, in microseconds since 1970.

    Of sources, over all slices: gauges.

    Of operators, over all slices: in_flight: calls under way. held: rows that have not left it. held_by_order: those of
    them that have ended, and wait for an earlier row. backing_off: those that wait for their next call. stuck: calls
    that ignore their cancellation. retries: calls after a row's first. loop_blocked: how often an event loop of
    functions was found blocked. outcomes: rows answered, by outcome. lag: seconds of event time by which its watermark
    is behind the source's. latency: rows by how long they took, in buckets as `Latency` has them; latency_max: the
    longest, in seconds. oldest: the row that an async function has had longest.
    """

    operator: str
    name: str
    subtasks: Mapping[str, SubtaskNumbers]
    watermark: int
    gauges: Sequence[GaugeNumber]
    in_flight: int
    held: int
    held_by_order: int
    backing_off: int
    stuck: int
    retries: int
    loop_blocked: int
    outcomes: Mapping[str, int]
    lag: float
    latency: Mapping[str, int]
    latency_max: float
    oldest: OldestRow


class JobNumbers(TypedDict, total=False):
    """generation: whose counts these are. rows_in: read from all sources. rows_out: written to sinks.
    dropped, dead_letters: rows that could not be read. nodes: by their numbers in the graph."""

    generation: int
    rows_in: int
    rows_out: int
    dropped: int
    dead_letters: int
    nodes: Mapping[str, NodeNumbers]


def numbers_of(generation: int, now: Progress, graph: Mapping[str, Any]) -> JobNumbers:
    """graph: as `graph_of` makes it."""
    parts = numbered(
        [(source, _node_numbers(source, ("sent",)) | _of_source(source)) for source in now.sources],
        [(operator, _node_numbers(operator, ("recv", "sent")) | _of_operator(operator)) for operator in now.operators],
        [(sink, _node_numbers(sink, ("recv",))) for sink in now.sinks],
    )
    counts = {name: getattr(now, name) for name in ("rows_in", "rows_out", "dropped", "dead_letters")}
    nodes = {
        str(node["node_id"]): {"operator": node["operator"], "name": progress.name, **numbers}
        for node, (progress, numbers) in zip(graph["nodes"], parts, strict=True)
    }
    return cast(JobNumbers, {"generation": generation, **counts, "nodes": nodes})


def _node_numbers(node: NodeProgress, ways: Sequence[str]) -> dict[str, Any]:
    """ways: in which rows pass it."""
    subtasks = {str(index): _subtask(subtask, ways) for index, subtask in enumerate(node.subtasks)}
    return {"subtasks": subtasks} | _known(watermark=node.watermark and node.watermark // 1000)


def _subtask(subtask: Subtask, ways: Sequence[str]) -> SubtaskNumbers:
    numbers: SubtaskNumbers = {}
    if "recv" in ways:
        numbers |= {"messages_recv": subtask.rows_in, "bytes_recv": subtask.bytes_in}
    if "sent" in ways:
        numbers |= {
            "messages_sent": subtask.rows_out,
            "bytes_sent": subtask.bytes_out,
            "blocked": round(subtask.blocked, 3),
        }
    return numbers


def _of_source(source: SourceProgress) -> dict[str, Any]:
    return _known(gauges=[gauge._asdict() for gauge in source.gauges])


def _of_operator(operator: OperatorProgress) -> dict[str, Any]:
    buckets = {str(bucket): rows for bucket, rows in enumerate(operator.latency.counts) if rows}
    return _known(
        in_flight=operator.in_flight,
        held=operator.held,
        held_by_order=operator.held_by_order,
        backing_off=operator.backing_off,
        stuck=operator.stuck,
        retries=operator.retries,
        loop_blocked=operator.loop_blocked,
        outcomes=_known(
            **{name: count for name, count in dataclasses.asdict(operator.counts).items() if name != "rows"}
        ),
        latency=buckets,
        latency_max=operator.latency.max,
        oldest=operator.oldest
        and {"file": operator.oldest.file, "row": operator.oldest.row, "since": _micros(operator.oldest.since)},
    ) | ({} if operator.lag is None else {"lag": operator.lag})


def _known(**numbers: Any) -> dict[str, Any]:
    """Without those that are 0, empty or None: most nodes have few, and messages stay small."""
    return {name: number for name, number in numbers.items() if number}


def upgraded(report: Mapping[str, Any]) -> JobNumbers:
    """Numbers of a worker of any version. Before there were nodes, its operators stood between one source and one sink,
    each with one subtask."""
    if "operators" not in report:
        return cast(JobNumbers, report)
    places, details = report["operators"], report.get("details", [])
    last = len(places) - 1
    nodes: dict[str, dict[str, Any]] = {}
    for place, subtasks in places.items():
        unused = {"0": "messages_recv", str(last): "messages_sent"}.get(place)
        counts = {
            index: {name: count for name, count in numbers.items() if name != unused}
            for index, numbers in subtasks.items()
        }
        nodes[place] = {"subtasks": counts}
        if 0 < int(place) <= len(details):
            nodes[place] |= _upgraded_detail(details[int(place) - 1])
    return cast(
        JobNumbers, {name: count for name, count in report.items() if isinstance(count, int)} | {"nodes": nodes}
    )


def _upgraded_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: detail[name] for name in ("name", "in_flight", "held", "held_by_order", "lag") if detail.get(name)}
    outcomes = {name: count for name, count in (detail.get("counts") or {}).items() if name != "rows" and count}
    return kept | ({"outcomes": outcomes} if outcomes else {})


_Micros = Annotated[int, pydantic.Field(ge=0, lt=2**62)]
_Bytes = Annotated[int, pydantic.Field(ge=0, lt=2**62)]
_Seconds = Annotated[float, pydantic.Field(ge=0, lt=2**40)]


class EventSpan(TypedDict):
    event: str
    start_time: _Micros
    finish_time: _Micros


class SubtaskTook(TypedDict):
    bytes: _Bytes
    event_spans: Sequence[EventSpan]


class OperatorStatistics(TypedDict):
    """bytes: of its state. finish_time: when that was durable. subtasks: by their index."""

    bytes: _Bytes
    started_metadata_write: _Micros
    finish_time: _Micros
    subtasks: Mapping[str, SubtaskTook]


class CheckpointReport(TypedDict):
    """at: its end, as `time.time()`. seconds: from its begin. bytes: of the state of all operators."""

    epoch: Annotated[int, pydantic.Field(ge=0, lt=2**31)]
    at: _Seconds
    seconds: _Seconds
    bytes: NotRequired[_Bytes]
    events: NotRequired[Sequence[EventSpan]]
    operators: NotRequired[Mapping[str, OperatorStatistics]]


def taken(now: Progress, graph: Mapping[str, Any]) -> CheckpointReport | None:
    """The latest checkpoint. None: there was none. graph: as `graph_of` makes it."""
    checkpoint = now.checkpoint
    if checkpoint is None or checkpoint.statistics is None:
        return None
    statistics = checkpoint.statistics
    parts: list[Part] = numbered(
        [("source", number) for number in range(len(now.sources))],
        [("operator", place) for place in range(len(now.operators))],
        [("sink", sink.name) for sink in now.sinks],
    )
    return {
        "epoch": checkpoint.epoch,
        "at": statistics.end,
        "seconds": checkpoint.seconds,
        "bytes": statistics.bytes,
        "events": [_span(span) for span in statistics.spans],
        "operators": {
            f"{node['operator']}_{node['node_id']}": _operator(part, statistics, bool(node["alone"]))
            for node, part in zip(graph["nodes"], parts, strict=True)
        },
    }


def _operator(part: Part, statistics: CheckpointStatistics, is_alone: bool) -> OperatorStatistics:
    """What other slices keep for a node that is alone is its state, too: rows on their way to it."""
    sizes = [_bytes(part, slice_) for slice_ in statistics.slices]
    own = [(statistics.slices[0], sum(sizes))] if is_alone else list(zip(statistics.slices, sizes, strict=True))
    durable = [span.end for slice_, _ in own for span in slice_.spans.get(part, ()) if span.event != "Committing"]
    written = next(span.start for span in statistics.spans if span.event == "WritingMetadata")
    return {
        "bytes": sum(sizes),
        "started_metadata_write": _micros(written),
        "finish_time": _micros(max(durable, default=written)),
        "subtasks": {
            str(index): {"bytes": size, "event_spans": [_span(span) for span in slice_.spans.get(part, ())]}
            for index, (slice_, size) in enumerate(own)
        },
    }


def _bytes(part: Part, slice_: SliceStatistics) -> int:
    kind, place = part
    return slice_.bytes[place] if kind == "operator" and isinstance(place, int) else 0


def _span(span: CheckpointSpan) -> EventSpan:
    return {"event": span.event, "start_time": _micros(span.start), "finish_time": _micros(span.end)}


def _micros(time: float) -> int:
    return int(time * 1e6)
