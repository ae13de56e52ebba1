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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..connectors.cells import CellType
from ..errors import InvalidArgument
from ..pipeline.chain import grouping_of
from ..pipeline.description import Windows
from ..sql.feed import context
from ..sql.query import WrongQuery
from ..sql.tokens import tokens
from .calls import Called, cut
from .diagnostics import WINDOWS, wrong_query
from .flow import TIME, Flow, Node
from .functions import Udf
from .rounds import Rounds, Wanted
from .scope import Scope
from .selects import Item, QueryText, Star
from .text import Text, Tokens, Unending, Wrong, closing, leveled, split

_WINDOW = "__w"
MOMENT = {"width": 1e-9}
"""For windows of rows before: such a row has the last moment of its window as its event time."""
_KINDS = {
    "tumble": (("width",), "tumble(interval '1 hour')"),
    "hop": (("slide", "width"), "hop(interval '10 minutes', interval '1 hour')"),
    "session": (("gap",), "session(interval '30 seconds')"),
}
_ORDER = {"asc", "desc", "nulls", "first", "last"}
_SETS = {"rollup", "cube", "grouping", "all"}


def has_windows(text: Text) -> bool:
    """Whether some query of a file has."""
    found = tokens(text.text)
    return any(token.word in WINDOWS and after.text == "(" for token, after in itertools.pairwise(found))


def as_time(text: str, given: pa.DataType) -> str:
    """A column of times as event times: in UTC, without a zone."""
    if not isinstance(given, CellType) and pa.types.is_timestamp(given) and given.tz is not None:
        text = f"arrow_cast({text}, 'Timestamp(Nanosecond, Some(\"UTC\"))')"
    return f"arrow_cast({text}, 'Timestamp(Nanosecond, None)')"


@dataclass(frozen=True)
class _Window:
    """A window in GROUP BY. part: its text. lengths: keys of the operator, with seconds."""

    part: Tokens
    lengths: Mapping[str, float]


class Grouped:
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
        self._aggregates = set(context().udafs()) - set(udfs)
        self._inputs: dict[str, Item] = {}  # what rows contribute, by its normal text
        self._known: dict[str, str] = {}  # the columns of aggregates, by their normal text
        self._results: dict[str, str] = {}  # aggregates over what rows contribute, by their columns
        self._parts: dict[str, Tokens] = {}  # the same, as they are written

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """As `Rounds.built`."""
        query = self._query
        for item in query.items:
            if isinstance(item, Star):
                raise Unending("a * is not for GROUP BY: write the keys and the aggregates", item.at)
        window, keys = self._grouped_by()
        if TIME not in self._node.schema.names:
            at = window.part[0].start
            raise Wrong("windows need an event time: write WATERMARK FOR column in the CREATE TABLE", at)
        names = {f"__k{number}": part for number, part in enumerate(keys, 1)}
        parts = [*(item.part for item in query.items if isinstance(item, Item)), query.having]
        own = next((name for name, part in names.items() if part is window.part), _WINDOW)
        wholes = {own: window.part, **names}
        computed = {call: column for part in parts for call, column in self._computed(part, wholes)}
        computed |= dict(self._aliases(computed))
        rows = self._rows(names)
        node = dataclasses.replace(self._windows(rows, window, names), windows=frozenset([own]))
        items = tuple(self._named(item) for item in query.items if isinstance(item, Item))
        results = dataclasses.replace(query, ctes={}, items=items, where=query.having, group=(), having=())
        others = self._node.names
        rounds = Rounds(self._text, self._udfs, self._flow, results, node, self._name, computed, others)
        return rounds.built(wanted, with_time)

    # ---- GROUP BY ----

    def _grouped_by(self) -> tuple[_Window, list[Tokens]]:
        """The window, and the keys."""
        windows: list[_Window] = []
        keys: list[Tokens] = []
        for part in self._query.group:
            if not part:
                raise Wrong("an expression is missing in this GROUP BY", self._query.at)
            if part[0].word in _SETS and (len(part) == 1 or part[1].text == "(" or part[1].word == "sets"):
                raise Unending(f"GROUP BY {part[0].text.upper()} is not supported: write the columns", part[0].start)
            meant = self._meant(part)
            if _is_window(meant):
                windows.append(self._window(meant))
            elif self._normal(meant) not in map(self._normal, keys):
                keys.append(meant)
        if not windows:
            windows = [_Window(part, MOMENT) for part in keys if self._is_column(part, self._node.windows)][:1]
        if not windows:
            at = self._query.group[0][0].start
            raise Unending(
                "this GROUP BY has no window, so its groups would never end: add tumble(interval '1 minute')", at
            )
        if len(windows) > 1:
            raise Wrong("this GROUP BY has two windows: leave out one", windows[1].part[0].start)
        return windows[0], keys

    def _is_column(self, part: Tokens, names: Collection[str]) -> bool:
        """Whether an expression is one of these columns and nothing more."""
        words = self._words(part)
        return len(words) == 1 and words[0][0] in names

    def _meant(self, part: Tokens) -> Tokens:
        """What a number or an alias in GROUP BY stands for."""
        (token, *rest) = part
        items = self._query.items
        if rest:
            return part
        if token.kind == "number":
            place = int(token.text) - 1 if token.text.isdigit() else -1
            if not 0 <= place < len(items):
                raise Wrong(f"GROUP BY {token.text}: the SELECT has {len(items)} columns", token.start)
            return items[place].part  # type: ignore[union-attr]
        if token.name is not None and token.name not in self._node.names:
            for item in items:
                if isinstance(item, Item) and item.alias == token.name:
                    return item.part
        return part

    def _window(self, part: Tokens) -> _Window:
        word, at = part[0].word, part[0].start
        arguments = split(part[2:-1], ",") if len(part) > 3 else []
        lengths = [self._length(one, word) for one in arguments]
        names, example = _KINDS[word]
        if len(lengths) != len(names):
            raise Wrong(f"write {example}", at)
        window = _Window(part, {name: length / 1e9 for name, length in zip(names, lengths, strict=True)})
        try:
            grouping_of(self._operator(window, {}))
        except InvalidArgument as error:
            raise Wrong(str(error), at) from None
        return window

    def _length(self, part: Tokens, word: str) -> int:
        """An interval, in nanoseconds."""
        value: Any = None
        at = part[0].start if part else self._query.at
        try:
            value = context().sql(f"SELECT {self._text.cut(part)}").to_arrow_table().column(0)[0].as_py()
            months, days, nanoseconds = value
        except Exception:
            raise Wrong(f"write an interval for {word}, such as interval '1 hour'", at) from None
        if months:
            raise Wrong("months have no length: write days", at)
        length = int(days * 86_400_000_000_000 + nanoseconds)
        if length <= 0:
            raise Wrong("a window needs a length: write an interval above 0", at)
        return length

    # ---- The operators ----

    def _rows(self, keys: Mapping[str, Tokens]) -> Node:
        """What rows contribute."""
        items = (*(Item(part, name) for name, part in keys.items()), *self._inputs.values())
        rows = dataclasses.replace(self._query, ctes={}, items=items, group=(), having=())
        name = f"{self._name}_rows"
        rounds = Rounds(self._text, self._udfs, self._flow, rows, self._node, name, scope=self._scope)
        return rounds.built(with_time=True)

    def _windows(self, rows: Node, window: _Window, keys: Mapping[str, Tokens]) -> Node:
        try:
            return self._flow.windows(rows, self._operator(window, keys), window.part[0].start)
        except WrongQuery as error:
            part = self._parts.get(error.item or "", ())
            raise wrong_query(error, part, self._query, self._node.schema, self._udfs) from None

    def _operator(self, window: _Window, keys: Mapping[str, Tokens]) -> Windows:
        return Windows(
            name=f"{self._name}_windows",
            time=TIME,
            column=_WINDOW,
            keys=tuple(keys),
            aggregates=self._results,
            table=self._query.relation.alias,
            **window.lengths,  # type: ignore[arg-type]
        )

    def _named(self, item: Item) -> Item:
        return Item(item.part, "window") if item.alias is None and _is_window(item.part) else item

    # ---- What is computed ----

    def _computed(self, part: Tokens, wholes: Mapping[str, Tokens]) -> Iterator[tuple[Called, str]]:
        """The ranges of an expression that are columns behind the windows: aggregates, keys, the window.

        wholes: keys and window, by their columns.
        """
        words = self._words(part)
        known = {column: [word for word, _, _ in self._words(whole)] for column, whole in wholes.items()}
        at = 0
        while at < len(words):
            _, start, stop = words[at]
            if self._is_aggregate(part, start):
                end = _end_of_aggregate(part, start)
                yield _range(part[start:end]), self._aggregate(part[start:end])
            else:
                column = next((column for column, whole in known.items() if _is_at(words, at, whole)), None)
                end = stop
                if column is not None:
                    end = words[at + len(known[column]) - 1][2]
                    yield _range(part[start:end]), column
            while at < len(words) and words[at][1] < end:
                at += 1

    def _aliases(self, computed: Mapping[Called, str]) -> Iterator[tuple[Called, str]]:
        """The names of items in HAVING."""
        aliases = {item.alias: item.part for item in self._query.items if isinstance(item, Item) and item.alias}
        part = self._query.having
        for place, token in enumerate(part):
            around = {one.text for one in (*part[max(place - 1, 0) : place], *part[place + 1 : place + 2])}
            if token.name in aliases and token.name not in self._node.names and not around & {".", "("}:
                yield _range(part[place : place + 1]), f"({cut(self._text.text, aliases[token.name], computed)}\n)"

    def _is_aggregate(self, part: Tokens, place: int) -> bool:
        is_call = part[place + 1 : place + 2] and part[place + 1].text == "("
        is_name = not place or part[place - 1].text != "."
        return bool(is_call) and is_name and (part[place].name or "").lower() in self._aggregates

    def _aggregate(self, part: Tokens) -> str:
        """The column of an aggregate."""
        normal = self._normal(part)
        if normal not in self._known:
            column = self._known[normal] = f"__v{len(self._known) + 1}"
            self._results[column], self._parts[column] = self._over_columns(part), part
        return self._known[normal]

    def _over_columns(self, part: Tokens) -> str:
        """An aggregate with columns for what rows contribute: max(a + b) FILTER (WHERE c) is max(x) FILTER (WHERE y)"""
        end = closing(part, 1)
        written = f"{part[0].text}({self._arguments(part[2:end])})"
        place = end + 1
        while place < len(part):
            if part[place].text != "(":
                written += f" {part[place].text}"
                place += 1
                continue
            end = closing(part, place)
            inner = part[place + 1 : end]
            is_filter = inner[:1] and inner[0].word == "where"
            written += f" (WHERE {self._column(inner[1:])})" if is_filter else f" ({self._arguments(inner)})"
            place = end + 1
        return written

    def _arguments(self, part: Tokens) -> str:
        """[DISTINCT] arguments [IGNORE NULLS] [ORDER BY ...]"""
        words = ""
        if part and part[0].word in ("distinct", "all"):
            words, part = f"{part[0].text} ", part[1:]
        order = next((at for at, token, depth in leveled(part) if not depth and token.word == "order"), len(part))
        arguments, ordered = part[:order], part[order + 2 :]
        behind = ""
        if len(arguments) > 2 and arguments[-1].word == "nulls":
            behind, arguments = f" {arguments[-2].text} NULLS", arguments[:-2]
        written = words + ", ".join(map(self._argument, split(arguments, ","))) + behind
        if not ordered:
            return written
        return f"{written} ORDER BY {', '.join(map(self._order, split(ordered, ',')))}"

    def _argument(self, part: Tokens) -> str:
        is_constant = all(token.kind in ("number", "text", "sign") for token in part)
        return self._text.cut(part) if is_constant else self._column(part)

    def _order(self, part: Tokens) -> str:
        length = len(part)
        while length and part[length - 1].word in _ORDER:
            length -= 1
        return " ".join([self._argument(part[:length]), *(token.text for token in part[length:])])

    def _column(self, part: Tokens) -> str:
        """The column of an expression over rows."""
        for place, token in enumerate(part):
            if self._is_aggregate(part, place):
                raise Wrong("an aggregate in an aggregate: write a view with the inner one, in a window", token.start)
        normal = self._normal(part)
        if normal not in self._inputs:
            self._inputs[normal] = Item(part, f"__x{len(self._inputs) + 1}")
        return self._inputs[normal].alias or ""

    # ---- Texts ----

    def _words(self, part: Tokens) -> list[tuple[str, int, int]]:
        """Names and signs, with the places where they begin and end; the table's name is part of its column's."""
        words = []
        place = 0
        named = {} if self._scope is None else {start: (stop, name) for start, stop, name in self._scope.named(part)}
        while place < len(part):
            start = place
            if start in named:
                place, name = named[start]
                words.append((name, start, place))
                continue
            is_first = not place or part[place - 1].text != "."
            if is_first and part[place].name == self._query.relation.alias and _is_path(part, place):
                place += 2
            words.append((part[place].name or part[place].text, start, place + 1))
            place += 1
        return words

    def _normal(self, part: Tokens) -> str:
        """The same text for what is the same."""
        return " ".join(word for word, _, _ in self._words(part))


def _is_path(part: Tokens, place: int) -> bool:
    return len(part) > place + 2 and part[place + 1].text == "." and part[place + 2].name is not None


def _is_window(part: Tokens) -> bool:
    return len(part) > 2 and part[0].word in WINDOWS and part[1].text == "(" and closing(part, 1) == len(part) - 1


def _end_of_aggregate(part: Tokens, start: int) -> int:
    """Behind its brackets, and those of FILTER and WITHIN GROUP."""
    end = closing(part, start + 1) + 1
    while end < len(part):
        word, after = part[end].word, part[end + 1].word if end + 1 < len(part) else ""
        if word == "over":
            raise Unending("OVER (...) is not supported beside GROUP BY", part[end].start)
        if word in ("ignore", "respect") and after == "nulls":
            end += 2
        elif word == "filter" or (word == "within" and after == "group"):
            end = closing(part, end + (1 if word == "filter" else 2)) + 1
        else:
            break
    return end


def _is_at(words: Sequence[tuple[str, int, int]], at: int, whole: Sequence[str]) -> bool:
    """Whether an expression stands here, and is not part of another one."""
    end = at + len(whole)
    if [word for word, _, _ in words[at:end]] != list(whole):
        return False
    before = words[at - 1][0] if at else "("
    after = words[end][0] if end < len(words) else ")"
    if len(whole) == 1 or set(whole[1::2]) == {"."} or _is_bracketed(whole):
        return before != "." and after != "("
    return before in ("(", ",") and after in (")", ",")


def _is_bracketed(words: Sequence[str]) -> bool:
    """Whether it is a call, or something in brackets."""
    start = 0 if words[0] == "(" else 1
    if words[start] != "(":
        return False
    depth = 0
    for place, word in enumerate(words[start:], start):
        depth += (word == "(") - (word == ")")
        if not depth:
            return place == len(words) - 1
    return False


def _range(part: Tokens) -> Called:
    """A range of the text that is a column."""
    return Called("", part, (), ())
