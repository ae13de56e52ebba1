"""What a SELECT consists of, as ranges of the user's text. DataFusion has the last word on what is inside them.

    query   := [WITH name AS (query), ...] select
    select  := SELECT items [FROM relation] [WHERE condition] [GROUP BY items] [HAVING condition]

Everything else that SQL has is refused by name, with what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..sql.tokens import Token
from .text import Cursor, Tokens, Wrong, leveled, split

_NOT_YET = {
    "union": "UNION is not supported: insert twice, into two tables",
    "intersect": "INTERSECT is not supported: a stream has no end to compare",
    "except": "EXCEPT is not supported: a stream has no end to compare",
    "order": "ORDER BY is not supported here: a stream has no end to sort",
    "limit": "LIMIT is not supported here: a stream has no end; for tests, give the table a 'source.limit'",
    "offset": "OFFSET is not supported here: a stream is read from where it was left",
    "fetch": "FETCH is not supported here: a stream has no end",
    "qualify": "QUALIFY is not supported: rows pass one by one",
    "window": "WINDOW is not supported: rows pass one by one",
    "into": "SELECT ... INTO is not supported: write INSERT INTO before the SELECT",
}
_FOLLOWING = {
    "select": ("from",),
    "from": ("where", "group", "having"),
    "where": ("group", "having"),
    "group": ("having",),
    "having": (),
}
_JOINS = {"join", "inner", "left", "right", "full", "cross", "natural"}
_OPERANDS = {"end", "null", "true", "false"}  # words that end an operand and are no names
_OPERATORS = {
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
    """An expression. alias: the name that it is given."""

    part: Tokens
    alias: str | None


@dataclass(frozen=True)
class Relation:
    """What is selected from: a name, or a query. alias: the name that it has in expressions."""

    name: str | None
    query: QueryText | None
    alias: str
    at: int


@dataclass(frozen=True)
class QueryText:
    """A query. ctes: those of WITH, by name. where, having: empty: none. group: of GROUP BY. at: where it begins."""

    ctes: Mapping[str, QueryText]
    items: tuple[Star | Item, ...]
    relation: Relation
    where: Tokens
    at: int
    group: tuple[Tokens, ...] = ()
    having: Tokens = ()


def query_of(part: Tokens) -> QueryText:
    """Raises Wrong."""
    cursor = Cursor(part)
    at = cursor.offset
    if cursor.now is not None and cursor.now.text == "(":
        inner = cursor.brackets()
        if cursor.now is not None:
            raise Wrong(_NOT_YET.get(cursor.now.word, "nothing may follow this query"), cursor.offset)
        return query_of(inner)
    ctes = _ctes(cursor) if cursor.take("with") else {}
    if cursor.now is not None and cursor.now.word == "insert":
        raise Wrong("INSERT INTO stands before WITH: write INSERT INTO table WITH name AS (...) SELECT", cursor.offset)
    cursor.need("select")
    if cursor.take("distinct"):
        raise Wrong("DISTINCT is not supported: it would have to remember all rows for ever", at)
    cursor.take("all")
    if [token.word or token.kind for token in cursor.rest[:2]] == ["top", "number"]:
        raise Wrong("TOP is not supported: a stream has no end", cursor.offset)
    clauses = _clauses(cursor.rest)
    items = tuple(_items(clauses["select"], cursor.offset))
    if "from" not in clauses:
        raise Wrong("a SELECT needs a FROM: rows come from a table", at)
    relation = _relation(clauses["from"], cursor.offset)
    group = tuple(split(clauses["group"], ",")) if "group" in clauses else ()
    having = clauses.get("having", ())
    if having and not group:
        raise Wrong("HAVING needs a GROUP BY: for rows, write WHERE", having[0].start)
    return QueryText(ctes, items, relation, clauses.get("where", ()), at, group, having)


def _ctes(cursor: Cursor) -> dict[str, QueryText]:
    if cursor.take("recursive"):
        raise Wrong("WITH RECURSIVE is not supported: a stream has no end", cursor.offset)
    found: dict[str, QueryText] = {}
    while True:
        name, at = cursor.name("the name of a query")
        if name in found:
            raise Wrong(f"there are two queries {name} in this WITH: rename one", at)
        if cursor.now is not None and cursor.now.text == "(":
            raise Wrong("the columns of a query have the names of its items: write SELECT ... AS name", cursor.offset)
        cursor.need("as")
        found[name] = query_of(cursor.brackets())
        if not cursor.take(","):
            return found


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
            raise Wrong(_NOT_YET[token.word], token.start)
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
    for one, before in zip(parts, [(), *parts], strict=False):
        if not one and before:
            raise Wrong("this comma has no expression behind it: write one, or leave the comma out", before[-1].end)
        if not one:
            raise Wrong("an expression is missing here", at)
        yield _item(one)


def _item(part: Tokens) -> Star | Item:
    if part[0].text == "*":
        return _star(None, part[1:], part[0].start)
    if len(part) > 2 and part[1].text == "." and part[2].text == "*":
        return _star(part[0].name, part[3:], part[0].start)
    if len(part) > 2 and part[-2].word == "as":
        return Item(part[:-2], _alias(part[-1]))
    if len(part) > 1 and _is_alias(part):
        return Item(part[:-1], _alias(part[-1]))
    return Item(part, None)


def _alias(token: Token) -> str:
    if token.name is None:
        raise Wrong(f"{token.text} is no name: write AS and a name", token.start)
    return token.name


def _is_alias(part: Tokens) -> bool:
    """Whether the last word is a name for what is before it, without AS."""
    last, before = part[-1], part[-2]
    if last.name is None or last.word in _OPERATORS | _OPERANDS | _TYPE_ENDS:
        return False
    if before.kind == "sign":
        return before.text in (")", "]", "}")
    if before.kind in ("text", "number"):
        return len(part) < 3 or part[-3].word != "interval" or last.word.removesuffix("s") not in _UNITS
    return before.word not in _OPERATORS


def _star(table: str | None, rest: Tokens, at: int) -> Star:
    if not rest:
        return Star(table, {}, at)
    cursor = Cursor(rest)
    if not (cursor.take("except") or cursor.take("exclude")):
        raise Wrong("behind a * may only stand EXCEPT (column, ...)", cursor.offset)
    inner = cursor.brackets() if cursor.now is not None and cursor.now.text == "(" else [cursor.next()]
    if cursor.now is not None:
        raise Wrong("nothing may follow here: write a comma before the next column", cursor.offset)
    names = [one[0] for one in split(inner, ",") if len(one) == 1 and one[0].name is not None]
    return Star(table, {token.name or "": token.start for token in names}, at)


def _relation(part: Tokens, at: int) -> Relation:
    if not part:
        raise Wrong("the table is missing: write its name behind FROM", at)
    for _, token, depth in leveled(part):
        if not depth and (token.word in _JOINS or token.text == ","):
            raise Wrong("joins are not supported yet: a SELECT reads one table or query", token.start)
    cursor = Cursor(part)
    start = cursor.offset
    query, name = None, None
    if part[0].text == "(":
        query = query_of(cursor.brackets())
    else:
        name, _ = cursor.name("a table's name")
        if cursor.now is not None and cursor.now.text == "(":
            raise Wrong(f"{name}(...) is no table: write a table's name, or a query in brackets", start)
        if cursor.take("."):
            raise Wrong("tables have no schemas here: write the name alone", start)
    cursor.take("as")
    alias = name or "subquery"
    if cursor.now is not None:
        alias, _ = cursor.name("a name for the table")
    if cursor.now is not None:
        raise Wrong(f"{cursor.now.text} is not expected here: write WHERE, or the end of the query", cursor.offset)
    return Relation(name, query, alias, start)
