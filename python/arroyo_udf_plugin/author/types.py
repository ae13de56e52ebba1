"""A function's annotations as Arrow types (F2), and the checks of its signature (F5).

    bool            bool_                       date        date32
    int             int64                       datetime    timestamp[us]
    float           float64                     timedelta   duration[us]
    str             utf8                        Decimal     decimal128(38, 9)
    bytes           binary                      time        time64[us]
    T | None        T, nullable                 list[T]     list of T
    Literal["a"]    the type of its values      dataclass, TypedDict, NamedTuple   struct
    StrEnum, UUID   utf8; UUIDs as bytes: Annotated[UUID, pa.binary(16)], or pa.binary()
    Annotated[T, an Arrow type]                 another width, such as Annotated[int, pa.int32()]

A vectorized function has Arrow arrays instead: `pa.Int64Array`, or `Annotated[pa.Array, pa.int64()]`; `Constant[T]` is
one value. A function with micro-batches has those arrays, or `list[T]`; its results may contain exceptions: `list[T |
Exception]`.

Imports pyarrow, so only builds import this module, and plugins with functions that take arrays.
"""

import datetime
import decimal
import inspect
import typing
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pyarrow as pa

from .constant import is_constant
from .hints import Unsupported, is_struct, is_text_enum, item, optional, shown, struct_hints
from .udaf import STEPS, Udaf, Udtf
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
    datetime.time: (pa.time64("us"), _is.is_time),
    datetime.timedelta: (pa.duration("us"), _is.is_duration),
    decimal.Decimal: (pa.decimal128(38, 9), _is.is_decimal128),
    uuid.UUID: (pa.utf8(), lambda t: _is.is_string(t) or _is.is_binary(t) or t == pa.binary(16)),
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
    "bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID, a StrEnum, a Literal, list[T], a"
    " dataclass, a TypedDict, a NamedTuple, or T | None"
)


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
    field_of = _vector_field if udf.vectorized else _column_field if udf.batched else _field

    def field(name: str, key: str, what: str) -> pa.Field:
        if key not in hints:
            raise udf.mistake(f"does not say the type of {what}; annotate it, as {_example(udf, key)}")
        try:
            return (array_field if udf.vectorized and key == "return" else field_of)(name, hints[key])
        except Unsupported as error:
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
    if udf.vectorized and all(is_constant(hints[parameter.name]) for parameter in parameters):
        raise udf.mistake("has only constants, which do not say how many rows there are; make one of them an array")
    returns = _rows_field(udf) if isinstance(udf, Udtf) else field("", "return", "its result")
    return Signature(pa.schema(fields), returns, context, (*(hints[p.name] for p in parameters), hints["return"]))


def _rows_field(udtf: Udtf[..., Any]) -> pa.Field:
    """A list of structs, one for each row."""
    hint = udtf.row_hint()
    try:
        row = _field("item", hint)
    except Unsupported as error:
        raise udtf.mistake(f"has an annotation of its rows that does not work: {error}") from None
    if not pa.types.is_struct(row.type):
        row = pa.field("item", pa.struct([row.with_name(udtf.__name__)]))
    return pa.field("", pa.list_(row.with_nullable(False)), False)


def state_type(aggregate: Udaf) -> pa.StructType:
    """The Arrow type of an aggregate's state. Raises BuildError."""
    if not struct_hints(aggregate.cls):
        raise aggregate.mistake("has no fields, and they are its state; a counter is a state: `count: int = 0`")
    try:
        return _arrow_type(aggregate.cls)
    except Unsupported as error:
        raise aggregate.mistake(f"has a field that does not work: {error}") from None
    except RecursionError:
        raise aggregate.mistake("has a field that contains itself; Arrow's structs cannot") from None


def aggregate_signatures(aggregate: Udaf) -> dict[str, Signature]:
    """The signature that users see, by the key "", and those of the steps. Raises BuildError, as `signature`."""
    state = state_type(aggregate)
    hints = {step: aggregate.hints(step) for step in STEPS}

    def field(name: str, hint: Any, step: str, of: Callable[[str, Any], pa.Field]) -> pa.Field:
        try:
            return of(name, hint)
        except Unsupported as error:
            raise aggregate.mistake(f"has an annotation in {step!r} that does not work: {error}", step) from None

    rows = {name: hint for name, hint in hints["update"].items() if name != "return"}
    if not rows:
        raise aggregate.mistake("has an 'update' without arguments; they are the columns it is called with")
    if "state" in rows:
        raise aggregate.mistake("has an argument 'state', which is the name of the group's state; rename it")
    if "return" not in hints["finish"]:
        raise aggregate.mistake("does not say the type of its result; annotate `finish`, as `-> int`", "finish")
    for step, count in (("merge", 1), ("finish", 0)):
        if (
            len(hints[step]) - ("return" in hints[step]) > count
            or vars(aggregate.cls)[step].__code__.co_argcount != 1 + count
        ):
            raise aggregate.mistake(
                f"has a {step!r} with other arguments than {'self, other' if count else 'self'}", step
            )
    arguments = pa.schema([field(name, hint, "update", _column_field) for name, hint in rows.items()])
    returns = field("", hints["finish"]["return"], "finish", _field)
    given = pa.field("state", state, True)
    lists = [pa.field(column.name, pa.list_(column.type), False) for column in arguments]
    returned = pa.field("", state, False)

    def of(arguments: pa.Schema, returns: pa.Field) -> Signature:
        return Signature(arguments, returns, None, ())

    return {
        "": of(arguments, returns),
        "update": of(pa.schema([given, *lists]), returned),
        "merge": of(pa.schema([pa.field("state", state, False), pa.field("other", state, False)]), returned),
        "finish": of(pa.schema([given]), returns),
    }


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
    inner, nullable = optional(hint)
    return pa.field(name, _arrow_type(inner), nullable)


def _vector_field(name: str, hint: Any) -> pa.Field:
    if not is_constant(hint):
        return array_field(name, hint)
    base, *_ = typing.get_args(optional(hint)[0])
    if base not in _SCALARS or base is uuid.UUID:
        raise Unsupported(f"{shown(base)} cannot be a constant; write `Constant[str]`, or another type of one value")
    return _field(name, hint)


def array_field(name: str, hint: Any) -> pa.Field:
    if isinstance(hint, type) and hint in _ARRAYS:
        return pa.field(name, _ARRAYS[hint])
    if typing.get_origin(hint) is Annotated:
        base, *extras = typing.get_args(hint)
        chosen = [extra for extra in extras if isinstance(extra, pa.DataType)]
        if isinstance(base, type) and issubclass(base, pa.Array) and len(chosen) == 1:
            if (extension := _extension(chosen[0])) is not None:
                raise Unsupported(
                    f"{shown(hint)} has the extension type {extension}, and values cross the boundary as what they "
                    f"are stored as: write {extension.storage_type} instead"
                )
            return pa.field(name, chosen[0])
    raise Unsupported(
        f"{shown(hint)} does not name one array type; a vectorized function takes and returns `pa.Int64Array` "
        "and the like, or `Annotated[pa.Array, pa.int64()]`"
    )


def _extension(type_: pa.DataType) -> pa.BaseExtensionType | None:
    """An extension type that the type is or has inside."""
    if isinstance(type_, pa.BaseExtensionType):
        return type_
    fields = (type_.field(i) for i in range(type_.num_fields))
    return next((extension for field in fields if (extension := _extension(field.type)) is not None), None)


def _column_field(name: str, hint: Any) -> pa.Field:
    """The field of one row, from the annotation of a list or an array of rows."""
    if typing.get_origin(hint) is list:
        return _field(name, item(hint))
    try:
        return array_field(name, hint)
    except Unsupported:
        raise Unsupported(
            f"{shown(hint)} is not a list; with batch_size a parameter has an item for each row: write `list[int]` or"
            " `pa.Int64Array`"
        ) from None


def _arrow_type(hint: Any) -> pa.DataType:
    if isinstance(hint, type) and hint in _SCALARS:
        return _SCALARS[hint][0]
    if typing.get_origin(hint) is Annotated:
        return _annotated_type(*typing.get_args(hint))
    if is_text_enum(hint):
        return pa.utf8()
    if typing.get_origin(hint) is Literal:
        return _literal_type(hint)
    if typing.get_origin(hint) is list:
        return pa.list_(_field("item", typing.get_args(hint)[0]))
    if is_struct(hint):
        return pa.struct([_field(name, inner) for name, inner in struct_hints(hint).items()])
    if hint is list:
        raise Unsupported("a list needs the type of its items; write `list[int]`")
    raise Unsupported(f"{shown(hint)} has no Arrow type; write {_CHOICE}")


def _literal_type(hint: Any) -> pa.DataType:
    kinds = {type(value) for value in typing.get_args(hint)}
    if len(kinds) > 1:
        raise Unsupported(f"{shown(hint)} has values of several types; write those of one type")
    return _arrow_type(kinds.pop())


def _annotated_type(base: Any, *extras: Any) -> pa.DataType:
    chosen = [extra for extra in extras if isinstance(extra, pa.DataType)]
    if not chosen:
        return _arrow_type(base)
    plain = _arrow_type(base)
    fits = _SCALARS[base][1] if base in _SCALARS else plain.equals
    if len(chosen) > 1 or not fits(chosen[0]):
        raise Unsupported(f"{shown(base)} cannot be {' and '.join(map(str, chosen))}; leave it out for {plain}")
    return chosen[0]
