"""The text of a whole query, in which a call of a UDF says which rows it is for.

    WHERE minutes > 0 AND speed(miles, minutes) > 50
    WHERE minutes > 0 AND "speed if"((minutes > 0) IS NOT FALSE, miles, minutes) > 50

DataFusion computes what stands in AND, OR, CASE and COALESCE for more rows than reach it, and conditions of WHERE
before joins. A call with a condition is made for the rows for which that is true, and is null elsewhere. In WHERE that
is all that comes before the call: conditions of inner joins, those that neither call nor can fail, and those before it.
DataFusion would call a function of constants with one row, whatever reaches it: `random() >= 0` is there for each row.
HAVING and QUALIFY count rows, so that DataFusion computes them where they stand.

Assumes: the text is right, as in `parsing`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..datafusion.tokens import Token, quoted
from ..datafusion.whole import guarded_name, once_name
from .clauses import clauses_in
from .diagnostics import check_meaning
from .expressions import COALESCE, CallExpression, Case, Expression, Logic, Operation, Subquery, conjuncts
from .functions import PlannedUdf
from .over import is_sliding, over_of
from .parsing import parsed
from .selects import Item, Star, from_of, items_of
from .steps import check_aggregate, check_arguments
from .table_calls import BESIDE_JOIN, in_whole
from .text import Text, Tokens, Unending, Wrong, closing, leveled

_LONGEST = 1 << 16  # characters of a condition; that of a call in a row of calls is twice as long as the one before
_FOR_EACH_ROW = "random() >= 0"
_RANDOM = {"random", "rand", "uuid"}
_NO_EXPRESSIONS = {"from", "join", "with", "using", "window", "fetch"}
_SELECTS = {"select", "distinct", "all"}
_CONDITIONS = {"where", "on", "having", "qualify"}
_COUNTED = {"having": "count(*)", "qualify": "count(*) OVER ()"}
_JOINS = {"inner", "left", "right", "full", "outer", "cross", "natural", "semi", "anti"}


@dataclass
class _Around:
    """The SELECT around an expression. grouped: what its GROUP BY, or ORDER BY, has. names: those of its own tables and
    columns, if it is in the place of one value. joined: conditions of its joins that hold for all its rows."""

    grouped: Collection[str]
    names: Collection[str] | None
    joined: dict[Expression, str] = field(default_factory=dict)


class Guarded:
    """udfs: that a query may call. grouping: functions that have one value for many rows. tables: names for queries
    behind FROM, by the place of their first token. columns: of each table."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        grouping: Collection[str],
        tables: Mapping[int, str],
        columns: Mapping[str, Collection[str]],
    ) -> None:
        self._text, self._tables, self._columns = text, tables, columns
        self._udfs = {name: udf for name, udf in udfs.items() if not udf.is_aggregate}
        self._aggregates = {name: udf for name, udf in udfs.items() if udf.is_aggregate}
        self._grouping = {*grouping, *self._aggregates}
        self._around = _Around(set(), None)

    def query(self, part: Tokens, is_value: bool = False) -> str:
        """A query, from its first token to its last. is_value: it is in the place of one value. Raises Wrong."""
        written, done = [], part[0].start
        clauses = list(clauses_in(part))
        grouped = {
            parsed(key).normal({}) for word, clause in clauses if word == "by" for key, _ in _parts(word, clause)
        }
        outer, self._around = self._around, _Around(grouped, self._names_in(clauses) if is_value else None)
        every = _group_by_all(part)
        kind, items = "", part[:0]
        for number, (word, clause) in enumerate(clauses):
            if clause and clause[0].start < done:  # it is part of a FROM that has been written
                continue
            items = clause if word in _SELECTS else items
            if every is not None and clause and clause[0].start > every.start:
                written += [self._text.text[done : every.start], self._keys(part, every)]
                done, every = every.end, None
            if word == "select" or (word == "join" and kind in ("right", "full")):
                self._around.joined = {}
            elif word == "join":  # a name without a table may be one of the next table, too
                joined = self._around.joined
                self._around.joined = {column: text for column, text in joined.items() if _is_qualified(column)}
            if word == "from" and (called := self._called(relations := _relations(part, clauses[number:]), items)):
                written += [self._text.text[done : relations[0].start], called]
                done = relations[-1].end
                continue
            for inner, is_expression in _parts(word, clause):
                text = self._clause(word, parsed(inner), kind) if is_expression else self._bracketed(inner)
                written += [self._text.text[done : inner[0].start], text]
                done = inner[-1].end
            kind = _kind(clause) if word in ("from", "join", "on", "using") else kind
        self._around = outer
        if every is not None:
            written += [self._text.text[done : every.start], self._keys(part, every)]
            done = every.end
        return "".join([*written, self._text.text[done : part[-1].end]])

    def _called(self, relations: Tokens, items: Tokens) -> str | None:
        """What stands behind FROM, if functions of plugins give rows there. items: of the SELECT."""
        tables = {name for name, udf in self._udfs.items() if udf.function.kind == "table"}
        pairs = itertools.pairwise(token for _, token, depth in leveled(relations) if depth < 2)
        if not any((token.name or "").lower() in tables and after.text == "(" for token, after in pairs):
            return None
        for item, _ in _parts("select", items):
            if item[0].text == "*" or [token.text for token in item[1:3]] == [".", "*"]:
                raise Wrong("a * is not for rows of a function here: write the columns", item[0].start)
        try:
            relation, joins = from_of(relations, relations[0].start)
        except Unending as error:
            raise Wrong(BESIDE_JOIN, error.at) from None
        first = [token for token in relations if token.start < joins[0].at] if joins else relations
        name = self._tables.get(first[1].start, "") if relation.name is None else relation.name
        columns = self._columns.get(name, ())
        text = self._bracketed(first)
        return in_whole(relation, joins, self._udfs, text, columns, lambda call: self._written(call, ()))

    def _clause(self, word: str, expression: Expression, kind: str) -> str:
        """word: of its clause. kind: of the join, if it is ON's."""
        check_meaning(self._text, [expression])
        for call in expression.calls_of(self._aggregates):
            check_aggregate(call, self._aggregates[call.name])
            if call.over is not None and (over := over_of(call)) is not None and is_sliding(over):
                reason = f"{call.name} cannot take rows out of a frame: write ROWS BETWEEN UNBOUNDED PRECEDING AND ..."
                raise Wrong(reason, over.frame[0].start)
        if word not in _CONDITIONS:
            return self._written(expression, ())
        parts, texts = conjuncts(expression), dict[Expression, str]()
        plain = [condition for condition in parts if self._is_plain(condition)]
        for condition in parts:
            guards = [*self._around.joined.values()] if word in ("where", "on") else []
            if self._are_called([condition]):
                before = [other for other in parts if (other in plain or other in texts) and self._may_guard(other)]
                guards += [self._decided(other, texts.get(other) or self._text.cut(other.part)) for other in before]
            texts[condition] = self._written(condition, guards)
        if word == "on" and kind in ("inner", ""):
            self._around.joined |= {
                condition: self._decided(condition, texts[condition])
                for condition in plain
                if self._may_guard(condition)
            }
        text = expression.text(self._text, texts)
        is_moved = word in _COUNTED and self._udfs
        return f"CASE WHEN {_COUNTED[word]} >= 0 THEN ({text}\n) END" if is_moved else text

    def _names_in(self, clauses: Sequence[tuple[str, Tokens]]) -> set[str]:
        """Of tables and columns."""
        tables = {token.name for word, clause in clauses if word in ("from", "join") for token in clause if token.name}
        return tables.union(*(self._columns.get(table, ()) for table in tables))

    def _may_guard(self, condition: Expression) -> bool:
        """DataFusion has no query for a value in which a call would read columns of the query around it."""
        names = self._around.names
        return names is None or all(column.path[0] in names for column in condition.columns)

    def _is_plain(self, condition: Expression) -> bool:
        """Whether it decides before calls, wherever it stands."""
        is_query = any(isinstance(node, Subquery) for node in condition.nodes())
        is_called = self._are_called([condition])
        return not (is_query or is_called or condition.may_fail or condition.is_volatile(self._udfs))

    def _keys(self, part: Tokens, every: Token) -> str:
        """What GROUP BY ALL means: the items that are no aggregates. every: the word."""
        items = items_of(part)
        if items is None or any(isinstance(item, Star) for item in items):
            raise Wrong("GROUP BY ALL needs items that are written: write the columns instead of *", every.start)
        keys = [
            str(place)
            for place, item in enumerate(items, 1)
            if isinstance(item, Item) and not item.expression.calls_of(self._grouping)
        ]
        return ", ".join(keys) or "()"

    def _bracketed(self, part: Tokens, is_value: bool = False) -> str:
        """A part that is no expression: what is in its brackets is a query, or none of them is looked at."""
        written, done, place = [], part[0].start, 0
        while place < len(part):
            end = closing(part, place) if part[place].text == "(" else place
            inner = part[place + 1 : end]
            if inner and inner[0].start in self._tables:
                written += [self._text.text[done : part[place].start], quoted(self._tables[inner[0].start])]
                done = part[end].end
            elif is_query(inner) or (inner and inner[0].text == "("):
                written += [self._text.text[done : inner[0].start], self.query(inner, is_value)]
                done = inner[-1].end
            place = end + 1
        return "".join([*written, self._text.text[done : part[-1].end]])

    # ---- Expressions ----

    def _written(self, node: Expression, guards: Sequence[str], is_value: bool = True) -> str:
        """guards: conditions of the rows that reach it. is_value: as of `query`."""
        if isinstance(node, Subquery):
            return self._bracketed(node.part, is_value)
        if not any(isinstance(child, Subquery) or self._is_udf(child) for child in node.nodes()):
            return self._text.cut(node.part)
        if isinstance(node, Logic):
            return self._logic(node, guards)
        if isinstance(node, Case) and node.branches:
            return self._case(node, guards)
        if not isinstance(node, CallExpression):
            is_value = not (isinstance(node, Operation) and node.operators[0] == "in")
            return node.text(self._text, {child: self._written(child, guards, is_value) for child in node.children})
        if node.name in ("exists", "any", "all", "some"):
            return node.text(self._text, {child: self._written(child, guards, False) for child in node.children})
        if node.name in COALESCE:
            return self._coalesce(node, guards)
        if self._is_udf(node):
            return self._call(node, guards)
        own = list(guards)
        if node.name in self._grouping or node.over is not None:
            own = [] if node.filter is None else [f"({self._written(node.filter, ())}) IS TRUE"]
        texts = {child: self._written(child, () if child is node.filter else own) for child in node.children}
        return node.text(self._text, texts)

    def _is_udf(self, node: Expression) -> bool:
        return isinstance(node, CallExpression) and node.name in self._udfs

    def _differs(self, argument: Expression) -> bool:
        """Whether it may have another value in another row."""
        is_query = any(isinstance(child, Subquery) for child in argument.nodes())
        return is_query or bool(argument.columns) or self._is_drawn(argument)

    def _is_drawn(self, node: Expression) -> bool:
        """Whether it has another value each time."""
        own = (self._udfs[call.name].is_once for call in node.calls_of(self._udfs))
        return not all(own) or bool(node.calls_of(_RANDOM))

    def _are_called(self, nodes: Sequence[Expression]) -> bool:
        """Whether any function is, in some of these."""
        return any(self._is_udf(child) for node in nodes for child in node.nodes())

    def _call(self, node: CallExpression, guards: Sequence[str]) -> str:
        check_arguments(node, self._udfs[node.name])
        if node.over is not None or node.filter is not None:
            raise Wrong(f"{node.name} has one value for each row: leave OVER and FILTER out", node.start)
        if node.normal({}) in self._around.grouped:  # each group has it already
            guards = ()
        arguments = [self._written(argument, guards) for argument in node.arguments]
        is_constant = not any(map(self._differs, node.arguments))
        if not guards and not is_constant:
            return f"{quoted(node.name)}({', '.join(arguments)})"
        condition = " AND ".join(dict.fromkeys([_FOR_EACH_ROW, *guards] if is_constant else guards))
        if guards:
            arguments = [
                f"CASE WHEN {condition} THEN {text}\nEND" if argument.may_fail else text
                for argument, text in zip(node.arguments, arguments, strict=True)
            ]
        if len(condition) > _LONGEST:
            raise Wrong(f"too much decides about this call of {node.name}: compute it in a view", node.start)
        is_once = is_constant and self._udfs[node.name].is_once
        name = once_name(node.name) if is_once else guarded_name(node.name)
        return f"{quoted(name)}({', '.join([condition, *arguments])})"

    def _decided(self, node: Expression, text: str, test: str = "IS TRUE") -> str:
        """A condition, from what an expression is. It is computed again, so it must be the same again."""
        if self._is_drawn(node):
            raise Wrong("this decides about a call, and is another value each time: compute it in a view", node.start)
        return f"({text}\n) {test}"

    def _logic(self, node: Logic, guards: Sequence[str]) -> str:
        undecided = "IS NOT FALSE" if node.word == "and" else "IS NOT TRUE"
        own, texts = list(guards), []
        for operand in node.children:
            texts.append(self._written(operand, own))
            if self._are_called(node.children[len(texts) :]):
                own.append(self._decided(operand, texts[-1], undecided))
        return node.text(self._text, dict(zip(node.children, texts, strict=True)))

    def _coalesce(self, node: CallExpression, guards: Sequence[str]) -> str:
        own, texts = list(guards), []
        for argument in node.arguments:
            texts.append(self._written(argument, own))
            if self._are_called(node.arguments[len(texts) :]):
                own.append(self._decided(argument, texts[-1], "IS NULL"))
        return node.text(self._text, dict(zip(node.arguments, texts, strict=True)))

    def _case(self, node: Case, guards: Sequence[str]) -> str:
        own, texts = list(guards), {}
        operand = ""
        if node.operand is not None:
            operand = texts[node.operand] = self._written(node.operand, own)
            self._decided(node.operand, operand, "")
        for when, then in node.branches:
            condition = texts[when] = self._written(when, own)
            if operand:
                condition = f"({operand}\n) = ({condition}\n)"
            reached = self._decided(when, condition, "IS TRUE")
            texts[then] = self._written(then, [*own, reached])
            own.append(self._decided(when, condition, "IS NOT TRUE"))
        if node.otherwise is not None:
            texts[node.otherwise] = self._written(node.otherwise, own)
        return node.text(self._text, texts)


def _group_by_all(part: Tokens) -> Token | None:
    """The word ALL."""
    for place, token, depth in leveled(part):
        words = [before.word for before in part[max(0, place - 2) : place]]
        if not depth and token.word == "all" and words == ["group", "by"]:
            return token
    return None


def is_query(part: Tokens) -> bool:
    return bool(part) and part[0].word in ("select", "with")


def queries_behind_from(part: Tokens) -> Iterator[Tokens]:
    """The queries that a query selects from, without their brackets: not those below them, nor those in expressions."""
    for word, clause in clauses_in(part):
        if word in ("from", "join"):
            for inner, _ in _parts(word, clause):
                query = inner[1 : closing(inner, 0)] if inner[0].text == "(" else ()
                if is_query(query):
                    yield query


def _relations(part: Tokens, clauses: Sequence[tuple[str, Tokens]]) -> Tokens:
    """What stands behind FROM. clauses: from there on."""
    own = itertools.takewhile(lambda pair: pair[0] in ("from", "join", "on", "using"), clauses)
    start, end = clauses[0][1][0].start, [clause for _, clause in own if clause][-1][-1].end
    return [token for token in part if start <= token.start < end]


def _is_qualified(condition: Expression) -> bool:
    return all(len(column.path) > 1 for column in condition.columns)


def _kind(clause: Tokens) -> str:
    """Of the join behind a clause, whose words are its last ones."""
    return clause[_end(clause)].word if _end(clause) < len(clause) else ""


def _end(clause: Tokens) -> int:
    end = len(clause)
    while end and clause[end - 1].word in _JOINS:
        end -= 1
    return end


def _parts(word: str, clause: Tokens) -> Iterator[tuple[Tokens, bool]]:
    """The expressions of a clause, or its relations; with whether they are expressions."""
    is_expression = word not in _NO_EXPRESSIONS and word != ""
    clause = clause[: _end(clause)] if word == "on" else clause
    start = 0
    for place, token, depth in leveled(clause):
        if not depth and token.text == ",":
            if start < place:
                yield clause[start:place], is_expression
            start = place + 1
    if start < len(clause):
        yield clause[start:], is_expression
