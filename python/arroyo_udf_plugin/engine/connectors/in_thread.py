"""What blocks, such as a client's request, in a thread of its own beside an event loop.

    asked = InThread[bytes]("arroyo-udf-http")
    body = await asked.answer(request)

Guarantees: whoever stops waiting loses nothing: the next `answer` gets what was asked for already. One call at a time.

Assumes: `close` comes when nobody waits, and the call that may still run ends by itself soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class InThread(Generic[Answer]):
    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._asked: Future[Answer] | None = None

    async def answer(self, ask: Callable[[], Answer]) -> Answer:
        """Raises what `ask` raises."""
        asked = self._asked = self._asked or self._thread.submit(ask)
        await asyncio.wait([asyncio.wrap_future(asked)])
        self._asked = None
        return asked.result()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
