"""Write a UDF in Python, Rust or C; get one shared library that any engine calls over a small C ABI.

    from arroyo_udf_plugin import udf         mark a function
    from arroyo_udf_plugin import udaf, udtf  an aggregate; a function that gives several rows
    from arroyo_udf_plugin import Constant    a parameter of a vectorised function that is one value
    from arroyo_udf_plugin import build       source -> shared library
    from arroyo_udf_plugin import load        shared library -> functions on Arrow arrays
    from arroyo_udf_plugin import Policy      what becomes of rows that failed
    from arroyo_udf_plugin import call_info   within a call: row, attempt, deadline, idempotency key
    from arroyo_udf_plugin import run_pipeline    a source, functions and sinks: see engine/pipeline/
    from arroyo_udf_plugin import restore_pipeline    back to an older checkpoint of one

Three houses stand on each other; each room uses only those below it, and `make lint` checks that:

    cli/               the command line;   testing/: a simulation of engines, for tests of connectors
    integrations/      one line to use a library in DuckDB, Polars, Daft, Spark, SQLite, DataFusion and pandas
    cluster/           jobs: API, controller, schedulers
    engine/            pipelines in one process: files, streams, SQL, windows, checkpoints
    build/   host/     the toolkit: source -> plugin;   load a plugin and call its functions
    plugin/            what runs inside a Python plugin
    author/            what a function's author imports
    abi.py             the C contract, through cffi;   errors.py: the exceptions;   version.py
    worker.py          the program of a worker process of functions;   failpoints.py: where tests may stop a process
    connectors.py, pipeline.py    old places, which say where their names are now

Importing this package is cheap, because each worker does it, and possible in a subinterpreter, where neither cffi nor
pyarrow can be imported: names that need one of them, or that few sources need, are looked up when first used. So is
`call_info`, because importing it makes every call pay for it. `build` is imported here, so that the function and not
the room of the same name is what the package offers.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .author.udf import udf
from .build import build
from .errors import (
    AbiError,
    ArroyoUdfError,
    BuildError,
    Fenced,
    InternalError,
    InvalidArgument,
    InvalidState,
    LoadError,
    PluginEnvironmentError,
    RowError,
    UnsupportedCall,
    UserCodeError,
    WouldBlock,
)
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .author.call_info import CallInfo, call_info, call_infos
    from .author.constant import Constant
    from .author.options import Options, StartOptions
    from .author.udaf import udaf, udtf
    from .engine.dead_letters import DeadLetters
    from .engine.execution.embedded import restore_pipeline, run_pipeline
    from .host.answers import Answered
    from .host.function import Function
    from .host.library import Plugin, load
    from .host.policy import Decided, Policy
    from .host.runtime import Runtime
    from .host.statistics import Latency, Statistics

__all__ = [
    "AbiError",
    "Answered",
    "ArroyoUdfError",
    "BuildError",
    "CallInfo",
    "Constant",
    "DeadLetters",
    "Decided",
    "Fenced",
    "Function",
    "InternalError",
    "InvalidArgument",
    "InvalidState",
    "Latency",
    "LoadError",
    "Options",
    "Plugin",
    "PluginEnvironmentError",
    "Policy",
    "RowError",
    "Runtime",
    "StartOptions",
    "Statistics",
    "UnsupportedCall",
    "UserCodeError",
    "WouldBlock",
    "build",
    "call_info",
    "call_infos",
    "load",
    "restore_pipeline",
    "run_pipeline",
    "udaf",
    "udf",
    "udtf",
]

_AT_FIRST_USE = {
    "author.call_info": ("CallInfo", "call_info", "call_infos"),
    "author.constant": ("Constant",),
    "author.options": ("Options", "StartOptions"),
    "author.udaf": ("udaf", "udtf"),
    "engine.dead_letters": ("DeadLetters",),
    "engine.execution.embedded": ("restore_pipeline", "run_pipeline"),
    "host.answers": ("Answered",),
    "host.function": ("Function",),
    "host.library": ("Plugin", "load"),
    "host.policy": ("Decided", "Policy"),
    "host.runtime": ("Runtime",),
    "host.statistics": ("Latency", "Statistics"),
}


def __getattr__(name: str) -> Any:
    for module, names in _AT_FIRST_USE.items():
        if name in names:
            return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
