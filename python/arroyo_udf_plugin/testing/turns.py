"""Sources in step with epochs: the next rows are read when the epoch of those before is over.

    turns = Turns()
    source = InTurn(source, turns)            reads as the source, in the order of the test
    run(..., interval=Turns.INTERVAL, progress=turns.hear)

So each epoch has the rows of one read, whatever thread was faster, and a schedule can be repeated.
"""

from __future__ import annotations

import asyncio
import collections
import threading
from collections.abc import Mapping, Sequence

from ..engine.connectors.interface import Json, Partition, Source
from ..engine.connectors.source import Rows
from ..engine.execution.progress import Progress
from ..engine.execution.runner import Interval


class ReadTurns:
    """Of all partitions of a run, one reads at a time. is_free: no epochs are taken, so nobody waits for one."""

    INTERVAL = Interval(None, rows=1, pauses=(0.0,) * 3)
    # Of a source that does not end: for what moves behind its last rows.
    UNENDING = Interval(0.02, rows=1, pauses=(0.0,) * 3)

    def __init__(self, is_free: bool = False) -> None:
        self._is_free = is_free
        self._lock = threading.Lock()
        self._is_taken = False
        self._epochs = 0
        self._waiting: collections.deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = collections.deque()

    async def take(self) -> None:
        """Returns when it is this partition's turn."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                is_waiting = (loop, turn) in self._waiting
                if is_waiting:
                    self._waiting.remove((loop, turn))
            if not is_waiting:
                self.pass_on()
            raise

    def pass_on(self) -> None:
        """The turn is the next one's."""
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_begin, turn)
                    return
            self._is_taken = False

    def has_read(self, rows: Rows | None) -> None:
        """After rows, the turn ends with their epoch."""
        if rows is None or self._is_free:
            self.pass_on()

    def hear(self, progress: Progress) -> None:
        """Of the engine: whether an epoch is over."""
        checkpoint = progress.checkpoint
        if not self._is_free and checkpoint is not None and checkpoint.epochs != self._epochs:
            self._epochs = checkpoint.epochs
            self.pass_on()


def _begin(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class InTurn:
    """A source whose partitions read in turn."""

    def __init__(self, source: Source, turns: ReadTurns) -> None:
        self._source, self._turns = source, turns
        self.name, self.schema, self.resumable = source.name, source.schema, source.resumable
        self.side_by_side, self.watch, self.rows = source.side_by_side, source.watch, source.rows

    def partitions(self) -> Sequence[str]:
        return self._source.partitions()

    def open(self, partition: str, position: Json | None) -> Partition:
        return _InTurn(self._source.open(partition, position), self._turns)

    def check(self, positions: Mapping[str, Json]) -> None:
        self._source.check(positions)

    def close(self) -> None:
        self._source.close()


class _InTurn:
    def __init__(self, partition: Partition, turns: ReadTurns) -> None:
        self._partition, self._turns = partition, turns
        self.position, self.close = partition.position, partition.close

    async def read(self) -> Rows | None:
        await self._turns.take()
        try:
            rows = await self._partition.read()
        except BaseException:
            self._turns.pass_on()
            raise
        self._turns.has_read(rows)
        return rows
