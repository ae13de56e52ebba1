"""Two tables joined on the same window, as an operator.

    FROM hours a JOIN limits b ON a.window = b.window AND a.k = b.k

The rows of both sides are results of windows: those of one window are there when the watermark has passed it, so that
they can be joined, and forgotten. A join without a window would have to remember all rows for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..pipeline.description import Join as JoinModel
from ..pipeline.problems import nearest
from ..sql.query import WrongQuery
from ..sql.tokens import quoted
from .expressions import Column, Expression, Operation, conjuncts, without_queries
from .flow import TIME, Flow, Node
from .functions import Udf
from .scope import Scope
from .selects import Join, QueryText, Star
from .text import Text, Unending, Wrong

_WRITE = "write ON a.window = b.window AND ..."


def names_in(query: QueryText) -> set[str | None] | None:
    """The names of columns in a SELECT, and other words. None: all columns, by a star."""
    if any(isinstance(item, Star) for item in query.items):
        return None
    names = {token.name for expression in query.expressions for token in expression.part}
    return names.union(*(join.using for join in query.joins))


@dataclass(frozen=True)
class _Condition:
    """text: of SQL. merged: the columns of USING: which column of the joined row each is. items: columns that are made
    for them."""

    text: str
    merged: Mapping[str, str]
    items: Mapping[str, str]


class WindowedJoin:
    """`join` beside `left`, whose names are those of `scope`. right: the rows of the join's relation. name: for the
    operator. needed: the names of columns that the query takes from the joined rows; None: all of them."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, Udf],
        flow: Flow,
        left: Node,
        scope: Scope,
        join: Join,
        right: Node,
        name: str,
        needed: Collection[str | None] | None,
    ) -> None:
        self._text, self._udfs, self._flow, self._name = text, udfs, flow, name
        self._left, self._scope, self._join, self._right = left, scope, join, right
        self._table = join.relation.alias
        self._both = scope.beside(self._table, right.names)
        first = next(iter(scope.tables))
        self._tables = (first if len(scope.tables) == 1 else "rows", self._table)
        if self._tables[0] == self._table:
            self._tables = ("rows_before", self._table)
        self._own = self._both.tables[self._table]  # the right side's columns in the joined row
        left_items = {column: self._of_left(column) for column in left.names}
        self._items = left_items | {column: self._of_right(name) for name, column in self._own.items()}
        columns = [one for table in self._both.tables.values() for one in table.items()]
        taken = {column for name, column in columns if needed is None or name in needed}
        windows = [*left.windows, *(self._own[name] for name in right.windows)]
        self._taken = [column for column in self._items if column in {*taken, *windows, *scope.merged.values()}]

    def built(self) -> tuple[Node, Scope]:
        """The joined rows, and what names mean in them. Raises Wrong."""
        join = self._join
        for node in (self._left, self._right):
            if not node.windows or TIME not in node.schema.names:
                raise Unending(
                    "a join needs rows of the same window on both sides, or it would have to remember all rows for "
                    "ever: select from queries with GROUP BY tumble(...), or from a lookup table",
                    join.at,
                )
        condition = self._using() if join.using else self._on()
        operator = JoinModel(
            name=f"{self._name}_join",
            left=self._left.operator,
            right=self._right.operator,
            kind=join.kind,
            on=condition.text,
            select={**{column: self._items[column] for column in self._taken}, **condition.items},
            time=TIME,
            tables=self._tables,
        )
        try:
            node = self._flow.join(self._left, self._right, operator, join.at)
        except WrongQuery as error:
            at = join.at if join.on is None else join.on.start
            raise Wrong(" ".join(str(error).split()), at) from None
        scope = Scope(self._both.tables, {**self._both.merged, **condition.merged})
        return node.with_windows(self._windows(condition)), scope

    def _of_left(self, column: str) -> str:
        return f"{quoted(self._tables[0])}.{quoted(column)}"

    def _of_right(self, name: str) -> str:
        return f"{quoted(self._table)}.{quoted(name)}"

    # ---- The condition ----

    def _on(self) -> _Condition:
        on = self._join.on
        if on is None:
            raise Unending(f"this JOIN has no condition: {_WRITE}", self._join.at)
        without_queries([on])
        for call in on.calls_of(self._udfs):
            raise Unending(f"{call.name} is called in ON: compute it in the query before, or in WHERE", call.start)
        if not any(map(self._is_same_window, conjuncts(on))):
            raise Unending(f"a join is of rows of the same window: {_WRITE}", on.start)
        return _Condition(on.text(self._text, self._both.texts([on], self._items)), {}, {})

    def _is_same_window(self, condition: Expression) -> bool:
        bare = condition.bare
        if not isinstance(bare, Operation) or bare.operators != ("=",) or len(bare.children) != 2:
            return False
        named = [self._both.meant(side) for side in bare.children if isinstance(side, Column)]
        windows = [one[0] for one in named if one is not None and not one[1]]
        if len(windows) != 2:
            return False
        one, other = windows
        return self._are_windows(one, other) or self._are_windows(other, one)

    def _are_windows(self, left: str, right: str) -> bool:
        """Of either side."""
        return left in self._left.windows and right in map(self._own.get, self._right.windows)

    def _using(self) -> _Condition:
        texts, merged, made = [], {}, {}
        has_window = False
        for name, at in self._join.using.items():
            left = self._scope.column(name, at)
            if left is None:
                raise Wrong(f"the tables before have no column {name}: {nearest(name, self._left.names)}", at)
            right = self._own.get(name)
            if right is None:
                raise Wrong(f"{self._table} has no column {name}: {nearest(name, self._own)}", at)
            has_window = has_window or self._are_windows(left, right)
            texts.append(f"{self._items[left]} = {self._items[right]}")
            merged[name] = {"right": right, "full": f"using.{name}"}.get(self._join.kind, left)
            if self._join.kind == "full":
                made[f"using.{name}"] = f"coalesce({self._items[left]}, {self._items[right]})"
        if not has_window:
            raise Unending("a join is of rows of the same window: write USING (window, ...)", self._join.at)
        return _Condition(" AND ".join(texts), merged, made)

    def _windows(self, condition: _Condition) -> Collection[str]:
        """The columns that are the window of each row."""
        left, right = list(self._left.windows), [self._own[name] for name in self._right.windows]
        if self._join.kind == "full":
            return [f"using.{name}" for name in self._right.windows if name in condition.merged]
        return {"left": left, "right": right}.get(self._join.kind, [*left, *right])
