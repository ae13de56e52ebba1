"""`==`, which any two values have."""

from __future__ import annotations

from . import numbers
from .builder import FunctionBuilder
from .values import NUMBERS, Kind, Value


def equal(on: FunctionBuilder, one: Value, other: Value, line: int) -> str:
    """C for `==`, which any two values have."""
    nulls = [value.is_null for value in (one, other) if value.is_null]
    if Kind.NONE in (one.kind, other.kind):
        if one.kind is other.kind:
            return "true"
        return f"({nulls[0]})" if nulls else "false"
    if one.kind is other.kind is Kind.TEXT:
        code = f"native_equal({one.code}, {other.code})"
    elif one.kind in NUMBERS and other.kind in NUMBERS:
        guard = [f"({null})" for null in nulls]
        code = numbers.compared(on, "==", one.required(), other.required(), " || ".join(guard))
    elif one.kind is other.kind:
        code = f"{one.code} == {other.code}"
    else:
        code = "false"
    if len(nulls) == 2:
        return f"({nulls[0]} || {nulls[1]} ? {nulls[0]} == {nulls[1]} : {code})"
    return f"(!{nulls[0]} && {code})" if nulls else f"({code})"
