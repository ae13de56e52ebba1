"""The reading stage of one slice: its share of a source, and the operators that follow without a hop.

    stage = ReadingStage(program, stage, slice, about)
    for posted in stage.read(loop): ...      one permission: reads at most `ROWS` rows, and waits for `PATIENCE` at most
    for posted in stage.take(): ...          what it has read meanwhile, while the loop ran for another slice
    stage.about()

A permission is a tick of a Flink source that knows nothing of rows. Where reading goes on is in the slice's state. The
readers are those of the embedded engine, which may read as long as they have a permission.

Guarantees: what is read between two states is what the next one begins with.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..connectors.interface import Json, Partition, Source, has_ended
from ..execution.drift import Drift
from ..execution.reading import SourceReading
from ..execution.shares import Shares
from ..operators.blocks import Block
from ..operators.routes import Place, place_of_source
from ..operators.stages import Dead
from ..operators.watermarks import Watermark
from .cut import CutStage
from .moving import StageChain
from .outlets import Outlets, Posted
from .program import Program

ROWS = 32_768
"""That one permission is for; the last batch may go beyond."""
PATIENCE = 0.02
"""Seconds to wait for rows: barriers wait, too."""


class _OwnPartitions:
    """A source, as if it had the partitions of one slice alone."""

    def __init__(self, source: Source, slice: int, width: int) -> None:
        self.name, self.schema, self.rows = source.name, source.schema, source.rows
        self.resumable, self.side_by_side, self.watch = source.resumable, source.side_by_side, source.watch
        self._source, self._slice, self._width = source, slice, width

    def partitions(self) -> Sequence[str]:
        every = self._source.partitions()
        if self.watch is None:
            return every[self._slice :: self._width]
        # Others may find new files in another order.
        return [name for name in every if zlib.crc32(name.encode()) % self._width == self._slice]

    def check(self, positions: Mapping[str, Json]) -> None:
        self._source.check(positions)

    def open(self, partition: str, position: Json | None) -> Partition:
        return self._source.open(partition, position)

    def close(self) -> None: ...


class ReadingStage:
    """about, ended: what `about` and `ended` gave; None: it begins, at the job's positions. source: of this slice
    alone; None: its share of the pipeline's.

    is_over: all has been read, and has left."""

    def __init__(
        self,
        program: Program,
        stage: CutStage,
        slice: int,
        about: Mapping[str, Any] | None = None,
        ended: Mapping[str, Json] = MappingProxyType({}),
        source: Source | None = None,
    ) -> None:
        assert stage.source is not None
        input = program.planned.inputs[stage.source]
        own = source or _OwnPartitions(input.source, slice, program.width)
        input = dataclasses.replace(input, source=own)
        initial = program.positions[stage.source]
        if about is None:
            mine = set(own.partitions())
            about = {"positions": {name: at for name, at in initial.items() if name in mine}, "watermark": None}
        self._positions: dict[str, Json] = {**ended, **about["positions"]}
        self._ended: dict[str, Json] = {}
        self._watermark: int | None = about["watermark"]
        self._place: Place = place_of_source(stage.source)
        self._outlets = Outlets(program, stage, slice)
        self._chain = StageChain(program.planned, stage, program.operators(stage), self._outlets)
        for operator in self._chain.operators.values():
            operator.start()
        known = [] if self._watermark is None else [self._watermark]
        self._reading = SourceReading(input, self._place, Shares(own, 1, self._positions), 0, self, known, Drift([], 0))
        self._may_read = 0
        self._has_begun, self.is_over = False, bool(about.get("over", False))
        self._woken = asyncio.Event()

    # ---- Permissions ----

    def read(self, loop: asyncio.AbstractEventLoop, is_last: bool = False) -> Iterator[Posted]:
        """One permission. is_last: there are no more, so it reads to the end."""
        while not self.is_over:
            self._may_read = ROWS
            loop.run_until_complete(self._progress())
            yield from self.take()
            if self._reading.is_over:
                yield from self._finish()
            elif not is_last:
                return

    def take(self) -> Iterator[Posted]:
        return self._outlets.take()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            if self._reading.watermark is not None:
                self.hand_on(Watermark(self._reading.watermark), self._place)
            self._reading.begin()

    async def _progress(self) -> None:
        self._begin()
        self._reading.make_room()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._may_read > 0 and not self._reading.is_over:
                    self._woken.clear()
                    await self._woken.wait()
        self._reading.look()

    def _finish(self) -> Iterator[Posted]:
        while not self._chain.is_finished:
            self._chain.finish()
            self._move()
            yield from self.take()
        self._outlets.end()
        yield from self.take()
        self.is_over = True

    def _move(self) -> None:
        while self._chain.turn():
            pass

    # ---- What the readers ask ----

    def hand_on(self, item: Block | Watermark | Dead, place: Place) -> None:
        self._chain.hand_on(item, place)
        self._move()

    def has_room_after(self, place: Place) -> bool:
        return self._may_read > 0

    def moving(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def has_read(self, rows: int, dropped: int, dead_letters: int) -> None:
        self._may_read -= rows
        if self._may_read <= 0:
            self._woken.set()

    def has_failed(self, error: BaseException) -> None:
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    # ---- Its state ----

    def about(self) -> dict[str, Any]:
        """As JSON, without the partitions that have been read."""
        self._positions |= self._reading.positions()
        self._ended |= {name: at for name, at in self._positions.items() if has_ended(at)}
        self._positions = {name: at for name, at in self._positions.items() if not has_ended(at)}
        return {"positions": self._positions, "watermark": self._reading.watermark, "over": self.is_over}

    def ended(self) -> dict[str, Json]:
        """Partitions that have been read since the last question."""
        ended, self._ended = self._ended, {}
        return ended

    def close(self) -> None:
        for task in self._reading.tasks:
            task.cancel()
        self._reading.close()
        self._chain.close()
