"""The decorator `@udf`: marks the functions of a source file that become functions of the plugin.

    @udf                     def         sync: called row by row
    @udf(vectorized=True)    def         sync: called with whole Arrow arrays
    @udf(timeout=60)         def         sync, for worker processes alone: a batch may take so long
    @udf(blocking=True)      def         async for the host; each call runs on a thread of a pool
    @udf                     async def   async: called row by row
    @udf(batch_size=100)     async def   async: called with lists of up to 100 rows
    @udf(deterministic=True) async def   async: called once for rows with equal arguments

For Python the decorated function stays the same: callable, with the same signature and result. types.py reads the
annotations when the plugin is built. Imports nothing heavy, because every user's source imports this module, in each
worker; so options.py comes only with functions that choose options.

Other decorators may stand between @udf and the function, if functools.wraps marks what they return and it takes what
the function takes. Then `definition` is the author's function, and `function` what is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, overload

from ..errors import BuildError

if TYPE_CHECKING:
    from typing import Unpack

    from .options import Options, StartOptions

Volatility: TypeAlias = Literal["immutable", "stable", "volatile"]
P = ParamSpec("P")
R = TypeVar("R")

_COROUTINE = 0x80  # inspect.CO_COROUTINE and its neighbours; `inspect` is slow to import
_GENERATOR, _ASYNC_GENERATOR = 0x20, 0x200
_VARIABLE = 0x4 | 0x8  # *args, **kwargs
_KINDS = ("vectorized", "blocking")
_OWN = (*_KINDS, "split", "volatility", "native")
VOLATILITIES = ("immutable", "stable", "volatile")
"""What a result depends on: the arguments alone; also on what does not change during a query; anything."""


made: ContextVar[list[Any] | None] = ContextVar("made", default=None)
"""Where a build notes each decorated function, even if its module loses it again."""


class Udf(Generic[P, R]):
    """A decorated function. Calling it calls the original function."""

    function: Callable[P, R]
    definition: Any  # the author's `def`; it differs from `function` if there are decorators between
    is_async: bool  # an `async def`
    vectorized: bool
    split: bool  # vectorized: a call that raises is repeated with each half of its rows
    chosen: dict[str, Any]  # the options in the decorator
    volatility: Volatility | None  # None: not said
    native: bool | Literal["auto"]  # compiled to C: never, always, or if it can be
    blocking: bool
    starts: bool  # async for the host (`async def` or blocking): the host starts and stops it
    batched: bool  # takes micro-batches: lists or Arrow arrays
    gives_rows = False  # of each row of arguments: a table function (udaf.py)
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], chosen: dict[str, Any]) -> None:
        if isinstance(function, Udf):
            raise function.mistake("has @udf twice; leave one out")
        functools.update_wrapper(self, function)  # first: attributes of the function do not replace ours
        self.function = self.definition = function
        while (inner := getattr(self.definition, "__wrapped__", None)) is not None:
            self.definition = inner
        code = getattr(self.definition, "__code__", None)
        if code is None:
            raise BuildError(f"@udf is for functions written with def or async def, not for {function!r}")
        called = getattr(function, "__code__", None)  # None: an object, such as that of functools.cache
        flags = 0 if called is None else called.co_flags
        self.is_async = bool(flags & _COROUTINE)
        self.starts = self.is_async or chosen.get("blocking") is True
        if (flags | code.co_flags) & (_ASYNC_GENERATOR if self.gives_rows else _GENERATOR | _ASYNC_GENERATOR):
            raise self.mistake(
                "is a generator; write `return` for the one value of the row, not `yield`, or @udtf for several rows"
            )
        if self.gives_rows and (self.starts or chosen.get("vectorized")):
            raise self.mistake("is async, blocking or vectorized, which no @udtf can be; write a plain `def`")
        self._check_decorators(code.co_flags)
        self._check(chosen)
        self.vectorized = chosen.get("vectorized", False)
        self.split = chosen.get("split", True)
        self.blocking = chosen.get("blocking", False)
        self.volatility = chosen.get("volatility")
        self.native = chosen.get("native", "auto")
        self.chosen = {name: value for name, value in chosen.items() if name not in _OWN}
        self.batched = "batch_size" in self.chosen
        if (list_of_build := made.get()) is not None:
            list_of_build.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<udf {self.__name__}>"

    def __reduce__(self) -> str:
        """Pickled by its name, as a plain function is."""
        return self.__qualname__

    @property
    def options(self) -> Options | None:
        """None for a sync function."""
        from .options import Options

        return Options(**self.chosen) if self.starts else None

    def mistake(self, text: str) -> BuildError:
        """An error about this function, with its file, line and name (F5)."""
        code = self.definition.__code__  # checked in __init__
        return BuildError(f"function {code.co_name!r} {text}", code.co_filename, code.co_firstlineno)

    def decorator(self) -> str:
        """The name of the last decorator between the definition and @udf."""
        code = getattr(self.function, "__code__", None)
        return type(self.function).__name__ if code is None else str(code.co_qualname.partition(".<locals>")[0])

    def _check_decorators(self, flags: int) -> None:
        """flags: of the definition."""
        if flags & _COROUTINE and not self.is_async:
            made = f"is an `async def`, and its decorator {self.decorator()!r} makes a `def` of it"
            raise self.mistake(f"{made}; write `async def` and `await` in the decorator")
        if flags & _VARIABLE and ".<locals>" in self.definition.__code__.co_qualname:
            hides = f"the decorator {self.decorator()!r} below @udf hides the function's signature"
            raise BuildError(f"{hides}; write @functools.wraps(function) above the function that it returns")

    def _check(self, chosen: dict[str, Any]) -> None:
        for name, value in chosen.items():
            if name in _KINDS:
                if not isinstance(value, bool):
                    raise self.mistake(f"has {name}={value!r}; write True or False")
                if value and self.is_async:
                    raise self.mistake(f"is async, and {name}=True is for a `def`; write `def`, or leave it out")
                if value and all(chosen.get(kind) for kind in _KINDS):
                    raise self.mistake(
                        "is blocking=True, which is called row by row, and vectorized=True; leave one out"
                    )
            elif name == "split":
                if not isinstance(value, bool):
                    raise self.mistake(f"has split={value!r}; write True or False")
                if chosen.get("vectorized") is not True:
                    raise self.mistake("has 'split', which is for vectorized=True; leave it out")
            elif name == "native":
                if not isinstance(value, bool) and value != "auto":
                    raise self.mistake(f"has native={value!r}; write True, False or 'auto'")
            elif name == "volatility":
                if value not in VOLATILITIES:
                    raise self.mistake(f"has volatility={value!r}; write one of {', '.join(map(repr, VOLATILITIES))}")
            else:
                self._check_option(name, value)
        of_batches = {"batch_size", "max_wait", "batch_bytes"} & set(chosen)
        if of_batches and not self.is_async:
            raise self.mistake(
                "is no `async def`, and micro-batches are for those; write that, or leave batch_size out"
            )
        if of_batches and "batch_size" not in chosen:
            raise self.mistake(f"has {min(of_batches)!r}, which is for micro-batches; write batch_size=100, say, too")
        if self.starts and chosen:
            self._check_deterministic(chosen)

    def _check_deterministic(self, chosen: dict[str, Any]) -> None:
        from .options import check_cache

        if wrong := check_cache(chosen):
            raise self.mistake(wrong)
        volatility = chosen.get("volatility", "immutable")
        if chosen.get("deterministic") is True and volatility != "immutable":
            raise self.mistake(f"has deterministic=True and volatility={volatility!r}; leave one out")

    def _check_option(self, name: str, value: object) -> None:
        from .options import OPTIONS, check

        if name not in OPTIONS:
            raise self.mistake(f"has the unknown option {name!r}; there are {', '.join((*_OWN, *OPTIONS))}")
        if not self.starts and name != "timeout":
            raise self.mistake(
                f"is sync, and {name!r} is for async functions; write `async def` or blocking=True, or leave it out"
            )
        if wrong := check(name, value):
            raise self.mistake(wrong)


@overload
def udf(function: Callable[P, R], /) -> Udf[P, R]: ...
@overload
def udf(
    *,
    volatility: Volatility = ...,
    native: bool | Literal["auto"] = ...,
    blocking: bool = ...,
    **options: Unpack[StartOptions],
) -> Callable[[Callable[P, R]], Udf[P, R]]: ...
@overload
def udf(
    *, vectorized: bool, split: bool = ..., volatility: Volatility = ..., timeout: float | str = ...
) -> Callable[[Callable[P, R]], Udf[P, R]]: ...


def udf(function: Any = None, /, **options: Any) -> Any:
    """Makes a function part of the plugin: `@udf`, or `@udf(...)` with options.

    vectorized=True: for a `def` whose parameters and result are Arrow arrays, row by row. A call that raises is
    repeated with each half of its rows, until the failing row is alone, at most 64 times; split=False: never, and all
    rows of the call fail.
    blocking=True: for a `def` that waits. Each call occupies a thread until it returns, even after its timeout.
    batch_size=N: for an `async def` whose parameters are lists (or Arrow arrays) of at most N rows. It returns a list
    with a result or an exception for each row. A call that raises is repeated with each half of its rows, until the
    failing row is alone.
    volatility: "immutable" if the result depends on the arguments alone, "stable" if also on what does not change
    during a query, "volatile" if on anything else. For engines, which also see the docstring.
    native: "auto", the default, compiles a `def` that is called row by row to C, if all of it can be; True: else the
    build fails, with the line and the reason; False: never. Results and errors are the same (docs/native.md).
    timeout of a sync function: seconds, or a text such as "500ms". Only for plugins that are loaded with
    isolation="process": a worker that takes longer for a batch is killed. Default: none.
    All other options are for `async def` and blocking functions; see `Options`.
    Raises BuildError, with file and line, for an option that does not fit.
    """
    if function is None:
        return lambda function: Udf(function, options)
    return Udf(function, options)
