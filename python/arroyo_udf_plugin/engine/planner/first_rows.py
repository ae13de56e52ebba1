"""A SELECT that numbers the rows of each key, of which only the first ones are asked for, as operators.

    SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM orders) WHERE n = 1
    SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY at) = 1

    rows ──► id AS __k1 ──► deduplicate by __k1 ──► ..., 1 AS n

With SET state_ttl, a key is forgotten so long after its row; otherwise all keys would have to be remembered for ever.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ..datafusion.query import WrongQuery
from ..pipeline.kinds.deduplicate import Deduplicate
from .expressions import CallExpression, Column, Expression
from .flow import TIME, Flow, NeedsTime, Node
from .functions import PlannedUdf
from .over import first_of, is_number, over_of
from .rounds import Rounds, Wanted
from .scope import Scope
from .selects import Item, QueryText, Star
from .text import Text, Unending, Wrong

_WRITE = "write row_number() OVER (PARTITION BY key ORDER BY at) = 1, with the event time"


def asked_first(where: Iterable[Expression], inner: QueryText, table: str) -> CallExpression | None:
    """The row_number() of `inner`, the relation of a query with these conditions, if they ask for the first rows."""
    calls = [call for result in inner.results for call in result.calls if call.over]
    items = [item for item in inner.items if isinstance(item, Item)]
    named = {item.alias: call for item in items for call in calls if item.expression.bare is call and item.alias}
    if len(calls) != 1 or not is_number(calls[0]) or inner.group:
        return None
    return next((first for condition in where if (first := first_of(condition, named, table)) is not None), None)


class FirstRowsQuery:
    """query: its `first` is the number; its relation is `node`. name: for the last operator. scope: what names mean in
    its rows."""

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
        assert query.first is not None
        self._text, self._udfs, self._flow, self._query = text, udfs, flow, query
        self._node, self._name, self._scope, self._number = node, name, scope, query.first

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """As `Rounds.built`."""
        keys = {f"__k{number}": key for number, key in enumerate(self._keys(), 1)}
        own = [Item(key, name) for name, key in keys.items()]
        items: tuple[Star | Item, ...] = (Star(None, {}, self._query.at), *own)
        query = dataclasses.replace(self._query, ctes={}, first=None)
        rows = self._rounds(dataclasses.replace(query, items=items), self._node, f"{self._name}_rows", True)
        deduplicated = self._deduplicated(rows.built(with_time=True), list(keys))
        number: dict[Expression, str] = dict.fromkeys(self._numbers(), "arrow_cast(1, 'UInt64')")
        return self._rounds(dataclasses.replace(query, where=()), deduplicated, self._name, False, number).built(
            wanted, with_time
        )

    def _rounds(
        self,
        query: QueryText,
        node: Node,
        name: str,
        is_of_rows: bool,
        computed: Mapping[Expression, str] | None = None,
    ) -> Rounds:
        scope = self._scope
        if scope is not None and is_of_rows:
            scope = scope.rows(self._node.names)
        return Rounds(self._text, self._udfs, self._flow, query, node, name, computed, scope=scope)

    def _numbers(self) -> list[CallExpression]:
        return [call for result in self._query.results for call in result.calls if call.over]

    def _keys(self) -> Sequence[Expression]:
        """Those that rows are told apart by. Raises Unending for rows that are none of a stream."""
        call = self._number
        if any(number is not call for number in self._numbers()):
            raise Unending("QUALIFY is not supported beside other functions with OVER", call.start)
        over = over_of(call)
        if over is None:
            raise Unending(f"named windows are not supported: {_WRITE}", call.start)
        if not over.partition:
            raise Unending(f"the first row of all is no key's: {_WRITE}", call.start)
        if len(over.order) != 1 or "desc" in over.order[0][1] or not self._is_time(over.order[0][0]):
            raise Unending(f"which row is the first one is known by the event time alone: {_WRITE}", call.start)
        if self._flow.settings.state_ttl is None:
            raise Unending(
                "all keys would have to be remembered for ever: write SET state_ttl = '1 day', after which a key may "
                "come again",
                call.start,
            )
        if TIME not in self._node.schema.names:
            raise NeedsTime
        return over.partition

    def _is_time(self, expression: Expression) -> bool:
        """Whether rows are in the order of their event times by it. Times of joins are not: they may be earlier."""
        column = expression.bare
        if not isinstance(column, Column):
            return False
        name: str | None = column.path[-1]
        if self._scope is not None:
            meant = self._scope.meant(column)
            name = None if meant is None or meant[1] else meant[0]
        elif len(column.path) > 1 and column.path[:-1] != (self._query.relation.alias,):
            return False
        least, most = self._node.times.get(name or "", (0, 1))
        return least == -most

    def _deduplicated(self, rows: Node, keys: Sequence[str]) -> Node:
        operator = Deduplicate(
            name=f"{self._name}_first", time=TIME, keys=tuple(keys), ttl=self._flow.settings.state_ttl or 0
        )
        try:
            return self._flow.deduplicate(rows, operator, self._number.start)
        except WrongQuery as error:
            raise Wrong(" ".join(str(error).split()), self._number.start) from None
