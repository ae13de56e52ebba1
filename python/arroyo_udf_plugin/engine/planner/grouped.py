"""A SELECT with GROUP BY, as operators.

    SELECT carrier, tumble(interval '1 hour') AS window, round(avg(f(delay))) FROM flights GROUP BY 1, 2

    carrier AS __k1, f(delay) AS __x1 ──► windows: avg(__x1) AS __v1 by __k1 ──► __k1 AS carrier, __w AS window, ...

What a row contributes is computed row by row in front of the windows: keys and arguments of aggregates, with their
calls. Behind them keys, the window and aggregates are columns, and the items and HAVING are like those of any other
SELECT: with calls of UDFs, too.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...errors import InvalidArgument
from ...host.aggregate import Aggregate
from ...plugin.casting import fits
from ..connectors.cells import CellType
from ..datafusion.feed import context, functions_by_kind
from ..datafusion.query import WrongQuery
from ..datafusion.tokens import quoted, tokens
from ..pipeline.kinds.windows import MOST_MONTHS, Windows
from .diagnostics import WINDOWS, wrong_query
from .expressions import CallExpression, Column, Expression
from .flow import TIME, Flow, Node
from .functions import PlannedUdf
from .intervals import DAY, LONGEST
from .rounds import Rounds, Wanted, same_names
from .scope import Scope
from .selects import Item, QueryText, Star
from .steps import check_aggregate
from .text import Text, Unending, Wrong

_WINDOW = "__w"
MOMENT = {"width": 1e-9}
"""For windows of rows before: such a row has the last moment of its window as its event time."""


@dataclass(frozen=True)
class _Kind:
    """lengths, months: keys of the operator, for intervals of a fixed length and of months. example: of each."""

    lengths: tuple[str, ...]
    example: str
    months: tuple[str, ...] = ()
    example_of_months: str = ""


_KINDS = {
    "tumble": _Kind(("width",), "tumble(interval '1 hour')", ("months",), "tumble(interval '1 month')"),
    "hop": _Kind(
        ("slide", "width"),
        "hop(interval '10 minutes', interval '1 hour')",
        ("slide_months", "months"),
        "hop(interval '1 month', interval '3 months')",
    ),
    "session": _Kind(("gap",), "session(interval '30 seconds')"),
}
_SETS = {"rollup", "cube", "grouping", "all"}


def has_windows(text: Text) -> bool:
    """Whether some query of a file has."""
    all_tokens = tokens(text.text)
    return any(token.word in WINDOWS and after.text == "(" for token, after in itertools.pairwise(all_tokens))


def as_time(text: str, given: pa.DataType) -> str:
    """A column of times as event times: in UTC, without a zone."""
    if not isinstance(given, CellType) and pa.types.is_timestamp(given) and given.tz is not None:
        text = f"arrow_cast({text}, 'Timestamp(Nanosecond, Some(\"UTC\"))')"
    return f"arrow_cast({text}, 'Timestamp(Nanosecond, None)')"


@dataclass(frozen=True)
class _Window:
    """A window in GROUP BY. lengths: keys of the operator, with seconds or months."""

    expression: Expression
    lengths: Mapping[str, float]


@dataclass(frozen=True)
class _Interval:
    """months, or nanoseconds."""

    months: int
    length: int


class Grouped:
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
        self._own = {name: udf for name, udf in udfs.items() if udf.is_aggregate}
        self._aggregates = functions_by_kind()["AGGREGATE"] - set(udfs) | set(self._own)
        self._called: list[tuple[CallExpression, Sequence[str]]] = []  # of plugins, with the columns of arguments
        self._inputs: dict[str, Item] = {}  # what rows contribute, by its normal text
        self._known: dict[str, str] = {}  # the columns of aggregates, by their normal text
        self._results: dict[str, str] = {}  # aggregates over what rows contribute, by their columns
        self._parts: dict[str, CallExpression] = {}  # the same, as they are written
        self._texts = {} if scope is None else scope.texts(query.expressions)
        self._same = same_names(query.expressions, query.relation.alias) if scope is None else self._texts

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """As `Rounds.built`."""
        query = self._query
        for item in query.items:
            if isinstance(item, Star):
                raise Unending("a * is not for GROUP BY: write the keys and the aggregates", item.at)
        window, keys = self._grouped_by()
        if TIME not in self._node.schema.names:
            at = window.expression.start
            raise Wrong("windows need an event time: write WATERMARK FOR column in the CREATE TABLE", at)
        names = {f"__k{number}": key for number, key in enumerate(keys, 1)}
        own = next((name for name, key in names.items() if key is window.expression), _WINDOW)
        known = {self._normal(key): column for column, key in {own: window.expression, **names}.items()}
        computed = {
            node: column
            for expression in (*query.results, *query.having)
            for node, column in self._computed(expression, known)
        }
        computed |= dict(self._aliases(computed))
        rows = self._rows(names)
        self._check_types(rows)
        node = dataclasses.replace(self._windows(rows, window, names), windows=frozenset([own]))
        items = tuple(self._named(item) for item in query.items if isinstance(item, Item))
        results = dataclasses.replace(query, ctes={}, items=items, where=query.having, group=(), having=())
        others = self._node.names
        rounds = Rounds(self._text, self._udfs, self._flow, results, node, self._name, computed, others)
        return rounds.built(wanted, with_time)

    # ---- GROUP BY ----

    def _grouped_by(self) -> tuple[_Window, list[Expression]]:
        """The window, and the keys."""
        windows, keys = self._groups()
        if not windows:
            windows = [_Window(key, MOMENT) for key in keys if self._is_window_before(key)][:1]
        if not windows:
            at = self._query.group[0].start
            raise Unending(
                "this GROUP BY has no window, so its groups would never end: add tumble(interval '1 minute')", at
            )
        if len(windows) > 1:
            raise Wrong("this GROUP BY has two windows: leave out one", windows[1].expression.start)
        return windows[0], keys

    def _groups(self) -> tuple[list[_Window], list[Expression]]:
        """The windows that are named, and the keys."""
        windows: list[_Window] = []
        keys: list[Expression] = []
        for expression in self._query.group:
            part = expression.part
            if part[0].word in _SETS and (len(part) == 1 or part[1].text == "(" or part[1].word == "sets"):
                raise Unending(f"GROUP BY {part[0].text.upper()} is not supported: write the columns", part[0].start)
            meant = self._meant(expression)
            if _is_window(meant):
                windows.append(self._window(meant))
            elif self._normal(meant) not in map(self._normal, keys):
                keys.append(meant)
        return windows, keys

    def _is_window_before(self, key: Expression) -> bool:
        """Whether it is a column that is a window of rows before."""
        if not isinstance(key, Column):
            return False
        if self._scope is None:
            return self._same[key] in self._node.windows
        meant = self._scope.meant(key)
        return meant is not None and meant[0] in self._node.windows and not meant[1]

    def _meant(self, key: Expression) -> Expression:
        """What a number or an alias in GROUP BY stands for."""
        (token, *rest) = key.part
        items = self._query.items
        if rest:
            return key
        if token.kind == "number":
            place = int(token.text) - 1 if token.text.isdigit() else -1
            if not 0 <= place < len(items):
                raise Wrong(f"GROUP BY {token.text}: the SELECT has {len(items)} columns", token.start)
            return items[place].expression  # type: ignore[union-attr]
        if token.name is not None and token.name not in self._node.names:
            for item in items:
                if isinstance(item, Item) and item.alias == token.name:
                    return item.expression
        return key

    def _window(self, expression: Expression) -> _Window:
        call = expression.bare
        assert isinstance(call, CallExpression)
        word, at, kind = call.name, call.start, _KINDS[call.name]
        intervals = [self._interval(argument, word) for argument in call.arguments]
        if len(intervals) != len(kind.lengths):
            raise Wrong(f"write {kind.example}", at)
        window = _Window(expression, _lengths(kind, intervals, at))
        try:
            self._operator(window, {}).grouping()
        except InvalidArgument as error:
            raise Wrong(str(error), at) from None
        return window

    def _interval(self, expression: Expression, word: str) -> _Interval:
        at = expression.start
        try:
            interval = context().sql(f"SELECT {self._text.cut(expression.part)}").to_arrow_table().column(0)[0]
            months, days, nanoseconds = interval.as_py()
        except Exception:
            raise Wrong(f"write an interval for {word}, such as interval '1 hour'", at) from None
        length = int(days * DAY + nanoseconds)
        if months and length:
            raise Wrong("months differ in length: write an interval of months alone, or of days and less", at)
        if months + length <= 0:
            raise Wrong("a window needs a length: write an interval above 0", at)
        return _Interval(months, length)

    # ---- The operators ----

    def _rows(self, keys: Mapping[str, Expression]) -> Node:
        """What rows contribute."""
        items: tuple[Star | Item, ...] = (*(Item(key, name) for name, key in keys.items()), *self._inputs.values())
        scope = self._scope
        if not items and len(self._node.names) == len(self._node.schema.names):
            items = (Star(None, {}, self._query.at),)  # a batch needs a column
            scope = None if scope is None else scope.rows(self._node.names)
        rows = dataclasses.replace(self._query, ctes={}, items=items, group=(), having=())
        name = f"{self._name}_rows"
        rounds = Rounds(self._text, self._udfs, self._flow, rows, self._node, name, scope=scope)
        return rounds.built(with_time=True)

    def _windows(self, rows: Node, window: _Window, keys: Mapping[str, Expression]) -> Node:
        try:
            called = {call.name: self._own[call.name].function for call, _ in self._called}
            functions = {name: function for name, function in called.items() if isinstance(function, Aggregate)}
            return self._flow.windows(rows, self._operator(window, keys), window.expression.start, functions)
        except WrongQuery as error:
            part = self._parts[error.item].part if error.item in self._parts else ()
            raise wrong_query(error, part, self._query, self._node.schema, self._udfs) from None

    def _operator(self, window: _Window, keys: Mapping[str, Expression]) -> Windows:
        return Windows(
            name=f"{self._name}_windows",
            time=TIME,
            column=_WINDOW,
            keys=tuple(keys),
            aggregates=self._results,
            table=self._alias,
            functions={call.name: self._own[call.name].file for call, _ in self._called},
            **window.lengths,  # type: ignore[arg-type]
        )

    def _named(self, item: Item) -> Item:
        return Item(item.expression, "window") if item.alias is None and _is_window(item.expression) else item

    # ---- What is computed ----

    def _computed(self, node: Expression, known: Mapping[str, str]) -> Iterator[tuple[Expression, str]]:
        """The parts of an expression that are columns behind the windows: aggregates, keys, the window.

        known: keys and window, by their normal texts.
        """
        if isinstance(node, CallExpression) and node.name in self._aggregates:
            yield node, self._aggregate(node)
        elif (column := known.get(self._normal(node))) is not None:
            yield node, column
        elif isinstance(node, Column):
            yield from self._field(node, known)
        else:
            for child in node.children:
                yield from self._computed(child, known)

    def _field(self, node: Column, known: Mapping[str, str]) -> Iterator[tuple[Expression, str]]:
        """A field of a key: window.start"""
        for length in range(len(node.path) - 1, 0, -1):
            owner = Column(node.part[: 2 * length - 1])
            same = self._scope.texts([owner]) if self._scope is not None else same_names([owner], self._alias)
            if (column := known.get(owner.normal(same))) is not None:
                yield node, ".".join([column, *map(quoted, node.path[length:])])
                return

    def _aliases(self, computed: Mapping[Expression, str]) -> Iterator[tuple[Expression, str]]:
        """The names of items in HAVING."""
        aliases = {item.alias: item.expression for item in self._query.items if isinstance(item, Item) and item.alias}
        for column in (column for condition in self._query.having for column in condition.columns):
            name = column.path[0]
            if len(column.path) == 1 and name in aliases and name not in self._node.names:
                yield column, f"({aliases[name].text(self._text, computed)}\n)"

    def _aggregate(self, call: CallExpression) -> str:
        """The column of an aggregate."""
        if call.over is not None:
            raise Unending("OVER (...) is not supported beside GROUP BY", call.over[0].start)
        normal = self._normal(call)
        if normal not in self._known or call.is_volatile(self._own):
            column = self._known[normal] = f"__v{len(self._known) + 1}"
            self._results[column], self._parts[column] = self._over_columns(call), call
        return self._known[normal]

    def _over_columns(self, call: CallExpression) -> str:
        """An aggregate with columns for what rows contribute: max(a + b) FILTER (WHERE c) is max(x) FILTER (WHERE y)"""
        columns = {}
        for child in call.children:  # FILTER is the last one
            if child.columns or child.calls:
                columns[child] = self._column(child, None if child is call.filter else call.filter)
        if call.name in self._own:
            check_aggregate(call, self._own[call.name])
            self._called.append((call, [columns.get(argument, "") for argument in call.arguments]))
        return call.text(self._text, columns)

    def _check_types(self, rows: Node) -> None:
        """Of the arguments of aggregates of plugins."""
        for call, columns in self._called:
            udf = self._own[call.name]
            for argument, column, field in zip(call.arguments, columns, udf.function.arguments, strict=False):
                if column and fits(given := rows.schema.field(column).type, field) is not None:
                    raise Wrong(
                        f"{self._text.cut(argument.part)} is {given}, and the function is {udf.signature}: "
                        f"write CAST(... AS ...) for {field.name}",
                        argument.start,
                    )

    def _column(self, expression: Expression, only: Expression | None) -> str:
        """The column of an expression over rows."""
        for call in expression.calls:
            if call.name in self._aggregates:
                raise Wrong("an aggregate in an aggregate: write a view with the inner one, in a window", call.start)
        only = None if isinstance(expression, Column) else only
        normal = self._normal(expression) + ("" if only is None else f" only {self._normal(only)}")
        if normal not in self._inputs:
            self._inputs[normal] = Item(expression, f"__x{len(self._inputs) + 1}", only)
        return self._inputs[normal].alias or ""

    def _normal(self, expression: Expression) -> str:
        """The same text for what is the same."""
        return expression.bare.normal(self._same)

    @property
    def _alias(self) -> str:
        return self._query.relation.alias


def _lengths(kind: _Kind, intervals: Sequence[_Interval], at: int) -> Mapping[str, float]:
    """As of `_Window`. Raises Wrong."""
    months = [interval.months for interval in intervals]
    if not any(months):
        if max(interval.length for interval in intervals) > LONGEST:
            raise Wrong(f"a window is no longer than {LONGEST // DAY} days: write a shorter interval", at)
        return dict(zip(kind.lengths, (interval.length / 1e9 for interval in intervals), strict=True))
    if not kind.months:
        raise Wrong("months differ in length: write days, as in session(interval '30 days')", at)
    if not all(months):
        raise Wrong(f"months differ in length: write all of them in months, as in {kind.example_of_months}", at)
    if max(months) > MOST_MONTHS:
        raise Wrong(f"a window is no longer than {MOST_MONTHS // 12} years: write a shorter interval", at)
    return dict(zip(kind.months, months, strict=True))


def _is_window(expression: Expression) -> bool:
    call = expression.bare
    return isinstance(call, CallExpression) and call.name in WINDOWS
