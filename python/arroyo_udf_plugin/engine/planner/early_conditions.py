"""Conditions of WHERE that rows can be asked before they are joined: then fewer are looked up, or kept for a window.

    FROM flights f JOIN planes p ON f.tail = p.tail JOIN makers m ON p.maker = m.name
    WHERE f.alt > 100          before the first lookup
      AND p.seats > 10         before the second one
      AND m.country = 'US'     not before

Rows that have not matched still come out of a join with their other side as null. So a condition on one side may only
come before joins that keep no rows without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..datafusion.query import Select, WrongQuery
from .diagnostics import wrong_query
from .expressions import Expression, without_queries
from .flow import Flow, Node
from .functions import PlannedUdf
from .scope import Scope
from .selects import QueryText
from .text import Text


class EarlyConditions:
    """query: with joins. tables: the names of the columns of each of its tables, in the order of FROM. looked: those
    of them whose rows are looked up, or called. late: what is left for the joined rows."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        query: QueryText,
        tables: Mapping[str, Sequence[str]],
        looked: Collection[str],
    ) -> None:
        self._looked = looked
        self._text, self._udfs, self._flow, self._query, self._tables = text, udfs, flow, query, tables
        self._left: dict[int, list[Expression]] = {}  # by the number of joins before
        self._right: dict[int, list[Expression]] = {}  # by the number of the join
        without_queries(query.where)
        self.late: list[Expression] = []
        first = 0  # nothing that may fail comes before this join: a condition before it does not
        for condition in query.where:
            owners = self._owners(condition)
            place = None if owners is None else self._place(owners)
            if place is not None and not (condition.may_fail and self.late):
                first = max(first, place)
                self._left.setdefault(first if condition.may_fail else place, []).append(condition)
            elif owners is not None and not condition.may_fail and self._is_of_right(owners):
                self._right.setdefault(max(owners), []).append(condition)
            else:
                self.late.append(condition)

    def before(self, join: int, node: Node, scope: Scope) -> Node:
        """The rows that all joins before this one have made, without those that no later one needs. Raises Wrong."""
        return self._checked(node, self._left.get(join, ()), scope)

    def of_right(self, join: int, node: Node) -> Node:
        """The same for the relation of a join."""
        alias = self._query.joins[join].relation.alias
        return self._checked(node, self._right.get(join + 1, ()), Scope({alias: {name: name for name in node.names}}))

    def _owners(self, condition: Expression) -> set[int] | None:
        """The places of the tables that it reads. None: it needs the joined rows."""
        calls = condition.calls_of({*self._udfs, "unnest"})
        if calls or condition.is_volatile(self._udfs) or any(call.over for call in condition.calls):
            return None
        owners = set()
        merged = {name for join in self._query.joins for name in join.using}
        for column in condition.columns:
            first = column.path[0]
            tables = [first] if len(column.path) > 1 and first in self._tables else None
            if tables is None:
                tables = [table for table, names in self._tables.items() if first in names]
            if len(tables) != 1 or first in merged:
                return None
            owners.add(list(self._tables).index(tables[0]))
        return owners

    def _place(self, owners: set[int]) -> int | None:
        """The first join before which all its columns are there. None: there is none, or one that keeps rows."""
        place = max(owners, default=0)
        kinds = [join.kind for join in self._query.joins]
        return place if place < len(kinds) and all(kind in ("inner", "left") for kind in kinds[place:]) else None

    def _is_of_right(self, owners: set[int]) -> bool:
        """Whether it is of the relation of one join, and that join, and all behind it, keep no rows without it."""
        if len(owners) != 1 or (join := max(owners) - 1) < 0:
            return False
        if self._query.joins[join].relation.alias in self._looked:
            return False
        kinds = [join.kind for join in self._query.joins]
        return kinds[join] in ("inner", "right") and all(kind in ("inner", "left") for kind in kinds[join + 1 :])

    def _checked(self, node: Node, conditions: Sequence[Expression], scope: Scope) -> Node:
        if not conditions:
            return node
        texts = [condition.text(self._text, scope.texts([condition])) for condition in conditions]
        where = "\n) AND (".join(texts)
        try:
            filtered = self._flow.query(node, Select(None, f"({where}\n)"), "where", self._query.at)
        except WrongQuery as error:
            part = [token for condition in conditions for token in condition.part]
            raise wrong_query(error, part, self._query, node.schema, self._udfs) from None
        return filtered.as_known(node)
