"""The decorators `@udaf` and `@udtf`: aggregates, and functions that give several rows.

    @udaf
    @dataclass
    class mean:                             the fields are the state of a group; a new one has their defaults
        total: float = 0.0
        count: int = 0

        def update(self, values: list[float]) -> None: ...      a list, or an Arrow array, for each argument
        def merge(self, other: "mean") -> None: ...
        def finish(self) -> float | None: ...

    @udtf
    def words(text: str) -> Iterator[Word]: ...                 the rows, of a dataclass; a list, or yielded one by one

For Python both stay what they are: `mean()` is an object, and `words` can be called. steps.py makes of an aggregate the
three functions that a host calls (AGGREGATES in arroyo_udf.h).
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar, overload

from ..errors import BuildError
from .udf import VOLATILITIES, P, R, Udf, Volatility, made

C = TypeVar("C", bound=type)

STEPS = ("update", "merge", "finish")
_MARK = "__arroyo_udaf__"
_ROWS = (list, Iterable, Iterator, Generator)
_NOT_PLAIN = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Udaf:
    """A class with @udaf. where: the author's definition, for messages."""

    cls: type
    volatility: Volatility | None
    __name__: str

    def __init__(self, cls: type, volatility: Volatility | None = None) -> None:
        self.cls = cls
        self.volatility = volatility
        self.__name__ = cls.__name__
        if not dataclasses.is_dataclass(cls):
            raise self.mistake("is no dataclass, and its fields are the state; write @dataclass below @udaf")
        for step in STEPS:
            code = getattr(vars(cls).get(step), "__code__", None)
            if code is None:
                raise self.mistake(f"has no method {step!r}; an aggregate has {', '.join(STEPS)}")
            if code.co_flags & _NOT_PLAIN:
                raise self.mistake(f"has a {step!r} that is async or a generator; write a plain `def`", step)
        if left_out := [field.name for field in dataclasses.fields(cls) if not field.init]:
            raise self.mistake(
                f"has the field {left_out[0]!r} with init=False, which would be lost with the object; leave that out"
            )
        if lacking := [field.name for field in dataclasses.fields(cls) if not _has_default(field)]:
            raise self.mistake(f"has the field {lacking[0]!r} without a default, which is the state of a new group")
        if volatility not in (None, *VOLATILITIES):
            raise self.mistake(f"has volatility={volatility!r}; write one of {', '.join(map(repr, VOLATILITIES))}")

    def mistake(self, text: str, step: str = "update") -> BuildError:
        """An error about this aggregate, with the file and line of a step, and its name (F5)."""
        code = getattr(vars(self.cls).get(step), "__code__", None)
        what = f"aggregate {self.__name__!r} {text}"
        return BuildError(what) if code is None else BuildError(what, code.co_filename, code.co_firstlineno)

    @property
    def line(self) -> int:
        """Of its first step, in its file."""
        return min(int(vars(self.cls)[step].__code__.co_firstlineno) for step in STEPS)

    def hints(self, step: str) -> dict[str, Any]:
        """The annotations of a step's arguments, in order, and of its "return"."""
        try:
            hints = typing.get_type_hints(vars(self.cls)[step], include_extras=True)
        except Exception as error:
            raise self.mistake(f"has an annotation of {step!r} that cannot be read: {error}", step) from error
        code = vars(self.cls)[step].__code__
        names = code.co_varnames[1 : code.co_argcount]
        if unannotated := [name for name in names if name not in hints and step == "update"]:
            raise self.mistake(f"does not say the type of {unannotated[0]!r}; annotate it, as `list[int]`", step)
        return {name: hints[name] for name in (*names, "return") if name in hints}


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def aggregate_of(value: object) -> Udaf | None:
    """What @udaf has noted of a class; None: it is no such class itself, though it may be derived from one."""
    return vars(value).get(_MARK) if isinstance(value, type) else None


class Udtf(Udf[P, R]):
    """A decorated function that gives several rows. Calling it calls the original function."""

    gives_rows = True

    def row_hint(self) -> Any:
        """The annotation of a row: T of `list[T]` or `Iterator[T]`. Raises BuildError."""
        try:
            hint = typing.get_type_hints(self.definition, include_extras=True).get("return")
        except Exception as error:
            raise self.mistake(f"has an annotation that cannot be read: {error}") from error
        if typing.get_origin(hint) not in _ROWS:
            raise self.mistake("gives rows, so its result is `list[Row]` or `Iterator[Row]`, with a dataclass Row")
        return typing.get_args(hint)[0]


@overload
def udaf(cls: C, /) -> C: ...
@overload
def udaf(*, volatility: Volatility = ...) -> Callable[[C], C]: ...


def udaf(cls: Any = None, /, *, volatility: Volatility | None = None) -> Any:
    """Makes a dataclass an aggregate of the plugin: `@udaf`, or `@udaf(volatility=...)`.

    The fields are the state of one group; each has a default. `update` gets rows of the group: for each argument a
    list (`list[int]`), or an Arrow array (`pa.Int64Array`). Arrays and `list[int | None]` have nulls in them; a row
    with a null in another list is left out. `merge` takes over another state. `finish` returns the value, and changes
    nothing that a later `update` needs.
    volatility: as for `@udf`.
    Raises BuildError, with file and line, for a class that is no such aggregate.
    """
    if cls is None:
        return lambda cls: udaf(cls, volatility=volatility)  # type: ignore[call-overload]
    aggregate = Udaf(cls, volatility)
    setattr(cls, _MARK, aggregate)
    if (list_of_build := made.get()) is not None:
        list_of_build.append(aggregate)
    return cls


@overload
def udtf(function: Callable[P, R], /) -> Udtf[P, R]: ...
@overload
def udtf(*, volatility: Volatility = ..., timeout: float | str = ...) -> Callable[[Callable[P, R]], Udtf[P, R]]: ...


def udtf(function: Any = None, /, **options: Any) -> Any:
    """Makes a function that gives several rows for one part of the plugin: `@udtf`, or `@udtf(...)` with options.

    It returns a list, or yields the rows; its result is annotated `list[Row]` or `Iterator[Row]`. Row is a dataclass, a
    TypedDict or a NamedTuple, whose fields are the columns; or another type, which makes one column with the
    function's name.
    volatility, timeout: as for a sync `@udf`.
    Raises BuildError, with file and line, for what does not fit.
    """
    if function is None:
        return lambda function: udtf(function, **options)
    return Udtf(function, options)
