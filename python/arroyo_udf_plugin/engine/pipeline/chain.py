"""The operators of a pipeline in their places, and the columns between them.

Functions in a row add their results to the same rows. Such a row ends where a query begins, where rows go several ways,
and at the sinks: there the rows get the columns that they show to others.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from ...errors import InvalidArgument, nearest
from ...host.policy import Policy
from ..connectors.cells import CellType, decoded
from ..connectors.described import Output
from ..datafusion.query import Query, Select, WrongQuery
from ..operators.blocks import ORIGIN, Block, Columns, Given
from ..operators.calls import Call, CallPlan, PlacedCall
from ..operators.grouped import Asked, GroupPlan
from ..operators.keys import array, hashed, masked, of_calls
from ..operators.lookup import LookupPlan
from ..operators.queued import QueryPlan
from ..operators.routes import Place, Routes, is_source, place_of_source
from ..windows.collecting import Collecting, Inputs
from ..windows.first_rows import FirstRows
from ..windows.grouping import Grouping
from ..windows.join_query import KEY as KEY_FIELD
from ..windows.join_query import Joining, Within
from ..windows.joining import Sides
from ..windows.look_back import LookBackRows as Looking
from ..windows.opened import opened
from ..windows.spans import Hop, Months, Session, Window
from ..windows.storage import StorageLimits
from .checks import Judge, Plugins, Problems, check_options
from .description import (
    Deduplicate,
    Functions,
    Join,
    LookBack,
    Lookup,
    Pipeline,
    Sql,
    Union,
    WaitingOperator,
    WholeQuery,
    Windows,
)
from .lines import Key
from .lookups import lookup_plan
from .queries import in_words, wrong_parts
from .routing import operator_names, routes_of

Merging = Callable[[pa.RecordBatch, int], pa.RecordBatch]
"""Rows of an input, as an operator with several takes them."""


@dataclasses.dataclass(frozen=True)
class Chain:
    """calls: of all operators, in their order. stages: of each operator.

    schemas: of the rows that leave the places where rows end. plans: for those of functions.
    merged: what operators with several inputs take. keys: of operators whose rows may be called later. sources: their
    columns. keeps: rows keep these behind queries, too,
    for dead letters.
    """

    routes: Routes
    calls: Sequence[Call]
    stages: Sequence[Sequence[PlacedCall | QueryPlan | LookupPlan] | GroupPlan]
    schemas: Mapping[Place, pa.Schema]
    plans: Mapping[Place, CallPlan]
    merged: Mapping[int, Merging]
    keys: Mapping[int, bytes]
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
        if isinstance(operator, Sql):
            building.query(place, operator)
        elif isinstance(operator, Windows):
            building.windows(place, operator)
        elif isinstance(operator, Deduplicate):
            building.deduplicate(place, operator)
        elif isinstance(operator, LookBack):
            building.look_back(place, operator)
        elif isinstance(operator, Lookup):
            building.lookup(place, operator)
        elif isinstance(operator, Union):
            building.union(place)
        elif isinstance(operator, Join):
            building.join(place, operator)
        elif isinstance(operator, WholeQuery):
            building.whole(place, operator)
        else:
            building.functions(place, operator)
    known = {place: columns for place, columns in placed.items() if columns is not None}
    return None if problems.found or len(known) < len(placed) else building.built(known)


class _Building:
    def __init__(
        self,
        pipeline: Pipeline,
        routes: Routes,
        sources: Mapping[Place, Columns | None],
        problems: Problems,
        plugins: contextlib.ExitStack,
    ) -> None:
        self._pipeline, self._routes, self._problems = pipeline, routes, problems
        self._plugins = Plugins(pipeline, problems, plugins)
        self._hidden = problems.hidden
        self._names = operator_names(pipeline)
        self._keys = {place: operator_key(pipeline, place) for place in _called_later(pipeline, routes)}
        self._keeps = pipeline.dead_letters is not None
        first = sources[None]
        self._origin = first.long_origin if first is not None and self._keeps else ORIGIN
        self._rows: dict[int, Judge] = {}  # functions whose row has not ended, by the last one
        self._counts: dict[int, int] = {}  # calls of each operator
        self._plans: dict[Place, CallPlan] = {}
        self._merged: dict[int, Merging] = {}
        self._calls: list[Call] = []
        self._schemas: dict[Place, pa.Schema] = {}
        self._stages: dict[int, Sequence[PlacedCall | QueryPlan | LookupPlan] | GroupPlan] = {}
        self._columns: dict[Place, Columns | None] = dict(sources)  # behind ends; None: unknown
        for place, source in sources.items():
            if source is not None and self._is_end(place):
                self._ends(place, source.schema)

    def _is_end(self, place: Place) -> bool:
        followers = self._routes.after(place)
        return self._routes.is_end(place) or not isinstance(self._pipeline.operators[followers[0]], Functions)

    def _ends(self, place: Place, schema: pa.Schema) -> None:
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
            for at, text in wrong_parts(select, columns.schema, error):
                self._problems.add((*key, *at), text)
            return
        self._stages[place] = [
            QueryPlan(self._names[place], select, Given(columns.schema, columns.origin), self._keys.get(place))
        ]
        self._ends(place, schema)

    def windows(self, place: int, operator: Windows) -> None:
        columns = self._columns.get(self._routes.before[place])
        if columns is None:
            return
        key: Key = ("operators", place)
        for table in _without_time(self._pipeline, self._routes, place):
            self._problems.add(key, f"windows end by the event time: add [{table}]")
        at_time = columns.schema.get_field_index(operator.time)
        if at_time >= 0 and isinstance(columns.schema.types[at_time], CellType):
            told = f"column {operator.time!r} is text: give its type to the source"
            self._problems.add((*key, "time"), f'{told}, types = {{ {operator.time} = "datetime" }}')
            return
        try:
            grouping = grouping_of(operator)
            schema = opened(grouping, columns.schema).schema
        except WrongQuery as error:
            at = ("aggregates", error.item) if error.item in operator.aggregates else ()
            self._problems.add((*key, *map(str, at)), in_words(error, columns.schema))
            return
        except InvalidArgument as error:
            self._problems.add((*key, "width" if operator.months is None else "months"), str(error))
            return
        self._waiting(place, operator, grouping, Given(columns.schema, columns.origin))
        self._ends(place, schema)

    def deduplicate(self, place: int, operator: Deduplicate) -> None:
        columns = self._columns.get(self._routes.before[place])
        if columns is None:
            return
        key: Key = ("operators", place)
        for table in _without_time(self._pipeline, self._routes, place):
            self._problems.add(key, f"keys are forgotten by the event time: add [{table}]")
        asked = first_rows_of(operator)
        try:
            opened(asked, columns.schema)
        except WrongQuery as error:
            at = ("time",) if error.item == operator.time else ("keys",)
            self._problems.add((*key, *at), str(error))
            return
        self._waiting(place, operator, asked, Given(columns.schema, columns.origin))
        self._ends(place, columns.schema)

    def look_back(self, place: int, operator: LookBack) -> None:
        columns = self._columns.get(self._routes.before[place])
        if columns is None:
            return
        key: Key = ("operators", place)
        for table in _without_time(self._pipeline, self._routes, place):
            self._problems.add(key, f"rows are in the order of their event time: add [{table}]")
        asked = looking_of(operator)
        try:
            schema = opened(asked, columns.schema).schema
        except WrongQuery as error:
            at = ("aggregates", error.item) if error.item in operator.aggregates else (error.item or "aggregates",)
            self._problems.add((*key, *map(str, at)), in_words(error, columns.schema))
            return
        self._waiting(place, operator, asked, Given(columns.schema, columns.origin))
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
            given = Given(columns.schema, columns.origin)
            plan = lookup_plan(operator, self._names[place], given, self._hidden, self._keys.get(place))
            try:
                self._ends(place, plan.schema)
            except WrongQuery as error:
                self._problems.add((*key, "where"), str(error))
            self._stages[place] = [plan]

    def union(self, place: int) -> None:
        inputs = [self._columns.get(before) for before in self._routes.inputs(place)]
        known = [_decoded(columns.schema) for columns in inputs if columns is not None]
        if len(known) < len(inputs):
            return
        schema = merged(known)
        for number, other in enumerate(known):
            if len(other) != len(known[0]) or not all(map(_fits, other.types, schema.types)):
                text = f"its rows have the types {_types(other)}, and those of the first input {_types(known[0])}"
                self._problems.add(("operators", place, "inputs", number), f"{text}: cast them in an operator before")
                return
        self._merged[place] = partial(_as_merged, schema)
        self._stages[place] = [QueryPlan(self._names[place], Select(), Given(schema, self._origin))]
        self._ends(place, schema)

    def join(self, place: int, operator: Join) -> None:
        key: Key = ("operators", place)
        for table in _without_time(self._pipeline, self._routes, place):
            self._problems.add(key, f"a join needs the event time: add [{table}]")
        columns = [self._columns.get(before) for before in self._routes.inputs(place)]
        schemas = [own.schema for own in columns if own is not None]
        if len(schemas) < len(columns):
            return
        try:
            joining = joining_of(operator)
        except InvalidArgument as error:
            self._problems.add((*key, "within"), str(error))
            return
        try:
            if place in self._keys:
                schemas = [schema.append(KEY_FIELD) for schema in schemas]
            sides = Sides(schemas, joining.time, joining.needed)
            schema = opened(joining, sides.schema).schema
        except WrongQuery as error:
            at = ("select", error.item) if error.item in operator.select else (error.item or "on",)
            self._problems.add((*key, *map(str, at)), str(error))
            return
        self._merged[place] = sides.together
        self._waiting(place, operator, joining, Given(sides.schema, self._origin))
        self._ends(place, schema)

    def whole(self, place: int, operator: WholeQuery) -> None:
        key: Key = ("operators", place)
        columns = [self._columns.get(before) for before in self._routes.inputs(place)]
        schemas = [own.schema for own in columns if own is not None]
        functions = self._plugins.functions(operator, key)
        if len(schemas) < len(columns) or functions is None:
            return
        inputs = Inputs(dict(zip(operator.tables, schemas, strict=True)))
        plugins = {name: function.plugin_hash for name, function in functions.items()}
        keys = partial(of_calls, operator_key(self._pipeline, place))
        collecting = Collecting(operator.sql, tuple(operator.tables), plugins, functions, keys)
        try:
            schema = opened(collecting, inputs.schema).schema
        except WrongQuery as error:
            self._problems.add((*key, "sql"), str(error))
            return
        self._merged[place] = inputs.together
        limits = StorageLimits(operator.memory_limit, operator.disk_limit)
        self._stages[place] = GroupPlan(
            self._names[place], collecting, Given(inputs.schema, self._origin), Policy(), limits, self._keys.get(place)
        )
        self._ends(place, schema)

    def _waiting(self, place: int, operator: WaitingOperator, grouping: Asked, given: Given) -> None:
        self._stages[place] = GroupPlan(
            self._names[place],
            grouping,
            given,
            Policy(operator.on_error),
            StorageLimits(operator.memory_limit, operator.disk_limit),
            self._keys.get(place),
            round(operator.allowed_lateness * 1e9),
            operator.on_late,
        )

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
            plan = self._plans[place] = CallPlan(judge.calls, judge.columns, typed)
            self._deal(plan, place)
            self._ends(place, plan.schema)

    def _deal(self, plan: CallPlan, end: int) -> None:
        """The stages of a row of functions to its operators."""
        stages, place = list(plan.stages), end
        while stages:
            own = self._counts[place]
            self._stages[place] = stages[len(stages) - own :]
            del stages[len(stages) - own :]
            place = self._routes.before[place] if stages else place  # type: ignore[assignment]

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


def _decoded(schema: pa.Schema) -> pa.Schema:
    """Cells as the texts that they are."""
    return pa.schema([field.with_type(pa.string()) if isinstance(field.type, CellType) else field for field in schema])


def merged(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Of the rows of all. Cells are texts; a column that is always null has the type of another input."""
    columns = zip(*(_decoded(schema).types for schema in schemas), strict=False)
    types = [next((type_ for type_ in own if not pa.types.is_null(type_)), own[0]) for own in columns]
    return pa.schema(zip(schemas[0].names, types, strict=False))


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    return given == wanted or bool(pa.types.is_null(given))


def _as_merged(schema: pa.Schema, rows: pa.RecordBatch, input: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(map(_as_type, rows.columns, schema.types)), schema=schema)


def _as_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(column.type, CellType):
        return decoded(column)
    return pa.nulls(len(column), wanted) if pa.types.is_null(column.type) else column


def _types(schema: pa.Schema) -> str:
    return ", ".join(map(str, schema.types))


def operator_key(pipeline: Pipeline, place: int) -> bytes:
    """What makes idempotency keys those of an operator. It has what must be the same for a resume."""
    return hashed(pipeline.name, place)


def _called_later(pipeline: Pipeline, routes: Routes) -> set[int]:
    """Operators whose rows may come to functions."""
    found: set[int] = set()
    for place in reversed(range(len(pipeline.operators))):
        followers = routes.after(place)
        if any(one in found or isinstance(pipeline.operators[one], Functions) for one in followers):
            found.add(place)
    return found


def joining_of(operator: Join) -> Joining:
    """Raises InvalidArgument for bounds that leave no time between them."""
    left, right = operator.tables
    within = None
    if operator.within is not None:
        lower, upper = (round(bound * 1e9) for bound in operator.within)
        within = Within(lower, upper)
    return Joining(operator.time, operator.kind, operator.on, dict(operator.select), (left, right), within)


def first_rows_of(operator: Deduplicate) -> FirstRows:
    return FirstRows(operator.time, tuple(operator.keys), round(operator.ttl * 1e9))


def looking_of(operator: LookBack) -> Looking:
    return Looking(
        time=operator.time,
        functions=dict(operator.aggregates),
        keys=tuple(operator.keys),
        order=operator.order,
        rows=operator.rows,
        ttl=round(operator.ttl * 1e9),
        table=operator.table,
    )


def grouping_of(operator: Windows) -> Grouping:
    """Raises InvalidArgument for windows that cannot be."""
    window = _window_of(operator)
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


def _window_of(operator: Windows) -> Window:
    """Raises InvalidArgument."""
    keys = ("width", "slide", "months", "slide_months", "gap")
    given = {key for key in keys if getattr(operator, key) is not None}
    if operator.width is not None and given <= {"width", "slide"}:
        slide = operator.width if operator.slide is None else operator.slide
        return Hop(round(operator.width * 1e9), round(slide * 1e9))
    if operator.months is not None and given <= {"months", "slide_months"}:
        return Months(operator.months, operator.slide_months or operator.months)
    if operator.gap is not None and given == {"gap"}:
        return Session(round(operator.gap * 1e9))
    raise InvalidArgument(
        "write width, or width and slide, or months, or months and slide_months, or for sessions gap alone"
    )


def _is_typed(sink: Output) -> bool:
    try:
        return sink.typed
    except InvalidArgument:
        return False  # it is told elsewhere
