"""The references of the speed goals: plain Python, defined once, so that a ratio always means the same.

Sync: the rows are Python lists, made before; a null argument gives None without a call.
    mph       int64, int64 -> float64
    tail      utf8, utf8 -> utf8, with branches and one f-string
Async, with at most `cap` rows in flight:
    slots     long-lived Tasks that take the next row from a shared iterator; no deadline, no order: the lower limit
    workers   an asyncio.Queue and `cap` workers: the careful solution
    tasks     a Task per row under wait_for, created once a permit is free: the solution with a deadline
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

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
