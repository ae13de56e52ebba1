"""What a checkpoint took: `Report.checkpoint`, as workers send it and the database keeps it.

    {"epoch": 7, "at": 1767225600.0, "seconds": 0.2, "bytes": 30,
     "events": [{"event": "Checkpointing", "start_time": 1767225599800000, "finish_time": 1767225600000000}, ...],
     "operators": {"AsyncUdf_1": {"bytes": 30, "subtasks": {"0": {"bytes": 30, "event_spans": [...]}}, ...}}}

Operators are all nodes of the graph. Each is called as there, with its number, by which clients sort. Times of spans
are microseconds since 1970. A worker of an older version tells only epoch, at and seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

import pydantic
from typing_extensions import TypedDict  # pydantic takes that of Python 3.12 or this one

from ..engine.progress import Progress
from ..engine.took import Part, SliceTook, Span, Took
from .functions.graph import numbered

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


class OperatorTook(TypedDict):
    """bytes: of its state. finish_time: when that was durable. subtasks: by their index."""

    bytes: _Bytes
    started_metadata_write: _Micros
    finish_time: _Micros
    subtasks: Mapping[str, SubtaskTook]


class Taken(TypedDict):
    """at: its end, as `time.time()`. seconds: from its begin. bytes: of the state of all operators."""

    epoch: Annotated[int, pydantic.Field(ge=0, lt=2**31)]
    at: _Seconds
    seconds: _Seconds
    bytes: NotRequired[_Bytes]
    events: NotRequired[Sequence[EventSpan]]
    operators: NotRequired[Mapping[str, OperatorTook]]


def taken(now: Progress, graph: Mapping[str, Any]) -> Taken | None:
    """The latest checkpoint. None: there was none. graph: as `graph_of` makes it."""
    checkpoint = now.checkpoint
    if checkpoint is None or checkpoint.took is None:
        return None
    took = checkpoint.took
    parts: list[Part] = numbered(
        [("source", number) for number in range(len(now.sources))],
        [("operator", place) for place in range(len(now.operators))],
        [("sink", sink.name) for sink in now.sinks],
    )
    return {
        "epoch": checkpoint.epoch,
        "at": took.end,
        "seconds": checkpoint.seconds,
        "bytes": took.bytes,
        "events": [_span(span) for span in took.spans],
        "operators": {
            f"{node['operator']}_{node['node_id']}": _operator(part, took, bool(node["alone"]))
            for node, part in zip(graph["nodes"], parts, strict=True)
        },
    }


def _operator(part: Part, took: Took, is_alone: bool) -> OperatorTook:
    """What other slices keep for a node that is alone is its state, too: rows on their way to it."""
    sizes = [_bytes(part, each) for each in took.slices]
    own = [(took.slices[0], sum(sizes))] if is_alone else list(zip(took.slices, sizes, strict=True))
    durable = [span.end for each, _ in own for span in each.spans.get(part, ()) if span.event != "Committing"]
    written = next(span.start for span in took.spans if span.event == "WritingMetadata")
    return {
        "bytes": sum(sizes),
        "started_metadata_write": _micros(written),
        "finish_time": _micros(max(durable, default=written)),
        "subtasks": {
            str(index): {"bytes": size, "event_spans": [_span(span) for span in each.spans.get(part, ())]}
            for index, (each, size) in enumerate(own)
        },
    }


def _bytes(part: Part, took: SliceTook) -> int:
    kind, place = part
    return took.bytes[place] if kind == "operator" and isinstance(place, int) else 0


def _span(span: Span) -> EventSpan:
    return {"event": span.event, "start_time": _micros(span.start), "finish_time": _micros(span.end)}


def _micros(time: float) -> int:
    return int(time * 1e6)
