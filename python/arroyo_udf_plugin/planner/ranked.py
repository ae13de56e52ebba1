"""A SELECT with window functions over the rows of a window, as operators.

    SELECT *, row_number() OVER (PARTITION BY window ORDER BY n DESC) AS place FROM hours

    rows ──► windows: each row with row_number() OVER (...) AS __v1 ──► ..., __v1 AS place

The rows are results of windows: those of one window are there together when it is over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ..pipeline.description import Windows
from ..sql.query import WrongQuery
from ..sql.tokens import column_name
from .calls import Called, calls_in, cut
from .diagnostics import wrong_query
from .flow import TIME, Flow, Node
from .functions import Udf
from .grouped import MOMENT
from .rounds import Rounds, Wanted
from .scope import Scope
from .selects import Item, QueryText, Star
from .text import Text, Tokens, Unending, Wrong, closing, leveled, split

_WRITE = "write OVER (PARTITION BY window ...)"


def has_over(query: QueryText) -> bool:
    """Whether some item has."""
    return any(True for item in query.items if isinstance(item, Item) for _ in _functions(item.part))


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
        parts = [part for item in self._query.items if isinstance(item, Item) for part in _functions(item.part)]
        for part in parts:
            self._check(part)
        columns = {f"__v{number}": part for number, part in enumerate(parts, 1)}
        rows = self._rows()
        node = dataclasses.replace(self._windows(rows, columns), windows=rows.windows)
        computed = {Called("", part, (), ()): column for column, part in columns.items()}
        query = dataclasses.replace(self._query, ctes={}, where=())
        rounds = Rounds(self._text, self._udfs, self._flow, query, node, self._name, computed, scope=self._scope)
        return rounds.built(wanted, with_time)

    def _check(self, part: Tokens) -> None:
        """That a function is one of a window's rows. Raises Wrong."""
        at = part[0].start
        if not self._node.windows:
            raise Unending("OVER (...) is for results of windows: select from a query with GROUP BY tumble(...)", at)
        over = next(place for place, token, depth in leveled(part) if not depth and token.word == "over")
        if part[over + 1].text != "(":
            raise Unending(f"named windows are not supported: {_WRITE}", part[over].start)
        inner = part[over + 2 : -1]
        by = []
        if len(inner) > 1 and (inner[0].word, inner[1].word) == ("partition", "by"):
            ends = (place for place, token, depth in leveled(inner) if not depth and token.word in _BEHIND)
            by = split(inner[2 : next(ends, len(inner))], ",")
        names = [column_name(self._cut(one), self._query.relation.alias) for one in by]
        if not self._node.windows.intersection(names):
            raise Unending(f"other windows may be over later: {_WRITE}", part[over].start)
        for call in calls_in(part, self._udfs):
            raise Unending(f"{call.name} is called beside OVER: compute it in the query before", call.start)

    def _cut(self, part: Tokens) -> str:
        """As SQL over the rows."""
        return cut(self._text.text, part, {} if self._scope is None else self._scope.results([part]))

    def _rows(self) -> Node:
        """Those that WHERE lets pass."""
        query = dataclasses.replace(self._query, ctes={}, items=(Star(None, {}, self._query.at),))
        name = f"{self._name}_rows"
        scope = None if self._scope is None else self._scope.rows(self._node.names)
        rounds = Rounds(self._text, self._udfs, self._flow, query, self._node, name, scope=scope)
        return rounds.built(with_time=True)

    def _windows(self, rows: Node, columns: Mapping[str, Tokens]) -> Node:
        operator = Windows(
            name=f"{self._name}_windows",
            time=TIME,
            column="__w",
            keys=tuple(rows.names),
            aggregates={column: self._cut(part) for column, part in columns.items()},
            by_row=True,
            table=self._query.relation.alias,
            **MOMENT,  # type: ignore[arg-type]
        )
        try:
            return self._flow.windows(rows, operator, self._query.at)
        except WrongQuery as error:
            part = columns.get(error.item or "", ())
            raise wrong_query(error, part, self._query, rows.schema, self._udfs) from None


_BEHIND = ("order", "rows", "range", "groups")


def _functions(part: Tokens) -> Iterator[Tokens]:
    """The ranges of an expression that are functions with OVER."""
    place = 0
    while place < len(part):
        end = _end(part, place)
        if end is not None:
            yield part[place:end]
        place = place + 1 if end is None else end


def _end(part: Tokens, start: int) -> int | None:
    """Behind the OVER (...) of a function that begins here. None: none begins here, or it has none."""
    if part[start].name is None or start + 1 >= len(part) or part[start + 1].text != "(":
        return None
    end = closing(part, start + 1) + 1
    while end < len(part):
        word = part[end].word
        if word == "over" and end + 1 < len(part):
            return closing(part, end + 1) + 1 if part[end + 1].text == "(" else end + 2
        if word in ("ignore", "respect"):
            end += 2
        elif word == "filter" and end + 1 < len(part):
            end = closing(part, end + 1) + 1
        else:
            break
    return None
