"""Which slice reads which partitions.

Partitions that are read side by side (impulse, Kafka) are dealt out in turn, also those that come later. Of others
(files), a slice takes the next one as soon as it has read its last: so all slices are busy until the end. A slice that
has none, and may get one later, follows the watermark of those that have.

Guarantees: each partition is read by one slice, from the position that a resumed epoch has for it. One that has been
read is not opened again.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Mapping, Sequence

from ...host.to_thread import to_thread
from ..connectors.interface import Json, Partition, Source, has_ended


class Shares:
    """The partitions of a source, for `width` slices. Any thread. positions: of a resumed epoch."""

    def __init__(self, source: Source, width: int, positions: Mapping[str, Json]) -> None:
        self._source, self._width, self._positions = source, width, positions
        self._lock = threading.Lock()  # guards `_left`, for a moment only
        self._looking = threading.Lock()
        names = dict.fromkeys(source.partitions())
        gone = [name for name in positions if name not in names]  # the source itself says whether it needs them
        self._known = dict.fromkeys([*gone, *names])
        self._left = collections.deque(name for name in self._known if not has_ended(positions.get(name, {})))
        self._times: dict[int, int | None] = {}  # watermarks of slices
        self._busy: set[int] = set()  # slices that read

    def dealt(self, place: int) -> list[str]:
        """The partitions that slice `place` reads side by side."""
        return list(self._known)[place :: self._width]

    def next(self) -> str | None:
        """The next partition that nobody has taken."""
        with self._lock:
            return self._left.popleft() if self._left else None

    # ---- Watermarks ----

    def reads(self, place: int, time: int | None) -> None:
        """A slice reads, and this is its watermark."""
        with self._lock:
            self._times[place] = time
            self._busy.add(place)

    def waits(self, place: int) -> int | None:
        """A slice has nothing to read. Returns the watermark that it has then: the lowest of those that read. If none
        does, the latest, as of one slice that has read all. None: there is none."""
        with self._lock:
            self._busy.discard(place)
            if self._busy:
                times = [self._times[slice] for slice in self._busy]
                return min((time for time in times if time is not None), default=None) if None not in times else None
            return max((time for time in self._times.values() if time is not None), default=None)

    async def look(self) -> None:
        """Asks the source for new partitions, unless another slice does so. Raises InvalidArgument.

        The source may take its time, in a thread of its own, which does not keep the process from ending.
        """
        if not self._looking.acquire(blocking=False):
            return

        def look() -> None:
            try:
                self._add(self._source.partitions())
            finally:
                self._looking.release()

        await to_thread(look, "arroyo-udf-look")

    def _add(self, names: Sequence[str]) -> None:
        new = [name for name in names if name not in self._known]
        self._known.update(dict.fromkeys(new))
        with self._lock:
            self._left.extend(new)

    def open(self, name: str) -> Partition:
        """Raises InvalidArgument."""
        return self._source.open(name, self._positions.get(name))
