"""Crashes of functions: `arroyo-udf run` names the function before the process is gone.

    with named(["mine.mph"]):
        ...

A fatal signal, `os._exit` and an `exit` in native code leave a line on standard error; a signal also leaves the Python
stack of its thread (faulthandler). Those of other threads may change while they are read, which would be a fault of its
own and hide the first. Nothing can be said of SIGKILL, or of `_exit` in native code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
from collections.abc import Iterable, Iterator

from .._native import name_in_crash

__all__ = ["named"]

INSTEAD = (
    "arroyo-udf: in a worker process it would cost the row in hand only: --isolation process, or in a pipeline "
    'isolation = "process"'
)
"""As in native/python/src/crashes.rs."""


@contextlib.contextmanager
def named(functions: Iterable[str]) -> Iterator[None]:
    """Names the functions if the process ends abnormally within the block."""
    names = ", ".join(functions)
    own, leave = os.getpid(), os._exit

    def left(status: int) -> None:
        if os.getpid() == own:  # children end so as a matter of course
            os.write(2, f"arroyo-udf: the run of {names} ended by os._exit({status})\n{INSTEAD}\n".encode())
        leave(status)

    faulthandler.disable()  # PYTHONFAULTHANDLER may have enabled it, and its handlers must come before ours
    name_in_crash(names.encode())
    faulthandler.enable(2, all_threads=False)
    os._exit = left  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave
        name_in_crash(None)
