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
import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from ..connectors.interface import Gauge, Json, Measuring, Partition
from ..connectors.source import Rows
from ..operators.blocks import Block
from ..operators.routes import Place, number_of_source
from ..operators.stages import Dead
from ..operators.watermarks import SliceTime, Watermark
from .drift import Drift, DriftReader
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


@dataclasses.dataclass(frozen=True)
class _Input:
    """What has a watermark of its own: a partition that is read beside others, or all that are read in turn. drift:
    None: it has no event time."""

    idleness: Idleness
    drift: DriftReader | None


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
        self._positions: dict[str, Json] = {}  # of partitions that have been read since `positions`
        self._gave = self._is_draining = False
        self._time: SliceTime | None = None
        self._drift = drift
        count = len(shares.dealt(slice)) if input.source.side_by_side else 1
        times = [time for _ in range(count) if (time := input.event_time()) is not None]
        if input.event_time() is not None:
            self._time = SliceTime(times, watermarks)
        self._inputs = [self._new_input() for _ in range(count)]

    def _new_input(self) -> _Input:
        drift = self._drift.reader(number_of_source(self.place), self._input.source.side_by_side)
        return _Input(Idleness(self._input.idle_seconds, self._taking.wake), None if self._time is None else drift)

    @property
    def watermark(self) -> int | None:
        """The latest."""
        return None if self._time is None else self._time.time

    def positions(self) -> Mapping[str, Json]:
        """Of the partitions that are open, and of those that have been read since the last question."""
        read, self._positions = self._positions, {}
        return read | {name: partition.position() for name, partition in self._open.items()}

    def gauges(self) -> Sequence[Gauge]:
        """Of the partitions that are open. Any thread."""
        measuring = [partition for partition in list(self._open.values()) if isinstance(partition, Measuring)]
        return [gauge for partition in measuring for gauge in partition.gauges()]

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
        for number, input in enumerate(self._inputs):
            if input.drift is not None and self._time is not None:
                input.drift.begin(self._time.of(number))
        if not self._input.source.side_by_side:
            self._begin(self._reading(self._read_in_turn, 0))
            return
        for number, name in enumerate(self._shares.dealt(self._slice)[: len(self._inputs)]):
            self._begin_beside(name, number)
        if self._input.source.watch is not None:
            self._begin(self._failing(partial(self._watch_beside, self._input.source.watch)))

    def _begin_beside(self, name: str, input: int) -> None:
        self._begin(self._reading(partial(self._read_beside, name, input), input))

    def _begin(self, reader: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(reader)
        task.add_done_callback(lambda _: self._taking.wake())
        self._readers.add(task)

    def drain(self) -> None:
        """Reads no more, also if it has not begun."""
        self._is_draining = True
        for task in self._readers:
            task.cancel()

    def look(self) -> None:
        """Tells those that follow if nothing has come for a while."""
        for number, input in enumerate(self._inputs):
            if input.idleness.began() and input.drift is not None and self._time is not None:
                input.drift.rest()
                self._hand_on_time(self._time.after_idleness(number))

    def make_room(self) -> None:
        """Those that follow want input."""
        self._room.set()

    def close(self) -> None:
        for partition in self._open.values():
            partition.close()

    async def _reading(self, read: Reader, input: int) -> None:
        with self._inputs[input].idleness.reading():
            await self._failing(read)

    async def _failing(self, read: Reader) -> None:
        try:
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
            with self._inputs[0].idleness.waiting():
                await asyncio.sleep(source.watch)
                await self._shares.look()

    def _follow(self) -> None:
        """Without a file, a slice does not hold the windows of others back."""
        if self._time is None:
            return
        time = self._time.follow(self._shares.waits(self._slice))
        if time is not None:
            with self._taking.moving():
                self._hand_on_time(time)
            self._taking.wake()

    async def _watch_beside(self, seconds: float) -> None:
        """Begins partitions that are new. Without any, a slice does not hold the windows of others back."""
        if not self._inputs and self._time is not None:
            self._hand_on_time(Watermark(None))
            self._taking.wake()
        while True:
            await asyncio.sleep(seconds)
            await self._shares.look()
            for name in self._shares.dealt(self._slice)[len(self._inputs) :]:
                if self._time is not None and (clock := self._input.event_time()) is not None:
                    self._time.add(clock)
                self._inputs.append(self._new_input())
                self._begin_beside(name, len(self._inputs) - 1)

    async def _read_beside(self, name: str, input: int) -> None:
        """A partition that is read beside others; its end holds no watermark back."""
        with self._counted(input):
            await self._read_one(name, input)
        if self._time is not None:
            self._hand_on_time(self._time.after_end(input))

    def _counted(self, input: int) -> AbstractContextManager[None]:
        """While others wait for what it reads."""
        drift = self._inputs[input].drift
        return contextlib.nullcontext() if drift is None or self._time is None else drift.reading(self._time.of(input))

    async def _read_one(self, name: str, input: int) -> None:
        """input: whose watermark its rows make rise."""
        own = self._inputs[input]
        partition = self._open[name] = self._shares.open(name)
        self._shares.reads(self._slice, self.watermark)
        while True:
            with own.idleness.waiting():
                rows = await self._next(partition)
            if rows is None:
                break
            with self._taking.moving():
                self._take_in(rows, input)
            await asyncio.sleep(0)  # a turn
            while not self._taking.has_room_after(self.place):
                self._room.clear()
                await self._room.wait()
            if own.drift is not None:
                await own.drift.near()
        self._positions[name] = partition.position()
        del self._open[name]
        partition.close()
        self._taking.wake()  # its position is another one now

    async def _next(self, partition: Partition) -> Rows | None:
        """Rows, at least one. Where only the position has moved, an epoch takes it, and the source stays idle."""
        while (rows := await partition.read()) is not None and not rows.batch.num_rows:
            with self._taking.moving():
                pass
        return rows

    def _take_in(self, rows: Rows, input: int) -> None:
        own, n_left, dead_letters = self._inputs[input], rows.batch.num_rows, 0
        self._gave = True
        for item in self._input.admit(rows):
            n_left -= len(item) if isinstance(item, Block) else len(item.rows)
            if isinstance(item, Dead):
                dead_letters += len(item.rows)
            self._taking.hand_on(item, self.place)
            if isinstance(item, Block) and self._time is not None:
                own.idleness.ended()
                self._hand_on_time(self._time.after(input, item))
                if own.drift is not None:
                    own.drift.reached(self._time.of(input))
        self._shares.reads(self._slice, self.watermark)
        self._taking.has_read(rows.batch.num_rows, n_left, dead_letters)

    def hand_on_watermark(self) -> None:
        """The latest, if there was one."""
        if self.watermark is not None:
            self._hand_on_time(Watermark(self.watermark))

    def _hand_on_time(self, watermark: Watermark | None) -> None:
        if watermark is not None:
            self._taking.hand_on(watermark, self.place)
