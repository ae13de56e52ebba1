"""A plugin's source in a subinterpreter. The native core (native/python/src/subinterpreter) calls this there: when a
plugin comes, when it goes, and when the interpreter ends.

A plugin that went leaves the modules that it has imported, as it would in the main interpreter, but not its own.

Like everything that is imported in a subinterpreter, this uses neither cffi nor pyarrow. What is slow to import and
seldom needed is imported where it is needed, because each worker waits for the rest.
"""

import gc
import marshal
import os
import sys
import threading
from typing import Any

from .._native import described
from .loading import LoadRefused, Registered, import_whole
from .loading import load as load_plugin
from .module import Parcel, forget, name_of

__all__ = ["leave", "load", "prepare", "prepared", "threads", "unload"]

_module = ""  # of the plugin that is here
_REFUSES = r"module (\S+) does not support loading in subinterpreters"


def prepared(parcel: str) -> bytes:
    """What `load` takes for a parcel, which is JSON. Called in the main interpreter, for all workers."""
    import json

    return marshal.dumps(tuple(Parcel(**json.loads(parcel))))


def load(
    descriptor: int,
    parcel: bytes,
    library: str,
    built_with: str,
    built_format: int,
    environment: dict[bytes, bytes],
    prints_to_stderr: bool,
) -> list[Registered] | tuple[int, str]:
    """What to register; or a status and a text, if the plugin does not load.

    parcel: from `prepared`. environment: of the process. An interpreter reads it once, and this one may have been
    there before.
    """
    global _module
    _module = name_of(*described(descriptor)[:2])
    os.environ._data = environment  # type: ignore[attr-defined]  # setting a variable would set it in the process
    if prints_to_stderr:
        sys.stdout = sys.stderr
    try:
        carried = Parcel(*marshal.loads(parcel))
        return load_plugin(descriptor, carried, library, built_with, built_format, in_main=False)
    except LoadRefused as refused:
        if (said := _refusal(refused.__cause__)) is None:
            return refused.status, str(refused)
        module = said[1].partition(".")[0]
        return refused.status, (
            f"its module imports {module}, which does not load in a subinterpreter ({said[0]}): choose "
            'isolation="process" or "thread"'
        )


def _refusal(error: BaseException | None) -> Any:
    """What a module has said that does not load in subinterpreters, if that is why an import failed: a match."""
    import re

    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))  # a chain may be a circle
        if isinstance(error, ImportError) and (said := re.search(_REFUSES, str(error))):
            return said
        error = error.__cause__ or error.__context__
    return None


def prepare() -> None:
    """Imports what a start needs. Raises what the import raises; a later call tries again."""
    import_whole("arroyo_udf_plugin.plugin.executor")


def unload() -> bool:
    """Removes the plugin that was loaded. False: a thread or a Task of it is left, so no other one must come."""
    forget(_module)
    gc.collect()
    executor = sys.modules.get("arroyo_udf_plugin.plugin.executor")
    known = {threading.main_thread()}
    if executor is not None:
        if not executor.is_idle():
            return False
        known |= executor.threads()
    left = (thread for thread in threading.enumerate() if thread not in known)
    return all(isinstance(thread, threading._DummyThread) for thread in left)  # those are the toolkit's


def threads() -> list[int]:
    """The idents of the threads that code here has made. Python's main thread counts in every interpreter."""
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    return [
        thread.ident for thread in others if thread.ident is not None and not isinstance(thread, threading._DummyThread)
    ]


def leave() -> None:
    """Ends the threads of this interpreter that end when asked to, and waits for those that its code has started."""
    if executor := sys.modules.get("arroyo_udf_plugin.plugin.executor"):
        executor.stop_loop()
    threading._shutdown()  # type: ignore[attr-defined]  # as Python itself, which then aborts if one is left
    # What threading keeps of this thread, which it has not made, deletes itself, and needs a module that still works.
    vars(threading._thread_local_info).clear()  # type: ignore[attr-defined]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
