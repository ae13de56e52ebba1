"""What deleted pipelines have stored is removed, in a thread of its own.

    remover = Remover(database)
    remover.want(jobs.leftovers(session))      as often as somebody looks

Guarantees: the controller does not wait for a store. A place that cannot be removed is tried again with a back-off of
its own, holds no other place up, and is told in the log once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from ..engine.store import open_store
from .database import jobs
from .database.opened import Database

_log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0
_PATIENCE = 5.0
"""Seconds for a thread that is waiting for a store, at the end."""


@dataclass
class _Try:
    """due: when the place is tried next. failed: how often it was tried."""

    due: float
    failed: int = 0


class Remover:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._wanted: dict[str, _Try] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def want(self, places: Iterable[str]) -> None:
        """These, and no others, are to be removed. Does not wait."""
        now = time.monotonic()
        with self._changed:
            self._wanted = {place: self._wanted.get(place) or _Try(now) for place in places}
            if self._wanted and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="arroyo-udf-removal", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """What is not removed yet is left to the next controller."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while (place := self._next()) is not None:
            try:
                open_store(place, patience=0.0).clear()
                if self._is_closed:
                    return
                with self._database.begin() as session:
                    jobs.removed(session, place)
            except Exception as error:  # whatever it is, other places go on
                self._put_off(place, error)
            else:
                with self._changed:
                    self._wanted.pop(place, None)

    def _next(self) -> str | None:
        """The place that is due, as soon as one is. None: it is closed."""
        with self._changed:
            while not self._is_closed:
                place = min(self._wanted, key=lambda each: self._wanted[each].due, default=None)
                left = None if place is None else self._wanted[place].due - time.monotonic()
                if left is not None and left <= 0:
                    return place
                self._changed.wait(left)
        return None

    def _put_off(self, place: str, error: Exception) -> None:
        with self._changed:
            found = self._wanted.get(place)
            if found is None:
                return
            found.due = time.monotonic() + min(_FIRST_PAUSE * 2.0 ** min(found.failed, 30), _LONGEST_PAUSE)
            found.failed += 1
        level = logging.WARNING if found.failed == 1 else logging.DEBUG
        text = str(error).partition("\n")[0]
        _log.log(level, "%s cannot be removed, and is tried again from time to time: %s", place, text)
