"""The operators of a pipeline in their places, and the columns between them.

Functions in a row add their results to the same rows. Such a row ends where a query begins, where rows go several ways,
and at the sinks: there the rows get the columns that they show to others.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from ...errors import InvalidArgument
from ...host.function import Function
from ..connectors.described import Output
from ..operators.blocks import ORIGIN, Block, Columns
from ..operators.calls import Call, CallPlan
from ..operators.fused import FusedCalls, fused_calls
from ..operators.group_stage import GroupPlan
from ..operators.keys import array, hashed, masked
from ..operators.routes import Place, Routes, is_source, place_of_source
from ..windows.join_query import KEY as KEY_FIELD
from .checks import Judge, Plugins, check_options
from .description import Pipeline
from .kinds.functions import Functions
from .kinds.kind import DescribedOperator, Merging, Stages
from .kinds.updating import Updating
from .kinds.whole import WholeQuery
from .kinds.windows import Windows
from .lines import Key
from .problems import Problems
from .routing import operator_names, routes_of


@dataclasses.dataclass(frozen=True)
class Chain:
    """calls: of all operators, in their order. stages: of each operator.

    schemas: of the rows that leave the places where rows end. plans: for those of functions.
    merged: what operators with several inputs take. keys: of operators whose rows may be called later. passes: calls
    that are made together. sources: their columns. keeps: rows keep these behind queries, too, for dead letters.
    """

    routes: Routes
    calls: Sequence[Call]
    stages: Sequence[Stages]
    schemas: Mapping[Place, pa.Schema]
    plans: Mapping[Place, CallPlan]
    merged: Mapping[int, Merging]
    keys: Mapping[int, bytes]
    passes: Sequence[FusedCalls]
    sources: Mapping[Place, Columns]
    keeps: bool

    def left(self, block: Block, place: Place) -> Block:
        """A block that has left an operator, or a source, as those that follow take it."""
        if place not in self.schemas:
            return block
        if self.keeps and self.routes.after(place):
            block = self.sources[place if is_source(place) else None].with_own(block)
        plan = self.plans.get(place)
        return block if plan is None else block.with_rows(plan.output(block))

    def entered(self, block: Block, place: int, input: int) -> Block:
        """The same block, as an operator with several inputs takes it from this one."""
        own = self.keys.get(place)
        if own is None:
            return block.with_rows(self.merged[place](block.rows, input))
        if isinstance(self.stages[place], GroupPlan):  # a join, which makes one key of two
            rows = block.rows.append_column(KEY_FIELD.name, array(block.keys()))
            return block.with_rows(self.merged[place](rows, input))
        merged = block.with_rows(self.merged[place](block.rows, input))
        return merged.with_keys(masked(block.keys(), hashed(own, input))) if input else merged


def chained(
    pipeline: Pipeline, sources: Sequence[Columns | None], problems: Problems, plugins: contextlib.ExitStack
) -> Chain | None:
    """sources: their columns; None: unknown, because one cannot be read. None: there are problems."""
    routes = routes_of(pipeline, problems)
    if routes is None:
        return None
    placed = {place_of_source(number): columns for number, columns in enumerate(sources)}
    building = _Building(pipeline, routes, placed, problems, plugins)
    for place, operator in enumerate(pipeline.operators):
        operator.build(building, place)
    known = {place: columns for place, columns in placed.items() if columns is not None}
    return None if problems.entries or len(known) < len(placed) else building.built(known)


class _Building:
    def __init__(
        self,
        pipeline: Pipeline,
        routes: Routes,
        sources: Mapping[Place, Columns | None],
        problems: Problems,
        plugins: contextlib.ExitStack,
    ) -> None:
        self.problems = problems
        self._pipeline, self._routes = pipeline, routes
        self._plugins = Plugins(pipeline, problems, plugins)
        self._names = operator_names(pipeline)
        self._keys = {place: operator_key(pipeline, place) for place in _called_later(pipeline, routes)}
        self._keeps = pipeline.dead_letters is not None
        first = sources[None]
        self.origin = first.long_origin if first is not None and self._keeps else ORIGIN
        self._rows: dict[int, Judge] = {}  # functions whose row has not ended, by the last one
        self._counts: dict[int, int] = {}  # calls of each operator
        self._plans: dict[Place, CallPlan] = {}
        self._merged: dict[int, Merging] = {}
        self._passes: list[FusedCalls] = []
        self._calls: list[Call] = []
        self._schemas: dict[Place, pa.Schema] = {}
        self._stages: dict[int, Stages] = {}
        self._columns: dict[Place, Columns | None] = dict(sources)  # behind ends; None: unknown
        for place, source in sources.items():
            if source is not None and self._is_end(place):
                self._ends(place, source.schema)

    def _is_end(self, place: Place) -> bool:
        followers = self._routes.after(place)
        return self._routes.is_end(place) or not self._pipeline.operators[followers[0]].adds_to_rows

    def _ends(self, place: Place, schema: pa.Schema) -> None:
        self._schemas[place] = schema
        self._columns[place] = Columns(schema, origin=self.origin)

    def name(self, place: int) -> str:
        return self._names[place]

    def key_of_calls(self, place: int) -> bytes:
        return operator_key(self._pipeline, place)

    def later_key(self, place: int) -> bytes | None:
        return self._keys.get(place)

    def before(self, place: int) -> Columns | None:
        return self._columns.get(self._routes.before[place])

    def inputs(self, place: int) -> list[Columns | None]:
        return [self._columns.get(before) for before in self._routes.inputs(place)]

    def needs_time(self, place: int, why: str) -> None:
        for table in _without_time(self._pipeline, self._routes, place):
            self.problems.add(("operators", place), f"{why}: add [{table}]")

    def merges(self, place: int, merging: Merging) -> None:
        self._merged[place] = merging

    def add(self, place: int, stages: Stages, schema: pa.Schema) -> None:
        self._stages[place] = stages
        self._ends(place, schema)

    def functions_of(self, place: int, operator: DescribedOperator) -> Mapping[str, Function] | None:
        assert isinstance(operator, Updating | WholeQuery | Windows)
        return self._plugins.functions(operator, ("operators", place))

    def add_functions(self, place: int, operator: DescribedOperator) -> None:
        assert isinstance(operator, Functions)
        before = self._routes.before[place]
        key: Key = ("operators", place)
        judge = self._rows.pop(before, None) if before is not None else None
        judge = judge or Judge(self._columns.get(before), self.problems)
        plugin = self._plugins.of(operator, key)
        calls = [judge.call(text, plugin, (*key, "calls", number)) for number, text in enumerate(operator.calls)]
        right = [call for call in calls if call is not None]
        self._counts[place] = len(right)
        check_options(operator, right, key, self.problems)
        self._calls += right
        if not self._is_end(place):
            self._rows[place] = judge
        elif judge.columns is not None and not self.problems.entries:
            sinks = [self._pipeline.sinks[sink] for sink in self._routes.sinks_after(place)]
            typed = bool(self._routes.after(place)) or any(map(_is_typed, sinks))
            plan = self._plans[place] = CallPlan(judge.calls, judge.columns, typed)
            self._passes += fused_calls(plan.stages, self._deal(plan, place), self._needed(place))
            self._ends(place, plan.schema)

    def _deal(self, plan: CallPlan, end: int) -> set[int]:
        """The stages of a row of functions to its operators. Returns where those begin among the stages that wait for
        results: rows may be sent there, with the columns that they are given."""
        stages, place, begins = list(plan.stages), end, set[int]()
        while stages:
            own = stages[len(stages) - self._counts[place] :]
            self._stages[place] = own
            del stages[len(stages) - len(own) :]
            if any(stage.call.function.kind == "async" for stage in own):
                begins.add(len(stages))
            place = self._routes.before[place] if stages else place  # type: ignore[assignment]
        return begins

    def _needed(self, end: int) -> set[str] | None:
        """The names of columns that are needed behind a row of functions; None: of all."""
        names: set[str] = set()
        for follower in self._routes.after(end):
            taken = self._pipeline.operators[follower].names_taken()
            if taken is None:
                return None
            names |= taken
        return None if self._routes.sinks_after(end) else names

    def built(self, sources: Mapping[Place, Columns]) -> Chain:
        stages = [self._stages[place] for place in range(len(self._pipeline.operators))]
        return Chain(
            self._routes,
            self._calls,
            stages,
            self._schemas,
            self._plans,
            self._merged,
            self._keys,
            self._passes,
            sources,
            self._keeps,
        )


def _without_time(pipeline: Pipeline, routes: Routes, place: Place) -> Iterator[str]:
    """The tables of a description that lack, so that an operator's rows have no event time."""
    if place is None or place < 0:
        number = -(place or 0)
        name = list(pipeline.sources)[number - 1] if number else ""
        event_time = pipeline.sources[name].event_time if number else pipeline.event_time
        if event_time is None:
            yield f"sources.{name}.event_time" if number else "event_time"
        return
    for before in dict.fromkeys(routes.inputs(place)):
        yield from _without_time(pipeline, routes, before)


def operator_key(pipeline: Pipeline, place: int) -> bytes:
    """What makes idempotency keys those of an operator. It has what must be the same for a resume."""
    return hashed(pipeline.name, place)


def _called_later(pipeline: Pipeline, routes: Routes) -> set[int]:
    """Operators whose rows may come to functions."""
    places: set[int] = set()
    for place in reversed(range(len(pipeline.operators))):
        followers = routes.after(place)
        if any(follower in places or pipeline.operators[follower].adds_to_rows for follower in followers):
            places.add(place)
    return places


def _is_typed(sink: Output) -> bool:
    try:
        return sink.typed
    except InvalidArgument:
        return False  # it is told elsewhere
