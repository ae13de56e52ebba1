"""The chain of a pipeline with its columns, for people: `arroyo-udf run --explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..connectors.described import Described
from ..operators.calls import Call
from .inputs import sources_of
from .kinds.kind import lines_of_columns
from .plan import Planned
from .routing import operator_names, sink_names


def explained(planned: Planned) -> str:
    """Variables stay `${NAME}`."""
    return "\n".join(_lines(planned))


def _lines(planned: Planned) -> Iterator[str]:
    pipeline = planned.pipeline
    slices = "1 slice" if pipeline.parallelism == 1 else f"{pipeline.parallelism} slices"
    yield f"pipeline {pipeline.name}: {slices}"
    if pipeline.checkpoints is not None:
        yield f"checkpoints: {_keys(pipeline.checkpoints)}"
    for declaration, input in zip(sources_of(pipeline), planned.inputs, strict=True):
        yield f"source {declaration.name or declaration.model.type}: {_keys(declaration.model)}"
        yield from lines_of_columns(input.columns.schema)
        if declaration.event_time is not None:
            yield f"event time: {_keys(declaration.event_time)}"
    calls = iter(planned.calls)
    for place, (operator, name) in enumerate(zip(pipeline.operators, operator_names(pipeline), strict=True)):
        yield f"operator {name}: {_keys(operator, without=('name', 'calls', 'select', 'where', 'aggregates', 'sql'))}"
        own = [next(calls) for _ in getattr(operator, "calls", ())]
        yield from operator.explained(planned.chain.schemas.get(place), own)
        yield from _passes(planned, own)
    shown = None
    for sink, name, before in zip(pipeline.sinks, sink_names(pipeline), planned.routes.sinks, strict=True):
        if shown is not None and planned.chain.schemas[before] != shown:
            yield from lines_of_columns(shown)
        shown = planned.chain.schemas[before]
        yield f"sink {name}: {_keys(sink)}"
    yield from lines_of_columns(shown or ())
    if pipeline.dead_letters is not None:
        yield f"dead letters {pipeline.dead_letters.type}: {_keys(pipeline.dead_letters)}"
        yield from lines_of_columns(planned.letter_schema)


def _passes(planned: Planned, calls: Sequence[Call]) -> Iterator[str]:
    """Those that end with one of these calls."""
    for fused in planned.chain.passes:
        if any(fused.calls[-1].call is call for call in calls):
            yield f"    in one pass: {fused.text}"


def _keys(model: Described, without: tuple[str, ...] = ()) -> str:
    """What the description says beside defaults."""
    chosen = model.model_dump(mode="json", by_alias=True, warnings=False, exclude_defaults=True)
    return ", ".join(f"{key} = {value}" for key, value in chosen.items() if key not in ("type", *without)) or "defaults"
