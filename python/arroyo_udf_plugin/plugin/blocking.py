"""Blocking functions: their Context, and the stacks of stuck calls. The native core (native/python/src/blocking.rs)
calls this on threads of the pool.

The Context is created before the first call and closed after the last one (R12). A call that continues after its
cancellation is reported with its stack (R8).
"""

from typing import Any

from .._native import frame
from .stacks import running

__all__ = ["close", "open", "stack"]


def open(context_class: type) -> Any:
    """Creates a Context and calls its `init`. Raises what the Context raises."""
    context = context_class()
    if hasattr(context, "init"):
        context.init()
    return context


def close(context: Any) -> None:
    """Calls a Context's `close`, if it has one. Raises what the Context raises."""
    if hasattr(context, "close"):
        context.close()


def stack(thread: int) -> str:
    """The stack of the user's code in a thread. `thread`: its ident; 0: unknown."""
    return "\n".join(running(frame(thread)))
