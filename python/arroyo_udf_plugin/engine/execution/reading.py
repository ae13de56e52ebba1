"""One source in one slice: its readers, how far they are, and the watermark of what they have read.

    partition.read ──► admit ──► hand on, then its watermark ──► wait for room, and for sources that are far behind
        one task per partition, or one for all of them in turn

Guarantees: it reads only while those that follow want input, and no further ahead of other sources and slices than it
may (drift.py). What a partition gives is handed on before anything else
runs.
Assumes: its methods are called in the slice's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from ..connectors.interface import Json, Partition
from ..connectors.source import Rows
from ..operators.blocks import Block
from ..operators.routes import Place, number_of_source
from ..operators.stages import Dead
from ..operators.watermarks import SliceTime, Watermark
from .drift import Drift
from .idleness import Idleness
from .planned import PlannedInput
from .shares import Shares

Reader = Callable[[], Coroutine[Any, Any, None]]


class Taking(Protocol):
    """A slice, as its sources see it."""

    def hand_on(self, item: Block | Watermark | Dead, place: Place) -> None:
        """To those that follow."""

    def has_room_after(self, place: Place) -> bool: ...

    def moving(self) -> AbstractContextManager[None]:
        """While rows are on their way."""

    def has_read(self, rows: int, dropped: int, dead_letters: int) -> None:
        """So many rows. dropped, dead_letters: of those that could not be read."""

    def has_failed(self, error: BaseException) -> None:
        """A step has left rows between two stages."""

    def wake(self) -> None: ...


class SourceReading:
    """input: what is read. place: of the source. shares: which partitions. slice: the number of the slice.

    watermarks: of all slices before a restart. drift: of all sources.
    """

    def __init__(
        self,
        input: PlannedInput,
        place: Place,
        shares: Shares,
        slice: int,
        taking: Taking,
        watermarks: Sequence[int | None],
        drift: Drift,
    ) -> None:
        self.place = place
        self._input, self._shares, self._slice, self._taking = input, shares, slice, taking
        self._readers: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._open: dict[str, Partition] = {}
        self._positions: dict[str, Json] = {}  # of partitions that have been read
        self._idleness = Idleness(input.idle_seconds, taking.wake)
        self._gave = self._is_draining = False
        self._time: SliceTime | None = None
        inputs = len(shares.dealt(slice)) if input.source.side_by_side else 1
        times = [time for _ in range(inputs) if (time := input.event_time()) is not None]
        if times:
            self._time = SliceTime(times, watermarks)
        is_beside = input.source.side_by_side
        self._drifting = [drift.reader(number_of_source(place), is_beside) for _ in times]  # one for each input

    @property
    def watermark(self) -> int | None:
        """The latest."""
        return None if self._time is None else self._time.time

    def positions(self) -> Mapping[str, Json]:
        return self._positions | {name: partition.position() for name, partition in self._open.items()}

    def gave(self) -> bool:
        """Whether it has handed on rows since the last question."""
        did, self._gave = self._gave, False
        return did

    @property
    def tasks(self) -> Sequence[asyncio.Task[None]]:
        return list(self._readers)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is read. Raises what has failed."""
        for task in [task for task in self._readers if task.done()]:
            if not task.cancelled():
                task.result()
            self._readers.discard(task)
        return not self._readers

    def begin(self) -> None:
        if self._is_draining:
            return
        if self._input.source.side_by_side:
            dealt = self._shares.dealt(self._slice)
            readers = [partial(self._read_beside, name, input) for input, name in enumerate(dealt)]
        else:
            readers = [self._read_in_turn]  # type: ignore[list-item]
        if self._time is not None:
            for input, reader in enumerate(self._drifting):
                reader.begin(self._time.of(input))
        for read in readers:
            task = asyncio.get_running_loop().create_task(self._reading(read))
            task.add_done_callback(lambda _: self._taking.wake())
            self._readers.add(task)

    def drain(self) -> None:
        """Reads no more, also if it has not begun."""
        self._is_draining = True
        for task in self._readers:
            task.cancel()

    def look(self) -> None:
        """Tells those that follow if nothing has come for a while."""
        if self._idleness.began():
            for reader in self._drifting:
                reader.rest()
            self._taking.hand_on(Watermark(None), self.place)

    def make_room(self) -> None:
        """Those that follow want input."""
        self._room.set()

    def close(self) -> None:
        for partition in self._open.values():
            partition.close()

    async def _reading(self, read: Reader) -> None:
        try:
            with self._idleness.reading():
                await read()
        except Exception as error:
            self._taking.has_failed(error)
            raise

    async def _read_in_turn(self) -> None:
        source = self._input.source
        while True:
            with self._counted(0):
                while (name := self._shares.next()) is not None:
                    await self._read_one(name, 0)
            if source.watch is None:
                return
            self._follow()
            with self._idleness.waiting():
                await asyncio.sleep(source.watch)
                await self._shares.look()

    def _follow(self) -> None:
        """Without a file, a slice does not hold the windows of others back."""
        if self._time is None:
            return
        time = self._time.follow(self._shares.waits(self._slice))
        if time is not None:
            with self._taking.moving():
                self.hand_on_watermark(time)
            self._taking.wake()

    async def _read_beside(self, name: str, input: int) -> None:
        """A partition that is read beside others; its end holds no watermark back."""
        with self._counted(input):
            await self._read_one(name, input)
        if self._time is not None:
            self.hand_on_watermark(self._time.after_end(input))

    def _counted(self, input: int) -> AbstractContextManager[None]:
        """While others wait for what it reads."""
        return contextlib.nullcontext() if self._time is None else self._drifting[input].reading(self._time.of(input))

    async def _read_one(self, name: str, input: int) -> None:
        """input: whose watermark its rows make rise."""
        partition = self._open[name] = self._shares.open(name)
        self._shares.reads(self._slice, self.watermark)
        while True:
            with self._idleness.waiting():
                rows = await partition.read()
            if rows is None:
                break
            with self._taking.moving():
                self._take_in(rows, input)
            await asyncio.sleep(0)  # a turn
            while not self._taking.has_room_after(self.place):
                self._room.clear()
                await self._room.wait()
            if self._drifting:
                await self._drifting[input].near()
        self._positions[name] = partition.position()
        del self._open[name]
        partition.close()
        self._taking.wake()  # its position is another one now

    def _take_in(self, rows: Rows, input: int) -> None:
        n_left, dead_letters = rows.batch.num_rows, 0
        self._gave = True
        for item in self._input.admit(rows):
            n_left -= len(item) if isinstance(item, Block) else len(item.rows)
            if isinstance(item, Dead):
                dead_letters += len(item.rows)
            self._taking.hand_on(item, self.place)
            if isinstance(item, Block) and self._time is not None:
                time = self._time.after(input, item)
                if self._idleness.ended():  # the watermark holds again
                    time = self._time.time
                self.hand_on_watermark(time)
                self._drifting[input].reached(self._time.of(input))
        self._shares.reads(self._slice, self.watermark)
        self._taking.has_read(rows.batch.num_rows, n_left, dead_letters)

    def hand_on_watermark(self, time: int | None) -> None:
        """None: it has not risen."""
        if time is not None:
            self._taking.hand_on(Watermark(time), self.place)
