"""Functions as HTML, as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Protocol

import pyarrow as pa


class ShownFunction(Protocol):
    """A `Function`."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def arguments(self) -> pa.Schema: ...
    @property
    def returns(self) -> pa.DataType: ...
    @property
    def returns_nullable(self) -> bool: ...
    @property
    def documentation(self) -> str: ...


def as_html(title: str, functions: Iterable[ShownFunction]) -> str:
    """A table with a row for each function: what it takes and returns, and the first line of its documentation."""
    head = "".join(f"<th>{name}</th>" for name in ("function", "kind", "arguments", "result", ""))
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in _row(function))}</tr>" for function in functions
    )
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(function: ShownFunction) -> list[str]:
    arguments = ", ".join(f"{field.name}: {_named(field.type, field.nullable)}" for field in function.arguments)
    result = _named(function.returns, function.returns_nullable)
    return [function.name, function.kind, arguments, result, function.documentation.partition("\n")[0]]


def _named(type_: pa.DataType, nullable: bool) -> str:
    return f"{type_} or null" if nullable else str(type_)
