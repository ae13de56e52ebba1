"""What Flink's jobs do now, asked for once for all who follow one.

    jobs = await watching.seen()        by id, as they are after this call

Guarantees: as long as Flink is away, everybody waits, and the log says so once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from .rest import FlinkApi, FlinkAway, FlinkRefused, ObservedJob

LOOK_EVERY = 0.25
"""Seconds."""

_log = logging.getLogger(__name__)


class Watching:
    def __init__(self, flink: FlinkApi) -> None:
        self._flink = flink
        self._jobs: Mapping[str, ObservedJob] = {}
        self._begun = self._done = 0
        self._wanted = asyncio.Event()
        self._changed = asyncio.Condition()
        self._is_away = False

    async def seen(self) -> Mapping[str, ObservedJob]:
        look = self._begun + 1  # one that is under way may have been answered before
        self._wanted.set()
        async with self._changed:
            await self._changed.wait_for(lambda: self._done >= look)
        return self._jobs

    async def run(self) -> None:
        """For ever. Looks only while somebody waits."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._begun += 1
            look = self._begun
            try:
                self._jobs = {job.id: job for job in await self._flink.jobs()}
            except (FlinkAway, FlinkRefused) as error:
                self._note(error)
                self._wanted.set()
            else:
                self._note(None)
                async with self._changed:
                    self._done = look
                    self._changed.notify_all()
            await asyncio.sleep(LOOK_EVERY)

    def _note(self, error: Exception | None) -> None:
        if (error is not None) is self._is_away:
            return
        self._is_away = error is not None
        if error is None:
            _log.info("Flink at %s answers again", self._flink.url)
        else:
            _log.warning("%s: jobs on Flink are watched again when it answers", error)
