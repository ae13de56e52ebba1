"""A function that is tried, and the first rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pydantic

from ...functions.messages import MOST_TRIED, FunctionKind, Outcome
from ..shapes import Answer, Asked, Micros
from ..shapes.pipelines import Definition, Language

_DEEPEST = 64
"""As types of functions are."""


class TryPost(Asked):
    definition: Definition
    """Its source, with one function."""
    language: Language
    rows: Annotated[list[list[Any]], pydantic.Field(max_length=MOST_TRIED)]
    """Values in the order of the function's arguments. What JSON has not is a text: times as in RFC 3339, decimals,
    bytes in UTF-8."""
    seconds: Annotated[float, pydantic.Field(ge=0.1, le=30)] = 10
    """For all rows, and the start of the function."""

    @pydantic.field_validator("rows")
    @classmethod
    def _is_flat_enough(cls, rows: list[list[Any]]) -> list[list[Any]]:
        level: Sequence[Any] = [value for row in rows for value in row]
        for _ in range(_DEEPEST):
            level = [inner for value in level for inner in _inside(value)]
        if level:
            raise ValueError(f"a value is nested more than {_DEEPEST} deep")
        return rows


def _inside(value: Any) -> Sequence[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


class TryArgument(Answer):
    name: str
    type: str
    """As Arrow names it."""


class TryOutcome(Answer):
    outcome: Outcome
    """value: it has ended well. cancelled: it was not called, because a row before it has ended the process."""
    value: Any
    """What JSON has not is a text: times as in RFC 3339, decimals, large integers; bytes are hexadecimal."""
    error: str | None
    """With the places in the source."""
    micros: Micros | None
    """From its call to its end; null: it has not ended."""


class TryResult(Answer):
    udf_name: str | None
    """null: the definition cannot be built."""
    signature: str
    arguments: list[TryArgument]
    returns: str
    """A type, as Arrow names it."""
    kind: FunctionKind | None
    """null: it cannot be built, or loaded. A blocking function is async. A table function's value is a list of rows."""
    errors: list[str]
    """What is wrong with the definition, a value, or the function's start: then no row was called. Or with its end."""
    rows: list[TryOutcome]
    """Of an aggregate, one: all rows are one group."""
    micros: Micros
    """Of all rows, with the start of the function."""
    output: str
    """What was printed, up to 64 KiB."""
    crashed: str | None
    """How the function has ended its process, such as "SIGSEGV in f, f.py:5"."""


class SampleField(Answer):
    name: str
    type: str
    """As fields of tables have it."""


class TableSample(Answer):
    fields: list[SampleField]
    rows: list[dict[str, Any]]
    """By the names of fields. What JSON has not is a text, as in rows of a try."""
    refused: list[str]
    """Why others of the first rows cannot be read and are left out, at most ten."""
