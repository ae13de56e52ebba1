"""The boxes and arrows of a pipeline, as Arroyo's clients draw them.

A box is a source, an operator or a sink: 0 is the source, then come operators and sinks, each in the order of the
description, then further sources. The same numbers stand in metrics. A box that is alone has one subtask, whatever the
parallelism is.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ...connectors.table import Table
from ...operator.routes import Place, is_source
from ...pipeline.chain import operator_names
from ...pipeline.description import Functions, Join, Lookup, OperatorModel, SinkModel, SourceModel, Sql, Union, Windows
from ...pipeline.plan import Planned, sink_names

_CONNECTORS = {"files": "filesystem", "parts": "filesystem", "file": "single_file"}


def graph_of(planned: Planned) -> dict[str, Any]:
    pipeline, routes = planned.pipeline, planned.routes
    names = operator_names(pipeline)
    first_further = 1 + len(names) + len(pipeline.sinks)
    calls = iter(planned.calls)
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []

    def number(place: Place) -> int:
        if place is None or not is_source(place):
            return 0 if place is None else place + 1
        return first_further - 1 - place

    def is_alone(place: Place) -> bool:
        return place in routes.gathering or routes.is_behind_gathering(place)

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

    def edge(before: Place, kind: str) -> None:
        edges.append(
            {
                "src_id": number(before),
                "dest_id": len(nodes),
                "key_type": "()",
                "value_type": "()",
                "edge_type": kind,
            }
        )

    node(_source(pipeline.source), f"source {pipeline.source.type}", False)
    for place, (operator, name) in enumerate(zip(pipeline.operators, names, strict=True)):
        kinds = ["Shuffle" if place in routes.gathering else "Forward"] * len(routes.inputs(place))
        for before, kind in zip(
            routes.inputs(place), ["LeftJoin", "RightJoin"] if isinstance(operator, Join) else kinds, strict=True
        ):
            edge(before, kind)
        own = [next(calls) for _ in getattr(operator, "calls", ())]
        is_async = any(call.function.kind == "async" for call in own)
        node(_kind(operator, is_async), _label(operator, name), is_alone(place))
    for place, (sink, name) in enumerate(zip(planned.resolved.sinks, sink_names(pipeline), strict=True)):
        edge(routes.sinks[place], "Forward")
        node(_sink(sink), f"sink {name}", is_alone(routes.sinks[place]))
    for name, further in pipeline.sources.items():
        node(_source(further.source), f"source {name}", False)
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
    if isinstance(operator, Join):
        return "InstantJoin"
    if isinstance(operator, Lookup):
        return "LookupJoin"
    return "Union" if isinstance(operator, Union) else "Projection"


def _label(operator: OperatorModel, name: str) -> str:
    if isinstance(operator, Functions):
        return f"{name}: {', '.join(operator.calls)}"
    if isinstance(operator, Sql):
        return name if operator.where is None else f"{name} where {operator.where}"
    return name


def _source(source: SourceModel) -> str:
    return _CONNECTORS.get(source.type, source.type)


def _sink(sink: SinkModel) -> str:
    if isinstance(sink, Table):
        return "sqlite" if urlsplit(sink.uri).scheme == "sqlite" else "postgres"
    return _CONNECTORS.get(sink.type, sink.type)
