"""Changes, as the engine reads them: a thread follows the server, a little ahead of the event loop.

Guarantees: the loop never waits. A cancelled `read` loses nothing. A slot that was made here goes again with the
partition, if no checkpoint can need it: so a trial leaves none, for which the server would keep its log for ever.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import threading
from collections.abc import Sequence

import pyarrow as pa

from ....errors import ArroyoUdfError
from ..interface import Gauge, Json
from ..interrupt import Interrupt
from ..source import Rows
from .change_rows import ChangeColumns
from .follower import Follower, FollowingOptions
from .positions import ChangesPosition
from .publisher import Publisher
from .wire import Interrupted, Lost, Refused

_log = logging.getLogger(__name__)

_AHEAD = 2  # batches


class ChangesPartition:
    """position: where it begins."""

    def __init__(
        self, publisher: Publisher, columns: ChangeColumns, following: FollowingOptions, position: ChangesPosition
    ) -> None:
        self._publisher, self._schema = publisher, columns.schema
        self._position = position
        self._interrupt = Interrupt()
        self._follower = Follower(publisher, columns, following, position, self, self._interrupt)
        self._ready: collections.deque[tuple[Rows | None, ChangesPosition] | BaseException | None] = collections.deque()
        self._room = threading.Semaphore(_AHEAD)
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_kept = False  # the slot: a checkpoint may have a position

    def confirm(self, lsn: int) -> None:
        self._follower.confirm(lsn)

    # ---- The engine's side ----

    async def read(self) -> Rows | None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, name="arroyo-udf-changes", daemon=True)
            self._thread.start()
        while not self._ready:
            self._arrived.clear()
            if not self._ready:
                await self._arrived.wait()
        match self._ready[0]:
            case None:  # stays, for the next call
                return None
            case BaseException() as error:
                raise error
            case rows, position:
                self._ready.popleft()
                self._position = position
                self._room.release()
                if rows is not None:
                    return rows
                return Rows(self._publisher.name, position.rows + 1, pa.RecordBatch.from_pylist([], self._schema))

    def position(self) -> Json:
        is_over = bool(self._ready) and self._ready[0] is None
        if is_over:
            self._position = self._follower.position
        self._is_kept = self._is_kept or not is_over
        return self._position.json

    def gauges(self) -> Sequence[Gauge]:
        retained = self._follower.retained
        return [] if retained is None else [Gauge("retained", retained, "bytes")]

    def close(self) -> None:
        self._interrupt.set()
        if self._thread is not None:
            self._thread.join()
        self._interrupt.close()
        if self._follower.has_made_slot and not self._is_kept:
            self._drop_slot()

    def _drop_slot(self) -> None:
        with contextlib.closing(Interrupt()) as interrupt:
            try:
                with self._publisher.connected(interrupt) as wire:
                    self._publisher.drop_slot(wire)
            except (ArroyoUdfError, Lost, Refused) as error:
                _log.warning(
                    "%s: the slot %s is left, and the server keeps its log for it: drop it (%s)",
                    *(self._publisher.server, self._publisher.slot, error),
                )

    # ---- The thread's side ----

    @property
    def is_empty(self) -> bool:
        return not self._ready

    def room(self, seconds: float) -> bool:
        return self._room.acquire(timeout=seconds)

    def hand_on(self, rows: Rows | None, position: ChangesPosition) -> None:
        self._add((rows, position))

    def _run(self) -> None:
        try:
            self._follower.run()
        except Interrupted:
            pass
        except BaseException as error:
            self._add(error)
        else:
            self._add(None)

    def _add(self, item: tuple[Rows | None, ChangesPosition] | BaseException | None) -> None:
        assert self._loop is not None
        self._ready.append(item)
        with contextlib.suppress(RuntimeError):  # the loop has ended before `close`
            self._loop.call_soon_threadsafe(self._arrived.set)
