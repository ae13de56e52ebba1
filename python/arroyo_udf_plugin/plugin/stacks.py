"""Stacks as text, reduced to the user's frames: of exceptions, running threads and waiting Tasks.

Does not import asyncio, which takes long: a row's error needs none.
"""

from __future__ import annotations

import os
import sysconfig
import threading
import traceback
from collections.abc import Iterator
from itertools import dropwhile, islice
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["describe", "running", "suspended"]

FRAMES = 3
REASONS = 10
_OWN_FOLDER = __file__.rsplit("/", 2)[0] + "/"
_LIBRARIES = (*(sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")), "<frozen ")
_STANDARD = os.path.dirname(threading.__file__)
_MACHINERY = (_OWN_FOLDER, *(f"{_STANDARD}/{name}" for name in ("asyncio/", "threading.py", "selectors.py")))


def describe(exception: BaseException) -> str:
    """`Type: message`, then the innermost frames, with one of the author's, and the reasons: a line each.

    The native core calls this.
    """
    frames = traceback.extract_tb(exception.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDER)]
    shown = users[-FRAMES:]
    authors = [frame for frame in users if not _is_library(frame.filename)]
    if authors and authors[-1] not in shown:
        shown[0] = authors[-1]
    return "\n".join([_summary(exception), *map(_place, shown), *islice(_reasons(exception, "  ", set()), REASONS)])


def _summary(exception: BaseException) -> str:
    """`Type: message`. Of this one alone: `traceback` looks at all that it comes from, or consists of."""
    if isinstance(exception, BaseExceptionGroup):
        return f"{type(exception).__name__}: {exception}"
    # With a set of those it has seen, it leaves out the chain, which is another thread's to read or change meanwhile.
    alone = traceback.TracebackException(type(exception), exception, None, compact=True, _seen=set())
    alone.exceptions = None  # this is no group; from 3.13 on it asks
    return "".join(alone.format_exception_only()).strip()


def _reasons(exception: BaseException, indent: str, seen: set[int]) -> Iterator[str]:
    """The exceptions of a group, and those that an exception comes from, a line each."""
    seen.add(id(exception))  # a chain may be a circle
    for inner in exception.exceptions if isinstance(exception, BaseExceptionGroup) else ():
        yield f"{indent}- {_summary(inner)}"
        yield from _reasons(inner, indent + "  ", seen)
    cause = exception.__cause__ or (None if exception.__suppress_context__ else exception.__context__)
    if cause is not None and id(cause) not in seen:
        yield f"{indent}from {_summary(cause)}"
        yield from _reasons(cause, indent, seen)


def _is_library(file: str) -> bool:
    """Installed, of the standard library, or compiled: Cython names its files by relative paths."""
    return file.startswith(_LIBRARIES) or not file.startswith(("/", "<"))


def running(frame: FrameType | None) -> list[str]:
    """The stack of a thread, a line per frame, below the frames of event loop and toolkit."""
    frames = [] if frame is None else traceback.extract_stack(frame)
    return [_place(summary) for summary in dropwhile(lambda summary: summary.filename.startswith(_MACHINERY), frames)]


def suspended(task: asyncio.Task[Any]) -> list[str]:
    """Where a Task waits, a line per coroutine, without the toolkit's own."""
    places: list[traceback.FrameSummary] = []
    waiting: Any = task.get_coro()
    while waiting is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(waiting, f"{kind}_frame")), None)
        if kind is None:
            break
        if (frame := getattr(waiting, f"{kind}_frame")) is not None:
            places += traceback.extract_stack(frame, limit=1)
        waiting = getattr(waiting, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return [_place(summary) for summary in places if not summary.filename.startswith(_OWN_FOLDER)]


def _place(frame: traceback.FrameSummary) -> str:
    return f"  at {frame.name}, {frame.filename}:{frame.lineno}: {frame.line}"
