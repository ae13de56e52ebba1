"""Whether a slice's source is idle: all its readers wait for rows, and have for a while.

A reader that waits for room does not wait for rows, and a loop that was busy could not have read any: rows that a slow
function holds back do not become late.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator


class Idleness:
    """seconds: after which the source is idle; None: never. tell: called when it is. Used in one event loop."""

    def __init__(self, seconds: float | None, tell: Callable[[], None]) -> None:
        self._seconds, self._tell = seconds, tell
        self._readers = self._waiting = 0
        self._since = 0.0  # when the latest reader began to wait
        self._timer: asyncio.TimerHandle | None = None
        self._is_idle = self._is_told = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """While a reader is there."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While a reader waits for rows."""
        self._waiting += 1
        if self._seconds is not None and not self._is_idle:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            if self._timer is None:
                self._look_at(loop, self._since + self._seconds, self._seconds)
        try:
            yield
        finally:
            self._waiting -= 1

    def _look_at(self, loop: asyncio.AbstractEventLoop, due: float, seconds: float) -> None:
        """Not for each batch: a look finds out whether it came too early."""

        def look() -> None:
            self._timer = None
            if not self._readers:
                return
            now = loop.time()
            was_busy = now > due + seconds / 2
            if self._waiting < self._readers or was_busy:
                self._look_at(loop, now + seconds, seconds)
            elif now < self._since + seconds:
                self._look_at(loop, self._since + seconds, seconds)
            else:
                self._is_idle, self._is_told = True, False
                self._tell()

        self._timer = loop.call_at(due, look)

    def began(self) -> bool:
        """Whether it has become idle since the last question."""
        is_new, self._is_told = self._is_idle and not self._is_told, True
        return is_new

    def ended(self) -> bool:
        """Rows have come. Whether it was idle."""
        was, self._is_idle = self._is_idle, False
        return was
