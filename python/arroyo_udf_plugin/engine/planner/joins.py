"""Two tables joined on the same window, or within an interval of event time, as an operator.

    FROM hours a JOIN limits b ON a.window = b.window AND a.k = b.k
    FROM orders a JOIN payments b ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL '1 hour'

In the first one the rows of both sides are results of windows: those of one window are there when the watermark has
passed it, so that they can be joined, and forgotten. In the second one the watermark says when a row has met all that
it may meet. Any other join would have to remember all rows for ever.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...errors import nearest
from ..datafusion.query import WrongQuery
from ..datafusion.tokens import quoted
from ..pipeline.kinds.join import Join as JoinModel
from ..windows.join_query import Within
from .expressions import Column, Expression, Operation, conjuncts, without_queries
from .flow import TIME, Flow, NeedsTime, Node
from .functions import PlannedUdf
from .intervals import DAY, LONGEST, Bounds, Intervals, Times, behind, example
from .scope import Scope
from .selects import JoinClause, QueryText, Star
from .text import Text, Unending, Wrong

_WRITE = "write ON a.window = b.window AND ..."
_WRITE_USING = "write USING (window, ...)"


def names_in(query: QueryText) -> set[str | None] | None:
    """The names of columns in a SELECT, and other words. None: all columns, by a star."""
    if any(isinstance(item, Star) for item in query.items):
        return None
    names = {token.name for expression in query.expressions for token in expression.part}
    return names.union(*(join.using for join in query.joins))


def _seconds(nanoseconds: int, towards: float) -> float:
    """Not less far towards that side."""
    seconds = nanoseconds / 1e9
    is_inside = round(seconds * 1e9) > nanoseconds if towards < 0 else round(seconds * 1e9) < nanoseconds
    return math.nextafter(seconds, towards) if is_inside else seconds


@dataclass(frozen=True)
class _Condition:
    """text: of SQL. merged: the columns of USING: which column of the joined row each is. items: columns that are made
    for them. within: of event times; None: rows are of the same window."""

    text: str
    merged: Mapping[str, str]
    items: Mapping[str, str]
    within: Within | None = None


class StreamJoin:
    """`join` beside `left`, whose names are those of `scope`. right: the rows of the join's relation. name: for the
    operator. needed: the names of columns that the query takes from the joined rows; None: all of them."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        left: Node,
        scope: Scope,
        join: JoinClause,
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
        columns = [pair for table in self._both.tables.values() for pair in table.items()]
        taken = {column for name, column in columns if needed is None or name in needed}
        windows = [*left.windows, *(self._own[name] for name in right.windows)]
        self._taken = [column for column in self._items if column in {*taken, *windows, *scope.merged.values()}]
        self._right_times = {self._own[name]: own for name, own in right.times.items()}

    def built(self) -> tuple[Node, Scope]:
        """The joined rows, and what names mean in them. Raises Wrong."""
        join = self._join
        condition = self._condition()
        if any(TIME not in node.schema.names for node in (self._left, self._right)):
            raise NeedsTime
        within = condition.within
        operator = JoinModel(
            name=f"{self._name}_join",
            left=self._left.operator,
            right=self._right.operator,
            kind=join.kind,
            on=condition.text,
            within=None if within is None else (_seconds(within.lower, -math.inf), _seconds(within.upper, math.inf)),
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
        if within is None:
            return node.with_windows(self._windows(condition)), scope
        columns = {column: column for column in self._taken}
        times = behind(self._left.times, within.after_left, columns)
        return node.with_times(times | behind(self._right_times, within.after_right, columns)), scope

    def _of_left(self, column: str) -> str:
        return f"{quoted(self._tables[0])}.{quoted(column)}"

    def _of_right(self, name: str) -> str:
        return f"{quoted(self._table)}.{quoted(name)}"

    # ---- The condition ----

    def _condition(self) -> _Condition:
        on, windows = self._join.on, [bool(node.windows) for node in (self._left, self._right)]
        if on is None:
            if all(windows) and self._join.using:
                return self._using()
            raise Unending(self._refusal(Bounds()), self._join.at)
        without_queries([on])
        for call in on.calls_of(self._udfs):
            raise Unending(f"{call.name} is called in ON: compute it in the query before, or in WHERE", call.start)
        within = None
        if not all(windows) or not any(map(self._is_same_window, conjuncts(on))):
            within = self._within(on)
        return _Condition(on.text(self._text, self._both.texts([on], self._items)), {}, {}, within)

    def _within(self, on: Expression) -> Within:
        """Raises Unending for a condition without it."""
        bounds = Intervals(self._text, self._meant, self._left.times, self._right_times).of(on)
        if bounds.lower is None or bounds.upper is None:
            raise Unending(self._refusal(bounds), on.start)
        if bounds.lower > bounds.upper:
            raise Unending("no rows can meet: the first bound of this interval is above the second one", on.start)
        if max(abs(bounds.lower), abs(bounds.upper)) > LONGEST:
            raise Unending(f"an interval is no longer than {LONGEST // DAY} days: write a shorter one", on.start)
        return Within(bounds.lower, bounds.upper)

    def _meant(self, column: Column) -> str | None:
        meant = self._both.meant(column)
        return None if meant is None or meant[1] else meant[0]

    def _refusal(self, bounds: Bounds) -> str:
        """Why rows could not be forgotten, and what to write."""
        nodes = {self._tables[0]: self._left, self._table: self._right}
        if all(node.windows for node in nodes.values()):
            return f"a join is of rows of the same window: {_WRITE_USING if self._join.using else _WRITE}"
        for name, node in nodes.items():
            other = next(table for table in nodes if table != name)
            if node.windows:
                return f"{name} has windows, and {other} has none: join results of the same windows, {_WRITE}"
        for name, node in nodes.items():
            if not node.times:
                return (
                    f"this join would have to remember all rows for ever, because {name} has no event time here: write "
                    "WATERMARK FOR column in CREATE TABLE, select the column, and join ON ... AND b.at BETWEEN a.at - "
                    "INTERVAL '1 hour' AND a.at; or join results of the same windows, or a lookup table"
                )
        left, right = self._named(self._both.tables, self._left.times), (self._table, next(iter(self._right.times)))
        if bounds == Bounds():
            return f"this join would have to remember all rows for ever: write ON ... AND {example(left, right)}"
        right_time, other = ".".join(right), ".".join(left)
        missing = f"{right_time} <= {other} + INTERVAL '1 hour'"
        if bounds.lower is None:
            missing = f"{right_time} >= {other} - INTERVAL '1 hour'"
        return f"this join has one bound alone, and would have to remember rows for ever: add AND {missing}"

    def _named(self, tables: Mapping[str, Mapping[str, str]], times: Times) -> tuple[str, str]:
        """A table with such a column, and its name there."""
        return next((table, name) for table, own in tables.items() for name, column in own.items() if column in times)

    def _is_same_window(self, condition: Expression) -> bool:
        bare = condition.bare
        if not isinstance(bare, Operation) or bare.operators != ("=",) or len(bare.children) != 2:
            return False
        named = [self._both.meant(side) for side in bare.children if isinstance(side, Column)]
        windows = [meant[0] for meant in named if meant is not None and not meant[1]]
        if len(windows) != 2:
            return False
        first, other = windows
        return self._are_windows(first, other) or self._are_windows(other, first)

    def _are_windows(self, left: str, right: str) -> bool:
        """Of either side."""
        return left in self._left.windows and right in map(self._own.get, self._right.windows)

    def _using(self) -> _Condition:
        texts, merged, made = [], {}, {}
        has_window = False
        for name, at in self._join.using.items():
            left, right = self._pair(name, at)
            has_window = has_window or self._are_windows(left, right)
            texts.append(f"{self._items[left]} = {self._items[right]}")
            merged[name] = {"right": right, "full": f"using.{name}"}.get(self._join.kind, left)
            if self._join.kind == "full":
                made[f"using.{name}"] = f"coalesce({self._items[left]}, {self._items[right]})"
        if not has_window:
            raise Unending(self._refusal(Bounds()), self._join.at)
        return _Condition(" AND ".join(texts), merged, made)

    def _pair(self, name: str, at: int) -> tuple[str, str]:
        """The columns of both sides in the joined row that have this name."""
        left = self._scope.column(name, at)
        if left is None:
            raise Wrong(f"the tables before have no column {name}: {nearest(name, self._left.names)}", at)
        right = self._own.get(name)
        if right is None:
            raise Wrong(f"{self._table} has no column {name}: {nearest(name, self._own)}", at)
        return left, right

    def _windows(self, condition: _Condition) -> Collection[str]:
        """The columns that are the window of each row."""
        left, right = list(self._left.windows), [self._own[name] for name in self._right.windows]
        if self._join.kind == "full":
            return [f"using.{name}" for name in self._right.windows if name in condition.merged]
        return {"left": left, "right": right}.get(self._join.kind, [*left, *right])
