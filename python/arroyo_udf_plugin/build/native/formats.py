"""Formats of f-strings, by Python's mini-language, and what `str` makes of a number: native_formats.h in C."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .builder import FunctionBuilder
from .numbers import as_float
from .values import TIMES, Kind, NotNative, Value

_SPEC = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>=^]))?(?P<sign>[-+ ])?(?P<zero>0)?(?P<width>[0-9]+)?(?P<group>[,_])?"
    r"(?:\.(?P<precision>[0-9]+))?(?P<type>[a-zA-Z%])?",
    re.DOTALL,
)
_OF_INTEGERS = ("d", "x", "X")
_OF_FLOATS = ("e", "E", "f", "F", "g", "G", "%")
MOST_WIDTH = 1000
MOST_PRECISION = 100
"""Beyond these a text belongs to Python: a row has not much room."""


@dataclass(frozen=True)
class _Format:
    """As native_format in C. precision: -1: none."""

    fill: str
    align: str
    sign: str
    group: str
    type: str
    width: int
    precision: int

    def code(self) -> str:
        characters = ", ".join(str(ord(one)) if one else "0" for one in self._characters())
        return f"(native_format){{{characters}, {self.width}, {self.precision}}}"

    def _characters(self) -> tuple[str, ...]:
        return (self.fill, self.align, self.sign, self.group, self.type)


def formatted(on: FunctionBuilder, value: Value, spec: str, line: int) -> Value:
    """`{value:spec}`. Raises NotNative for a format that Python refuses, too."""
    value = on.required(value, line)
    if not spec:
        return as_text(on, value, line)
    refused = NotNative(f"the format {spec!r} of {value.kind.value}", line)
    found = _SPEC.fullmatch(spec)
    if found is None or value.kind in (Kind.BOOL, *TIMES):
        raise refused
    is_text, type_ = value.kind is Kind.TEXT, found["type"] or ""
    width, precision = int(found["width"] or 0), int(found["precision"] or -1)
    fill, align = found["fill"] or " ", found["align"] or ("<" if is_text else ">")
    zero = found["zero"] or ""
    if zero and found["fill"] is None:
        fill, align = "0", found["align"] or "="
    if width > MOST_WIDTH or precision > MOST_PRECISION or not fill.isascii():
        raise refused
    if is_text:
        if type_ not in ("", "s") or found["sign"] or found["group"] or zero or align == "=":
            raise refused
        return _put(on, value, _Format(fill, align, "-", "", "s", width, precision))
    if found["group"] and align == "=":  # Python groups the zeros, too
        raise refused
    sign, group = found["sign"] or "-", found["group"] or ""
    if value.kind is Kind.INT and type_ in ("", *_OF_INTEGERS):
        if found["precision"] or (group and type_ not in ("", "d")):
            raise refused
        return _put(on, value, _Format(fill, align, sign, group, type_ or "d", width, -1))
    if type_ in _OF_FLOATS:
        of_floats = _Format(fill, align, sign, group, type_, width, 6 if found["precision"] is None else precision)
        return _put(on, Value(Kind.FLOAT, as_float(value)), of_floats)
    if type_ or found["precision"] or group:
        raise refused
    return _put(on, value, _Format(fill, align, sign, "", "r", width, -1))


def as_text(on: FunctionBuilder, value: Value, line: int) -> Value:
    """What `str` makes of a value."""
    value = on.required(value, line)
    if value.kind is Kind.TEXT:
        return on.kept(value)
    if value.kind is Kind.DELTA:
        raise NotNative("the text of timedelta", line)
    return on.code.checked(Kind.TEXT, f"native_text_of_{value.kind.value}(arena, {value.code}")


def _put(on: FunctionBuilder, value: Value, format_: _Format) -> Value:
    return on.code.checked(Kind.TEXT, f"native_format_{value.kind.value}(arena, {value.code}, {format_.code()}")
