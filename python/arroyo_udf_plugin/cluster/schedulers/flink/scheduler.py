"""Jobs as jobs of an Apache Flink cluster.

One thread asks Flink and follows all generations (see `following.py`).

Guarantees: jobs on Flink go on when the controller ends, and the next one finds them by their ids. `ready` is told when
Flink runs no generation of the job up to that one.
Assumes: nobody else submits with these ids. Flink's machines have the toolkit at `flink.runner`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from ....errors import InvalidArgument
from ...configuration import FlinkSettings
from ...states import Event
from ...task import NOTHING_RUNS, JobReport, Task, Tell
from ..interface import How
from .following import Following
from .rest import FlinkApi, FlinkAway, FlinkRefused
from .submission import flink_id
from .watching import Watching

_log = logging.getLogger(__name__)


class FlinkScheduler:
    """Raises InvalidArgument if the settings do not say where Flink is."""

    refused = 0

    def __init__(self, tell: Tell, settings: FlinkSettings) -> None:
        if settings.url is None:
            raise InvalidArgument("set flink.url to the REST API of the Flink cluster, such as http://127.0.0.1:8081")
        self._tell, self._settings = tell, settings
        self._flink = FlinkApi(settings.url)
        self._following: dict[str, tuple[Following, asyncio.Task[None]]] = {}  # in the thread's loop only
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._watching = Watching(self._flink)
        self._thread = threading.Thread(target=self._run, name="arroyo-udf-flink", daemon=True)
        self._thread.start()

    # ---- Called by the controller ----

    def start(self, task: Task) -> None:
        self._soon(lambda: self._follow(task, is_new=True))

    def stop(self, job_id: str, generation: int, how: How) -> None:
        self._soon(lambda: self._stop(job_id, generation, how))

    def rescale(self, task: Task) -> None:
        self._soon(lambda: self._rescale(task))

    def clear(self, job_id: str, generation: int) -> None:
        self._soon(lambda: self._clear(job_id, generation))

    def take_over(self, task: Task) -> bool:
        """True: Flink is asked whether it runs; if it does not, it is told to be orphaned."""
        self._soon(lambda: self._follow(task, is_new=False))
        return True

    def isolate(self, job_ids: Iterable[str]) -> None:
        """They are in processes of Flink."""

    def workers(self) -> Sequence[tuple[str, int]]:
        """None of this machine."""
        return ()

    def let_go(self) -> None:
        """What runs, goes on."""
        self._soon(self._forget)

    def close(self) -> None:
        """What runs, goes on: the next controller finds it."""
        self._soon(self._loop.stop)
        self._thread.join()

    # ---- In its thread ----

    def _run(self) -> None:
        self._background(self._watching.run())
        self._loop.run_forever()
        self._forget()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self._flink.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _soon(self, act: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(act)

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a bug", exc_info=error)

    def _follow(self, task: Task, is_new: bool) -> None:
        before = self._following.get(task.job_id)
        if before is not None and before[0].task.generation == task.generation:
            return
        following = Following(self._flink, self._watching, self._settings, task, self._tell, is_new)
        self._following[task.job_id] = following, self._background(self._follow_to_end(following))

    async def _follow_to_end(self, following: Following) -> None:
        try:
            await following.run()
        finally:
            job_id = following.task.job_id
            if self._following.get(job_id, (None,))[0] is following:
                del self._following[job_id]

    def _stop(self, job_id: str, generation: int, how: How) -> None:
        if (following := self._followed(job_id, generation)) is not None:
            following.order(how)

    def _rescale(self, task: Task) -> None:
        if (following := self._followed(task.job_id, task.generation)) is not None:
            following.rescale(task)

    def _followed(self, job_id: str, generation: int) -> Following | None:
        """None: that is told. One that is being cleared says nothing any more, so it counts as gone."""
        following, _ = self._following.get(job_id, (None, None))
        if following is not None and following.task.generation == generation and not following.is_muted:
            return following
        self._tell(JobReport(job_id, generation, Event.LOST, message=NOTHING_RUNS))
        return None

    def _clear(self, job_id: str, generation: int) -> None:
        """Muted at once: a stop that comes next finds it gone."""
        found, followed = self._following.get(job_id), None
        if found is not None and found[0].task.generation <= generation:
            following, followed = found
            following.mute()
            following.order("kill")
        self._background(self._cancel(job_id, generation, followed))

    async def _cancel(self, job_id: str, generation: int, followed: asyncio.Task[None] | None) -> None:
        if followed is not None:
            await asyncio.wait([followed])  # a submit that is under way has an end first
        ids = [flink_id(job_id, number) for number in range(1, generation + 1)]
        while True:
            jobs = await self._watching.seen()
            living = [id for id in ids if id in jobs and not jobs[id].has_ended]
            if not living:
                break
            for id in living:
                if jobs[id].state != "CANCELLING":
                    try:
                        await self._flink.cancel(id)
                    except (FlinkAway, FlinkRefused) as error:
                        _log.debug("%s", error)  # the next look shows what is left
        self._tell(JobReport(job_id, generation, Event.READY))

    def _forget(self) -> None:
        for _, task in self._following.values():
            task.cancel()
        self._following.clear()
