"""A user's source as a Python module: execute it, find its functions. The build does so once, each plugin at its start.

A plugin carries a `Parcel`: its source, and the modules of the source's folder that it imports. Each plugin has these
to itself: two plugins may have different modules of the same name. So an import in carried code finds them first, and
they are in sys.modules under a name with the plugin's key.

Guarantees: the same source is one module per process, also when its plugin is opened twice (as copies). Imports
neither cffi nor pyarrow.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import linecache
import os
import sys
import threading
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..author.udf import Udf

if TYPE_CHECKING:
    from ..author.udaf import Udaf

_NOT_SHOWN = (__file__.rsplit("/", 2)[0] + "/", "<frozen importlib.")
_locks: dict[str, threading.Lock] = {}  # one per module name: its source is executed once


class Parcel(NamedTuple):
    """What a plugin carries.

    source: the text of the author's file. modules: name of each module of its folder that it imports -> its file,
    relative to the folder, and its text.
    """

    source: str
    modules: dict[str, tuple[str, str]]

    def contains(self, word: str) -> bool:
        return any(word in text for text in (self.source, *(text for _, text in self.modules.values())))


def name_of(name: str, key: str) -> str:
    """The name in sys.modules of a plugin's module."""
    return f"arroyo_udf_{name}_{key}"


def module_of(parcel: Parcel, name: str, key: str, path: str) -> types.ModuleType:
    """Executes a source as a module of its own, once per process. Tracebacks show its lines. path: its `__file__`."""
    module_name = name_of(name, key)
    with _locks.setdefault(module_name, threading.Lock()):
        known = sys.modules.get(module_name)
        return execute(module_name, parcel, f"<{name}.py {key[:12]}>", path) if known is None else known


def execute(module_name: str, parcel: Parcel, shown: str, path: str) -> types.ModuleType:
    """Executes a source as a new module and leaves it and the modules that it carries in sys.modules. Raises what the
    source raises.

    shown: the file's name in tracebacks.
    """
    module = types.ModuleType(module_name)
    module.__file__ = path
    carried = _Carried(module_name, parcel, os.path.dirname(path), shown) if parcel.modules else None
    if carried is not None:
        sys.meta_path.insert(0, carried)
        carried.prepare(module)
    sys.modules[module_name] = module  # dataclasses and pickle look their module up here
    try:
        _run(module, parcel.source, shown)
    except BaseException:
        forget(module_name)
        raise
    return module


def forget(module_name: str) -> None:
    """Removes what `execute` has added to the interpreter."""
    for name in list(sys.modules):  # a copy, because other threads import meanwhile
        if name == module_name or name.startswith(f"{module_name}_"):
            sys.modules.pop(name, None)
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not (isinstance(finder, _Carried) and finder.owner == module_name)
    ]


def _run(module: types.ModuleType, source: str, shown: str) -> None:
    linecache.cache[shown] = (len(source), None, source.splitlines(keepends=True), shown)
    exec(compile(source, shown, "exec", dont_inherit=True), module.__dict__)


class _Carried:
    """The modules that one plugin carries: what finds, makes and executes them for Python's import."""

    def __init__(self, owner: str, parcel: Parcel, folder: str, shown: str) -> None:
        self.owner = owner
        self.prefix = f"{owner}_"
        self.modules = parcel.modules
        self.tops = {name.partition(".")[0] for name in parcel.modules}
        self.folder = folder
        self.shown = shown
        self.builtins = {**vars(builtins), "__import__": self.imported}

    def prepare(self, module: types.ModuleType) -> None:
        """Imports in this module find the carried modules first."""
        module.__dict__["__builtins__"] = self.builtins

    def imported(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """`__import__` of carried code."""
        if level == 0 and name.partition(".")[0] in self.tops:
            name = self.prefix + name
        return __import__(name, globals, locals, fromlist, level)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        own = name.removeprefix(self.prefix)
        if own == name or own not in self.modules:
            return None
        file = self.modules[own][0]
        is_package = file.endswith("/__init__.py")
        spec = importlib.machinery.ModuleSpec(name, self, is_package=is_package)  # type: ignore[arg-type]
        spec.origin = os.path.join(self.folder, file)
        spec.has_location = True
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        file, text = self.modules[module.__name__.removeprefix(self.prefix)]
        self.prepare(module)
        in_plugin = self.shown.startswith("<")
        _run(module, text, f"<{file} of {self.shown[1:-1]}>" if in_plugin else os.path.join(self.folder, file))


def functions_of(module: types.ModuleType) -> list[Udf[..., Any]]:
    """The decorated functions that a module defines itself, without imported ones, in order of definition."""
    udfs = {id(value): value for value in vars(module).values() if isinstance(value, Udf)}
    own = [udf for udf in udfs.values() if udf.definition.__module__ == module.__name__]
    return sorted(own, key=lambda udf: udf.definition.__code__.co_firstlineno)


def aggregates_of(module: types.ModuleType) -> list[Udaf]:
    """The same of classes with @udaf."""
    if (udaf := sys.modules.get("arroyo_udf_plugin.author.udaf")) is None:  # no module has asked for it
        return []
    found = {id(value): udaf.aggregate_of(value) for value in vars(module).values()}
    own = [aggregate for aggregate in found.values() if aggregate and aggregate.cls.__module__ == module.__name__]
    return sorted(own, key=lambda aggregate: aggregate.line)


def user_traceback(error: BaseException) -> str:
    """The traceback of a module that failed, as text, without the frames of the toolkit and of Python's import."""
    import traceback

    shown = traceback.TracebackException.from_exception(error)
    shown.stack[:] = [frame for frame in shown.stack if not frame.filename.startswith(_NOT_SHOWN)]
    return "".join(shown.format()).rstrip()
