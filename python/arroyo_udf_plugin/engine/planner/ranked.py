"""A SELECT with window functions over the rows of a window, or over a few rows before each row, as operators.

    SELECT *, row_number() OVER (PARTITION BY window ORDER BY n DESC) AS place FROM hours
    SELECT *, lag(n) OVER (PARTITION BY k ORDER BY window) AS before FROM hours

    rows ──► windows: each row with row_number() OVER (...) AS __v1 ──► ..., __v1 AS place
    rows ──► look_back: each row with lag(n) OVER (...) AS __v1 ──► ..., __v1 AS before

In the first one the rows are results of windows: those of one window are there together when it is over. In the second
one they are in the order of their event times, and functions need a bounded number of rows before each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..datafusion.query import WrongQuery
from ..datafusion.tokens import column_name, quoted
from ..pipeline.kinds.look_back import LookBack
from ..pipeline.kinds.windows import Windows
from .diagnostics import wrong_query
from .expressions import CallExpression, Column, Expression
from .flow import TIME, Flow, NeedsTime, Node
from .functions import PlannedUdf
from .grouped import MOMENT
from .looking_back import rows_before
from .over import Over, over_of
from .rounds import Rounds, Wanted
from .scope import Scope
from .selects import QueryText, Star
from .text import Text, Unending

_WRITE = "write OVER (PARTITION BY window ...)"


def has_over(query: QueryText) -> bool:
    """Whether some item has."""
    return bool(_functions(query))


def _functions(query: QueryText) -> list[CallExpression]:
    """The functions with OVER among the items; those inside another one belong to it."""
    return [
        call
        for result in query.results
        for call in result.calls
        if call.over and not any(call is not other and call in other.nodes() for other in result.calls if other.over)
    ]


@dataclass(frozen=True)
class _Backwards:
    """texts: of functions, by the names of their columns. keys, order, rows: as of the operator."""

    texts: dict[str, str]
    functions: dict[str, CallExpression]
    keys: tuple[str, ...]
    order: str
    rows: int


class Ranked:
    """query: its relation is `node`. name: for the last operator. scope: what names mean in its rows."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        query: QueryText,
        node: Node,
        name: str,
        scope: Scope | None = None,
    ) -> None:
        self._scope = scope
        self._text, self._udfs, self._flow, self._query, self._node, self._name = text, udfs, flow, query, node, name

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """As `Rounds.built`."""
        functions = _functions(self._query)
        for function in functions:
            self._check(function)
        columns = {f"__v{number}": function for number, function in enumerate(functions, 1)}
        of_windows = {column: function for column, function in columns.items() if self._is_of_window(function)}
        backwards = self._backwards({column: call for column, call in columns.items() if column not in of_windows})
        node = self._rows()
        if of_windows:
            node = self._windows(node, of_windows).with_windows(node.windows)
        for group in backwards:
            node = self._look_back(node, group)
        computed: dict[Expression, str] = {function: column for column, function in columns.items()}
        query = dataclasses.replace(self._query, ctes={}, where=())
        rounds = Rounds(self._text, self._udfs, self._flow, query, node, self._name, computed, scope=self._scope)
        return rounds.built(wanted, with_time)

    def _check(self, function: CallExpression) -> None:
        """That a function is one of a stream's rows. Raises Wrong."""
        if not self._node.windows and not self._node.times:
            raise Unending(
                "OVER (...) is for results of windows, and for rows with an event time: select from a query with GROUP "
                "BY tumble(...), or write WATERMARK FOR column in CREATE TABLE",
                function.start,
            )
        if over_of(function) is None:
            raise Unending(f"named windows are not supported: {_WRITE}", (function.over or function.part)[0].start)
        if function.name in self._udfs and self._udfs[function.name].is_aggregate:
            raise Unending(
                f"{function.name} is of a plugin, and has OVER only over sources that end: write GROUP BY",
                function.start,
            )
        for call in function.calls_of(self._udfs):
            raise Unending(f"{call.name} is called beside OVER: compute it in the query before", call.start)

    def _is_of_window(self, function: CallExpression) -> bool:
        """Whether all its rows are of one window."""
        over = over_of(function)
        keys = [] if over is None else [self._cut(key) for key in over.partition]
        return bool(self._node.windows.intersection(column_name(key, self._query.relation.alias) for key in keys))

    # ---- Rows before ----

    def _backwards(self, columns: Mapping[str, CallExpression]) -> list[_Backwards]:
        """Functions that look back, together if they do so at the same rows. Raises Unending for others."""
        groups: dict[tuple[str, ...], _Backwards] = {}
        for column, function in columns.items():
            over = over_of(function)
            assert over is not None
            first = self._time_of(function, over)
            n_rows = rows_before(function, over)
            if self._flow.settings.state_ttl is None:
                raise Unending(
                    "rows of all keys would have to be remembered for ever: write SET state_ttl = '1 day', after which "
                    "a key without rows is forgotten",
                    function.start,
                )
            if TIME not in self._node.schema.names:
                raise NeedsTime
            keys = tuple(self._cut(key) for key in over.partition)
            order = [quoted(TIME) + "".join(f" {word}" for word in over.order[0][1])]
            order += [" ".join([self._cut(expression), *words]) for expression, words in over.order[1:]]
            texts = {child: quoted(TIME) for child in function.children if child.start == first.start}
            own = groups.setdefault((*keys, "by", *order), _Backwards({}, {}, keys, ", ".join(order), 0))
            own.texts[column] = function.text(self._text, {**self._scoped(function), **texts})
            own.functions[column] = function
            groups[(*keys, "by", *order)] = dataclasses.replace(own, rows=max(own.rows, n_rows))
        return list(groups.values())

    def _time_of(self, function: CallExpression, over: Over) -> Expression:
        """What stands for the event time in its ORDER BY. Raises Unending if rows are in another order."""
        at = function.over[0].start if function.over else function.start
        first, words = over.order[0] if over.order else (None, ())
        if first is None or not self._is_time(first):
            if self._node.windows:
                raise Unending(f"other windows may be over later: {_WRITE}", at)
            name = next(iter(self._node.times))
            raise Unending(f"rows come in the order of their event time: write OVER (... ORDER BY {name})", at)
        if "desc" in words:
            raise Unending("rows come in the order of their event time: write ORDER BY without DESC", at)
        return first

    def _is_time(self, expression: Expression) -> bool:
        """Whether rows are in the order of their event times by it: a window, its start or end, or the time."""
        column = expression.bare
        if not isinstance(column, Column):
            return False
        path = column.path
        if self._scope is not None:
            meant = self._scope.meant(column)
            path = () if meant is None else (meant[0], *meant[1])
        elif len(path) > 1 and path[0] == self._query.relation.alias:
            path = path[1:]
        if path[:1] and path[0] in self._node.windows:
            return path[1:] in ((), ("start",), ("end",))
        least, most = self._node.times.get(path[0] if len(path) == 1 else "", (0, 1))
        return least == -most

    def _look_back(self, node: Node, group: _Backwards) -> Node:
        operator = LookBack(
            name=f"{self._name}_rows_before",
            time=TIME,
            aggregates=group.texts,
            keys=group.keys,
            order=group.order,
            rows=group.rows,
            ttl=self._flow.settings.state_ttl or 0,
            table=self._query.relation.alias,
        )
        try:
            return self._flow.look_back(node, operator, self._query.at)
        except WrongQuery as error:
            part = group.functions[error.item].part if error.item and error.item in group.functions else ()
            raise wrong_query(error, part, self._query, node.schema, self._udfs) from None

    def _scoped(self, expression: Expression) -> Mapping[Expression, str]:
        return {} if self._scope is None else self._scope.texts([expression])

    def _cut(self, expression: Expression) -> str:
        """As SQL over the rows."""
        return expression.text(self._text, self._scoped(expression))

    def _rows(self) -> Node:
        """Those that WHERE lets pass."""
        query = dataclasses.replace(self._query, ctes={}, items=(Star(None, {}, self._query.at),))
        name = f"{self._name}_rows"
        scope = None if self._scope is None else self._scope.rows(self._node.names)
        rounds = Rounds(self._text, self._udfs, self._flow, query, self._node, name, scope=scope)
        return rounds.built(with_time=True)

    def _windows(self, rows: Node, columns: Mapping[str, CallExpression]) -> Node:
        operator = Windows(
            name=f"{self._name}_windows",
            time=TIME,
            column="__w",
            keys=tuple(rows.names),
            aggregates={column: self._cut(function) for column, function in columns.items()},
            by_row=True,
            table=self._query.relation.alias,
            **MOMENT,  # type: ignore[arg-type]
        )
        try:
            return self._flow.windows(rows, operator, self._query.at)
        except WrongQuery as error:
            part = columns[error.item].part if error.item and error.item in columns else ()
            raise wrong_query(error, part, self._query, rows.schema, self._udfs) from None
