"""A user's source as a Python module: execute it, find its functions. The build does so once, each plugin at its start.

Guarantees: the same source is one module per process, also when its plugin is opened twice (as copies). Imports
neither cffi nor pyarrow.
"""

import linecache
import sys
import threading
import traceback
import types
from typing import Any

from ..author.udf import Udf

_OWN_FOLDER = __file__.rsplit("/", 2)[0] + "/"
_locks: dict[str, threading.Lock] = {}  # one per module name: its source is executed once


def module_of(source: str, name: str, key: str) -> types.ModuleType:
    """Executes a source as a module of its own, once per process. Tracebacks show its lines."""
    module_name = f"arroyo_udf_{name}_{key}"
    with _locks.setdefault(module_name, threading.Lock()):
        known = sys.modules.get(module_name)
        return execute(module_name, source, f"<{name}.py {key[:12]}>") if known is None else known


def execute(module_name: str, source: str, file: str) -> types.ModuleType:
    """Executes a source as a new module and leaves it in sys.modules. Raises what the source raises."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType(module_name)
    module.__file__ = file
    sys.modules[module_name] = module  # dataclasses and pickle look their module up here
    try:
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def functions_of(module: types.ModuleType) -> list[Udf[..., Any]]:
    """The decorated functions that a module defines itself, without imported ones, in order of definition."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, Udf)}
    own = [udf for udf in found.values() if udf.function.__module__ == module.__name__]
    return sorted(own, key=lambda udf: udf.function.__code__.co_firstlineno)


def user_traceback(error: BaseException) -> str:
    """The traceback of a module that failed, as text, without the toolkit's own frames at its top."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()
