"""The Python side of a Python plugin: called by its C side (build/templates/plugin.c), in cold calls only.

Turns the source inside the plugin into a module, and registers its functions with the native core. What goes wrong is
told to the C side as a text, which answers it to every call.

The same source is one module per process, also when its plugin is opened twice (as copies).
"""

import atexit
import importlib
import sys
import traceback
import typing
from typing import Any

from .._native import register, stop_all
from ..abi import ASYNC, ENVIRONMENT, INTERNAL, USER_CODE, ffi, text
from ..author.udf import Udf
from ..version import __version__
from .module import functions_of, module_of, user_traceback

atexit.register(stop_all)  # before the interpreter ends, while its threads still get the GIL (R18)
_guard = 0  # address of guard_our_exit in the plugin that booted Python; 0 in a Python process


def define(own_ffi: Any, lib: Any) -> None:
    """Gives the C side its two Python functions. Called by cffi's embedding code; no user code runs here."""

    @own_ffi.def_extern(error=-1)  # type: ignore[untyped-decorator]
    def plugin_load() -> int:
        try:
            return _load(own_ffi, lib)
        except BaseException:  # nothing may leave: cffi would print it and answer the error value
            lib.plugin_failed(INTERNAL, traceback.format_exc().encode())
            return -1

    @own_ffi.def_extern()  # type: ignore[untyped-decorator]
    def plugin_leave() -> None:
        stop_all()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()


def _load(own_ffi: Any, lib: Any) -> int:
    """Registers the plugin's functions. Returns the number that the core gave the first, or -1 (reason told)."""
    global _guard
    _guard = lib.plugin_guard() or _guard
    lib.plugin_set_guard(_guard)

    descriptor = ffi.cast("arroyo_udf_descriptor *", lib.plugin_descriptor())
    name, built_by, key = (text(p) for p in (descriptor.name, descriptor.toolkit_version, descriptor.hash))
    if built_by != __version__:
        reason = f"built by arroyo_udf_plugin {built_by}, and {__version__} is installed here: build it again"
        lib.plugin_failed(ENVIRONMENT, reason.encode())
        return -1

    try:
        source = own_ffi.string(lib.plugin_source()).decode()
        module = module_of(source, name, key)
    except BaseException as error:  # SystemExit and KeyboardInterrupt at import are failures of the module as well
        status = ENVIRONMENT if isinstance(error, ModuleNotFoundError) else USER_CODE
        lib.plugin_failed(status, f"its module failed at import\n{user_traceback(error)}".encode())
        return -1

    if "call_info" in source:
        # For a source that looks it up in the package: once a call has begun it is too late to tell that call.
        importlib.import_module("arroyo_udf_plugin.author.call_info")
    if _guard and "pyarrow" in sys.modules:
        _touch_pyarrow()
    found = {udf.__name__: udf for udf in functions_of(module)}
    registered = []
    for number in range(descriptor.n_functions):
        function = descriptor.functions[number]
        udf = found.get(text(function.name))
        if udf is None or not _agrees(udf, function):
            reason = (
                f"function {text(function.name)!r} is another than when the plugin was built: its module defines it "
            )
            lib.plugin_failed(ENVIRONMENT, f"{reason}by something that differs here; build it again".encode())
            return -1
        registered.append(_callable(udf, function))
    return int(register(lib.plugin_descriptor(), registered))


def _touch_pyarrow() -> None:
    """Uses what pyarrow makes at first use and destroys at exit, so that it is older than our own exit handler."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pc.sum(pa.array([0]))
    pa.cpu_count()
    pa.io_thread_count()


def _agrees(udf: Udf[..., Any], function: Any) -> bool:
    arguments = udf.function.__code__.co_argcount  # a Context may come first
    extra = arguments - function.arguments.n_children
    batched = udf.starts and bool(function.options.batch_size)
    return udf.starts == (function.kind == ASYNC) and extra in (0, int(udf.starts)) and udf.batched == batched


def _callable(udf: Udf[..., Any], function: Any) -> tuple[Any, type | None, bool]:
    """What the core calls for a function, the class of its Context, and whether it blocks. Imports pyarrow only where
    structs, or the arrays of micro-batches, occur."""
    code = udf.function.__code__
    context = None
    if code.co_argcount > function.arguments.n_children:
        context = typing.get_type_hints(udf.function)[code.co_varnames[0]]
    columns = [function.arguments.children[i] for i in range(function.arguments.n_children)]
    as_written = not any(_has_struct(schema) for schema in [*columns, function.returns])
    if as_written and not (udf.batched and _has_arrays(udf)):
        return udf.function, context, udf.blocking
    from ..author.types import adapted, signature

    return adapted(udf, signature(udf).hints), context, udf.blocking


def _has_arrays(udf: Udf[..., Any]) -> bool:
    hints = typing.get_type_hints(udf.function)
    return any(hasattr(hint, "_export_to_c") for hint in hints.values())


def _has_struct(schema: Any) -> bool:
    children = (schema.children[i] for i in range(schema.n_children))
    return text(schema.format) == "+s" or any(_has_struct(child) for child in children)
