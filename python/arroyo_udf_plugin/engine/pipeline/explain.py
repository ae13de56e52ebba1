"""The chain of a pipeline with its columns, for people: `arroyo-udf run --explain`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..connectors.cells import CellType
from ..connectors.described import Described
from .description import Functions, LookBack, Lookup, Sql, WholeQuery, Windows
from .inputs import sources_of
from .plan import Planned, sink_names
from .routing import operator_names


def explained(planned: Planned) -> str:
    """Variables stay `${NAME}`."""
    return "\n".join(_lines(planned))


def _lines(planned: Planned) -> Iterator[str]:
    told = planned.pipeline
    slices = "1 slice" if told.parallelism == 1 else f"{told.parallelism} slices"
    yield f"pipeline {told.name}: {slices}"
    if told.checkpoints is not None:
        yield f"checkpoints: {_keys(told.checkpoints)}"
    for one, input in zip(sources_of(told), planned.inputs, strict=True):
        yield f"source {one.name or one.model.type}: {_keys(one.model)}"
        yield from _columns(input.columns.schema)
        if one.event_time is not None:
            yield f"event time: {_keys(one.event_time)}"
    calls = iter(planned.calls)
    for place, (operator, name) in enumerate(zip(told.operators, operator_names(told), strict=True)):
        yield f"operator {name}: {_keys(operator, without=('name', 'calls', 'select', 'where', 'aggregates', 'sql'))}"
        if isinstance(operator, Sql):
            yield from _query(operator, planned.chain.schemas[place])
            continue
        if isinstance(operator, Windows | LookBack):
            yield from _results(operator, planned.chain.schemas[place])
            continue
        if isinstance(operator, Lookup):
            yield from _found(operator, planned.chain.schemas[place])
            continue
        if isinstance(operator, WholeQuery):
            yield from _answers(operator, planned.chain.schemas[place])
            continue
        if not isinstance(operator, Functions):
            yield from _columns(planned.chain.schemas[place])
            continue
        for text in operator.calls:
            call = next(calls)
            yield f"    {text}    {call.function.kind}, {call.name}: {_type(call.function.returns)}"
    shown = None
    for sink, name, before in zip(told.sinks, sink_names(told), planned.routes.sinks, strict=True):
        if shown is not None and planned.chain.schemas[before] != shown:
            yield from _columns(shown)
        shown = planned.chain.schemas[before]
        yield f"sink {name}: {_keys(sink)}"
    yield from _columns(shown or ())
    if told.dead_letters is not None:
        yield f"dead letters {told.dead_letters.type}: {_keys(told.dead_letters)}"
        yield from _columns(planned.letter_schema)


def _query(operator: Sql, schema: pa.Schema) -> Iterator[str]:
    items = operator.select or {name: name for name in schema.names}
    width = max(map(len, items), default=0)
    for (name, text), type_ in zip(items.items(), schema.types, strict=True):
        yield f"    {name:{width}}  {_type(type_)} = {' '.join(text.split())}"
    if operator.where is not None:
        yield f"    where {' '.join(operator.where.split())}"


def _found(operator: Lookup, schema: pa.Schema) -> Iterator[str]:
    yield from _columns(schema)
    if operator.where is not None:
        yield f"    where {' '.join(operator.where.split())}"


def _answers(operator: WholeQuery, schema: pa.Schema) -> Iterator[str]:
    yield f"    {' '.join(operator.sql.split())}"
    yield from _columns(schema)


def _results(operator: Windows | LookBack, schema: pa.Schema) -> Iterator[str]:
    width = max(map(len, schema.names))
    for field in schema:
        text = operator.aggregates.get(field.name)
        yield f"    {field.name:{width}}  {_type(field.type)}{'' if text is None else f' = {text}'}"


def _keys(model: Described, without: tuple[str, ...] = ()) -> str:
    """What the description says beside defaults."""
    chosen = model.model_dump(mode="json", by_alias=True, warnings=False, exclude_defaults=True)
    return ", ".join(f"{key} = {value}" for key, value in chosen.items() if key not in ("type", *without)) or "defaults"


def _columns(schema: pa.Schema) -> Iterator[str]:
    width = max(map(len, schema.names), default=0)
    return (f"    {field.name:{width}}  {_type(field.type)}" for field in schema)


def _type(type_: pa.DataType) -> str:
    return "text" if isinstance(type_, CellType) else str(type_)
