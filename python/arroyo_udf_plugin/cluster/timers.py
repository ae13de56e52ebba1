"""What is to happen later, in the controller's loop."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator

Act = Callable[[], object]

_MANY = 1000  # names that are remembered after they were dropped


class Timers:
    """Each belongs to a name, such as a job's id; `drop` forgets all timers of a name."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str, Act]] = []
        self._numbers = itertools.count()
        self._first: dict[str, int] = {}  # timers with an earlier number have been dropped

    def set(self, name: str, at: float, act: Act) -> None:
        heapq.heappush(self._heap, (at, next(self._numbers), name, act))

    def drop(self, name: str) -> None:
        self._first[name] = next(self._numbers)
        if len(self._first) > _MANY:
            self._heap = [one for one in self._heap if self._holds(*one[1:3])]
            heapq.heapify(self._heap)
            self._first.clear()

    @property
    def next(self) -> float | None:
        """When the next one is due; None: there is none."""
        while self._heap and not self._holds(*self._heap[0][1:3]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[Act]:
        while (at := self.next) is not None and at <= now:
            yield heapq.heappop(self._heap)[3]

    def _holds(self, number: int, name: str) -> bool:
        return number >= self._first.get(name, 0)
