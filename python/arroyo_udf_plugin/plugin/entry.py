"""The Python side of a Python plugin. Its C side (build/templates/plugin.c) calls this at start and exit only.

Executes the source inside the plugin, and registers its functions with the native core. If that fails, the C side gets
the reason as text and answers it to the call; the next call tries again if the environment was the reason.

In a process that is not Python, standard output is the host's: what `print` writes there goes to standard error.
"""

import atexit
import errno
import importlib
import json
import os
import sys
import traceback
import typing
from typing import Any

from .._native import note_interrupt, register, stop_all
from ..abi import ASYNC, ENVIRONMENT, INTERNAL, OUT_OF_MEMORY, USER_CODE, ffi, text
from ..author.udf import Udf
from ..version import PLUGIN_FORMAT, __version__
from .module import Parcel, functions_of, module_of, user_traceback
from .origin import source_of

atexit.register(stop_all)  # before the interpreter ends, while its threads still get the GIL (R18)
_guard = 0  # address of guard_our_exit in the plugin that booted Python; 0 in a Python process


def define(built_format: int, own_ffi: Any, lib: Any) -> None:
    """Gives the C side its two Python functions. Called by cffi's embedding code; no user code runs here.

    built_format: `PLUGIN_FORMAT` of the toolkit that built the plugin.
    """

    @own_ffi.def_extern(error=-1)  # type: ignore[untyped-decorator]
    def plugin_load() -> int:
        try:
            return _load(built_format, own_ffi, lib)
        except BaseException:  # cffi would print the exception and answer the error value
            lib.plugin_failed(INTERNAL, traceback.format_exc().encode())
            return -1

    @own_ffi.def_extern()  # type: ignore[untyped-decorator]
    def plugin_leave() -> None:
        stop_all()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()


def _load(built_format: int, own_ffi: Any, lib: Any) -> int:
    """Registers the plugin's functions. Returns the core's number of the first; -1 after `plugin_failed`."""
    global _guard
    if guard := lib.plugin_guard():
        _guard = guard
        sys.stdout = sys.stderr
    lib.plugin_set_guard(_guard)

    if built_format != PLUGIN_FORMAT:
        reason = f"built in plugin format {built_format}, and the installed arroyo_udf_plugin {__version__} "
        lib.plugin_failed(ENVIRONMENT, f"{reason}loads format {PLUGIN_FORMAT}: build the plugin again".encode())
        return -1
    descriptor = ffi.cast("arroyo_udf_descriptor *", lib.plugin_descriptor())
    name, key = text(descriptor.name), text(descriptor.hash)
    parcel = Parcel(**json.loads(own_ffi.string(lib.plugin_parcel()).decode()))
    library, built_with = (own_ffi.string(of()).decode() for of in (lib.plugin_library, lib.plugin_python))
    try:
        module = module_of(parcel, name, key, source_of(library, name))
    except BaseException as error:  # SystemExit and KeyboardInterrupt at import are failures, too
        failed = f"its module failed at import\n{user_traceback(error)}{_other_environment(built_with)}"
        lib.plugin_failed(_status_of(error), failed.encode())
        return -1

    if parcel.contains("call_info"):
        # Calls that began before this import have no information; so import it before the first call.
        importlib.import_module("arroyo_udf_plugin.author.call_info")
    if _guard and "pyarrow" in sys.modules:
        _touch_pyarrow()
    found = {udf.__name__: udf for udf in functions_of(module)}
    if any(udf.is_async for udf in found.values()):
        # Now, because there is room: asyncio cannot be imported again after an import that failed halfway.
        importlib.import_module("arroyo_udf_plugin.plugin.executor")
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


def _touch_pyarrow() -> None:
    """Makes pyarrow create its lazy objects now: those destroyed at exit must be older than our exit handler."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pc.sum(pa.array([0]))
    pa.cpu_count()
    pa.io_thread_count()


def _agrees(udf: Udf[..., Any], function: Any) -> bool:
    arguments = udf.definition.__code__.co_argcount  # a Context may come first
    extra = arguments - function.arguments.n_children
    batched = udf.starts and bool(function.options.batch_size)
    return udf.starts == (function.kind == ASYNC) and extra in (0, int(udf.starts)) and udf.batched == batched


def _callable(udf: Udf[..., Any], function: Any) -> tuple[Any, type | None, bool, bool]:
    """What the core calls for a function, the class of its Context, and whether it blocks and may be split.

    Imports pyarrow only for structs, and for the arrays of micro-batches.
    """
    code = udf.definition.__code__
    context = None
    if code.co_argcount > function.arguments.n_children:
        context = typing.get_type_hints(udf.definition)[code.co_varnames[0]]
    columns = [function.arguments.children[i] for i in range(function.arguments.n_children)]
    as_written = not any(_has_struct(schema) for schema in [*columns, function.returns])
    if as_written and not (udf.batched and _has_arrays(udf)):
        return udf.function, context, udf.blocking, udf.split
    from ..author.types import adapted, signature

    return adapted(udf, signature(udf).hints), context, udf.blocking, udf.split


def _has_arrays(udf: Udf[..., Any]) -> bool:
    hints = typing.get_type_hints(udf.definition)
    return any(hasattr(hint, "_export_to_c") for hint in hints.values())


def _has_struct(schema: Any) -> bool:
    children = (schema.children[i] for i in range(schema.n_children))
    return text(schema.format) == "+s" or any(_has_struct(child) for child in children)
