"""Work that may wait, in a thread aside, so that an event loop goes on.

Assumes: nobody needs the work if the process ends first. (Threads of an executor would keep it from ending.)
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable


async def aside(work: Callable[[], object], name: str) -> None:
    """Waits for `work`, and raises what it raises. If this is cancelled, the work goes on. name: of the thread."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failed: BaseException | None = None
        try:
            work()
        except BaseException as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(tell, failed)

    threading.Thread(target=run, daemon=True, name=name).start()
    await done
