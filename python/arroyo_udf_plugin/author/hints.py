"""Annotations, taken apart. Imports no pyarrow, because plugins do this in subinterpreters, too."""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import types
import typing
from typing import Annotated, Any


class Unsupported(Exception):
    """An annotation has no Arrow type; the text says what to write instead."""


def optional(hint: Any) -> tuple[Any, bool]:
    """T | None -> (T, True), also inside Annotated."""
    if typing.get_origin(hint) is Annotated:
        base, *extras = typing.get_args(hint)
        inner, nullable = optional(base)
        return (Annotated[inner, *extras], True) if nullable else (hint, False)
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    members = typing.get_args(hint)
    others = [member for member in members if member is not types.NoneType]
    if len(others) != 1 or len(others) == len(members):
        raise Unsupported(f"{shown(hint)} is several types; write one, or one with None: `int | None`")
    return others[0], True


def item(hint: Any) -> Any:
    """T of list[T], without the exceptions that results may contain."""
    item = typing.get_args(hint)[0]
    if typing.get_origin(item) not in (typing.Union, types.UnionType):
        return item
    members = typing.get_args(item)
    values = tuple(m for m in members if not (isinstance(m, type) and issubclass(m, BaseException)))
    return functools.reduce(operator.or_, values or members)


def is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint) or typing.is_typeddict(hint) or _is_named_tuple(hint)
    )


def _is_named_tuple(hint: type) -> bool:
    return issubclass(hint, tuple) and hasattr(hint, "_fields")


def is_text_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.StrEnum)


def struct_hints(hint: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(hint, include_extras=True)
    except Exception as error:
        raise Unsupported(f"{shown(hint)} has an annotation that cannot be read: {error}") from error
    if dataclasses.is_dataclass(hint):
        return {field.name: hints[field.name] for field in dataclasses.fields(hint) if field.init}
    return hints


def shown(hint: Any) -> str:
    return f"`{hint.__qualname__ if isinstance(hint, type) else hint}`"
