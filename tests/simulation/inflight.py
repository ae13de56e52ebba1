"""What calls of a simulated pipeline wait for, so that they are in flight while an epoch is taken.

A call goes on when a row behind its own, by some distance, is called in the same engine, or the source is at its end.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence

from arroyo_udf_plugin.engine.connectors.interface import Json, Partition, Source, has_ended
from arroyo_udf_plugin.engine.connectors.source import Rows

DISTANCE = 2
_Waiting = tuple[int, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class Gate:
    """Of one engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = False
        self._waiting: list[_Waiting] = []

    async def passed(self, row: int) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._let([each for each in self._waiting if each[0] + DISTANCE <= row])
            if self._is_open:
                return
            self._waiting.append((row, loop, turn))
        await turn

    def open(self) -> None:
        with self._lock:
            self._is_open = True
            self._let(list(self._waiting))

    def _let(self, some: Sequence[_Waiting]) -> None:
        for each in some:
            self._waiting.remove(each)
            _, loop, turn = each
            if not loop.is_closed():
                loop.call_soon_threadsafe(_go_on, turn)


def _go_on(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class Gated:
    """A source at whose end a gate is opened."""

    def __init__(self, source: Source, gate: Gate) -> None:
        self._source, self._gate = source, gate
        self.name, self.schema, self.resumable = source.name, source.schema, source.resumable
        self.side_by_side, self.watch, self.rows = source.side_by_side, source.watch, source.rows
        self._left = set(source.partitions())

    def partitions(self) -> Sequence[str]:
        return self._source.partitions()

    def check(self, positions: Mapping[str, Json]) -> None:
        self._source.check(positions)
        for partition, position in positions.items():
            if has_ended(position):  # it is not opened again
                self._end(partition)

    def open(self, partition: str, position: Json | None) -> Partition:
        return _Gated(self._source.open(partition, position), lambda: self._end(partition))

    def _end(self, partition: str) -> None:
        self._left.discard(partition)
        if not self._left:
            self._gate.open()

    def close(self) -> None:
        self._source.close()


class _Gated:
    def __init__(self, partition: Partition, end: object) -> None:
        self._partition, self._end = partition, end
        self.position, self.close = partition.position, partition.close

    async def read(self) -> Rows | None:
        rows = await self._partition.read()
        if rows is None:
            self._end()  # type: ignore[operator]
        return rows


current = Gate()
is_mended = False
keys: defaultdict[tuple[str, int], set[bytes]] = defaultdict(set)
"""The idempotency keys of each row's calls, by function."""


def note(function: str, row: int, key: bytes) -> None:
    """A call."""
    keys[function, row].add(key)


async def passed(function: str, row: int, key: bytes) -> None:
    """Of the engine that has begun last."""
    note(function, row, key)
    await current.passed(row)


def check_keys() -> None:
    """R10: a row has one key in all engines, and no other row has it."""
    several = {row: own for row, own in keys.items() if len(own) > 1}
    assert not several, f"rows were called with several keys: {several}"
    every = [key for own in keys.values() for key in own]
    assert len(set(every)) == len(every), f"a key belongs to several rows: {dict(keys)}"
