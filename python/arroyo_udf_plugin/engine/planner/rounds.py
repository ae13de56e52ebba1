"""A SELECT with calls of UDFs anywhere in it, as operators.

    conditions without calls ──► arguments ──► calls ──► ... ──► conditions with them ──► ... ──► items

`steps` says what is computed and called, and when. Here each stage becomes a query that computes columns and checks
conditions, or the operators that make calls. Conditions are checked in the order in which they are written, but for
those without calls that cannot fail: these come first. The calls of the items are made only for rows that remain.

A query is cut from the user's text, with results `__r1` in the places of calls.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...plugin.casting import fits
from ..connectors.cells import CellType
from ..datafusion.query import Query, Select, WrongQuery
from ..datafusion.tokens import column_name, quoted
from ..windows.updating_rows import SIGN
from .column_types import cast_to
from .diagnostics import wrong_query
from .expressions import Expression, without_queries
from .flow import TIME, Flow, Node
from .functions import PlannedUdf
from .scope import Scope
from .selects import Item, QueryText, Star, name_of
from .steps import ComputedSteps, Made, names_in
from .text import Text, Wrong

_OWN = re.compile(r"__([acgjklrvx]\d+(_\d+)?|[stw]|op|unsent|change)")


@dataclass(frozen=True)
class Wanted:
    """A column that a table has. type: None: any. not_null: a row fails in which it is null."""

    name: str
    type: pa.DataType | None
    not_null: bool = False


@dataclass(frozen=True)
class _Result:
    """A column of the result. expression: None: it is the column `source`. only: as of an Item. at: where it is."""

    name: str
    expression: Expression | None
    source: str
    at: int
    only: Expression | None = None


class Rounds:
    """query: its relation is `node`. name: for the last operator."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        query: QueryText,
        node: Node,
        name: str,
        computed: Mapping[Expression, str] | None = None,
        others: Collection[str] = (),
        scope: Scope | None = None,
    ) -> None:
        """computed: the columns that expressions are. others: of rows, which results of groups do not have. scope: what
        names mean, if rows are those of several tables."""
        self._text, self._udfs, self._flow, self._query, self._name = text, udfs, flow, query, name
        self._node, self._table, self._windows, self._times = node, query.relation.alias, node.windows, node.times
        self._others, self._scope, self._is_of_rows = others, scope, computed is None
        parts = [*query.results, *query.where]
        parts += [item.only for item in query.items if isinstance(item, Item) and item.only is not None]
        without_queries(parts)
        texts = dict(computed or {})
        if scope is not None:
            texts |= scope.texts(parts)
        same = {} if scope is not None else same_names(parts, self._table)
        self._steps = ComputedSteps(text, udfs, flow, node.schema.names, self._table, texts, same)
        self._conditions: list[tuple[int, str]] = []  # each with the stage of the query that checks it

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """The rows of the result. wanted: the columns that they must have, by position. with_time: with the event time,
        if there is one. Raises Wrong."""
        for name in self._node.names if self._is_of_rows else ():
            if _OWN.fullmatch(name):
                raise Wrong(f"a column has the name {name}, which calls need: rename it", self._query.relation.at)
        results = self._results(wanted)
        if with_time and TIME in self._node.schema.names:
            results.append(_Result(TIME, None, TIME, self._query.at))
        if self._node.is_signed:
            results.append(_Result(SIGN.name, None, SIGN.name, self._query.at))
        self._filter()
        items = {result.name: self._value(result) for result in results}
        self._run(items)
        return self._finish(results, items, wanted)

    def _filter(self) -> None:
        steps, conditions = self._steps, self._query.where
        first = next(
            (place for place, candidate in enumerate(conditions) if steps.is_calling(candidate)), len(conditions)
        )
        late = []
        for place, condition in enumerate(conditions):
            if place < first or not (steps.is_calling(condition) or condition.may_fail):
                self._conditions.append((steps.floor, steps.value(condition)))
            else:
                late.append(condition)
        for condition in late:
            text = steps.value(condition)
            steps.floor = steps.query_after(text)
            self._conditions.append((steps.floor, text))

    def _value(self, result: _Result) -> str:
        if result.expression is None:
            return quoted(result.source)
        if result.only is None:
            return self._steps.value(result.expression)
        return self._steps.value_only(result.expression, result.only)

    # ---- The columns of the result ----

    def _results(self, wanted: Sequence[Wanted] | None) -> list[_Result]:
        results: list[_Result] = []
        for item in self._query.items:
            results += self._star(item) if isinstance(item, Star) else [self._item(item)]
        if wanted is not None:
            if len(wanted) != len(results):
                names = ", ".join(column.name for column in wanted)
                raise Wrong(
                    f"the SELECT has {len(results)} columns, and the table {len(wanted)}: {names}", self._query.at
                )
            results = [
                dataclasses.replace(result, name=column.name) for column, result in zip(wanted, results, strict=True)
            ]
        for place, result in enumerate(results):
            if result.name in [other.name for other in results[:place]]:
                raise Wrong(f"there are two columns {result.name}: write AS and another name", result.at)
        return results

    def _star(self, star: Star) -> list[_Result]:
        if self._scope is not None:
            return [_Result(name, None, column, star.at) for name, column in self._scope.star(star)]
        names = [name for name in self._node.names if not _OWN.fullmatch(name)]
        if star.table not in (None, self._table):
            raise Wrong(f"there is no table {star.table} here: write {self._table}.*", star.at)
        for name, at in star.without.items():
            if name not in names:
                raise Wrong(f"there is no column {name} to leave out: there are {', '.join(names)}", at)
        return [_Result(name, None, name, star.at) for name in names if name not in star.without]

    def _item(self, item: Item) -> _Result:
        return _Result(name_of(self._text, item), item.expression, "", item.expression.start, item.only)

    # ---- The operators ----

    def _run(self, items: Mapping[str, str]) -> None:
        """All that is before the last query."""
        steps = self._steps
        last = max([steps.floor, *map(steps.query_after, items.values())])
        for stage in range(last):
            if stage % 2:
                self._call({result: made for result, made in steps.calls.items() if made.stage == stage})
                continue
            columns = {name: computed for name, computed in steps.columns.items() if computed.stage == stage}
            if columns or any(at == stage for at, _ in self._conditions):
                needed = self._needed(stage, items)
                kept = {name: quoted(name) for name in self._node.schema.names if name in needed}
                texts = {name: computed.text for name, computed in columns.items()}
                nodes = {name: computed.node for name, computed in columns.items()}
                self._query_over({**kept, **texts}, nodes, "arguments", stage)

    def _needed(self, stage: int, items: Mapping[str, str]) -> set[str]:
        """The names of columns that are used behind the query of this stage."""
        texts = [*items.values(), *(text for at, text in self._conditions if at > stage)]
        texts += [computed.text for computed in self._steps.columns.values() if computed.stage > stage]
        names = {name for text in texts for name in names_in(text)}
        for made in self._steps.calls.values():
            if made.stage > stage:
                names |= {*made.columns, made.guard or ""}
        return names

    def _query_over(
        self, items: Mapping[str, str], parts: Mapping[str, Expression | None], name: str, stage: int
    ) -> None:
        try:
            self._node = self._flow.query(self._node, self._select(items, stage), name, self._query.at)
        except WrongQuery as error:
            raise self._wrong(error, parts) from None

    def _select(self, items: Mapping[str, str], stage: int) -> Select:
        where = "\n) AND (".join(text for at, text in self._conditions if at == stage)
        return Select(items, f"({where}\n)" if where else None, self._table)

    def _wrong(self, error: WrongQuery, parts: Mapping[str, Expression | None]) -> Wrong:
        expression = parts.get(error.item or "")
        conditions = [token for condition in self._query.where for token in condition.part]
        part = conditions if expression is None else expression.part
        return wrong_query(error, part, self._query, self._node.schema, self._udfs, self._others)

    def _call(self, calls: Mapping[str, Made]) -> None:
        """An operator for each plugin."""
        for made in calls.values():
            self._check_types(made)
        for file in dict.fromkeys(made.udf.file for made in calls.values()):
            own = {result: made for result, made in calls.items() if made.udf.file == file}
            written = {result: (made.text(result), made.udf) for result, made in own.items()}
            self._node = self._flow.calls(self._node, file, written, min(made.call.start for made in own.values()))

    def _check_types(self, made: Made) -> None:
        for argument, column, field in zip(made.call.arguments, made.columns, made.udf.function.arguments, strict=True):
            given = self._node.schema.field(column).type
            given = pa.string() if isinstance(given, CellType) else given
            if fits(given, field) is not None:
                raise Wrong(
                    f"{self._text.cut(argument.part)} is {given}, and the function is {made.udf.signature}: "
                    f"write CAST(... AS ...) for {field.name}",
                    argument.start,
                )

    # ---- The end ----

    def _finish(self, results: Sequence[_Result], items: Mapping[str, str], wanted: Sequence[Wanted] | None) -> Node:
        parts = {result.name: result.expression for result in results}
        last = max([self._steps.floor, *map(self._steps.query_after, items.values())])
        if wanted is not None:
            items = self._cast(items, parts, results, wanted, last)
        names, texts = self._node.schema.names, [column_name(text, self._table) for text in items.values()]
        if any(at == last for at, _ in self._conditions) or not texts == names == list(items):
            named = {name: text for name, text in zip(items, texts, strict=True) if text is not None}
            times = {name: self._times[text] for name, text in named.items() if text in self._times}
            self._query_over(items, parts, self._name, last)
            windows = [name for name, text in named.items() if text in self._windows]
            self._node = self._node.with_windows(windows).with_times(times)
        required = [column.name for column in wanted or () if column.not_null]
        return self._flow.required(self._node, required, self._name, self._query.at)

    def _cast(
        self,
        items: Mapping[str, str],
        parts: Mapping[str, Expression | None],
        results: Sequence[_Result],
        wanted: Sequence[Wanted],
        last: int,
    ) -> dict[str, str]:
        """The items in the types of the table's columns."""
        try:
            types = Query(self._select(items, last), self._node.schema).schema.types
        except WrongQuery as error:
            raise self._wrong(error, parts) from None
        cast = dict(items)
        for column, result, given in zip(wanted, results, types, strict=False):  # behind them may be the time
            text = items[result.name]
            converted = text if column.type is None else cast_to(text, given, column.type)
            if converted is None:
                raise Wrong(
                    f"{column.name} is {column.type} in the table, and this is {given}: write CAST(... AS ...)",
                    result.at,
                )
            cast[result.name] = converted
        return cast


def same_names(expressions: Sequence[Expression], table: str) -> dict[Expression, str]:
    """The columns in them without the table's name, so that equal ones are found with and without it."""
    columns = [column for expression in expressions for column in expression.columns]
    return {column: " . ".join(column.path[column.path[0] == table and len(column.path) > 1 :]) for column in columns}
