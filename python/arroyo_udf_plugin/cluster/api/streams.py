"""Streams of rows wait here for something new: one look for all of them.

    with parts.streams.waiting(job_id) as waiting:
        while not waiting.ended: ...; await waiting.more(15.0)

Guarantees: a stream to which nothing comes costs nothing but its memory. One task looks at the files of those jobs
that somebody watches: fifty times a second after something came, then less and less often, down to four times; and
twice a second, by one query, at which of them have ended.
Assumes: one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from ..database import jobs
from ..database.database import Database
from ..records import Reader, Records
from .failures import LOG

_SHORTEST, _LONGEST = 0.02, 0.25  # seconds from one look to the next
_ENDS_SECONDS = 0.5  # from one query to the next


class WaitingStream:
    """One stream. ended: its job has ended, and before that it has written all that there is to read."""

    def __init__(self, watched: _Watched) -> None:
        self._watched, self._seen = watched, watched.version

    @property
    def ended(self) -> bool:
        return self._watched.ended

    def look(self) -> None:
        """What comes from now on is something new."""
        self._seen = self._watched.version

    async def more(self, seconds: float) -> bool:
        """Waits until something is new. False: nothing was, for so long."""
        if self._watched.version == self._seen:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._watched.changed.wait()
        return self._watched.version != self._seen


@dataclass
class _Watched:
    """A job that somebody watches. version: up by one with each change. changed: is replaced with each of them."""

    reader: Reader
    state: object
    ended: bool = False
    version: int = 0
    streams: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self) -> None:
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()


class Streams:
    def __init__(self, database: Database, records: Records) -> None:
        self._database, self._records = database, records
        self._watched: dict[str, _Watched] = {}
        self._task: asyncio.Task[None] | None = None
        self._pause = _SHORTEST
        self.looks = 0
        """How often there was a look so far."""

    @property
    def open(self) -> int:
        """How many there are."""
        return sum(watched.streams for watched in self._watched.values())

    @contextlib.contextmanager
    def waiting(self, job_id: str, ended: bool) -> Iterator[WaitingStream]:
        """ended: whether its job had ended when the stream began."""
        self._pause = _SHORTEST
        if job_id not in self._watched:
            reader = self._records.output(job_id)
            self._watched[job_id] = _Watched(reader, reader.state(), ended)
        watched = self._watched[job_id]
        watched.streams += 1
        watched.ended = ended  # it may have been started again
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield WaitingStream(watched)
        finally:
            watched.streams -= 1
            if not watched.streams:
                del self._watched[job_id]
            if not self._watched and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _look(self) -> None:
        looked_for_ends = time.monotonic()
        while True:
            self.looks += 1
            if time.monotonic() - looked_for_ends >= _ENDS_SECONDS:
                await self._look_for_ends()
                looked_for_ends = time.monotonic()
            self._pause = min(2 * self._pause, _LONGEST)
            for watched in list(self._watched.values()):
                state = watched.reader.state()
                if state != watched.state:
                    watched.state = state
                    watched.note()
                    self._pause = _SHORTEST
            await asyncio.sleep(self._pause)

    async def _look_for_ends(self) -> None:
        asked = [job_id for job_id, watched in self._watched.items() if not watched.ended]
        if not asked:
            return
        try:
            running = await run_in_threadpool(self._running, asked)
        except Exception as error:  # the database does not answer: streams go on when it does
            LOG.warning("streams of rows cannot see whether their jobs have ended: %s", error)
            return
        for job_id in asked:
            if job_id not in running and job_id in self._watched:
                self._watched[job_id].ended = True
                self._watched[job_id].note()

    def _running(self, job_ids: list[str]) -> set[str]:
        with self._database.read() as session:
            return jobs.running(session, job_ids)
