"""Constants of a source, in C."""

from __future__ import annotations

import math

from .code import c_string
from .values import NotNative

_INT_MAX = 2**63 - 1


def integer_literal(constant: int, line: int) -> str:
    """C of an int."""
    if not -_INT_MAX <= constant <= _INT_MAX:
        raise NotNative(f"the constant {constant}, which needs more than 64 bits,", line)
    return f"INT64_C({constant})" if constant >= 0 else f"(-INT64_C({-constant}))"


def float_literal(constant: float) -> str:
    """C of a float, exactly."""
    if math.isnan(constant):
        return "((double)NAN)"
    if math.isinf(constant):
        return "((double)INFINITY)" if constant > 0 else "(-(double)INFINITY)"
    return constant.hex() if math.copysign(1, constant) > 0 else f"({constant.hex()})"


def text_literal(text: str, line: int) -> str:
    """C of a text."""
    return f"((native_text){text_initialiser(text, line)})"


def text_initialiser(text: str, line: int) -> str:
    """C of a text, for constant data."""
    try:
        return f"{{{c_string(text)}, {len(text.encode())}, {str(text.isascii()).lower()}}}"
    except UnicodeEncodeError:
        raise NotNative("a text with half of a surrogate pair", line) from None
