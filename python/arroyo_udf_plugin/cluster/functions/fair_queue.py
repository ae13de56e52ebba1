"""Whose turn it is: work of several callers, of which a few may run at once.

    turns = Turns("builds", Lane(at_once=2, waiting=50))
    async with turns.turn(): ...                    for the caller in `calling`

Each caller has `at_once` places of his own, and all callers together have twice as many. So one caller alone gets no
more than his places, however much he sends, and the first work of another one begins at once. If all places are taken,
those who wait get the next ones in turn, caller by caller.

Guarantees: a caller who waits gets the next free place but those of other callers who have waited for longer. Work that
cannot wait is refused: a queue has a limit. Work whose caller has gone leaves its place, and the queue.
Assumes: one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

calling: contextvars.ContextVar[str] = contextvars.ContextVar("calling", default="anyone")
"""The name of who calls."""


class Busy(Exception):
    """Too much waits already. what: of which kind. The text is for the caller."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(text)
        self.what = what


@dataclass(frozen=True)
class Lane:
    """at_once: places of each caller. waiting: pieces of work of each caller that may wait."""

    at_once: int = 2
    waiting: int = 50


class Turns:
    def __init__(self, what: str, lane: Lane) -> None:
        self.what, self._lane = what, lane
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller; who has got a place goes to the end."""

    @property
    def running(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Raises Busy."""
        caller = calling.get()
        await self._enter(caller)
        try:
            yield
        finally:
            self._running[caller] -= 1
            self._go_on()

    async def _enter(self, caller: str) -> None:
        own = self._waiting.setdefault(caller, deque())
        if len(own) >= self._lane.waiting:
            raise Busy(self.what, f"{len(own)} {self.what} of yours wait already: send this one when some have ended")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.append(place)
        self._go_on()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it has got its place at the same moment
                self._running[caller] -= 1
            elif place in own:
                own.remove(place)
            self._go_on()
            raise

    def _has_room(self, caller: str) -> bool:
        return self._running[caller] < self._lane.at_once and self.running < 2 * self._lane.at_once

    def _next(self) -> str | None:
        return next((caller for caller, own in self._waiting.items() if own and self._has_room(caller)), None)

    def _go_on(self) -> None:
        """Gives free places away, each to the caller who has waited for longest since his last one."""
        while (caller := self._next()) is not None:
            own = self._waiting[caller] = self._waiting.pop(caller)  # it goes to the end
            place = own.popleft()
            if not place.done():
                self._running[caller] += 1
                place.set_result(None)
        for caller in [idle for idle, own in self._waiting.items() if not own and not self._running[idle]]:
            del self._waiting[caller]
            del self._running[caller]
