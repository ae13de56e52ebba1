"""The boxes and arrows of a pipeline, as Arroyo's clients draw them.

A box is a source, an operator or a sink: 0 is the source, then come operators and sinks, each in the order of the
description, then further sources. The same numbers stand in metrics. A box that is alone has one subtask, whatever the
parallelism is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...engine.operators.routes import Place, place_of_source
from ...engine.pipeline.routing import operator_names, sink_names

if TYPE_CHECKING:
    from ...engine.pipeline.plan import Planned

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class _Box:
    """alone: it has one subtask, whatever the parallelism is. inputs: whose rows it gets, and the kinds of edges."""

    operator: str
    description: str
    alone: bool = False
    inputs: Sequence[tuple[Place, str]] = ()


def numbered(sources: Sequence[_T], operators: Sequence[_T], sinks: Sequence[_T]) -> list[_T]:
    """All boxes, in the order of their numbers."""
    return [*sources[:1], *operators, *sinks, *sources[1:]]


def graph_of(planned: Planned) -> dict[str, Any]:
    pipeline, routes = planned.pipeline, planned.routes
    sources = [_Box(pipeline.source.connector, f"source {pipeline.source.type}")]
    sources += [_Box(source.source.connector, f"source {name}") for name, source in pipeline.sources.items()]
    operators = _operators(planned)
    sinks = [
        _Box(sink.connector, f"sink {name}", routes.is_alone(before), [(before, "Forward")])
        for sink, name, before in zip(planned.resolved.sinks, sink_names(pipeline), routes.sinks, strict=True)
    ]
    places: Sequence[object] = numbered(
        list(map(place_of_source, range(len(sources)))),
        list(range(len(operators))),
        [f"sink {number}" for number in range(len(sinks))],
    )
    numbers = {place: number for number, place in enumerate(places)}
    boxes = list(enumerate(numbered(sources, operators, sinks)))
    return {
        "nodes": [
            {
                "node_id": number,
                "operator": box.operator,
                "description": box.description,
                "parallelism": 1 if box.alone else pipeline.parallelism,
                "alone": box.alone,
            }
            for number, box in boxes
        ],
        "edges": [
            {"src_id": numbers[before], "dest_id": number, "key_type": "()", "value_type": "()", "edge_type": kind}
            for number, box in boxes
            for before, kind in box.inputs
        ],
    }


def _operators(planned: Planned) -> list[_Box]:
    pipeline, routes = planned.pipeline, planned.routes
    calls = iter(planned.calls)
    boxes = []
    for place, (operator, name) in enumerate(zip(pipeline.operators, operator_names(pipeline), strict=True)):
        inputs = routes.inputs(place)
        kinds = operator.edges or ["Shuffle" if place in routes.exchanging else "Forward"] * len(inputs)
        own = [next(calls) for _ in getattr(operator, "calls", ())]
        edges = list(zip(inputs, kinds, strict=True))
        boxes.append(_Box(operator.node(own), operator.label(name), routes.is_alone(place), edges))
    return boxes
