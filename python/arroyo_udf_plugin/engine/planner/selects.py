"""What a SELECT consists of: clauses, and the expressions in them. DataFusion has the last word on these.

    query     := [WITH name AS (query), ...] select [UNION ALL select ...]
    select    := SELECT items [FROM relation [join ...]] [WHERE condition] [GROUP BY items] [HAVING condition]
                 [QUALIFY row_number() OVER (...) = 1]
    relation  := name [AS alias] | (query) [AS alias]
    join      := [INNER | LEFT | RIGHT | FULL] JOIN relation ON condition | ... USING (names)
               | , call | CROSS JOIN call | [INNER | LEFT] JOIN call ON TRUE
    call      := [LATERAL] function(arguments) [[AS] alias [(names)]]

Everything else that SQL has is refused by name, with what to write instead, or needs all rows (`WholeText`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..datafusion.tokens import Token
from .clauses import clauses_in
from .expressions import CallExpression, Column, Expression, conjuncts
from .over import first_of, is_number
from .parsing import parsed
from .text import Cursor, Text, Tokens, Unending, Wrong, closing, leveled, split

_NOT_YET = {
    "intersect": "INTERSECT is not supported: a stream has no end to compare",
    "except": "EXCEPT is not supported: a stream has no end to compare",
    "order": "ORDER BY is not supported here: a stream has no end to sort",
    "limit": "LIMIT is not supported here: a stream has no end; for tests, give the table a 'source.limit'",
    "offset": "OFFSET is not supported here: a stream is read from where it was left",
    "fetch": "FETCH is not supported here: a stream has no end",
    "qualify": (
        "QUALIFY is not supported here: rows pass one by one. For the first row of each key, write row_number() OVER "
        "(PARTITION BY key ORDER BY at) = 1"
    ),
    "window": "WINDOW is not supported: rows pass one by one",
    "into": "SELECT ... INTO is not supported: write INSERT INTO before the SELECT",
}
_FOLLOWING = {
    "select": ("from",),
    "from": ("where", "group", "having", "qualify"),
    "where": ("group", "having", "qualify"),
    "group": ("having",),
    "having": (),
    "qualify": (),
}
_WINDOWED = "write JOIN ... ON a.window = b.window"
_NO_JOINS = {
    "cross": f"CROSS JOIN is not supported: it would have to remember all rows for ever: {_WINDOWED}",
    "natural": f"NATURAL JOIN is not supported: {_WINDOWED} AND ..., or USING (window, ...)",
    "semi": f"SEMI JOIN is not supported: {_WINDOWED} AND ...",
    "anti": "ANTI JOIN is not supported: write LEFT JOIN ... ON a.window = b.window AND ... WHERE b.window IS NULL",
    "asof": f"ASOF JOIN is not supported: {_WINDOWED} AND ...",
    "lateral": "LATERAL is not supported: for lists, write unnest(list) among the items",
}
_NO_RELATIONS = {
    "tablesample": "TABLESAMPLE is not supported: write WHERE random() < 0.1",
    "pivot": "PIVOT is not supported: write sum(a) FILTER (WHERE b = 'x') AS x for each column",
    "unpivot": "UNPIVOT is not supported: write UNION ALL of a SELECT for each column",
    "match_recognize": "MATCH_RECOGNIZE is not supported: write lag(a) OVER (PARTITION BY window ...)",
}
_KINDS = ("inner", "left", "right", "full")
OPERANDS = {"end", "null", "true", "false"}  # words that end an operand and are no names
OPERATORS = {
    *("and", "or", "not", "is", "in", "like", "ilike", "between", "similar", "to", "escape", "distinct", "from", "as"),
    *("case", "when", "then", "else", "interval", "date", "timestamp", "time", "zone", "at", "collate", "div", "xor"),
    *("any", "all", "some", "rlike", "regexp", "unknown", "exists", "array", "over", "filter", "within"),
}
_UNITS = {"year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond"}
_TYPE_ENDS = {"precision", "unsigned", "zone", "varying"}


@dataclass(frozen=True)
class Star:
    """All columns, but those left out. table: before the star. at: where it is."""

    table: str | None
    without: Mapping[str, int]
    at: int


@dataclass(frozen=True)
class Item:
    """alias: the name that the expression is given. only: its value is null where this condition does not hold."""

    expression: Expression
    alias: str | None
    only: Expression | None = None


@dataclass(frozen=True)
class Relation:
    """What is selected from: a name, or a query. alias: the name that it has in expressions."""

    name: str | None
    query: AnyQuery | None
    alias: str
    at: int


JoinKind = Literal["inner", "left", "right", "full"]


@dataclass(frozen=True)
class JoinClause:
    """A relation beside all before it. on: the condition; None: columns of these names are equal (using, with where
    they are). at: where JOIN, or the word before it, is. call: the relation is what this gives for each row before it;
    columns: their names, if they are named."""

    kind: JoinKind
    relation: Relation
    on: Expression | None
    using: Mapping[str, int]
    at: int
    call: CallExpression | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryText:
    """A SELECT. part: the whole, without WITH. ctes: those of WITH, by name. joins: behind `relation`. where, having:
    all of these hold. group: of GROUP BY. at: where it begins. first: the row_number() that is 1 in all rows that are
    asked for; it is that of QUALIFY if the query `qualifies`."""

    part: Tokens
    ctes: Mapping[str, AnyQuery]
    items: tuple[Star | Item, ...]
    relation: Relation
    where: tuple[Expression, ...]
    at: int
    group: tuple[Expression, ...] = ()
    having: tuple[Expression, ...] = ()
    joins: tuple[JoinClause, ...] = ()
    first: CallExpression | None = None
    qualifies: bool = False

    @property
    def results(self) -> list[Expression]:
        """The expressions of its items."""
        return [item.expression for item in self.items if isinstance(item, Item)]

    @property
    def expressions(self) -> list[Expression]:
        """All that name columns."""
        on = [expression for join in self.joins for expression in (join.on, join.call) if expression is not None]
        return [*self.results, *self.where, *self.group, *self.having, *on]


@dataclass(frozen=True)
class UnionText:
    """The rows of several queries: UNION ALL. part: the whole, without WITH. ctes: those of WITH, for all of them. at:
    where it begins."""

    part: Tokens
    ctes: Mapping[str, AnyQuery]
    queries: tuple[AnyQuery, ...]
    at: int


@dataclass(frozen=True)
class WholeText:
    """A query that needs all rows. part: it, without WITH. ctes: those of WITH. why: what is wrong if rows do not end.
    at: where it begins."""

    part: Tokens
    ctes: Mapping[str, AnyQuery]
    why: Unending
    at: int


AnyQuery = QueryText | UnionText | WholeText


def query_of(part: Tokens) -> AnyQuery:
    """Raises Wrong."""
    cursor = Cursor(part)
    at = cursor.offset
    ctes = _ctes(cursor) if cursor.take("with") else {}
    body = cursor.rest
    try:
        queries = _united(body)
        if len(queries) > 1:
            own = tuple(map(query_of, queries))
            for query in own:  # what follows the last one, such as LIMIT, is for all of them
                if isinstance(query, WholeText):
                    raise query.why
            return UnionText(body, ctes, own, at)
        return _select(cursor, ctes, at)
    except Unending as error:
        return WholeText(body, ctes, error, at)


def items_of(part: Tokens) -> Sequence[Star | Item] | None:
    """What the first SELECT of a query selects. None: it is in brackets."""
    if part[0].word != "select":
        return None
    word, clause = next(clauses_in(part))
    if not clause:  # a word such as DISTINCT follows at once
        word, clause = next(itertools.islice(clauses_in(part), 1, None))
    return tuple(_items(clause, part[0].end)) if word in ("select", "distinct", "all") and clause else None


def name_of(text: Text, item: Item) -> str:
    """Of an item's result: what has none has its own text."""
    path = item.expression.path if isinstance(item.expression, Column) else ()
    return item.alias or (path[-1] if 0 < len(path) < 3 else " ".join(text.cut(item.expression.part).split()))


def _united(part: Tokens) -> list[Tokens]:
    """Cut at UNION ALL."""
    cuts = [(0, 0)]
    for place, token, depth in leveled(part):
        before = part[place - 1] if place else None
        if depth or token.word != "union" or (before is not None and (before.word == "as" or before.text == ".")):
            continue
        if [following.word for following in part[place + 1 : place + 3]] in (["all", "select"], ["all", ""]):
            cuts.append((place, place + 2))
        else:
            raise Unending(
                "UNION is not supported: it would have to remember all rows for ever, to leave out equal ones. Write "
                "UNION ALL",
                token.start,
            )
    stops = [stop for stop, _ in cuts[1:]] + [len(part)]
    return [part[start:stop] for (_, start), stop in zip(cuts, stops, strict=True)]


def _select(cursor: Cursor, ctes: Mapping[str, AnyQuery], at: int) -> AnyQuery:
    if not ctes and cursor.now is not None and cursor.now.text == "(":
        inner = cursor.brackets()
        if cursor.now is not None:
            raise _not_yet(cursor.now.word, "nothing may follow this query", cursor.offset)
        return query_of(inner)
    if cursor.now is not None and cursor.now.word == "insert":
        raise Wrong("INSERT INTO stands before WITH: write INSERT INTO table WITH name AS (...) SELECT", cursor.offset)
    part = cursor.rest
    cursor.need("select")
    if cursor.take("distinct"):
        raise Unending(
            "DISTINCT is not supported: it would have to remember all rows for ever. Write SET state_ttl = '1 day', "
            "and QUALIFY row_number() OVER (PARTITION BY key ORDER BY at) = 1",
            at,
        )
    cursor.take("all")
    if [token.word or token.kind for token in cursor.rest[:2]] == ["top", "number"]:
        raise Wrong("TOP is not supported: a stream has no end", cursor.offset)
    clauses = _clauses(cursor.rest)
    items = tuple(_items(clauses["select"], cursor.offset))
    if "from" not in clauses:
        raise Wrong("a SELECT needs a FROM: rows come from a table", at)
    relation, joins = from_of(clauses["from"], cursor.offset)
    group = split(clauses["group"], ",") if "group" in clauses else []
    if not all(group):
        raise Wrong("an expression is missing in this GROUP BY", at)
    where, having = _conditions(clauses.get("where", ())), _conditions(clauses.get("having", ()))
    first = _first(clauses.get("qualify", ()), items)
    if having and not group:
        raise Unending("HAVING needs a GROUP BY: for rows, write WHERE", having[0].start)
    return QueryText(
        part, ctes, items, relation, where, at, tuple(map(parsed, group)), having, joins, first, "qualify" in clauses
    )


def _first(part: Tokens, items: Sequence[Star | Item]) -> CallExpression | None:
    """Of QUALIFY."""
    if not part:
        return None
    calls = {item.alias: item.expression.bare for item in items if isinstance(item, Item) and item.alias}
    named = {name: call for name, call in calls.items() if isinstance(call, CallExpression) and is_number(call)}
    first = first_of(parsed(part), named, "")
    if first is None:
        raise Unending(_NOT_YET["qualify"], part[0].start)
    return first


def _conditions(part: Tokens) -> tuple[Expression, ...]:
    return tuple(conjuncts(parsed(part))) if part else ()


def _not_yet(word: str, otherwise: str, at: int) -> Wrong:
    """What may not follow a query."""
    return Unending(_NOT_YET[word], at) if word in _NOT_YET else Wrong(otherwise, at)


def _ctes(cursor: Cursor) -> dict[str, AnyQuery]:
    if cursor.take("recursive"):
        raise Unending("WITH RECURSIVE is not supported: a stream has no end", cursor.offset)
    ctes: dict[str, AnyQuery] = {}
    while True:
        name, at = cursor.name("the name of a query")
        if name in ctes:
            raise Wrong(f"there are two queries {name} in this WITH: rename one", at)
        if cursor.now is not None and cursor.now.text == "(":
            raise Wrong("the columns of a query have the names of its items: write SELECT ... AS name", cursor.offset)
        cursor.need("as")
        ctes[name] = query_of(cursor.brackets())
        if not cursor.take(","):
            return ctes


def _clauses(part: Tokens) -> dict[str, Tokens]:
    """By the word that begins them; items by "select"."""
    starts: list[tuple[str, int]] = [("select", 0)]
    for place, token, depth in leveled(part):
        before = part[place - 1] if place else None
        if depth or not token.word or (before is not None and (before.word == "as" or before.text == ".")):
            continue
        if token.word in _NOT_YET and not (token.word == "except" and before is not None and before.text == "*"):
            if _is_column(part, place):
                continue
            if token.word in _FOLLOWING[starts[-1][0]]:
                starts.append((token.word, place))
                continue
            raise (Wrong if token.word == "into" else Unending)(_NOT_YET[token.word], token.start)
        if token.word == "from" and before is not None and before.word == "distinct":
            continue
        if token.word in _FOLLOWING[starts[-1][0]] and not _is_column(part, place):
            starts.append((token.word, place))
    stops = [start for _, start in starts[1:]] + [len(part)]
    lengths = {"select": 0, "group": 2}  # of the words that begin a clause
    return {word: part[start + lengths.get(word, 1) : stop] for (word, start), stop in zip(starts, stops, strict=True)}


def _is_column(part: Tokens, place: int) -> bool:
    """Whether a word that may begin a clause is a column's name."""
    following = [token.word for token in part[place + 1 : place + 3]]
    if part[place].word in ("group", "order"):
        return following[:1] != ["by"]
    return part[place].word == "window" and following[1:] != ["as"]


def _items(part: Tokens, at: int) -> Iterator[Star | Item]:
    """at: where they begin."""
    parts = split(part, ",")
    for item, before in zip(parts, [(), *parts], strict=False):
        if not item and before:
            raise Wrong("this comma has no expression behind it: write one, or leave the comma out", before[-1].end)
        if not item:
            raise Wrong("an expression is missing here", at)
        yield _item(item)


def _item(part: Tokens) -> Star | Item:
    if part[0].text == "*":
        return _star(None, part[1:], part[0].start)
    if len(part) > 2 and part[1].text == "." and part[2].text == "*":
        return _star(part[0].name, part[3:], part[0].start)
    if len(part) > 2 and part[-2].word == "as":
        return Item(parsed(part[:-2]), _alias(part[-1]))
    if len(part) > 1 and _is_alias(part):
        return Item(parsed(part[:-1]), _alias(part[-1]))
    return Item(parsed(part), None)


def _alias(token: Token) -> str:
    if token.name is None:
        raise Wrong(f"{token.text} is no name: write AS and a name", token.start)
    return token.name


def _is_alias(part: Tokens) -> bool:
    """Whether the last word is a name for what is before it, without AS."""
    last, before = part[-1], part[-2]
    if last.name is None or last.word in OPERATORS | OPERANDS | _TYPE_ENDS:
        return False
    if before.kind == "sign":
        return before.text in (")", "]", "}")
    if before.kind in ("text", "number"):
        return len(part) < 3 or part[-3].word != "interval" or last.word.removesuffix("s") not in _UNITS
    return before.word not in OPERATORS


def _star(table: str | None, rest: Tokens, at: int) -> Star:
    if not rest:
        return Star(table, {}, at)
    cursor = Cursor(rest)
    if not (cursor.take("except") or cursor.take("exclude")):
        raise Wrong("behind a * may only stand EXCEPT (column, ...)", cursor.offset)
    inner = cursor.brackets() if cursor.now is not None and cursor.now.text == "(" else [cursor.next()]
    if cursor.now is not None:
        raise Wrong("nothing may follow here: write a comma before the next column", cursor.offset)
    names = [column[0] for column in split(inner, ",") if len(column) == 1 and column[0].name is not None]
    return Star(table, {token.name or "": token.start for token in names}, at)


def from_of(part: Tokens, at: int) -> tuple[Relation, tuple[JoinClause, ...]]:
    """The first relation, and what is joined with it."""
    if not part:
        raise Wrong("the table is missing: write its name behind FROM", at)
    starts = []
    for place, token, depth in leveled(part):
        if not depth and token.text == "," and _is_call(part[place + 1 :]):
            starts.append((place, place))
        elif not depth and token.text == ",":
            raise Unending(f"a comma joins all rows with all: {_WINDOWED} AND ...", token.start)
        if not depth and token.word == "join":
            starts.append((_join_start(part, place), place))
    stops = [start for start, _ in starts] + [len(part)]
    first = _relation(part[: stops[0]], at)
    joins = tuple(
        _join(part[start:place], part[place + 1 : stop], part[place])
        for (start, place), stop in zip(starts, stops[1:], strict=True)
    )
    aliases = [first.alias]
    for join in joins:
        if join.relation.alias in aliases:
            raise Wrong(f"there are two tables {join.relation.alias} here: write AS and another name", join.relation.at)
        aliases.append(join.relation.alias)
    return first, joins


def _join_start(part: Tokens, place: int) -> int:
    """Where the words begin that say which JOIN it is."""
    words = {*_KINDS, *_NO_JOINS, "outer"}
    while place and part[place - 1].word in words:
        place -= 1
    return place


def _join(before: Tokens, part: Tokens, word: Token) -> JoinClause:
    """before: the words before JOIN."""
    at = before[0].start if before else word.start
    if _is_call(part):
        return _call(before, part, at)
    if part[:1] and part[0].word == "unnest":
        raise Unending("UNNEST is not supported here: write unnest(list) among the items", part[0].start)
    for token in [*before, *part[:1]]:
        if token.word in _NO_JOINS:
            raise Unending(_NO_JOINS[token.word], token.start)
    kind = next((kind for kind in _KINDS if before and before[0].word == kind), "inner")
    levels = [(place, token) for place, token, depth in leveled(part) if not depth and place]
    end = next((place for place, token in levels if token.word in ("on", "using")), len(part))
    relation = _relation(part[:end], word.end)
    if end == len(part):
        raise Unending(f"this JOIN has no condition: {_WINDOWED} AND ...", at)
    if part[end].word == "on":
        if end + 1 == len(part):
            raise Unending(f"this JOIN has no condition: {_WINDOWED} AND ...", at)
        return JoinClause(kind, relation, parsed(part[end + 1 :]), {}, at)  # type: ignore[arg-type]
    cursor = Cursor(part[end + 1 :])
    names = [Cursor(column).name("a column's name") for column in split(cursor.brackets(), ",")]
    return JoinClause(kind, relation, None, dict(names), at)  # type: ignore[arg-type]


def _is_call(part: Tokens) -> bool:
    """Whether a join is with a function's rows."""
    part = part[1:] if part[:1] and part[0].word == "lateral" else part
    return len(part) > 1 and part[0].name is not None and part[0].word != "unnest" and part[1].text == "("


def _call(before: Tokens, part: Tokens, at: int) -> JoinClause:
    """As of `_join`."""
    cursor = Cursor(part)
    cursor.take("lateral")
    start = len(part) - len(cursor.rest)
    end = closing(part, start + 1) + 1
    call = parsed(part[start:end])
    assert isinstance(call, CallExpression)
    words = {token.word for token in before}
    if not words <= {"cross", "inner", "left", "outer"}:
        raise Unending("rows of a function are those of a row before it: write CROSS JOIN, or LEFT JOIN", at)
    cursor = Cursor(part[end:])
    cursor.take("as")
    alias = call.name
    columns: tuple[str, ...] = ()
    if cursor.now is not None and cursor.now.word not in ("on", "using"):
        alias, _ = cursor.name("a name for the table")
        if cursor.now is not None and cursor.now.text == "(":
            columns = tuple(Cursor(name).name("a column's name")[0] for name in split(cursor.brackets(), ","))
    if cursor.rest and [token.word for token in cursor.rest] != ["on", "true"]:
        reason = "rows of a function belong to their row alone: write ON TRUE, and conditions in WHERE"
        raise Wrong(reason, cursor.offset)
    relation = Relation(None, None, alias, call.start)
    return JoinClause("left" if "left" in words else "inner", relation, None, {}, at, call, columns)


def _relation(part: Tokens, at: int) -> Relation:
    if not part:
        raise Wrong("the table is missing: write its name here", at)
    cursor = Cursor(part)
    start = cursor.offset
    query, name = None, None
    if part[0].text == "(":
        query = query_of(cursor.brackets())
    else:
        name, _ = cursor.name("a table's name")
        if cursor.now is not None and cursor.now.text == "(":
            raise Unending(f"{name}(...) is no table: write a table's name, or a query in brackets", start)
        if cursor.take("."):
            raise Wrong("tables have no schemas here: write the name alone", start)
    cursor.take("as")
    if cursor.now is not None and cursor.now.word in _NO_RELATIONS:
        raise Wrong(_NO_RELATIONS[cursor.now.word], cursor.offset)
    alias = name or "subquery"
    if cursor.now is not None:
        alias, _ = cursor.name("a name for the table")
    if cursor.now is not None and cursor.now.word in _NO_RELATIONS:
        raise Wrong(_NO_RELATIONS[cursor.now.word], cursor.offset)
    if cursor.now is not None:
        raise Wrong(f"{cursor.now.text} is not expected here: write WHERE, or the end of the query", cursor.offset)
    return Relation(name, query, alias, start)
