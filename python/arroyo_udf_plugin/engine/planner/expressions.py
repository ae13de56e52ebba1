"""An expression of SQL as a tree: what its parts are, which columns they read, what they call, whether they may fail.

    CASE WHEN a > 1 THEN f(a + b) END
    Case ├── Operation >  a, 1
         └── Call f       Operation +  a, b

Each node has its range of the user's text: DataFusion gets this text, with other texts in the places of some nodes.
Nothing is ever written anew from a tree. So a tree may be coarser than DataFusion's: an expression that `parsing` does
not know is a Group of what it knows in there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..datafusion.tokens import Token
from .text import Text, Tokens, Unending

COALESCE = {"coalesce", "nvl", "ifnull"}
VOLATILE = {"random", "rand", "uuid", "now", "today", "current_timestamp", "current_date", "current_time"}
_FAILING = {"/", "%", "div", "~", "~*", "!~", "!~*", "similar", "rlike", "regexp", "at", "::"}
_SAFE_TYPES = {"text", "varchar", "string", "char"}
# Functions of DataFusion that have an answer for any values; most others may be given some that they refuse.
_SAFE = {
    *("upper", "lower", "trim", "btrim", "ltrim", "rtrim", "char_length", "character_length", "length", "octet_length"),
    *("concat", "concat_ws", "starts_with", "ends_with", "contains", "strpos", "position", "left", "right", "reverse"),
    *("substr", "substring", "split_part", "replace", "md5", "sha256", "coalesce", "nvl", "nvl2", "ifnull", "nullif"),
    *(
        "greatest",
        "least",
        "round",
        "floor",
        "ceil",
        "trunc",
        "date_trunc",
        "date_part",
        "extract",
        "date_bin",
        "to_hex",
    ),
    *("array_length", "cardinality", "array_has", "isnan", "iszero", "struct", "named_struct", "get_field", "try_cast"),
    *("in", "exists", "any", "all", "some", "random", "uuid", "now", "bit_length", "ascii", "initcap", "arrow_typeof"),
}


@dataclass(frozen=True, eq=False)
class Expression:
    """part: its tokens. children: the expressions in it, in their order."""

    part: Tokens
    children: tuple[Expression, ...] = ()

    @property
    def start(self) -> int:
        return self.part[0].start

    @property
    def end(self) -> int:
        return self.part[-1].end

    def nodes(self) -> Iterator[Expression]:
        """This one, and all below it."""
        yield self
        for child in self.children:
            yield from child.nodes()

    @cached_property
    def calls(self) -> tuple[CallExpression, ...]:
        """All calls in it, inner ones first."""
        inner = tuple(call for child in self.children for call in child.calls)
        return (*inner, self) if isinstance(self, CallExpression) else inner

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        if isinstance(self, Column):
            return (self,)
        return tuple(column for child in self.children for column in child.columns)

    @property
    def fails(self) -> bool:
        """Whether it may fail for a row by what it is itself."""
        return False

    @cached_property
    def may_fail(self) -> bool:
        """Whether it may fail for some row. Integers overflow silently, so sums and products do not fail."""
        return self.fails or any(child.may_fail for child in self.children)

    def calls_of(self, functions: Collection[str]) -> list[CallExpression]:
        """The calls of these functions."""
        return [call for call in self.calls if call.name in functions]

    def is_volatile(self, functions: Mapping[str, Any]) -> bool:
        """Whether it may have another value each time. functions: those of plugins, which say so themselves."""
        return any(
            not functions[call.name].is_once if call.name in functions else call.name in VOLATILE for call in self.calls
        )

    @property
    def bare(self) -> Expression:
        """Without the brackets around it."""
        return self

    def text(self, text: Text, others: Mapping[Expression, str]) -> str:
        """The user's text, with other texts in the places of some nodes."""
        if self in others:
            return others[self]
        written, done = [], self.start
        for child in self.children:
            written += [text.text[done : child.start], child.text(text, others)]
            done = child.end
        return "".join([*written, text.text[done : self.end]])

    def normal(self, others: Mapping[Expression, str]) -> str:
        """The same text for what is the same, whatever its layout and its brackets."""
        if self in others:
            return others[self]
        words, done = [], self.start
        for child in self.children:
            words += [_normal(token) for token in self.part if done <= token.start < child.start]
            words.append(child.normal(others))
            done = child.end
        words += [_normal(token) for token in self.part if token.start >= done]
        return " ".join(words)


def _normal(token: Token) -> str:
    return token.name if token.name is not None else token.text


class Constant(Expression):
    """A literal, or a word that is none of the others."""


class Column(Expression):
    """A column, with the names before and behind it: a, t.a, a.field"""

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(token.name or "" for token in self.part[::2])


class Group(Expression):
    """Brackets around an expression, or something else that is made of its children alone."""

    @property
    def bare(self) -> Expression:
        is_bracketed = len(self.children) == 1 and len(self.children[0].part) == len(self.part) - 2
        return self.children[0].bare if is_bracketed and self.part[0].text == "(" else self

    def normal(self, others: Mapping[Expression, str]) -> str:
        inner = self.bare
        return super().normal(others) if self in others or inner is self else f"( {inner.normal(others)} )"


@dataclass(frozen=True, eq=False)
class Operation(Expression):
    """operators: its words and signs, in lower case: of a + b, a::int, a IS NOT NULL."""

    operators: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        if not _FAILING.intersection(self.operators):
            return False
        if self.operators[0] in ("/", "%"):
            divisor = self.children[-1]
            return not (isinstance(divisor, Constant) and re.search("[1-9]", divisor.part[0].text.split("e")[0]))
        if self.operators[0] == "::":
            return not (isinstance(self.children[0], Constant) or self.part[-1].word in _SAFE_TYPES)
        if self.operators[0].lstrip("!") in ("~", "~*", "similar", "rlike", "regexp"):
            return not isinstance(self.children[-1], Constant)
        return True


class Logic(Operation):
    """Operands of AND, or of OR: `word`. Each is reached if those before it do not decide."""

    @property
    def word(self) -> str:
        return self.operators[0]


@dataclass(frozen=True, eq=False)
class CallExpression(Expression):
    """A function, with what belongs to it. name: in lower case. filter: of FILTER (WHERE ...). over: whether it has
    OVER."""

    name: str = ""
    arguments: tuple[Expression, ...] = ()
    filter: Expression | None = None
    over: Tokens | None = None

    @property
    def fails(self) -> bool:
        if self.name == "cast":
            return not (isinstance(self.arguments[0], Constant) or self.part[-2].word in _SAFE_TYPES)
        return self.name not in _SAFE


@dataclass(frozen=True, eq=False)
class Case(Expression):
    """operand: of CASE operand WHEN. branches: of WHEN and THEN."""

    operand: Expression | None = None
    branches: tuple[tuple[Expression, Expression], ...] = ()
    otherwise: Expression | None = None


class Subquery(Expression):
    """A SELECT in brackets."""


def conjuncts(expression: Expression) -> list[Expression]:
    """The operands of AND, if that is what an expression is; otherwise itself."""
    bare = expression.bare
    if isinstance(bare, Logic) and bare.word == "and":
        return [inner for child in bare.children for inner in conjuncts(child)]
    return [expression]


def without_queries(expressions: Iterable[Expression]) -> None:
    """Raises Wrong for a query in one of them."""
    for node in (node for expression in expressions for node in expression.nodes()):
        if isinstance(node, Subquery):
            at = next(token.start for token in node.part if token.word in ("select", "with"))
            raise Unending("a query inside an expression is not supported: rows pass one by one", at)
