"""What the controller has to do: in order, though the database may fail (`Work`), and later (`Timers`).

    work.add(("job_1", "consider"), act)      once, however often it is added before it is done
    work.do()                                 everything, or until the database fails

Guarantees: an act that the database has failed is done again, and nothing else before it; so nothing is lost or
overtakes. While the database fails, there is one try each second, whatever there is to do.
Assumes: an act raises nothing but failures of the database.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator

from ..database.errors import is_outage

_log = logging.getLogger(__name__)

Act = Callable[[], object]
Key = tuple[str, str]
"""Whom it is about, such as a job's id, and what it is."""

_AGAIN = 1.0  # seconds from one try to the next


class Work:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: OrderedDict[Key, Act] = OrderedDict()
        self._failed: Act | None = None  # by the database: to be done first
        self._again_at = 0.0

    @property
    def again_at(self) -> float | None:
        """When `do` tries again; None: the database has not failed."""
        return None if self._failed is None else self._again_at

    def add(self, key: Key, act: Act) -> None:
        self._waiting.setdefault(key, act)

    def clear(self) -> None:
        self._waiting.clear()
        self._failed = None

    def do(self) -> None:
        while (act := self._next()) is not None:
            try:
                act()
            except Exception as error:
                if not is_outage(error):
                    raise
                if self._failed is None:
                    _log.warning("the database fails: %s", str(error).partition("\n")[0])
                self._failed, self._again_at = act, self._clock() + _AGAIN
            else:
                if self._failed is act:
                    _log.info("the database answers again")
                    self._failed = None

    def _next(self) -> Act | None:
        if self._failed is not None:
            return self._failed if self._clock() >= self._again_at else None
        return self._waiting.popitem(last=False)[1] if self._waiting else None


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
            self._heap = [entry for entry in self._heap if self._holds(*entry[1:3])]
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
