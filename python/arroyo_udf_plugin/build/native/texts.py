"""Texts: literals, f-strings, methods, indexes and slices of TEXT.

A text is UTF-8 in C. What needs code points, or more of Unicode than ASCII, is deferred unless the text is ASCII. The C
functions are in native_texts.h; those that make new texts take the arena of the row.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from . import formats
from .builder import FunctionBuilder
from .values import Kind, NotNative, Value

# Methods without arguments: name -> the kind of the result, and whether it makes a new text.
_PLAIN = {
    **dict.fromkeys(("lower", "upper"), (Kind.TEXT, True)),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), (Kind.TEXT, False)),
    **dict.fromkeys(("isdigit", "isdecimal", "isnumeric", "isalpha", "isalnum"), (Kind.BOOL, False)),
    **dict.fromkeys(("isspace", "isupper", "islower", "isascii"), (Kind.BOOL, False)),
}
_FIND = ("find", "rfind", "index", "rindex", "count")


def formatted(on: FunctionBuilder, parts: Sequence[ast.expr], line: int) -> Value:
    """An f-string."""
    values = []
    for part in parts:
        if isinstance(part, ast.Constant):
            values.append(on.constant(part.value, line))
        elif isinstance(part, ast.FormattedValue):
            values.append(_formatted(on, part, line))
        else:
            raise NotNative("this f-string", line)
    return concatenated(on, values)


def _formatted(on: FunctionBuilder, part: ast.FormattedValue, line: int) -> Value:
    if part.conversion not in (-1, ord("s")):
        raise NotNative("an f-string with `!r` or `!a`", line)
    match part.format_spec:
        case None | ast.JoinedStr(values=[]):
            spec = ""
        case ast.JoinedStr(values=[ast.Constant(value=str(spec))]):
            pass
        case _:
            raise NotNative("a format that is not constant", line)
    value = on.expression(part.value)
    return formats.formatted(on, value if part.conversion == -1 else formats.as_text(on, value, line), spec, line)


def concatenated(on: FunctionBuilder, values: Sequence[Value]) -> Value:
    """Texts one after the other."""
    if not values:
        return on.constant("", 0)
    if len(values) == 1:
        return values[0]
    return _joined(on, "NATIVE_EMPTY", values)


def _joined(on: FunctionBuilder, separator: str, values: Sequence[Value]) -> Value:
    parts = f"(native_text[]){{{', '.join(value.code for value in values)}}}"
    return on.code.checked(Kind.TEXT, f"native_join(arena, {separator}, {parts}, {len(values)}")


def method(on: FunctionBuilder, subject: ast.expr, name: str, arguments: Sequence[ast.expr], line: int) -> Value:
    """A call of a method of a text."""
    if name == "join" and len(arguments) == 1 and isinstance(arguments[0], ast.List | ast.Tuple):
        separator = on.kept(on.text(on.expression(subject), line))
        items = [on.kept(on.text(on.expression(one), line)) for one in arguments[0].elts]
        if not items:
            return on.constant("", line)
        return _joined(on, separator.code, items)
    text = on.kept(on.text(on.expression(subject), line))
    if name in ("startswith", "endswith") and len(arguments) == 1:
        return _starts_or_ends(on, text, name, arguments[0], line)
    values = [on.kept(on.text(on.expression(one), line)) for one in arguments]
    call = f"native_{name}({', '.join([text.code, *(value.code for value in values)])}"
    if not values and name in _PLAIN:
        kind, is_new = _PLAIN[name]
        return on.code.checked(kind, f"native_{name}({'arena, ' if is_new else ''}{text.code}")
    if len(values) == 1 and name in ("strip", "lstrip", "rstrip"):
        return on.code.checked(Kind.TEXT, f"native_{name}_of({text.code}, {values[0].code}")
    if len(values) == 1 and name in _FIND:
        return on.code.checked(Kind.INT, call)
    if len(values) == 1 and name in ("removeprefix", "removesuffix"):
        return on.code.result(Kind.TEXT, f"{call})")
    if len(values) == 2 and name == "replace":
        return on.code.checked(Kind.TEXT, f"native_replace(arena, {text.code}, {values[0].code}, {values[1].code}")
    raise NotNative(f"the call of `.{name}`", line)


def _starts_or_ends(on: FunctionBuilder, text: Value, name: str, argument: ast.expr, line: int) -> Value:
    table = on.table_of(argument)
    if table is None:
        parts = [on.text(on.expression(argument), line)]
    elif isinstance(table, tuple) and all(isinstance(one, str) for one in table):
        parts = [on.constant(one, line) for one in table]
    else:
        raise NotNative(f"this call of `.{name}`", line)
    code = " || ".join(f"native_{name}({text.code}, {part.code})" for part in parts)
    return on.code.result(Kind.BOOL, code or "false")


def item(on: FunctionBuilder, value: ast.expr, index: ast.expr, line: int) -> Value:
    """`text[i]`, `text[i:j]` or `text.split(separator)[i]`."""
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "split"
        and len(value.args) <= 1
        and not value.keywords
    ):
        text = on.kept(on.text(on.expression(value.func.value), line))
        separators = [on.kept(on.text(on.expression(one), line)) for one in value.args]
        place = on.integer(on.expression(index), line)
        name = "native_part" if separators else "native_word"
        codes = [text.code, *(one.code for one in separators), place.code]
        return on.code.checked(Kind.TEXT, f"{name}({', '.join(codes)}")
    text = on.kept(on.text(on.expression(value), line))
    if not isinstance(index, ast.Slice):
        place = on.integer(on.expression(index), line)
        return on.code.checked(Kind.TEXT, f"native_item({text.code}, {place.code}")
    if index.step is not None:
        raise NotNative("a slice with a step", line)
    bounds = []
    for bound, default in ((index.lower, "0"), (index.upper, "INT64_MAX")):
        value_ = on.expression(bound) if bound is not None else None
        is_stated = value_ is not None and value_.kind is not Kind.NONE
        bounds.append(on.integer(value_, line).code if is_stated and value_ is not None else default)
    return on.code.checked(Kind.TEXT, f"native_slice({text.code}, {bounds[0]}, {bounds[1]}")
