"""`Constant`: a parameter of a vectorised function that is one value, not an array.

    @udf(vectorized=True)
    def matches(text: pa.StringArray, pattern: Constant[str]) -> pa.BooleanArray:
        return pc.match_substring_regex(text, pattern)

Queries mostly give such an argument once, as a pattern or a unit. Where its column varies all the same, the function is
called for each run of rows with equal values (plugin/vectorized.py). Imports no pyarrow.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from .hints import optional

T = TypeVar("T")


class _Mark:
    def __repr__(self) -> str:
        return "constant"


_MARK = _Mark()
Constant: TypeAlias = Annotated[T, _MARK]
"""`Constant[str]` is a `str` for Python, and `Constant[str | None]` may be None. Elsewhere than in the parameters of a
vectorised function it is the type alone."""


class WithConstants:
    """A vectorised function with constants. nullable: by their place among the parameters, whether they may be null."""

    def __init__(self, function: Callable[..., Any], nullable: dict[int, bool]) -> None:
        self.function = function
        self.nullable = nullable

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def is_constant(hint: Any) -> bool:
    inner, _ = optional(hint)
    return typing.get_origin(inner) is Annotated and _MARK in typing.get_args(inner)


def with_constants(function: Callable[..., Any], hints: Sequence[Any]) -> Callable[..., Any]:
    """The function, marked if it has constants. hints: the annotations of its parameters."""
    nullable = {i: optional(hint)[1] for i, hint in enumerate(hints) if is_constant(hint)}
    return WithConstants(function, nullable) if nullable else function
