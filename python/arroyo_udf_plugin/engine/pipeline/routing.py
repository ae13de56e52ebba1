"""Which operators follow which in a description: `Routes`, with the names that `after`, `inputs` and the like have."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import nearest
from ..operators.routes import Place, Routes, place_of_source
from .description import Pipeline
from .lines import Key
from .problems import Problems

_SOURCE = "source"


def routes_of(pipeline: Pipeline, problems: Problems) -> Routes | None:
    """None: there are problems."""
    before_it = len(problems.entries)
    places: dict[str, Place] = {_SOURCE: None}
    for number, name in enumerate(pipeline.sources, 1):
        if name in places:
            problems.add(("sources", name), "the first source has this name: choose another one")
        places[name] = place_of_source(number)
    before: list[Place] = []
    beside: dict[int, Sequence[Place]] = {}

    def place_of(name: str | None, key: Key, otherwise: Place) -> Place:
        if name is None or name in places:
            return otherwise if name is None else places[name]
        problems.add(key, f"there is no operator {name!r} before it: {nearest(name, places)}")
        return otherwise

    for place, (operator, name) in enumerate(zip(pipeline.operators, operator_names(pipeline), strict=True)):
        key: Key = ("operators", place)
        inputs = operator.named_inputs()
        if inputs is not None:
            if operator.after is not None:
                problems.add((*key, "after"), f"a {operator.type} has {operator.inputs_key}: leave it out")
            own = [place_of(input_name, (*key, *at), None) for at, input_name in inputs]
            before.append(own[0])
            beside[place] = own[1:]
        else:
            before.append(place_of(operator.after, (*key, "after"), place - 1 if place else None))
        if name in pipeline.sources:
            problems.add((*key, "name"), f"a source has the name {name!r}: choose another one")
        places[name] = place
    last = len(before) - 1 if before else None
    sinks = [place_of(sink.after, ("sinks", number, "after"), last) for number, sink in enumerate(pipeline.sinks)]
    if len(problems.entries) > before_it:
        return None
    exchanging = [place for place, described in enumerate(pipeline.operators) if described.exchanges]
    gathering = [place for place in exchanging if pipeline.operators[place].gathers]
    routes = Routes(before, sinks, exchanging, gathering, beside)
    for place in beside:
        if not _have_windows(pipeline, routes, place) or (
            place in exchanging and not pipeline.operators[place].is_of_one_time
        ):
            continue  # of rows near in time, none needs a window
        if len({_are_of_windows(pipeline, routes, before) for before in routes.inputs(place)}) > 1:
            text = "some of its rows are results of windows, and others are not: group all of them, or none"
            problems.add(("operators", place), text)
    for number, name in enumerate(["", *pipeline.sources]):
        source = place_of_source(number)
        if (number or pipeline.sources) and not routes.after(source) and not routes.sinks_after(source):
            key = ("sources", name) if number else ("source",)
            problems.add(key, "nothing takes its rows: name it in the `after` of an operator, or leave it out")
    for place in range(len(before)):
        if not routes.after(place) and not routes.sinks_after(place):
            problems.add(
                ("operators", place), "nothing takes its rows: name it in the `after` of a sink, or leave it out"
            )
    return None if len(problems.entries) > before_it else routes


def _are_of_windows(pipeline: Pipeline, routes: Routes, place: Place) -> bool:
    """Whether rows of one of its inputs waited for others."""
    if place is None or place < 0:
        return False
    return place in routes.exchanging or any(_are_of_windows(pipeline, routes, at) for at in routes.inputs(place))


def _have_windows(pipeline: Pipeline, routes: Routes, place: Place) -> bool:
    """Whether rows have come through windows, or are joined by the same time: others beside them have another one."""
    if place is None or place < 0 or pipeline.operators[place].is_over_all_rows:
        return False
    if pipeline.operators[place].is_of_one_time:
        return True
    return any(_have_windows(pipeline, routes, before) for before in routes.inputs(place))


def operator_names(pipeline: Pipeline) -> list[str]:
    """Of the operators, for people; each once."""
    return each_once([operator.name or operator.default_name for operator in pipeline.operators])


def sink_names(pipeline: Pipeline) -> list[str]:
    """Of the sinks, for people and databases; each once."""
    return each_once([sink.type for sink in pipeline.sinks])


def each_once(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that were there before."""
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}-{count + 1}" if count else name for name, count in zip(names, earlier, strict=True)]
