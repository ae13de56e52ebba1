"""Conditions that say how far the event times of two tables are from each other.

    b.at BETWEEN a.at - INTERVAL '5 minutes' AND a.at + INTERVAL '1 hour'      5 minutes before to 1 hour behind a.at
    b.at >= a.at AND b.at - a.at < INTERVAL '1 hour'

Each side of a comparison is a sum of event times and intervals. What is found bounds which rows may meet, and so what
must be remembered; the condition itself is DataFusion's to answer. So a bound may be wider than what is written: where
strict and not, it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..datafusion.feed import context
from .expressions import Column, Expression, Operation, conjuncts
from .text import Text, Unending

Times = Mapping[str, tuple[int, int]]
"""As of `Node.times`."""

DAY = 86_400_000_000_000  # nanoseconds
LONGEST = 11_574 * DAY  # that of operators, in whole days
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Bounds:
    """Of the right row's event time less the left one's, in nanoseconds. None: there is none."""

    lower: int | None = None
    upper: int | None = None

    def and_(self, other: Bounds) -> Bounds:
        lowers = [bound for bound in (self.lower, other.lower) if bound is not None]
        uppers = [bound for bound in (self.upper, other.upper) if bound is not None]
        return Bounds(max(lowers, default=None), min(uppers, default=None))


class Intervals:
    """What conditions say about two tables. meant: the column of the joined row that a name means; None: there is none.
    left, right: the times of both sides, by these columns."""

    def __init__(self, text: Text, meant: Callable[[Column], str | None], left: Times, right: Times) -> None:
        self._text, self._meant, self._left, self._right = text, meant, left, right

    def of(self, on: Expression) -> Bounds:
        """Raises Unending for months."""
        bounds = Bounds()
        for condition in conjuncts(on):
            for first, operator, other in _comparisons(condition):
                bounds = bounds.and_(self._bounds(first, operator, other))
        return bounds

    def _bounds(self, first: Expression, operator: str, other: Expression) -> Bounds:
        sum_, other_sum = self._sum(first), self._sum(other)
        if sum_ is None or other_sum is None:
            return Bounds()
        (columns, constant), (others, further) = sum_, other_sum
        difference = {name: columns.get(name, 0) - others.get(name, 0) for name in {*columns, *others}}
        signs = {name: sign for name, sign in difference.items() if sign}
        left = next((name for name in signs if name in self._left), "")
        right = next((name for name in signs if name in self._right), "")
        if len(signs) != 2 or sorted(signs.values()) != [-1, 1] or not left or not right:
            return Bounds()
        bound = further - constant  # sign * (right - left) operator bound
        if signs[right] < 0:
            bound, operator = -bound, _TURNED[operator]
        (left_least, left_most), (right_least, right_most) = self._left[left], self._right[right]
        return Bounds(
            bound + right_least - left_most if operator in (">", ">=", "=") else None,
            bound + right_most - left_least if operator in ("<", "<=", "=") else None,
        )

    def _sum(self, expression: Expression) -> tuple[dict[str, int], int] | None:
        """How often it has each time, and the nanoseconds besides. None: it is something else."""
        bare = expression.bare
        if isinstance(bare, Column):
            name = self._meant(bare)
            return ({name: 1}, 0) if name is not None and (name in self._left or name in self._right) else None
        if not bare.columns:
            length = self._length(bare)
            return None if length is None else ({}, length)
        if isinstance(bare, Operation) and bare.operators in (("+",), ("-",)) and len(bare.children) == 2:
            first, other = map(self._sum, bare.children)
            if first is not None and other is not None:
                sign = 1 if bare.operators == ("+",) else -1
                names = {*first[0], *other[0]}
                columns = {name: first[0].get(name, 0) + sign * other[0].get(name, 0) for name in names}
                return columns, first[1] + sign * other[1]
        return None

    def _length(self, expression: Expression) -> int | None:
        """Of an interval, in nanoseconds. None: it is none."""
        if not any(token.word == "interval" for token in expression.part):
            return None
        try:
            interval = context().sql(f"SELECT {self._text.cut(expression.part)}").to_arrow_table().column(0)[0]
        except Exception:
            return None  # whoever plans the condition says what is wrong
        if interval.type != pa.month_day_nano_interval() or interval.as_py() is None:
            return None
        months, days, nanoseconds = interval.as_py()
        if months:
            raise Unending("months have no length: write days", expression.start)
        return int(days * DAY + nanoseconds)


def _comparisons(condition: Expression) -> Iterator[tuple[Expression, str, Expression]]:
    bare = condition.bare
    if not isinstance(bare, Operation):
        return
    (operator,), children = bare.operators, bare.children
    if operator in _TURNED and len(children) == 2:
        yield children[0], operator, children[1]
    elif operator == "between" and len(children) == 3 and bare.part[len(children[0].part)].word == "between":
        yield children[0], ">=", children[1]
        yield children[0], "<=", children[2]


def behind(times: Times, least: int, columns: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Times of rows whose new event time is up to `least` nanoseconds behind their own. columns: their new names."""
    return {columns[name]: (low, high + least) for name, (low, high) in times.items() if name in columns}


def example(left: Sequence[str], right: Sequence[str]) -> str:
    """A condition on the event times of two tables; each: the names of the table and the column."""
    left_column, other = ".".join(left), ".".join(right)
    return f"{other} BETWEEN {left_column} - INTERVAL '1 hour' AND {left_column} + INTERVAL '1 hour'"
