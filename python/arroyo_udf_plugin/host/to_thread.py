"""Work that may wait, in a thread of its own, so that an event loop goes on and its default executor is left to
others.

Assumes: nobody needs the work if the process ends first. (Threads of an executor would keep it from ending.)
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def to_thread(work: Callable[[], T], name: str) -> T:
    """What `work` returns or raises. If this is cancelled, the work goes on. name: of the thread.

    Raises RuntimeError if the process can have no more threads, and for a StopIteration of the work."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_outcome: Callable[[], None]) -> None:
        if not done.cancelled():
            set_outcome()

    def run() -> None:
        try:
            set_outcome = partial(done.set_result, work())
        except StopIteration as error:  # no future takes it
            wrapped = RuntimeError("StopIteration was raised")
            wrapped.__cause__ = error
            set_outcome = partial(done.set_exception, wrapped)
        except BaseException as error:
            set_outcome = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(tell, set_outcome)

    threading.Thread(target=run, daemon=True, name=name).start()
    return await done
