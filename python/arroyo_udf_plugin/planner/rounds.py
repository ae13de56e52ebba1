"""A SELECT with calls of UDFs anywhere in it, as operators.

    conditions without calls ──► arguments ──► calls ──► ... ──► conditions with them ──► ... ──► items

A round is a query that computes the arguments of calls, and the operators that make them; it is left out if all
arguments are columns. What is an argument of another call is called in an earlier round. Conditions with calls come
before the calls of the items, so that these are made only for rows that remain.

The same call twice is one call, unless the function is volatile. A query is cut from the user's text, with results
`__r1` in the places of calls.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..plugin.casting import fits
from ..sql.query import Query, Select, WrongQuery
from ..sql.tokens import column_name, quoted
from .calls import Called, calls_in, conjuncts, cut, may_fail
from .column_types import cast_to
from .diagnostics import wrong_query
from .flow import TIME, Flow, Node
from .functions import Udf
from .scope import Scope
from .selects import Item, QueryText, Star, name_of
from .text import Text, Tokens, Wrong

_OWN = re.compile(r"__([argklxv]\d+(_\d+)?|[tw])")


@dataclass(frozen=True)
class Wanted:
    """A column that a table has. type: None: any. not_null: a row fails in which it is null."""

    name: str
    type: pa.DataType | None
    not_null: bool = False


@dataclass(frozen=True)
class _Column:
    """A column of the result. part: its expression; empty: it is the column `source`. at: where it is."""

    name: str
    part: Tokens
    source: str
    at: int


@dataclass(frozen=True)
class _Making:
    """A call that is made in a round. columns: its arguments. guard: the column of its condition."""

    call: Called
    udf: Udf
    columns: Sequence[str]
    guard: str | None

    def text(self, result: str) -> str:
        """As a pipeline has it."""
        condition = f" if {quoted(self.guard)}" if self.guard else ""
        return f"{result} = {self.udf.function.name}({', '.join(map(quoted, self.columns))}){condition}"


class Rounds:
    """query: its relation is `node`. name: for the last operator."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, Udf],
        flow: Flow,
        query: QueryText,
        node: Node,
        name: str,
        computed: Mapping[Called, str] | None = None,
        others: Collection[str] = (),
        scope: Scope | None = None,
    ) -> None:
        """computed: columns that parts of the text stand for. others: of rows, which results of groups do not have.
        scope: what names mean, if rows are those of several tables."""
        self._computed, self._others = dict(computed or {}), others
        self._is_of_rows = computed is None
        self._scope = scope
        if scope is not None:
            items = [item.part for item in query.items if isinstance(item, Item)]
            self._computed |= scope.results([*items, query.where])
        self._text, self._udfs, self._flow, self._query, self._name = text, udfs, flow, query, name
        self._node, self._table, self._windows = node, query.relation.alias, node.windows
        self._results: dict[Called, str] = dict(self._computed)
        self._same: dict[tuple[str, str], str] = {}  # results, by what is called and the guards
        self._conditions: list[Tokens] = []  # that the next query checks
        self._later: list[Tokens] = []  # what is still to be computed
        self._stars: set[str] = set()  # columns that a star stands for

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """The rows of the result. wanted: the columns that they must have, by position. with_time: with the event time,
        if there is one. Raises Wrong."""
        for name in self._node.names if self._is_of_rows else ():
            if _OWN.fullmatch(name):
                raise Wrong(f"a column has the name {name}, which calls need: rename it", self._query.relation.at)
        columns = self._columns(wanted)
        if with_time and TIME in self._node.schema.names:
            columns.append(_Column(TIME, (), TIME, self._query.at))
        self._stars = {column.source for column in columns if not column.part}
        conditions = conjuncts(self._query.where) if self._query.where else []
        calls = {id(part): self._calls(part) for part in conditions}
        item_calls = [call for column in columns for call in self._calls(column.part)]
        first = next((place for place, part in enumerate(conditions) if calls[id(part)]), len(conditions))
        early = [
            place
            for place, part in enumerate(conditions)
            if not calls[id(part)] and (place < first or not may_fail(part))
        ]
        self._conditions = [conditions[place] for place in early]
        late = [part for place, part in enumerate(conditions) if place not in early]
        for place, part in enumerate(late):
            self._later = [column.part for column in columns] + late[place:]
            self._make(calls[id(part)])
            self._conditions.append(part)
        self._later = [column.part for column in columns]
        self._make(item_calls)
        return self._finish(columns, wanted)

    def _calls(self, part: Tokens) -> list[Called]:
        calls = calls_in(part, self._udfs) if part else []
        covered = [call for call in calls if any(one.covers(call) for one in self._computed)]
        self._results |= dict.fromkeys(covered, "")  # what they are part of is computed
        return [call for call in calls if call not in covered]

    # ---- The columns of the result ----

    def _columns(self, wanted: Sequence[Wanted] | None) -> list[_Column]:
        columns: list[_Column] = []
        for item in self._query.items:
            columns += self._star(item) if isinstance(item, Star) else [self._item(item)]
        if wanted is not None:
            if len(wanted) != len(columns):
                names = ", ".join(one.name for one in wanted)
                raise Wrong(
                    f"the SELECT has {len(columns)} columns, and the table {len(wanted)}: {names}", self._query.at
                )
            columns = [
                _Column(one.name, column.part, column.source, column.at)
                for one, column in zip(wanted, columns, strict=True)
            ]
        for place, column in enumerate(columns):
            if column.name in [other.name for other in columns[:place]]:
                raise Wrong(f"there are two columns {column.name}: write AS and another name", column.at)
        return columns

    def _star(self, star: Star) -> list[_Column]:
        if self._scope is not None:
            return [_Column(name, (), column, star.at) for name, column in self._scope.star(star)]
        names = [name for name in self._node.names if not _OWN.fullmatch(name)]
        if star.table not in (None, self._table):
            raise Wrong(f"there is no table {star.table} here: write {self._table}.*", star.at)
        for name, at in star.without.items():
            if name not in names:
                raise Wrong(f"there is no column {name} to leave out: there are {', '.join(names)}", at)
        return [_Column(name, (), name, star.at) for name in names if name not in star.without]

    def _item(self, item: Item) -> _Column:
        text = self._text.cut(item.part)
        return _Column(name_of(text, item), item.part, "", item.part[0].start)

    # ---- Calls ----

    def _make(self, calls: Iterable[Called]) -> None:
        """Makes those that are not made, in rounds."""
        left = [call for call in calls if call not in self._results]
        while left:
            ready = [call for call in left if all(inner in self._results for inner in call.inner)]
            self._round(ready)
            left = [call for call in left if call not in ready]

    def _round(self, calls: Sequence[Called]) -> None:
        arguments: dict[str, str] = {}  # computed ones, by the name of their column
        parts: dict[str, Tokens] = {}
        made: dict[str, _Making] = {}
        for call in calls:
            udf = self._udfs[call.name]
            self._check(call, udf)
            texts = [cut(self._text.text, part, self._results) for part in call.arguments]
            guard = " AND ".join(one.text(self._text.text, self._results) for one in call.guards)
            what = self._normal(call.whole)
            same = self._same.get((what, "")) or self._same.get((what, guard))
            if same is not None:
                self._results[call] = same
                continue
            number = self._flow.result()
            result = self._results[call] = f"__r{number}"
            if udf.is_once:
                self._same[what, guard] = result
            columns = []
            for place, (text, part) in enumerate(zip(texts, call.arguments, strict=True)):
                column = column_name(text, self._table)
                if column not in self._node.schema.names:
                    column = f"__a{number}_{place}"
                    arguments[column], parts[column] = text, part
                columns.append(column or "")
            if guard:
                arguments[f"__g{number}"], parts[f"__g{number}"] = guard, call.guards[0].part
            made[result] = _Making(call, udf, columns, f"__g{number}" if guard else None)
        if arguments or (self._conditions and made):
            self._compute(arguments, parts, {column for making in made.values() for column in making.columns})
        self._check_types(made.values())
        self._call(made)

    def _check(self, call: Called, udf: Udf) -> None:
        if len(call.arguments) != len(udf.function.arguments):
            raise Wrong(f"{len(call.arguments)} arguments are given, and the function is {udf.signature}", call.start)
        if udf.function.kind not in ("sync", "async"):
            raise Wrong(f"{udf.signature} is {udf.function.kind}, and no row can call it", call.start)
        if udf.function.timeout is not None and self._flow.settings.isolation != "process":
            raise Wrong(
                f"{call.name} has a timeout, and only worker processes keep one: write SET isolation = 'process', or "
                "leave the timeout out",
                call.start,
            )

    def _compute(self, arguments: Mapping[str, str], parts: Mapping[str, Tokens], taken: set[str]) -> None:
        """A query that adds columns, checks conditions, and leaves out what nobody needs any more."""
        needed = taken | self._names_needed()
        keep = {name: quoted(name) for name in self._node.schema.names if name in needed}
        self._query_over({**keep, **arguments}, parts, "arguments")

    def _names_needed(self) -> set[str]:
        """Names of columns, and results, in what is still to be computed or checked."""
        parts = [*self._later, *self._conditions]
        names = {token.name or "" for part in parts for token in part}
        names |= self._stars | set(self._computed.values())
        calls = {self._normal(call.whole) for part in parts for call in self._calls(part)}
        return names | {result for (what, _), result in self._same.items() if what in calls}

    def _normal(self, part: Tokens) -> str:
        """The same text for what is the same, with or without the table's name."""
        if self._scope is not None:
            return self._scope.normal(part)
        words = [token.word or token.text for token in part]
        is_table = [
            token.name == self._table and words[place + 1 : place + 2] == ["."] for place, token in enumerate(part)
        ]
        return " ".join(
            word for place, word in enumerate(words) if not is_table[place] and not (place and is_table[place - 1])
        )

    def _query_over(self, items: Mapping[str, str], parts: Mapping[str, Tokens], name: str) -> None:
        try:
            self._node = self._flow.query(self._node, self._select(items), name, self._query.at)
        except WrongQuery as error:
            raise self._wrong(error, parts) from None
        self._conditions = []

    def _select(self, items: Mapping[str, str]) -> Select:
        where = "\n) AND (".join(cut(self._text.text, part, self._results) for part in self._conditions)
        return Select(items, f"({where}\n)" if where else None, self._table)

    def _wrong(self, error: WrongQuery, parts: Mapping[str, Tokens]) -> Wrong:
        part = parts.get(error.item or "", self._query.where or ())
        return wrong_query(error, part, self._query, self._node.schema, self._udfs, self._others)

    def _check_types(self, made: Iterable[_Making]) -> None:
        for making in made:
            wanted = making.udf.function.arguments
            for part, column, field in zip(making.call.arguments, making.columns, wanted, strict=True):
                given = self._node.schema.field(column).type
                if fits(given, field) is not None:
                    raise Wrong(
                        f"{self._text.cut(part)} is {given}, and the function is {making.udf.signature}: "
                        f"write CAST(... AS ...) for {field.name}",
                        part[0].start,
                    )

    def _call(self, made: Mapping[str, _Making]) -> None:
        """An operator for each plugin."""
        for file in dict.fromkeys(making.udf.file for making in made.values()):
            own = {result: making for result, making in made.items() if making.udf.file == file}
            calls = {result: (making.text(result), making.udf) for result, making in own.items()}
            self._node = self._flow.calls(self._node, file, calls, min(making.call.start for making in own.values()))

    # ---- The end ----

    def _finish(self, columns: Sequence[_Column], wanted: Sequence[Wanted] | None) -> Node:
        items = {
            column.name: cut(self._text.text, column.part, self._results) if column.part else quoted(column.source)
            for column in columns
        }
        parts = {column.name: column.part for column in columns}
        if wanted is not None:
            items = self._cast(items, parts, columns, wanted)
        names, texts = self._node.schema.names, [column_name(text, self._table) for text in items.values()]
        if self._conditions or not texts == names == list(items):
            windows = frozenset(name for name, text in zip(items, texts, strict=True) if text in self._windows)
            self._query_over(items, parts, self._name)
            self._node = dataclasses.replace(self._node, windows=windows)
        required = [one.name for one in wanted or () if one.not_null]
        return self._flow.required(self._node, required, self._name, self._query.at)

    def _cast(
        self,
        items: Mapping[str, str],
        parts: Mapping[str, Tokens],
        columns: Sequence[_Column],
        wanted: Sequence[Wanted],
    ) -> dict[str, str]:
        """The items in the types of the table's columns."""
        try:
            types = Query(self._select(items), self._node.schema).schema.types
        except WrongQuery as error:
            raise self._wrong(error, parts) from None
        cast = dict(items)
        for one, column, given in zip(wanted, columns, types, strict=False):  # behind them may be the time
            text = items[column.name]
            found = text if one.type is None else cast_to(text, given, one.type)
            if found is None:
                raise Wrong(
                    f"{one.name} is {one.type} in the table, and this is {given}: write CAST(... AS ...)", column.at
                )
            cast[column.name] = found
        return cast
