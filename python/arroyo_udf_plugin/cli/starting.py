"""The start of a command, without collections of garbage.

What a command imports stays until the process ends. So no collection looks at it: none of the dozens that so many new
objects would begin, none later, and not the last one, when the process ends.
"""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """The block imports what a command needs, and makes few other objects in cycles: these stay, too."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
