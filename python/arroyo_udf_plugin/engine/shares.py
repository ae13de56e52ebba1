"""Which slice reads which partitions.

Partitions that are read side by side (impulse) are dealt out in turn. Of others (files), a slice takes the next one as
soon as it has read its last: so all slices are busy until the end.

Guarantees: each partition is read by one slice, from the position that a resumed epoch has for it.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import threading
from collections.abc import Mapping, Sequence

from ..connectors.interface import Json, Partition, Source


class Shares:
    """The partitions of a source, for `width` slices. Any thread. positions: of a resumed epoch."""

    def __init__(self, source: Source, width: int, positions: Mapping[str, Json]) -> None:
        self._source, self._width, self._positions = source, width, positions
        self._lock = threading.Lock()  # guards `_left`, for a moment only
        self._looking = threading.Lock()
        names = source.partitions()
        gone = [name for name in positions if name not in names]  # the source itself says whether it needs them
        self._known = dict.fromkeys([*gone, *names])
        self._left = collections.deque(self._known)

    def dealt(self, place: int) -> list[str]:
        """The partitions that slice `place` reads side by side."""
        return list(self._known)[place :: self._width]

    def next(self) -> str | None:
        """The next partition that nobody has taken."""
        with self._lock:
            return self._left.popleft() if self._left else None

    async def look(self) -> None:
        """Asks the source for new partitions, unless another slice does so. Raises InvalidArgument.

        The source may take its time, in a thread of its own, which does not keep the process from ending.
        """
        if not self._looking.acquire(blocking=False):
            return
        loop = asyncio.get_running_loop()
        found: asyncio.Future[None] = loop.create_future()

        def tell(error: Exception | None) -> None:
            if found.cancelled():
                return
            found.set_result(None) if error is None else found.set_exception(error)

        def look() -> None:
            failed = None
            try:
                self._add(self._source.partitions())
            except Exception as error:
                failed = error
            finally:
                self._looking.release()
            with contextlib.suppress(RuntimeError):  # the slice has ended meanwhile
                loop.call_soon_threadsafe(tell, failed)

        threading.Thread(target=look, daemon=True, name="arroyo-udf-look").start()
        await found

    def _add(self, names: Sequence[str]) -> None:
        new = [name for name in names if name not in self._known]
        self._known.update(dict.fromkeys(new))
        with self._lock:
            self._left.extend(new)

    def open(self, name: str) -> Partition:
        """Raises InvalidArgument."""
        return self._source.open(name, self._positions.get(name))
