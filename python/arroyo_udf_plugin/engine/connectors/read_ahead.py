"""Rows from where reading may wait: an object store, a pipe. A thread reads them, a little ahead of the event loop.

Guarantees: the loop never waits. A row is handed on as soon as it is there. A cancelled `next` loses nothing. `close`
ends the thread soon, also while it waits for bytes.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import threading
from collections.abc import Generator

from .interrupt import Interrupt
from .source import Rows

_AHEAD = 2  # batches


class ReadAhead:
    """rows: run and closed in the thread. interrupt: ends its waits."""

    def __init__(self, rows: Generator[Rows, None, None], interrupt: Interrupt) -> None:
        self._rows, self._interrupt = rows, interrupt
        self._ready: collections.deque[Rows | BaseException | None] = collections.deque()
        self._room = threading.Semaphore(_AHEAD)
        self._arrived = asyncio.Event()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def next(self) -> Rows | None:
        """The next rows; None: there are no more."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, name="read ahead", daemon=True)
            self._thread.start()
        while True:
            self._arrived.clear()
            if self._ready:
                break
            await self._arrived.wait()
        match self._ready[0]:
            case None:  # stays, for the next call
                return None
            case BaseException() as error:
                self._ready[0] = None
                raise error
            case rows:
                self._ready.popleft()
                self._room.release()
                return rows

    def close(self) -> None:
        self._closed = True
        self._interrupt.set()
        self._room.release()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            with contextlib.closing(self._rows):
                for rows in self._rows:
                    self._room.acquire()
                    if self._closed:
                        return
                    self._hand_on(rows)
            self._hand_on(None)
        except BaseException as error:
            self._hand_on(error)

    def _hand_on(self, item: Rows | BaseException | None) -> None:
        assert self._loop is not None
        self._ready.append(item)
        with contextlib.suppress(RuntimeError):  # the loop has ended before `close`
            self._loop.call_soon_threadsafe(self._arrived.set)
