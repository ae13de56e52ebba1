"""Functions as the core calls them: it knows structs as dicts, and enums and UUIDs as texts.

Imports no pyarrow unless a function takes arrays, because plugins do this in subinterpreters, too.
"""

from __future__ import annotations

import dataclasses
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any

from .constant import with_constants
from .hints import is_struct, is_text_enum, item, optional, struct_hints
from .udf import Udf

Convert = Callable[[Any], Any]


def adapted(udf: Udf[..., Any], hints: tuple[Any, ...]) -> Callable[..., Any]:
    """The function as the core calls it. hints: the annotations of its arguments, then of its result."""
    function = udf.function
    if udf.vectorized:
        return with_constants(function, hints[:-1])
    if udf.batched:
        return _adapted_columns(udf, hints)
    converters = [converter(hint) for hint in hints]
    if not any(converters):
        return function
    to_result = to_core(hints[-1])
    arguments = converters[:-1]
    context = [None] * (udf.definition.__code__.co_argcount - len(arguments))
    from_dicts: list[Convert | None] = [*context, *arguments]

    def converted(row: tuple[Any, ...]) -> list[Any]:
        return [v if c is None or v is None else c(v) for c, v in zip(from_dicts, row, strict=True)]

    if udf.is_async:

        async def call_async(*row: Any) -> Any:
            return to_result(await function(*converted(row)))

        return call_async

    def call(*row: Any) -> Any:
        return to_result(function(*converted(row)))

    return call


def _adapted_columns(udf: Udf[..., Any], hints: tuple[Any, ...]) -> Callable[..., Any]:
    """The same for micro-batches: the core knows lists."""
    function = udf.function
    if not any(map(_is_to_adapt, hints)):
        return function

    def columns_of(hint: Any) -> Convert:
        if typing.get_origin(hint) is not list:
            import pyarrow as pa

            from .types import array_field

            type_ = array_field("", hint).type
            return lambda values: pa.array(values, type_)
        convert = converter(item(hint))
        return (
            (lambda values: values) if convert is None else lambda vs: [None if v is None else convert(v) for v in vs]
        )

    arguments = [columns_of(hint) for hint in hints[:-1]]
    to_result = to_core(hints[-1])
    contexts = udf.definition.__code__.co_argcount - len(arguments)

    async def call_async(*columns: Any) -> Any:
        converted = (make(column) for make, column in zip(arguments, columns[contexts:], strict=True))
        results = await function(*columns[:contexts], *converted)
        return results.to_pylist() if hasattr(results, "to_pylist") else to_result(results)

    return call_async


def converter(hint: Any) -> Convert | None:
    """Converts the core's value to the annotated type; None if no conversion is needed."""
    hint, _ = optional(hint)
    if typing.get_origin(hint) is Annotated:
        return converter(typing.get_args(hint)[0])
    if typing.get_origin(hint) is list:
        convert = converter(typing.get_args(hint)[0])
        return None if convert is None else lambda values: [None if v is None else convert(v) for v in values]
    if hint is uuid.UUID:
        return lambda value: uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(value)
    if is_text_enum(hint):
        made: Convert = hint
        return made
    if not is_struct(hint):
        return None
    fields = {name: converter(inner) for name, inner in struct_hints(hint).items()}
    make: Any = dict if typing.is_typeddict(hint) else hint
    if make is dict and not any(fields.values()):
        return None

    def struct(value: dict[str, Any]) -> Any:
        return make(**{n: v if v is None or (c := fields[n]) is None else c(v) for n, v in value.items()})

    return struct


def to_core(hint: Any) -> Convert:
    """Converts a result to what the core knows."""
    return _with_bytes(hint) or _plain


def _with_bytes(hint: Any) -> Convert | None:
    """As `to_core`, for a type that is, or has inside, UUIDs as bytes; None: it has none."""
    hint, _ = optional(hint)
    if typing.get_origin(hint) is Annotated:
        base, *types = typing.get_args(hint)
        is_bytes = base is uuid.UUID and any("binary" in str(type_) for type_ in types)
        return (lambda value: getattr(value, "bytes", value)) if is_bytes else _with_bytes(base)
    if typing.get_origin(hint) is list:
        to_bytes = _with_bytes(item(hint))
        return None if to_bytes is None else lambda values: [None if v is None else to_bytes(v) for v in values]
    if not is_struct(hint):
        return None
    fields = {
        name: convert for name, inner in struct_hints(hint).items() if (convert := _with_bytes(inner)) is not None
    }
    if not fields:
        return None

    def struct(value: Any) -> Any:
        values = {name: value[name] if isinstance(value, dict) else getattr(value, name) for name in fields}
        return _plain(value) | {n: None if v is None else fields[n](v) for n, v in values.items()}

    return struct


def _is_to_adapt(hint: Any) -> bool:
    """Whether a column of a micro-batch is another than the core's list."""
    return typing.get_origin(hint) is not list or converter(item(hint)) is not None


def _plain(value: Any) -> Any:
    """What the core knows instead of dataclasses, named tuples, UUIDs, at any depth. An enum of texts is a text."""
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in value._fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
