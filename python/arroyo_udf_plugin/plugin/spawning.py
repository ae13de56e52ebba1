"""Programs that functions start get the host's mask of signals, not that of the toolkit's threads, which block all.

`subprocess`, `multiprocessing`, asyncio and `os` start programs by one of the four functions that are replaced here,
in this interpreter. Elsewhere than in a thread with the toolkit's mask they do what they did. Children by `os.fork` are
the native core's matter (native/runtime/src/forks.rs).
"""

import _posixsubprocess
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from .._native import as_host

__all__ = ["prepare"]


def prepare() -> None:
    """Replaces them. Does nothing the next time."""
    _replace(_posixsubprocess, "fork_exec")
    _replace(sys.modules.get("subprocess"), "_fork_exec")  # which it has taken from there
    for name in ("posix_spawn", "posix_spawnp", "system"):
        _replace(os, name)


def _replace(module: Any, name: str) -> None:
    start = getattr(module, name, None)
    if start is not None and not hasattr(start, "_starts_as_host"):
        setattr(module, name, _started_as_host(start))


def _started_as_host(start: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(start)
    def starts(*arguments: Any, **keywords: Any) -> Any:
        return as_host(start, arguments, keywords)

    starts._starts_as_host = True  # type: ignore[attr-defined]
    return starts
