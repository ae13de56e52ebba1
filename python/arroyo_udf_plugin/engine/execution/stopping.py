"""Requests to stop, and deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable


class StopRequest:
    """Asks the engine to stop.

    With checkpoints the first request ends the reading, lets the rows in flight end (for `timeout` seconds), and takes
    a last checkpoint. The second one, and without checkpoints the first, ends everything at once.

    `request` may be called from any thread.
    """

    def __init__(self, timeout: float = 10.0) -> None:
        self.timeout = timeout
        self.requests = 0
        self._tell: Callable[[], None] = lambda: None

    def request(self) -> None:
        self.requests += 1
        self._tell()

    def connect(self, tell: Callable[[], None]) -> None:
        """tell: called after each request; at once, if there has been one."""
        self._tell = tell
        if self.requests:
            tell()


class Deadline:
    """One budget of time that several waits share."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds; 0.0 when it has passed."""
        return max(0.0, self._end - time.monotonic())
