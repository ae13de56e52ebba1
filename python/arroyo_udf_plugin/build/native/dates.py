"""Dates, datetimes without a time zone, and timedeltas: fields, methods, differences, constructors.

A date is an int64 of days since 1970 in C, the others are microseconds. The C functions are in native_dates.h.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .builder import FunctionBuilder
from .values import TIMES, Kind, NotNative, Value

METHODS = ("weekday", "isoweekday", "toordinal", "isoformat", "date", "total_seconds")
_OF_DAYS = ("year", "month", "day")
_OF_TIMES = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "microsecond": 1}
_MOST = {"hour": 24, "minute": 60, "second": 60, "microsecond": 1_000_000}
_UNITS = {"days": 86_400_000_000, "seconds": 1_000_000, "microseconds": 1, "milliseconds": 1000,
          "minutes": 60_000_000, "hours": 3_600_000_000, "weeks": 604_800_000_000}  # fmt: skip
_PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def attribute(on: FunctionBuilder, value: Value, name: str, line: int) -> Value:
    """`value.name`, such as `day.month`."""
    value = on.required(value, line)
    if value.kind in (Kind.DATE, Kind.DATETIME) and name in _OF_DAYS:
        return on.code.result(Kind.INT, f"native_{name}({_days(value)})")
    if value.kind is Kind.DATETIME and name in _OF_TIMES:
        whole = f"native_floor_of({value.code}, {_OF_TIMES[name]})"
        return on.code.result(Kind.INT, f"native_rest_of({whole}, {_MOST[name]})")
    if value.kind is Kind.DELTA:
        if name == "days":
            return on.code.result(Kind.INT, _days(value))
        of_day = f"native_rest_of({value.code}, NATIVE_DAY)"
        if name == "seconds":
            return on.code.result(Kind.INT, f"{of_day} / NATIVE_SECOND")
        if name == "microseconds":
            return on.code.result(Kind.INT, f"{of_day} % NATIVE_SECOND")
    raise NotNative(f"`.{name}` of {value.kind.value}", line)


def _days(value: Value) -> str:
    return value.code if value.kind is Kind.DATE else f"native_floor_of({value.code}, NATIVE_DAY)"


def method(on: FunctionBuilder, value: Value, name: str, line: int) -> Value:
    """A call of a method without arguments, one of METHODS."""
    value = on.required(value, line)
    if value.kind is Kind.DELTA and name == "total_seconds":
        return on.code.checked(Kind.FLOAT, f"native_divide({value.code}, NATIVE_SECOND")
    if value.kind in (Kind.DATE, Kind.DATETIME):
        if name in ("weekday", "isoweekday"):
            return on.code.result(Kind.INT, f"native_weekday({_days(value)}) + {int(name == 'isoweekday')}")
        if name == "toordinal":
            return on.code.result(Kind.INT, f"{_days(value)} - NATIVE_FIRST_DAY + 1")
        if name == "isoformat" and value.kind is Kind.DATE:
            return on.code.checked(Kind.TEXT, f"native_text_of_date(arena, {value.code}")
        if name == "isoformat":
            return on.code.checked(Kind.TEXT, f"native_text_of_time(arena, {value.code}, 'T'")
        if name == "date" and value.kind is Kind.DATETIME:
            return on.code.result(Kind.DATE, _days(value))
    raise NotNative(f"the call of `.{name}`", line)


def binary(on: FunctionBuilder, op: ast.operator, one: Value, other: Value, line: int) -> Value:
    """An operation of which one side at least is of TIMES, and neither is None."""
    kinds = (one.kind, other.kind)
    if isinstance(op, ast.Sub) and kinds == (Kind.DATE, Kind.DATE):
        return on.code.result(Kind.DELTA, f"({one.code} - {other.code}) * NATIVE_DAY")
    if isinstance(op, ast.Sub) and kinds == (Kind.DATETIME, Kind.DATETIME):
        return on.code.result(Kind.DELTA, f"{one.code} - {other.code}")
    if isinstance(op, ast.Add) and kinds[0] is Kind.DELTA and kinds[1] is not Kind.DELTA:
        return binary(on, op, other, one, line)
    if isinstance(op, ast.Add | ast.Sub) and other.kind is Kind.DELTA and one.kind in TIMES:
        if one.kind is Kind.DELTA:
            name = "native_add" if isinstance(op, ast.Add) else "native_subtract"
        else:
            name = f"native_{one.kind.value}_{'plus' if isinstance(op, ast.Add) else 'minus'}"
        return on.code.checked(one.kind, f"{name}({one.code}, {other.code}")
    if isinstance(op, ast.Mult) and set(kinds) == {Kind.DELTA, Kind.INT}:
        return on.code.checked(Kind.DELTA, f"native_multiply({one.code}, {other.code}")
    if kinds == (Kind.DELTA, Kind.DELTA):
        if isinstance(op, ast.Div):
            return on.code.checked(Kind.FLOAT, f"native_divide({one.code}, {other.code}")
        if isinstance(op, ast.FloorDiv):
            return on.code.checked(Kind.INT, f"native_floor_divide({one.code}, {other.code}")
        if isinstance(op, ast.Mod):
            return on.code.checked(Kind.DELTA, f"native_modulo({one.code}, {other.code}")
    raise NotNative(f"{type(op).__name__} of {one.kind.value} and {other.kind.value}", line)


def made(on: FunctionBuilder, name: str, node: ast.Call) -> Value:
    """A call of one of DATETIME_CLASSES. Raises NotNative for arguments that are no integers."""
    line = node.lineno
    names = list(_UNITS) if name == "timedelta" else list(_PARTS[: 3 if name == "date" else 7])
    if len(node.args) > len(names) or any(isinstance(one, ast.Starred) for one in node.args):
        raise NotNative(f"this call of `{name}`", line)
    given: dict[str, Value] = {}
    pairs = [*zip(names, node.args, strict=False), *((one.arg or "", one.value) for one in node.keywords)]
    for argument, expression in pairs:
        if argument not in names or argument in given:
            raise NotNative(f"this call of `{name}`", line)
        given[argument] = on.kept(_whole(on, on.expression(expression), line))
    if name == "timedelta":
        total = on.constant(0, line)
        for argument, value in given.items():
            part = on.code.checked(Kind.INT, f"native_multiply({value.code}, INT64_C({_UNITS[argument]})")
            total = on.code.checked(Kind.INT, f"native_add({total.code}, {part.code}")
        return Value(Kind.DELTA, total.code)
    if not given.keys() >= set(_OF_DAYS):
        raise NotNative(f"this call of `{name}`", line)
    codes = ", ".join(given[one].code if one in given else "0" for one in names)
    return on.code.checked(Kind.DATE if name == "date" else Kind.DATETIME, f"native_{name}({codes}")


def _whole(on: FunctionBuilder, value: Value, line: int) -> Value:
    """An INT alone: Python refuses other numbers here, or rounds them."""
    value = on.required(value, line)
    if value.kind is not Kind.INT:
        raise NotNative(f"{value.kind.value} instead of int", line)
    return value


def from_ordinal(on: FunctionBuilder, arguments: Sequence[ast.expr], line: int) -> Value:
    """`date.fromordinal(n)`."""
    if len(arguments) != 1:
        raise NotNative("this call of `date.fromordinal`", line)
    return on.code.checked(Kind.DATE, f"native_fromordinal({_whole(on, on.expression(arguments[0]), line).code}")
