"""The Context of a blocking function: made before its first call, closed after the last one (R12). Called by the native
core, native/python/src/blocking.rs, in a thread of the pool."""

from typing import Any

__all__ = ["close", "open"]


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
