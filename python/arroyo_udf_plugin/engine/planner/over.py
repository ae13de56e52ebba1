"""What stands behind OVER, and which rows a condition on row_number() asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .expressions import CallExpression, Column, Expression, Operation
from .parsing import parsed
from .text import Tokens, leveled, split

_FRAMES = ("rows", "range", "groups")


@dataclass(frozen=True)
class Over:
    """partition: the expressions of PARTITION BY. order: those of ORDER BY, each with the words behind it. frame: ROWS
    ... and the like. inner: all of it."""

    partition: Sequence[Expression]
    order: Sequence[tuple[Expression, tuple[str, ...]]]
    frame: Tokens
    inner: Tokens


def over_of(call: CallExpression) -> Over | None:
    """None: it has no OVER, or the name of a window."""
    over = call.over or ()
    if len(over) < 3 or over[1].text != "(":
        return None
    inner = over[2:-1]
    starts = {"partition": len(inner), "order": len(inner), "frame": len(inner)}
    for place, token, depth in leveled(inner):
        following = inner[place + 1].word if place + 1 < len(inner) else ""
        if not depth and token.word in ("partition", "order") and following == "by":
            starts[token.word] = place
        elif not depth and token.word in _FRAMES and starts["frame"] == len(inner):
            starts["frame"] = place
    stop = min(starts["order"], starts["frame"])
    partition = [parsed(part) for part in split(inner[starts["partition"] + 2 : stop], ",") if part]
    order = [_ordered(part) for part in split(inner[starts["order"] + 2 : starts["frame"]], ",") if part]
    return Over(partition, order, inner[starts["frame"] :], inner)


def is_sliding(over: Over) -> bool:
    """Whether rows leave its frame."""
    words = [token.word for token in over.frame if token.word != "between"]
    return bool(words) and words[1:3] != ["unbounded", "preceding"]


def _ordered(part: Tokens) -> tuple[Expression, tuple[str, ...]]:
    length = len(part)
    while length > 1 and part[length - 1].word in ("asc", "desc", "nulls", "first", "last"):
        length -= 1
    return parsed(part[:length]), tuple(token.word for token in part[length:])


def first_of(condition: Expression, named: Mapping[str, CallExpression], table: str) -> CallExpression | None:
    """The row_number() OVER (...) that a condition asks to be 1. named: by the name of their column, of this table."""
    bare = condition.bare
    if not isinstance(bare, Operation) or len(bare.children) != 2:
        return None
    (side, other), (operator,) = bare.children, bare.operators
    if operator in ("=", "==") and _constant(side) == "1":
        side, other = other, side
    if (operator, _constant(other)) not in {("=", "1"), ("==", "1"), ("<=", "1"), ("<", "2")}:
        return None
    inner = side.bare
    if isinstance(inner, Column):
        *tables, name = inner.path
        return named.get(name) if tables in ([], [table]) else None
    return inner if isinstance(inner, CallExpression) and is_number(inner) else None


def is_number(call: CallExpression) -> bool:
    """Whether it is row_number() OVER (...)"""
    return call.name == "row_number" and call.over is not None


def _constant(expression: Expression) -> str:
    return expression.bare.part[0].text if len(expression.bare.part) == 1 else ""
