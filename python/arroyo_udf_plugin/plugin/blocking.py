"""What surrounds the calls of a blocking function. Called by the native core, native/python/src/blocking.rs, in threads
of the pool.

The Context is made before the first call and closed after the last one (R12). A call that goes on after its
cancellation is reported with its stack (R8).
"""

import logging
import sys
from typing import Any

from .stacks import running

__all__ = ["close", "open", "report_stuck"]

_log = logging.getLogger("arroyo_udf_plugin")


def open(context_class: type) -> Any:
    """Makes a Context and has it `init`. Raises what the Context raises."""
    context = context_class()
    if hasattr(context, "init"):
        context.init()
    return context


def close(context: Any) -> None:
    """Has a Context `close`, if it can. Raises what the Context raises."""
    if hasattr(context, "close"):
        context.close()


def report_stuck(function: str, row: int, thread: int) -> None:
    """Warns, once, that a call ignores its cancellation, with its stack (R8). `thread`: its ident, or 0."""
    stack = "\n".join(running(sys._current_frames().get(thread)))
    _log.warning("%s, row %d: a call ignores its cancellation; it goes on in its thread\n%s", function, row, stack)
