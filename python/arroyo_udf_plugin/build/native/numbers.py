"""Numbers: literals, operators, comparisons and the builtin functions of BOOL, INT and FLOAT.

An INT is an int64 here; whatever goes beyond is deferred. The C functions are in native_numbers.h.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence

from .builder import FunctionBuilder
from .code import raised
from .values import NUMBERS, Kind, NotNative, Value, as_integer

BUILTINS = ("abs", "bool", "float", "int", "max", "min", "ord", "pow", "round", "str")
_CHECKED = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.FloorDiv: "floor_divide", ast.Mod: "modulo",
            ast.LShift: "shift_left", ast.RShift: "shift_right", ast.Pow: "power"}  # fmt: skip
_BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_PLAIN = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_DIVISIONS = {ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
          ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@"}  # fmt: skip


def as_float(value: Value) -> str:
    """C of a number as a double; Python rounds an int in the same way."""
    return value.code if value.kind is Kind.FLOAT else f"(double)({value.code})"


def unary(on: FunctionBuilder, op: ast.unaryop, value: Value, line: int) -> Value:
    """`-x`, `+x`, `~x`."""
    value = on.required(value, line)
    if value.kind is Kind.DELTA and isinstance(op, ast.USub):
        return on.code.checked(Kind.DELTA, f"native_subtract(0, {value.code}")
    if value.kind not in NUMBERS:
        raise NotNative(f"a sign before {value.kind.value}", line)
    if value.kind is Kind.BOOL:
        value = as_integer(value)
    if isinstance(op, ast.UAdd):
        return value
    if value.is_constant and isinstance(op, ast.USub) and isinstance(value.constant, int | float):
        return on.constant(-value.constant, line)
    if value.kind is Kind.FLOAT:
        if isinstance(op, ast.USub):
            return on.code.result(Kind.FLOAT, f"-{value.code}")
        raise NotNative("`~` of float", line)
    if isinstance(op, ast.Invert):
        return on.code.result(Kind.INT, f"~{value.code}")
    return on.code.checked(Kind.INT, f"native_subtract(0, {value.code}")


def binary(on: FunctionBuilder, op: ast.operator, one: Value, other: Value, line: int) -> Value:
    """An operation of two numbers, neither of which is None."""
    if isinstance(op, tuple(_BITS)):
        sign = _BITS[type(op)]
        if Kind.FLOAT in (one.kind, other.kind):
            raise NotNative(f"`{sign}` of float", line)
        kind = Kind.BOOL if one.kind is other.kind is Kind.BOOL else Kind.INT
        return on.code.result(kind, f"{one.code} {sign} {other.code}")
    if one.kind is Kind.BOOL:
        one = as_integer(one)
    if other.kind is Kind.BOOL:
        other = as_integer(other)
    if isinstance(op, ast.Div):
        name = "divide" if one.kind is other.kind is Kind.INT else "divide_float"
        pair = (one.code, other.code) if name == "divide" else (as_float(one), as_float(other))
        return on.code.checked(Kind.FLOAT, f"native_{name}({pair[0]}, {pair[1]}", _by_zero(on, op, one, other))
    if Kind.FLOAT not in (one.kind, other.kind):
        return _of_integers(on, op, one, other, line)
    if isinstance(op, tuple(_PLAIN)):
        return on.code.result(Kind.FLOAT, f"{as_float(one)} {_PLAIN[type(op)]} {as_float(other)}")
    if isinstance(op, ast.FloorDiv | ast.Mod | ast.Pow):
        call = f"native_{_CHECKED[type(op)]}_float({as_float(one)}, {as_float(other)}"
        return on.code.checked(Kind.FLOAT, call, _by_zero(on, op, one, other))
    raise NotNative(f"`{_SIGNS[type(op)]}` of {one.kind.value} and {other.kind.value}", line)


def _of_integers(on: FunctionBuilder, op: ast.operator, one: Value, other: Value, line: int) -> Value:
    if type(op) not in _CHECKED:
        raise NotNative(f"`{_SIGNS[type(op)]}` of int and int", line)
    if isinstance(op, ast.Pow) and other.is_constant and isinstance(other.constant, int) and other.constant < 0:
        return on.code.checked(Kind.FLOAT, f"native_power_float({as_float(one)}, {as_float(other)}")
    call = f"native_{_CHECKED[type(op)]}({one.code}, {other.code}"
    return on.code.checked(Kind.INT, call, _by_zero(on, op, one, other))


def _by_zero(on: FunctionBuilder, op: ast.operator, one: Value, other: Value) -> str:
    """What Python raises for a divisor of 0."""
    divide = _DIVISIONS.get(type(op))
    if divide is None or on.facts.catches:
        return ""
    samples = {Kind.INT: (1, 0), Kind.FLOAT: (1.0, 0.0)}
    try:
        divide(samples[one.kind][0], samples[other.kind][1])
    except ZeroDivisionError as error:
        return raised(error, f"{other.code} == 0")
    return ""


def compared(on: FunctionBuilder, sign: str, one: Value, other: Value, unless: str = "") -> str:
    """C for a comparison of numbers. An int and a float are compared exactly. unless: where nobody reads the answer."""
    if Kind.FLOAT not in (one.kind, other.kind) or one.kind is other.kind:
        return f"({one.code} {sign} {other.code})"
    for value in (one, other):
        if value.kind is Kind.INT and not (isinstance(value.constant, int) and abs(value.constant) <= 2**53):
            is_exact = f"native_is_exact({value.code})"
            on.code.defer_if(f"!({unless}) && !{is_exact}" if unless else f"!{is_exact}")
    return f"({as_float(one)} {sign} {as_float(other)})"


def builtin(on: FunctionBuilder, name: str, values: Sequence[Value], line: int) -> Value:
    """A call of one of Python's own functions."""
    values = [on.required(value, line) for value in values]
    count = len(values)
    if name in ("min", "max") and count > 1:
        return _extreme(on, name, values, line)
    if name == "pow" and all(value.kind in NUMBERS for value in values) and count == 2:
        return binary(on, ast.Pow(), values[0], values[1], line)
    if name == "round" and count in (1, 2):
        return _rounded(on, values, line)
    if name == "bool" and count == 1:
        return on.code.result(Kind.BOOL, on.truth(values[0], line))
    if count == 1 and values[0].kind is Kind.TEXT:
        return _of_text(on, name, values[0], line)
    if count == 1 and name == "str" and values[0].kind in (*NUMBERS, Kind.DATE, Kind.DATETIME):
        return on.code.checked(Kind.TEXT, f"native_text_of_{values[0].kind.value}(arena, {values[0].code}")
    if count == 1 and values[0].kind in NUMBERS:
        (value,) = values
        if name == "abs":
            if value.kind is Kind.FLOAT:
                return on.code.result(Kind.FLOAT, f"fabs({value.code})")
            return on.code.checked(Kind.INT, f"native_absolute((int64_t)({value.code})")
        if name == "int":
            if value.kind is Kind.FLOAT:
                return on.code.checked(Kind.INT, f"native_truncate({value.code}")
            return as_integer(value) if value.kind is Kind.BOOL else value
        if name == "float":
            return value if value.kind is Kind.FLOAT else on.code.result(Kind.FLOAT, as_float(value))
    raise NotNative(f"the call of `{name}` with {', '.join(value.kind.value for value in values) or 'nothing'}", line)


def _of_text(on: FunctionBuilder, name: str, value: Value, line: int) -> Value:
    if name == "str":
        return value
    if name in ("int", "ord"):
        return on.code.checked(Kind.INT, f"native_{name}_of_text({value.code}")
    raise NotNative(f"the call of `{name}` with str", line)


def _extreme(on: FunctionBuilder, name: str, values: Sequence[Value], line: int) -> Value:
    """The first of the smallest, as in Python: also of NaN, -0.0 and True."""
    kind = on.same_kind(values, line)
    sign = "<" if name == "min" else ">"
    best = values[0]
    for value in values[1:]:
        if kind is Kind.TEXT:
            is_better = f"native_compare({value.code}, {best.code}) {sign} 0"
        else:
            is_better = f"{value.code} {sign} {best.code}"
        best = on.code.result(kind, f"{is_better} ? {value.code} : {best.code}")
    return best


def _rounded(on: FunctionBuilder, values: Sequence[Value], line: int) -> Value:
    value = values[0]
    if value.kind not in NUMBERS:
        raise NotNative(f"`round` of {value.kind.value}", line)
    digits = values[1].constant if len(values) == 2 else None
    if len(values) == 2 and (not isinstance(digits, int) or isinstance(digits, bool) or digits < 0):
        raise NotNative("`round` with a number of digits that is not a constant, or less than 0,", line)
    if value.kind is not Kind.FLOAT:
        return as_integer(value) if value.kind is Kind.BOOL else value
    if digits is None:
        return on.code.checked(Kind.INT, f"native_round({value.code}")
    return on.code.checked(Kind.FLOAT, f"native_round_to({value.code}, {min(int(digits), 400)}")
