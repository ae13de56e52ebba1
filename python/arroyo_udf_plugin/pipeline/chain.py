"""The operators of a pipeline in their places, and the columns between them.

Functions in a row add their results to the same rows. Such a row ends where a query begins, where rows go several ways,
and at the sinks: there the rows get the columns that they show to others.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from ..connectors.lookup_table import lookup_table
from ..connectors.type_names import type_named
from ..errors import InvalidArgument
from ..operator.blocks import ORIGIN, Block, Columns, Given
from ..operator.calls import Call, Plan, Stage
from ..operator.grouped import GroupPlan
from ..operator.lookup import LookupPlan
from ..operator.queued import QueryPlan
from ..operator.routes import Routes
from ..sql.query import Query, Select, WrongQuery
from ..windows.grouping import Grouping
from ..windows.opened import opened
from ..windows.spans import Hop, Session
from .checks import Judge, Plugins, Problems, check_options
from .description import Functions, Lookup, OperatorModel, Pipeline, SinkModel, Sql, Windows
from .lines import Key
from .problems import nearest

_SOURCE = "source"


@dataclasses.dataclass(frozen=True)
class Chain:
    """calls: of all operators, in their order. stages: of each operator.

    schemas: of the rows that leave the places where rows end. plans: for those of functions.
    source: its columns. keeps: rows keep these behind queries, too, for dead letters.
    """

    routes: Routes
    calls: Sequence[Call]
    stages: Sequence[Sequence[Stage | QueryPlan | LookupPlan] | GroupPlan]
    schemas: Mapping[int | None, pa.Schema]
    plans: Mapping[int | None, Plan]
    source: Columns
    keeps: bool

    def left(self, block: Block, place: int | None) -> Block:
        """A block that has left an operator, or the source, as those that follow take it."""
        if place not in self.schemas:
            return block
        if self.keeps and self.routes.after(place):
            block = self.source.with_own(block)
        plan = self.plans.get(place)
        return block if plan is None else block.with_rows(plan.output(block))


def chained(
    pipeline: Pipeline, source: Columns | None, problems: Problems, plugins: contextlib.ExitStack
) -> Chain | None:
    """source: its columns; None: unknown, because it cannot be read. None: there are problems."""
    routes = _routes(pipeline, problems)
    if routes is None:
        return None
    building = _Building(pipeline, routes, source, problems, plugins)
    for place, operator in enumerate(pipeline.operators):
        if isinstance(operator, Sql):
            building.query(place, operator)
        elif isinstance(operator, Windows):
            building.windows(place, operator)
        elif isinstance(operator, Lookup):
            building.lookup(place, operator)
        else:
            building.functions(place, operator)
    return None if problems.found or source is None else building.built(source)


class _Building:
    def __init__(
        self,
        pipeline: Pipeline,
        routes: Routes,
        source: Columns | None,
        problems: Problems,
        plugins: contextlib.ExitStack,
    ) -> None:
        self._pipeline, self._routes, self._problems = pipeline, routes, problems
        self._plugins = Plugins(pipeline, problems, plugins)
        self._hidden = problems.hidden
        self._names = operator_names(pipeline)
        self._keeps = pipeline.dead_letters is not None
        self._origin = source.long_origin if source is not None and self._keeps else ORIGIN
        self._rows: dict[int, Judge] = {}  # functions whose row has not ended, by the last one
        self._counts: dict[int, int] = {}  # calls of each operator
        self._plans: dict[int | None, Plan] = {}
        self._queries: dict[int, QueryPlan] = {}
        self._calls: list[Call] = []
        self._schemas: dict[int | None, pa.Schema] = {}
        self._stages: dict[int, Sequence[Stage | QueryPlan | LookupPlan] | GroupPlan] = {}
        self._columns: dict[int | None, Columns | None] = {None: source}  # behind ends; None: unknown
        if source is not None and self._is_end(None):
            self._ends(None, source.schema)

    def _is_end(self, place: int | None) -> bool:
        followers = self._routes.after(place)
        return self._routes.is_end(place) or not isinstance(self._pipeline.operators[followers[0]], Functions)

    def _ends(self, place: int | None, schema: pa.Schema) -> None:
        self._schemas[place] = schema
        self._columns[place] = Columns(schema, origin=self._origin)

    def query(self, place: int, operator: Sql) -> None:
        columns = self._columns.get(self._routes.before[place])
        if columns is None:
            return
        key: Key = ("operators", place)
        select = Select(operator.select, operator.where, operator.table, operator.required)
        try:
            schema = Query(select, columns.schema).schema
        except WrongQuery as error:
            at = ("select", error.item) if error.item is not None else ("where",) if operator.where else ()
            self._problems.add((*key, *at), str(error))
            return
        self._stages[place] = [QueryPlan(self._names[place], select, Given(columns.schema, columns.origin))]
        self._ends(place, schema)

    def windows(self, place: int, operator: Windows) -> None:
        columns = self._columns.get(self._routes.before[place])
        if columns is None:
            return
        key: Key = ("operators", place)
        if self._pipeline.event_time is None:
            self._problems.add(key, "windows end by the event time: add [event_time]")
        try:
            grouping = grouping_of(operator)
            schema = opened(grouping, columns.schema).schema
        except WrongQuery as error:
            at = ("aggregates", error.item) if error.item in operator.aggregates else ()
            self._problems.add((*key, *map(str, at)), str(error))
            return
        except InvalidArgument as error:
            self._problems.add((*key, "width"), str(error))
            return
        self._stages[place] = GroupPlan(self._names[place], grouping, Given(columns.schema, columns.origin))
        self._ends(place, schema)

    def lookup(self, place: int, operator: Lookup) -> None:
        columns = self._columns.get(self._routes.before[place])
        if columns is None:
            return
        key: Key = ("operators", place)
        missing = {column: name for column, name in operator.keys.items() if name not in columns.schema.names}
        for column, name in missing.items():
            instead = nearest(name, columns.schema.names)
            self._problems.add((*key, "keys", column), f"there is no column {name!r}: {instead}")
        if missing:
            return
        with self._problems.at(*key):
            plan = lookup_plan(operator, self._names[place], Given(columns.schema, columns.origin), self._hidden)
            schema = plan.schema
            if plan.condition is not None:
                self._check_condition(plan.condition, schema, key)
            self._stages[place] = [plan]
            self._ends(place, schema)

    def _check_condition(self, condition: Select, schema: pa.Schema, key: Key) -> None:
        try:
            Query(condition, schema)
        except WrongQuery as error:
            self._problems.add((*key, "where"), str(error))

    def functions(self, place: int, operator: Functions) -> None:
        before = self._routes.before[place]
        key: Key = ("operators", place)
        judge = self._rows.pop(before, None) if before is not None else None
        judge = judge or Judge(self._columns.get(before), self._problems)
        plugin = self._plugins.of(operator, key)
        calls = [judge.call(text, plugin, (*key, "calls", number)) for number, text in enumerate(operator.calls)]
        right = [call for call in calls if call is not None]
        self._counts[place] = len(right)
        check_options(operator, right, key, self._problems)
        self._calls += right
        if not self._is_end(place):
            self._rows[place] = judge
        elif judge.columns is not None and not self._problems.found:
            sinks = [self._pipeline.sinks[sink] for sink in self._routes.sinks_after(place)]
            typed = bool(self._routes.after(place)) or any(map(_is_typed, sinks))
            plan = self._plans[place] = Plan(judge.calls, judge.columns, typed)
            self._deal(plan, place)
            self._ends(place, plan.schema)

    def _deal(self, plan: Plan, end: int) -> None:
        """The stages of a row of functions to its operators."""
        stages, place = list(plan.stages), end
        while stages:
            own = self._counts[place]
            self._stages[place] = stages[len(stages) - own :]
            del stages[len(stages) - own :]
            place = self._routes.before[place] if stages else place  # type: ignore[assignment]

    def built(self, source: Columns) -> Chain:
        stages = [self._stages[place] for place in range(len(self._pipeline.operators))]
        return Chain(self._routes, self._calls, stages, self._schemas, self._plans, source, self._keeps)


def _routes(pipeline: Pipeline, problems: Problems) -> Routes | None:
    """None: there are problems."""
    before_it = len(problems.found)
    places: dict[str, int | None] = {_SOURCE: None}
    before: list[int | None] = []

    def place_of(name: str | None, key: Key, otherwise: int | None) -> int | None:
        if name is None or name in places:
            return otherwise if name is None else places[name]
        problems.add((*key, "after"), f"there is no operator {name!r} before it: {nearest(name, places)}")
        return otherwise

    for place, (operator, name) in enumerate(zip(pipeline.operators, operator_names(pipeline), strict=True)):
        before.append(place_of(operator.after, ("operators", place), place - 1 if place else None))
        places[name] = place
    last = len(before) - 1 if before else None
    sinks = [place_of(sink.after, ("sinks", number), last) for number, sink in enumerate(pipeline.sinks)]
    if len(problems.found) > before_it:
        return None
    gathering = [place for place, operator in enumerate(pipeline.operators) if isinstance(operator, Windows)]
    routes = Routes(before, sinks, gathering)
    for place in range(len(before)):
        if not routes.after(place) and not routes.sinks_after(place):
            problems.add(
                ("operators", place), "nothing takes its rows: name it in the `after` of a sink, or leave it out"
            )
    return None if len(problems.found) > before_it else routes


def lookup_plan(operator: Lookup, name: str, given: Given, hidden: Callable[[str], str] = str) -> LookupPlan:
    """given: has the columns of the keys. Looks at the table. Raises InvalidArgument."""
    types = {column: type_named(type_) for column, type_ in operator.types.items()}
    keys = {column: given.schema.field(own).type for column, own in operator.keys.items()}
    table = lookup_table(operator.uri, operator.table, keys, operator.columns, types, name)
    condition = None if operator.where is None else Select({"kept": "true"}, operator.where)
    return LookupPlan(
        name=name,
        table=table,
        keys=tuple(operator.keys.values()),
        condition=condition,
        keeps_unmatched=operator.unmatched == "null",
        cache_bytes=operator.cache_bytes,
        cache_seconds=operator.cache_seconds,
        given=given,
        hidden=hidden,
    )


def grouping_of(operator: Windows) -> Grouping:
    """Raises InvalidArgument for windows that cannot be."""
    if (operator.width is None) == (operator.gap is None) or (operator.gap is not None and operator.slide is not None):
        raise InvalidArgument("write width, or width and slide, or for sessions gap alone")
    window: Hop | Session
    if operator.width is None:
        window = Session(round((operator.gap or 0) * 1e9))
    else:
        slide = operator.width if operator.slide is None else operator.slide
        window = Hop(round(operator.width * 1e9), round(slide * 1e9))
    if operator.by_row and isinstance(window, Session):
        raise InvalidArgument("sessions have no window functions: leave out by_row")
    return Grouping(
        time=operator.time,
        window=window,
        column=operator.column,
        keys=tuple(operator.keys),
        aggregates=dict(operator.aggregates),
        by_row=operator.by_row,
        table=operator.table,
    )


def _is_typed(sink: SinkModel) -> bool:
    try:
        return sink.typed
    except InvalidArgument:
        return False  # it is told elsewhere


def operator_names(pipeline: Pipeline) -> list[str]:
    """Of the operators, for people; each once."""
    return each_once([one.name or _name(one) for one in pipeline.operators])


def _name(operator: OperatorModel) -> str:
    return Path(operator.plugin).stem.removeprefix("lib") if isinstance(operator, Functions) else operator.type


def each_once(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that were there before."""
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}-{count + 1}" if count else name for name, count in zip(names, earlier, strict=True)]
