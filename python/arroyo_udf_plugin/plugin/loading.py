"""Loads a plugin's source into an interpreter: the main one (entry.py), or a subinterpreter (subinterpreter.py).

Guarantees: the functions are those that the plugin was built with, in the order of its descriptor. Imports neither cffi
nor pyarrow, which do not load in a subinterpreter.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .._native import ENVIRONMENT, OUT_OF_MEMORY, USER_CODE, described, note_interrupt
from ..author.udf import Udf
from ..version import PLUGIN_FORMAT, __version__
from .module import Parcel, aggregates_of, functions_of, module_of, user_traceback
from .origin import source_of
from .spawning import prepare as prepare_spawning

if TYPE_CHECKING:
    from ..author.udaf import Udaf, Udtf

__all__ = ["LoadRefused", "Registered", "load"]

Registered: TypeAlias = tuple[Callable[..., Any], type | None, bool, bool]
"""What the core calls for a function, the class of its Context, and whether it blocks and may be split."""


class LoadRefused(Exception):
    """The plugin does not load here. `status`: of the ABI; the exception that its module raised is the cause."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def load(
    descriptor: int, parcel: Parcel, library: str, built_with: str, built_format: int, *, in_main: bool = True
) -> list[Registered]:
    """Executes the plugin's module, and finds its functions. Raises Refused.

    descriptor: its address. library, built_with: the paths of the library and of the Python that built it.
    built_format: `PLUGIN_FORMAT` of the toolkit that built it. in_main: false in a subinterpreter. pyarrow cannot be
    imported there, and functions that need it are not called; and what a start needs is imported by the start.
    """
    if built_format != PLUGIN_FORMAT:
        reason = f"built in plugin format {built_format}, and the installed arroyo_udf_plugin {__version__} "
        raise LoadRefused(ENVIRONMENT, f"{reason}loads format {PLUGIN_FORMAT}: build the plugin again")
    name, key, functions = described(descriptor)
    prepare_spawning()
    try:
        module = module_of(parcel, name, key, source_of(library, name))
    except BaseException as error:  # SystemExit and KeyboardInterrupt at import are failures, too
        _forget_halves()
        text = f"its module failed at import\n{user_traceback(error)}{_other_environment(built_with)}"
        raise LoadRefused(_status_of(error), text) from error

    if parcel.contains("call_info"):
        # Calls that began before this import have no information; so import it before the first call.
        importlib.import_module("arroyo_udf_plugin.author.call_info")
    udfs = {udf.__name__: udf for udf in functions_of(module)}
    aggregates = {aggregate.__name__: aggregate for aggregate in aggregates_of(module)}
    if in_main and any(udf.is_async for udf in udfs.values()):
        import_whole("arroyo_udf_plugin.plugin.executor")  # now, because there is room
    registered = []
    for function_name, starts, batched, columns in functions:
        name, _, step = function_name.partition(".")
        if (aggregate := aggregates.get(name)) is not None and _has_columns(aggregate, step, columns):
            registered.append(_of_aggregate(aggregate, step, in_main))
            continue
        udf = udfs.get(function_name)
        if udf is None or not _agrees(udf, starts, batched, columns):
            reason = f"function {function_name!r} is another than when the plugin was built: its module defines it "
            raise LoadRefused(ENVIRONMENT, f"{reason}by something that differs here; build it again")
        registered.append(_registered(udf, columns, in_main))
    return registered


def import_whole(name: str) -> None:
    """Imports a module. After a failure it can be imported again."""
    try:
        importlib.import_module(name)
    except BaseException:
        _forget_halves()
        raise


def _forget_halves() -> None:
    """Removes modules whose package has failed to import. Python keeps them, and a later import of the package, asyncio
    for example, does not find them in it."""
    for name in sorted(sys.modules):  # packages come before what is in them
        package = name.rpartition(".")[0]
        if package and package not in sys.modules:
            sys.modules.pop(name, None)


def _other_environment(built_with: str) -> str:
    """What to say of a failure if this is not the environment of the build."""
    prefix = os.path.dirname(os.path.dirname(built_with))
    if os.path.realpath(prefix) == os.path.realpath(sys.prefix):
        return ""
    return (
        f"\nit was built with {built_with}, and runs in the environment {sys.prefix}: install there what it imports, or"
        " run it with the Python that built it"
    )


def _status_of(error: BaseException) -> int:
    """The status of a failed import. After USER_CODE the C side does not try it again."""
    if note_interrupt(error):
        return ENVIRONMENT
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    lacking = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
    return ENVIRONMENT if lacking or isinstance(error, ImportError) else USER_CODE


def _agrees(udf: Udf[..., Any], starts: bool, batched: bool, columns: int) -> bool:
    extra = udf.definition.__code__.co_argcount - columns  # a Context may come first
    return udf.starts == starts and extra in (0, int(starts)) and udf.batched == batched


def _has_columns(aggregate: Udaf, step: str, columns: int) -> bool:
    arguments = len(aggregate.hints("update").keys() - {"return"})
    return columns == {"": arguments, "update": 1 + arguments, "merge": 2, "finish": 1}.get(step)


def _of_aggregate(aggregate: Udaf, step: str, in_main: bool) -> Registered:
    """A step of an aggregate; or, as `step` "", itself, which is never called."""
    if not step:
        return aggregate.cls, None, False, False
    from ..author import steps

    if step == "update" and not in_main and steps.takes_arrays(aggregate):
        return aggregate.cls, None, False, False
    return steps.step(aggregate, step), None, False, True


def _registered(udf: Udf[..., Any], columns: int, in_main: bool) -> Registered:
    """Imports pyarrow only for the arrays of micro-batches."""
    code = udf.definition.__code__
    context = None
    hints = typing.get_type_hints(udf.definition, include_extras=True)
    if code.co_argcount > columns:
        context = hints[code.co_varnames[0]]
    function = udf.function
    if udf.gives_rows:
        from ..author.steps import rows

        return rows(cast("Udtf[..., Any]", udf)), None, False, False
    if (in_main or not _has_arrays(udf, hints)) and not _is_plain(hints):
        from ..author.adapting import adapted

        names = code.co_varnames[code.co_argcount - columns : code.co_argcount]
        function = adapted(udf, (*(hints[name] for name in names), hints["return"]))
    return function, context, udf.blocking, udf.split


_PLAIN = {bool, int, float, str, bytes}


def _is_plain(hints: dict[str, Any]) -> bool:
    """Whether the core knows all values as the author wants them. Most functions are so, and this is quick."""
    return all(isinstance(hint, type) and hint in _PLAIN for hint in hints.values())


def _has_arrays(udf: Udf[..., Any], hints: dict[str, Any]) -> bool:
    return udf.batched and any(typing.get_origin(hint) is not list for hint in hints.values())
