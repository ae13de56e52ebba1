"""The references of the speed goals: plain Python, defined once, so that a ratio always means the same.

Sync: the rows are Python lists, made before; a null argument gives None without a call.
    mph       int64, int64 -> float64
    tail      utf8, utf8 -> utf8, with branches and one f-string
Async, with at most `cap` rows in flight:
    slots     long-lived Tasks that take the next row from a shared iterator; no deadline, no order: the lower limit
    workers   an asyncio.Queue and `cap` workers: the careful solution
    tasks     a Task per row under wait_for, created once a permit is free: the solution with a deadline
    handed    slots in a thread of their own: rows come from another thread in batches, and results go there as Arrow
              arrays every 2 ms; no deadline, no order: what a plugin does at least, written by hand in Python
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa

Function = Callable[[int], Awaitable[int]]


def mph(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


def tail(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"


def comprehension(function: Callable[[Any, Any], Any], left: list[Any], right: list[Any]) -> list[Any]:
    return [None if a is None or b is None else function(a, b) for a, b in zip(left, right)]  # noqa: B905


async def at_once(x: int) -> int:
    return x + 1


async def sleep_zero(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1


async def sleep_ms(x: int) -> int:
    await asyncio.sleep(0.001)
    return x + 1


async def parked(x: int) -> int:
    await asyncio.get_running_loop().create_future()
    return x


async def slots(function: Function, rows: list[int], cap: int) -> list[int]:
    results: list[Any] = [None] * len(rows)
    pending = iter(enumerate(rows))

    async def slot() -> None:
        for index, row in pending:
            results[index] = await function(row)

    await asyncio.gather(*(slot() for _ in range(min(cap, len(rows)))))
    return results


async def workers(function: Function, rows: list[int], cap: int) -> list[int]:
    results: list[Any] = [None] * len(rows)
    queue: asyncio.Queue[tuple[int, int] | None] = asyncio.Queue(cap)

    async def worker() -> None:
        while (item := await queue.get()) is not None:
            index, row = item
            results[index] = await function(row)

    crew = [asyncio.create_task(worker()) for _ in range(cap)]
    for item in enumerate(rows):
        await queue.put(item)
    for _ in crew:
        await queue.put(None)
    await asyncio.gather(*crew)
    return results


async def tasks(function: Function, rows: list[int], cap: int, timeout: float = 10.0) -> list[int]:
    results: list[Any] = [None] * len(rows)
    permits = asyncio.Semaphore(cap)

    async def one(index: int, row: int) -> None:
        try:
            results[index] = await asyncio.wait_for(function(row), timeout)
        finally:
            permits.release()

    async with asyncio.TaskGroup() as group:
        for index, row in enumerate(rows):
            await permits.acquire()
            group.create_task(one(index, row))
    return results


Results = tuple[pa.Array, pa.Array]
"""Row numbers, and the values of these rows."""


class Handed:
    """To be used from another thread than the loop's. `stop` ends the loop, once all rows have been answered."""

    def __init__(self, function: Function, loop: asyncio.AbstractEventLoop, cap: int) -> None:
        self._function, self._loop, self._cap = function, loop, cap
        self._rows: deque[tuple[int, int]] = deque()
        self._results: list[tuple[int, int]] = []
        self._told: queue.SimpleQueue[list[tuple[int, int]]] = queue.SimpleQueue()
        self._will_tell = self._is_stopped = False
        self._idle: list[asyncio.Future[None]] = []
        self._thread = threading.Thread(target=loop.run_until_complete, args=(self._run(),), daemon=True)
        self._thread.start()

    def map(self, column: pa.Array, batch_rows: int) -> list[Results]:
        """All rows, sent while at most two batches are under way."""
        sent = answered = 0
        arrays = []
        while answered < len(column):
            while sent < len(column) and sent - answered <= batch_rows:
                batch = column.slice(sent, batch_rows)
                self._loop.call_soon_threadsafe(self._take_in, list(enumerate(batch.to_pylist(), sent)))
                sent += len(batch)
            numbers, values = zip(*self._told.get(), strict=True)
            answered += len(numbers)
            arrays.append((pa.array(numbers, pa.uint64()), pa.array(values, column.type)))
        return arrays

    def stop(self) -> None:
        self._is_stopped = True
        self._loop.call_soon_threadsafe(self._take_in, [])
        self._thread.join()

    async def _run(self) -> None:
        await asyncio.gather(*(self._slot() for _ in range(self._cap)))

    def _take_in(self, rows: list[tuple[int, int]]) -> None:
        self._rows.extend(rows)
        while self._idle:
            self._idle.pop().set_result(None)

    async def _slot(self) -> None:
        while True:
            while not self._rows:
                if self._is_stopped:
                    return
                self._idle.append(self._loop.create_future())
                await self._idle[-1]
            number, row = self._rows.popleft()
            value = await self._function(row)
            self._results.append((number, value))
            if not self._will_tell:
                self._will_tell = True
                self._loop.call_later(0.002, self._tell)

    def _tell(self) -> None:
        self._will_tell = False
        results, self._results = self._results, []
        self._told.put(results)
