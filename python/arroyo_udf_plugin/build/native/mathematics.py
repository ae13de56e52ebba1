"""Functions of the module `math`. They call the C library's, as Python does; what is not finite is deferred, because
Python raises there, or has rules of its own."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import FunctionBuilder
from .numbers import as_float
from .values import NUMBERS, Kind, NotNative, Value, as_integer

# Name -> how many arguments; each is a function of native_numbers.h that may defer.
_FUNCTIONS = {
    **dict.fromkeys(("sqrt", "exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("asinh", "acosh", "atanh", "log", "log2", "log10", "log1p"), 1),
    **dict.fromkeys(("pow", "fmod", "atan2"), 2),
}
_TO_INTEGER = {"floor": "native_floor", "ceil": "native_ceil", "trunc": "native_truncate"}
_TESTS = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}


def called(on: FunctionBuilder, name: str, values: Sequence[Value], line: int) -> Value:
    """A call of `math.name`."""
    values = [on.required(value, line) for value in values]
    if not all(value.kind in NUMBERS for value in values):
        raise NotNative(f"the call of `math.{name}` with what is no number", line)
    numbers = [on.kept(as_integer(value) if value.kind is Kind.BOOL else value) for value in values]
    floats = [as_float(value) for value in numbers]
    if name == "log" and len(values) == 2:
        one, other = (on.code.checked(Kind.FLOAT, f"native_math_log({value}") for value in floats)
        return on.code.checked(Kind.FLOAT, f"native_divide_float({one.code}, {other.code}")
    if _FUNCTIONS.get(name) == len(values):
        return on.code.checked(Kind.FLOAT, f"native_math_{name}({', '.join(floats)}")
    if len(values) == 2 and name == "copysign":
        on.code.defer_if(f"isnan({floats[1]})")
        return on.code.result(Kind.FLOAT, f"copysign({floats[0]}, {floats[1]})")
    if len(values) == 1 and name in _TO_INTEGER:
        if numbers[0].kind is Kind.INT:
            return numbers[0]
        return on.code.checked(Kind.INT, f"{_TO_INTEGER[name]}({floats[0]}")
    if len(values) == 1 and name in _TESTS:
        return on.code.result(Kind.BOOL, f"{_TESTS[name]}({floats[0]}) != 0")
    if len(values) == 1 and name == "fabs":
        return on.code.result(Kind.FLOAT, f"fabs({floats[0]})")
    if len(values) == 1 and name in ("radians", "degrees"):
        return on.code.result(Kind.FLOAT, f"{floats[0]} * NATIVE_{name.upper()}")
    raise NotNative(f"the call of `math.{name}`", line)
