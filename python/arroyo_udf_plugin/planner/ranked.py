"""A SELECT with window functions over the rows of a window, as operators.

    SELECT *, row_number() OVER (PARTITION BY window ORDER BY n DESC) AS place FROM hours

    rows ──► windows: each row with row_number() OVER (...) AS __v1 ──► ..., __v1 AS place

The rows are results of windows: those of one window are there together when it is over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..pipeline.description import Windows
from ..sql.query import WrongQuery
from ..sql.tokens import column_name
from .diagnostics import wrong_query
from .expressions import Call, Expression
from .flow import TIME, Flow, Node
from .functions import Udf
from .grouped import MOMENT
from .rounds import Rounds, Wanted
from .scope import Scope
from .selects import QueryText, Star
from .text import Text, Unending, leveled, split

_WRITE = "write OVER (PARTITION BY window ...)"


def has_over(query: QueryText) -> bool:
    """Whether some item has."""
    return bool(_functions(query))


def _functions(query: QueryText) -> list[Call]:
    """The functions with OVER among the items; those inside another one belong to it."""
    return [
        call
        for result in query.results
        for call in result.calls
        if call.over and not any(call is not other and call in other.nodes() for other in result.calls if other.over)
    ]


class Ranked:
    """query: its relation is `node`. name: for the last operator. scope: what names mean in its rows."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, Udf],
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
        rows = self._rows()
        node = dataclasses.replace(self._windows(rows, columns), windows=rows.windows)
        computed: dict[Expression, str] = {function: column for column, function in columns.items()}
        query = dataclasses.replace(self._query, ctes={}, where=())
        rounds = Rounds(self._text, self._udfs, self._flow, query, node, self._name, computed, scope=self._scope)
        return rounds.built(wanted, with_time)

    def _check(self, function: Call) -> None:
        """That a function is one of a window's rows. Raises Wrong."""
        if not self._node.windows:
            raise Unending(
                "OVER (...) is for results of windows: select from a query with GROUP BY tumble(...)", function.start
            )
        over = function.over or ()
        if over[1].text != "(":
            raise Unending(f"named windows are not supported: {_WRITE}", over[0].start)
        inner = over[2:-1]
        by = []
        if len(inner) > 1 and (inner[0].word, inner[1].word) == ("partition", "by"):
            ends = (place for place, token, depth in leveled(inner) if not depth and token.word in _BEHIND)
            by = [one[0].start for one in split(inner[2 : next(ends, len(inner))], ",") if one]
        keys = [self._cut(child) for child in function.children if child.start in by]
        if not self._node.windows.intersection(column_name(key, self._query.relation.alias) for key in keys):
            raise Unending(f"other windows may be over later: {_WRITE}", over[0].start)
        for call in function.calls_of(self._udfs):
            raise Unending(f"{call.name} is called beside OVER: compute it in the query before", call.start)

    def _cut(self, expression: Expression) -> str:
        """As SQL over the rows."""
        return expression.text(self._text, {} if self._scope is None else self._scope.texts([expression]))

    def _rows(self) -> Node:
        """Those that WHERE lets pass."""
        query = dataclasses.replace(self._query, ctes={}, items=(Star(None, {}, self._query.at),))
        name = f"{self._name}_rows"
        scope = None if self._scope is None else self._scope.rows(self._node.names)
        rounds = Rounds(self._text, self._udfs, self._flow, query, self._node, name, scope=scope)
        return rounds.built(with_time=True)

    def _windows(self, rows: Node, columns: Mapping[str, Call]) -> Node:
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


_BEHIND = ("order", "rows", "range", "groups")
