"""The Python side of a Python plugin. Its C side (build/templates/plugin_inner.c) calls it at start and exit only.

Executes the source inside the plugin, and registers its functions with the native core. If that fails, the C side gets
the reason as text and answers it to the call; the next call tries again if the environment was the reason.

In a process that is not Python, standard output is the host's: what `print` writes there goes to standard error.
"""

import atexit
import json
import sys
import traceback
from typing import Any

from .._native import register, stop_all
from ..abi import INTERNAL
from .loading import LoadRefused, load
from .module import Parcel
from .registered import functions as registered

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
        except LoadRefused as refused:
            lib.plugin_failed(refused.status, str(refused).encode())
            return -1
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
    """Registers the plugin's functions. Returns the core's number of the first. Raises Refused."""
    global _guard
    if guard := lib.plugin_guard():
        _guard = guard
        sys.stdout = sys.stderr
    lib.plugin_set_guard(_guard)

    parcel, library, python = (
        own_ffi.string(of()).decode() for of in (lib.plugin_parcel, lib.plugin_library, lib.plugin_python)
    )
    functions = load(lib.plugin_descriptor(), Parcel(**json.loads(parcel)), library, python, built_format)
    if _guard and "pyarrow" in sys.modules:
        _touch_pyarrow()
    base = int(register(lib.plugin_descriptor(), functions))
    registered[lib.plugin_descriptor()] = functions
    return base


def _touch_pyarrow() -> None:
    """Makes pyarrow create its lazy objects now: those destroyed at exit must be older than our exit handler."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pc.sum(pa.array([0]))
    pa.cpu_count()
    pa.io_thread_count()
