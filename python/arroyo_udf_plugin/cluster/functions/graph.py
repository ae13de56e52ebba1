"""The boxes and arrows of a pipeline, as Arroyo's clients draw them.

A box is a source, an operator or a sink; sources have the lowest numbers, then come operators and sinks, each in the
order of the description. The same numbers stand in metrics. A box that is alone has one subtask, whatever the
parallelism is.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ...connectors.table import Table
from ...pipeline.chain import operator_names
from ...pipeline.description import Functions, OperatorModel, SinkModel, Sql, Windows
from ...pipeline.plan import Planned, sink_names

_CONNECTORS = {"files": "filesystem", "parts": "filesystem", "file": "single_file"}


def graph_of(planned: Planned) -> dict[str, Any]:
    pipeline, routes = planned.pipeline, planned.routes
    calls = iter(planned.calls)
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    names = operator_names(pipeline)

    def node(operator: str, description: str, alone: bool) -> None:
        nodes.append(
            {
                "node_id": len(nodes),
                "operator": operator,
                "description": description,
                "parallelism": 1 if alone else pipeline.parallelism,
                "alone": alone,
            }
        )

    def edge(before: int | None, gathered: bool) -> None:
        told = "Shuffle" if gathered else "Forward"
        source = 0 if before is None else before + 1
        edges.append({"src_id": source, "dest_id": len(nodes), "key_type": "()", "value_type": "()", "edge_type": told})

    node(_CONNECTORS.get(pipeline.source.type, pipeline.source.type), f"source {pipeline.source.type}", False)
    for place, (operator, name) in enumerate(zip(pipeline.operators, names, strict=True)):
        alone = place in routes.gathering or routes.is_behind_gathering(place)
        edge(routes.before[place], place in routes.gathering)
        own = [next(calls) for _ in getattr(operator, "calls", ())]
        node(_kind(operator, any(call.function.kind == "async" for call in own)), _label(operator, name), alone)
    for place, (sink, name) in enumerate(zip(pipeline.sinks, sink_names(pipeline), strict=True)):
        before = routes.sinks[place]
        alone = before in routes.gathering or routes.is_behind_gathering(before)
        edge(before, False)
        node(_connector(sink), f"sink {name}", alone)
    return {"nodes": nodes, "edges": edges}


def _kind(operator: OperatorModel, is_async: bool) -> str:
    if isinstance(operator, Windows):
        if operator.by_row:
            return "WindowFunction"
        if operator.gap is not None:
            return "SessionWindowAggregate"
        sliding = operator.slide is not None and operator.slide != operator.width
        return "SlidingWindowAggregate" if sliding else "TumblingWindowAggregate"
    if isinstance(operator, Functions):
        return "AsyncUdf" if is_async else "ArrowValue"
    return "Projection"


def _label(operator: OperatorModel, name: str) -> str:
    if isinstance(operator, Functions):
        return f"{name}: {', '.join(operator.calls)}"
    if isinstance(operator, Sql):
        return name if operator.where is None else f"{name} where {operator.where}"
    return name


def _connector(sink: SinkModel) -> str:
    if isinstance(sink, Table):
        return "sqlite" if urlsplit(sink.uri).scheme == "sqlite" else "postgres"
    return _CONNECTORS.get(sink.type, sink.type)
