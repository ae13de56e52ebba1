"""When something is done again: every so many seconds, but not while nothing moves.

    epochs = Ticker(10.0, wake)         wake: there may be a tick to wait for; called in the thread that moves
    epochs.left                         seconds until the next tick; inf while nothing has moved since the last one
    epochs.begin()                      a tick
    epochs.moved()                      in any thread, as soon as something has moved

Guarantees: each move is followed by the beginning of a tick. While nothing moves, nobody is woken; the ticks after that
come when they would have come without the pause.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Ticker:
    """every: in seconds; None: never. All but `moved` is called in one thread."""

    def __init__(
        self, every: float | None, wake: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._every, self._wake, self._clock = every, wake, clock
        self._tick = clock()  # the latest
        self._has_moved = self._is_resting = False
        self._wants_wake = False

    def moved(self) -> None:
        self._has_moved = True
        if self._wants_wake:
            self._wants_wake = False
            self._wake()

    def begin(self) -> None:
        """What moves from now on belongs to the next tick."""
        self._tick, self._has_moved = self._clock(), False

    @property
    def left(self) -> float:
        if self._every is None:
            return math.inf
        if not self._has_moved:
            self._wants_wake = True
        if not self._has_moved:  # still: else it has moved before it could see that somebody waits
            self._is_resting = True
            return math.inf
        since = self._clock() - self._tick
        if self._is_resting:
            self._is_resting = False
            self._tick += since // self._every * self._every
            since %= self._every
        return max(0.0, self._every - since)
