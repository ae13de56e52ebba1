"""A runtime that tasks of one event loop share as long as any of them needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, Self, TypeVar


class Stoppable(Protocol):
    async def stop_async(self) -> bool: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *error: Any) -> None: ...


R = TypeVar("R", bound=Stoppable)


class Shared(Generic[R]):
    """An async context manager: the first to enter starts the runtime, the last to leave stops it."""

    def __init__(self, start: Callable[[], Awaitable[R]]) -> None:
        self._start = start
        self._users = 0
        self._started: asyncio.Future[R] | None = None

    async def __aenter__(self) -> R:
        """Raises what `start` raises, for all who wait for it; the next to enter starts again. One who is cancelled
        ends the start only if nobody else waits."""
        self._users += 1
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())
        started = self._started
        try:
            return await asyncio.shield(started)
        except BaseException:
            if started is self._started and started.done() and (started.cancelled() or started.exception()):
                self._started = None  # the next to enter tries again
            await self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        await self._leave()

    async def _leave(self) -> None:
        self._users -= 1
        if self._users or self._started is None:
            return
        started, self._started = self._started, None
        if not started.done():
            started.cancel()  # a runtime that still comes is released as garbage
            return
        async with started.result() as runtime:
            await runtime.stop_async()
