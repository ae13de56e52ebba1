"""A function's annotations as Arrow types (F2), and the checks of its signature (F5).

    bool            bool_                       date        date32
    int             int64                       datetime    timestamp[us]
    float           float64                     timedelta   duration[us]
    str             utf8                        Decimal     decimal128(38, 9)
    bytes           binary                      list[T]     list of T
    T | None        T, nullable                 dataclass, TypedDict   struct
    Annotated[T, an Arrow type]                 another width, such as Annotated[int, pa.int32()]

A vectorized function has Arrow arrays instead: `pa.Int64Array`, or `Annotated[pa.Array, pa.int64()]`. A function with
micro-batches has those, or `list[T]`; its results may contain exceptions: `list[T | Exception]`.

Imports pyarrow, so only builds import this module, and plugins that need it for structs.
"""

import dataclasses
import datetime
import decimal
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa

from .udf import Udf

_Fits = Callable[[pa.DataType], bool]
_is = pa.types

# Python type -> its Arrow type, and which other types Annotated may choose.
_SCALARS: dict[type, tuple[pa.DataType, _Fits]] = {
    bool: (pa.bool_(), _is.is_boolean),
    int: (pa.int64(), _is.is_integer),
    float: (pa.float64(), lambda t: _is.is_float32(t) or _is.is_float64(t)),
    str: (pa.utf8(), lambda t: _is.is_string(t) or _is.is_large_string(t)),
    bytes: (pa.binary(), _is.is_binary),
    datetime.date: (pa.date32(), _is.is_date32),
    datetime.datetime: (pa.timestamp("us"), _is.is_timestamp),
    datetime.timedelta: (pa.duration("us"), _is.is_duration),
    decimal.Decimal: (pa.decimal128(38, 9), _is.is_decimal128),
}

# The array classes that have only one type.
_ARRAYS: dict[type, pa.DataType] = {
    pa.BooleanArray: pa.bool_(),
    pa.Int8Array: pa.int8(),
    pa.Int16Array: pa.int16(),
    pa.Int32Array: pa.int32(),
    pa.Int64Array: pa.int64(),
    pa.UInt8Array: pa.uint8(),
    pa.UInt16Array: pa.uint16(),
    pa.UInt32Array: pa.uint32(),
    pa.UInt64Array: pa.uint64(),
    pa.FloatArray: pa.float32(),
    pa.DoubleArray: pa.float64(),
    pa.StringArray: pa.utf8(),
    pa.LargeStringArray: pa.large_utf8(),
    pa.BinaryArray: pa.binary(),
    pa.Date32Array: pa.date32(),
}

_CHOICE = (
    "bool, int, float, str, bytes, date, datetime, timedelta, Decimal, list[T], a dataclass, a TypedDict, or T | None"
)


class _Unsupported(Exception):
    """An annotation has no Arrow type; the text says what to write instead."""


@dataclass(frozen=True)
class Signature:
    """A function's signature in Arrow types. `hints`: the resolved annotations of the arguments, then of the result."""

    arguments: pa.Schema
    returns: pa.Field
    context: type | None
    hints: tuple[Any, ...]


def signature(udf: Udf[..., Any]) -> Signature:
    """Reads the signature of a decorated function. Raises BuildError with file, line and what to write instead."""
    try:
        hints = typing.get_type_hints(udf.definition, include_extras=True)
    except Exception as error:
        raise udf.mistake(f"has an annotation that cannot be read: {error}; name something this module has") from error
    parameters = list(inspect.signature(udf.definition).parameters.values())
    _check_decorators(udf, parameters)
    context = _context(udf, parameters, hints)
    if context is not None:
        del parameters[0]
    if not parameters:
        raise udf.mistake("has no arguments; give it at least one, they are the columns it is called with")
    field_of = _array_field if udf.vectorized else _column_field if udf.batched else _field

    def field(name: str, key: str, what: str) -> pa.Field:
        if key not in hints:
            raise udf.mistake(f"does not say the type of {what}; annotate it, as {_example(udf, key)}")
        try:
            return field_of(name, hints[key])
        except _Unsupported as error:
            raise udf.mistake(f"has an annotation of {what} that does not work: {error}") from None
        except RecursionError:
            raise udf.mistake(f"has an annotation of {what} that contains itself; Arrow's structs cannot") from None

    fields = []
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise udf.mistake(
                f"has the parameter {parameter}; a column is one positional parameter: name them one by one"
            )
        if parameter.default is not parameter.empty:
            raise udf.mistake(
                f"has a default value for {parameter.name!r}, and every call passes all columns; leave it out, or use "
                "`T | None` and look for None"
            )
        fields.append(field(parameter.name, parameter.name, f"argument {parameter.name!r}"))
    returns = field("", "return", "its result")
    return Signature(pa.schema(fields), returns, context, (*(hints[p.name] for p in parameters), hints["return"]))


def _check_decorators(udf: Udf[..., Any], parameters: list[inspect.Parameter]) -> None:
    """What is called must take the parameters of the definition."""
    if udf.function is udf.definition:
        return
    changes = f"has the decorator {udf.decorator()!r}, which changes its parameters"
    instead = "let what it returns take the same ones, or (*args)"
    if inspect.signature(udf.function) != inspect.signature(udf.definition):
        raise udf.mistake(f"{changes}; {instead}")
    try:
        inspect.signature(udf.function, follow_wrapped=False).bind(*parameters)
    except TypeError as error:
        raise udf.mistake(f"{changes} ({error}); {instead}") from None
    except ValueError:
        pass  # written in C, such as functools.cache: it takes anything


def _example(udf: Udf[..., Any], key: str) -> str:
    type_name = "pa.Int64Array" if udf.vectorized else "list[int]" if udf.batched else "int"
    return f"`-> {type_name}`" if key == "return" else f"`{key}: {type_name}`"


def _context(udf: Udf[..., Any], parameters: list[inspect.Parameter], hints: dict[str, Any]) -> type | None:
    """The class of the first parameter, if that is a Context (set up once) and not a column."""
    if not parameters:
        return None
    hint = hints.get(parameters[0].name)
    if not isinstance(hint, type) or hint in _SCALARS:
        return None
    methods = [m for m in ("init", "close") if callable(getattr(hint, m, None))]
    if not methods and hint.__name__ != "Context":
        return None
    if not udf.starts:
        raise udf.mistake(f"is sync and has the Context {hint.__name__!r}; write `async def`, or keep it in the module")
    for method in methods:
        is_async = inspect.iscoroutinefunction(getattr(hint, method))
        if udf.is_async and not is_async:
            raise udf.mistake(f"has a Context whose {method!r} is not async; write `async def {method}(self) -> None`")
        if udf.blocking and is_async:
            raise udf.mistake(
                f"is blocking and has a Context whose {method!r} is async; write `def {method}(self) -> None`"
            )
    return hint


# ---- Annotation -> Arrow ---------------------------------------------------------------------------------------------


def _field(name: str, hint: Any) -> pa.Field:
    inner, nullable = _optional(hint)
    return pa.field(name, _arrow_type(inner), nullable)


def _array_field(name: str, hint: Any) -> pa.Field:
    if isinstance(hint, type) and hint in _ARRAYS:
        return pa.field(name, _ARRAYS[hint])
    if typing.get_origin(hint) is Annotated:
        base, *extras = typing.get_args(hint)
        chosen = [extra for extra in extras if isinstance(extra, pa.DataType)]
        if isinstance(base, type) and issubclass(base, pa.Array) and len(chosen) == 1:
            if (extension := _extension(chosen[0])) is not None:
                raise _Unsupported(
                    f"{_shown(hint)} has the extension type {extension}, and values cross the boundary as what they "
                    f"are stored as: write {extension.storage_type} instead"
                )
            return pa.field(name, chosen[0])
    raise _Unsupported(
        f"{_shown(hint)} does not name one array type; a vectorized function takes and returns `pa.Int64Array` "
        "and the like, or `Annotated[pa.Array, pa.int64()]`"
    )


def _extension(type_: pa.DataType) -> pa.BaseExtensionType | None:
    """An extension type that the type is or has inside."""
    if isinstance(type_, pa.BaseExtensionType):
        return type_
    fields = (type_.field(i) for i in range(type_.num_fields))
    return next((found for field in fields if (found := _extension(field.type)) is not None), None)


def _column_field(name: str, hint: Any) -> pa.Field:
    """The field of one row, from the annotation of a list or an array of rows."""
    if typing.get_origin(hint) is list:
        return _field(name, _item(hint))
    try:
        return _array_field(name, hint)
    except _Unsupported:
        raise _Unsupported(
            f"{_shown(hint)} is not a list; with batch_size a parameter has an item for each row: write `list[int]` or"
            " `pa.Int64Array`"
        ) from None


def _item(hint: Any) -> Any:
    """T of list[T], without the exceptions that results may contain."""
    item = typing.get_args(hint)[0]
    if typing.get_origin(item) not in (typing.Union, types.UnionType):
        return item
    members = typing.get_args(item)
    values = tuple(m for m in members if not (isinstance(m, type) and issubclass(m, BaseException)))
    return functools.reduce(operator.or_, values or members)


def _optional(hint: Any) -> tuple[Any, bool]:
    """T | None -> (T, True), also inside Annotated."""
    if typing.get_origin(hint) is Annotated:
        base, *extras = typing.get_args(hint)
        inner, nullable = _optional(base)
        return (Annotated[inner, *extras], True) if nullable else (hint, False)
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    members = typing.get_args(hint)
    others = [member for member in members if member is not types.NoneType]
    if len(others) != 1 or len(others) == len(members):
        raise _Unsupported(f"{_shown(hint)} is several types; write one, or one with None: `int | None`")
    return others[0], True


def _arrow_type(hint: Any) -> pa.DataType:
    if isinstance(hint, type) and hint in _SCALARS:
        return _SCALARS[hint][0]
    if typing.get_origin(hint) is Annotated:
        return _annotated_type(*typing.get_args(hint))
    if typing.get_origin(hint) is list:
        return pa.list_(_field("item", typing.get_args(hint)[0]))
    if _is_struct(hint):
        return pa.struct([_field(name, inner) for name, inner in _struct_hints(hint).items()])
    if hint is list:
        raise _Unsupported("a list needs the type of its items; write `list[int]`")
    raise _Unsupported(f"{_shown(hint)} has no Arrow type; write {_CHOICE}")


def _annotated_type(base: Any, *extras: Any) -> pa.DataType:
    chosen = [extra for extra in extras if isinstance(extra, pa.DataType)]
    if not chosen:
        return _arrow_type(base)
    plain = _arrow_type(base)
    fits = _SCALARS[base][1] if base in _SCALARS else plain.equals
    if len(chosen) > 1 or not fits(chosen[0]):
        raise _Unsupported(f"{_shown(base)} cannot be {' and '.join(map(str, chosen))}; leave it out for {plain}")
    return chosen[0]


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or typing.is_typeddict(hint))


def _struct_hints(hint: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(hint, include_extras=True)
    except Exception as error:
        raise _Unsupported(f"{_shown(hint)} has an annotation that cannot be read: {error}") from error
    if dataclasses.is_dataclass(hint):
        return {field.name: hints[field.name] for field in dataclasses.fields(hint) if field.init}
    return hints


def _shown(hint: Any) -> str:
    return f"`{hint.__qualname__ if isinstance(hint, type) else hint}`"


# ---- Dataclasses: the core knows structs as dicts --------------------------------------------------------------------

Convert = Callable[[Any], Any]


def adapted(udf: Udf[..., Any], hints: tuple[Any, ...]) -> Callable[..., Any]:
    """The function as the core calls it: dataclasses are converted from and to dicts."""
    function = udf.function
    if udf.vectorized:
        return function
    if udf.batched:
        return _adapted_columns(udf, hints)
    converters = [_converter(hint) for hint in hints]
    if not any(converters):
        return function
    arguments = converters[:-1]
    context = [None] * (udf.definition.__code__.co_argcount - len(arguments))
    from_dicts: list[Convert | None] = [*context, *arguments]

    def converted(row: tuple[Any, ...]) -> list[Any]:
        return [v if c is None or v is None else c(v) for c, v in zip(from_dicts, row, strict=True)]

    if udf.is_async:

        async def call_async(*row: Any) -> Any:
            return _plain(await function(*converted(row)))

        return call_async

    def call(*row: Any) -> Any:
        return _plain(function(*converted(row)))

    return call


def _adapted_columns(udf: Udf[..., Any], hints: tuple[Any, ...]) -> Callable[..., Any]:
    """The same for micro-batches: the core knows lists, of dicts where structs occur."""
    function = udf.function

    def columns_of(hint: Any) -> Convert:
        if typing.get_origin(hint) is not list:
            type_ = _array_field("", hint).type
            return lambda values: pa.array(values, type_)
        item = _converter(_item(hint))
        return (lambda values: values) if item is None else lambda vs: [None if v is None else item(v) for v in vs]

    arguments = [columns_of(hint) for hint in hints[:-1]]
    contexts = udf.definition.__code__.co_argcount - len(arguments)

    async def call_async(*columns: Any) -> Any:
        converted = (make(column) for make, column in zip(arguments, columns[contexts:], strict=True))
        results = await function(*columns[:contexts], *converted)
        return results.to_pylist() if isinstance(results, pa.Array | pa.ChunkedArray) else _plain(results)

    return call_async


def _converter(hint: Any) -> Convert | None:
    """Converts the core's value to the annotated type; None if no conversion is needed."""
    hint, _ = _optional(hint)
    if typing.get_origin(hint) is Annotated:
        return _converter(typing.get_args(hint)[0])
    if typing.get_origin(hint) is list:
        item = _converter(typing.get_args(hint)[0])
        return None if item is None else lambda values: [None if v is None else item(v) for v in values]
    if not _is_struct(hint):
        return None
    fields = {name: _converter(inner) for name, inner in _struct_hints(hint).items()}
    make: Any = hint if dataclasses.is_dataclass(hint) else dict
    if make is dict and not any(fields.values()):
        return None

    def struct(value: dict[str, Any]) -> Any:
        return make(**{n: v if v is None or (c := fields[n]) is None else c(v) for n, v in value.items()})

    return struct


def _plain(value: Any) -> Any:
    """Dataclasses as dicts, at any depth."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
