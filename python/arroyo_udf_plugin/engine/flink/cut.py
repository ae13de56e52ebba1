"""A pipeline, cut into stages: what follows each other without a hop through the network is one stage.

    source ──► functions ──► queries ──┊──► windows ──► queries ──┊──► async function ──┊──► sink
    reading stage                      ┊  keyed stage             ┊  waiting stage      ┊

A stage ends in front of operators that exchange rows between slices (windows, joins), that have several inputs, or
whose results take their time (async functions, lookups), and in front of sinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..operators.group_stage import GroupPlan
from ..operators.lookup import LookupPlan
from ..operators.queried import QueryPlan
from ..operators.routes import Place, place_of_source
from ..pipeline.plan import Planned

StageKind = Literal["reading", "keyed", "waiting"]

LETTERS = "dead_letters"
"""The name of the sink of dead letters."""


@dataclass(frozen=True)
class CutStage:
    """source: the number of the source that it reads. operators: their places, in order."""

    number: int
    kind: StageKind
    source: int | None
    operators: tuple[int, ...]

    @property
    def head(self) -> int:
        """The operator that gets what comes in."""
        return self.operators[0]


@dataclass(frozen=True)
class Edge:
    """What leaves `place`, which is in the stage `sender`, and goes to an input of the operator `follower`, or to the
    sink of this name. place: of dead letters, None means nothing."""

    number: int
    sender: int
    place: Place
    follower: int | None = None
    input: int = 0
    sink: str | None = None


@dataclass(frozen=True)
class CutPipeline:
    stages: Sequence[CutStage]
    edges: Sequence[Edge]

    def edges_from(self, stage: CutStage) -> list[Edge]:
        return [edge for edge in self.edges if edge.sender == stage.number]

    def edges_to(self, stage: CutStage) -> list[Edge]:
        """In the order of the inputs of its first operator."""
        if not stage.operators:
            return []
        found = [edge for edge in self.edges if edge.follower == stage.head]
        return sorted(found, key=lambda edge: edge.input)

    def edges_to_sink(self, name: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.sink == name]


def cut(planned: Planned) -> CutPipeline:
    routes = planned.routes
    stage_of: dict[Place, int] = {}
    kinds: list[tuple[StageKind, int | None, list[int]]] = []
    for number in range(len(planned.inputs)):
        stage_of[place_of_source(number)] = len(kinds)
        kinds.append(("reading", number, []))
    for place in range(len(planned.chain.stages)):
        kind = _kind(planned, place)
        if kind is None:
            stage_of[place] = stage_of[routes.before[place]]
            kinds[stage_of[place]][2].append(place)
        else:
            stage_of[place] = len(kinds)
            kinds.append((kind, None, [place]))
    stages = [CutStage(number, kind, source, tuple(own)) for number, (kind, source, own) in enumerate(kinds)]
    return CutPipeline(stages, list(_edges(planned, stage_of, stages)))


def _edges(planned: Planned, stage_of: Mapping[Place, int], stages: Sequence[CutStage]) -> Iterator[Edge]:
    routes, number = planned.routes, 0
    heads = {stage.head for stage in stages if stage.operators and stage.kind != "reading"}
    for place, sender in stage_of.items():
        for follower, input in routes.entries(place):
            if follower in heads:
                yield Edge(number, sender, place, follower, input)
                number += 1
        for sink in routes.sinks_after(place):
            yield Edge(number, sender, place, sink=sink_name(planned, sink))
            number += 1
    for stage in stages if planned.resolved.dead_letters is not None else ():
        yield Edge(number, stage.number, None, sink=LETTERS)
        number += 1


def sink_name(planned: Planned, number: int) -> str:
    return [name for key, _, name, _ in planned.outputs() if key[0] == "sinks"][number]


def _kind(planned: Planned, place: int) -> StageKind | None:
    """Of the stage that an operator begins. None: it begins none."""
    if len(planned.routes.inputs(place)) > 1 or place in planned.routes.exchanging:
        return "keyed"
    return "waiting" if takes_its_time(planned, place) else None


def takes_its_time(planned: Planned, place: int) -> bool:
    """Whether results of an operator come later, from elsewhere."""
    stages = planned.chain.stages[place]
    if isinstance(stages, GroupPlan):
        return False
    return any(
        isinstance(stage, LookupPlan) or (not isinstance(stage, QueryPlan) and stage.call.function.kind == "async")
        for stage in stages
    )
