"""Whose turn it is."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from arroyo_udf_plugin.cluster.functions.fair_queue import Busy, Lane, Turns, calling


class Work:
    """Pieces of work of callers, which run until they are let go. began: in which order."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.began: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def send(self, *names: str) -> None:
        """A name begins with that of its caller."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._do(name))
        await self.settle()

    async def _do(self, name: str) -> None:
        calling.set(name[0])
        async with self.turns.turn():
            self.began.append(name)
            await self._ends[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_one_caller_has_his_places_and_another_begins_at_once() -> None:
    """Two slow definitions of one caller kept all others waiting for 25 seconds."""

    async def test() -> None:
        work = Work(Turns("builds", Lane(at_once=2)))
        await work.send("a1", "a2", "a3", "a4")
        assert work.began == ["a1", "a2"]
        assert (work.turns.running, work.turns.waiting) == (2, 2)
        await work.send("b1", "c1", "d1")
        assert work.began == ["a1", "a2", "b1", "c1"]
        await work.end("a1")
        assert work.began[4:] == ["a3"], "it waits for longest"
        await work.end("b1")
        assert work.began[5:] == ["d1"]
        await work.end("a2", "a3", "a4", "c1", "d1")
        assert (work.turns.running, work.turns.waiting, sorted(work.began)[-1]) == (0, 0, "d1")

    run(test())


def test_those_who_wait_get_places_in_turn_however_much_one_of_them_has_sent() -> None:
    async def test() -> None:
        work = Work(Turns("plans", Lane(at_once=1)))
        await work.send("a1", "b1", "a2", "a3", "a4", "c1", "c2", "d1")
        assert work.began == ["a1", "b1"]
        await work.end("b1")
        assert work.began[2:] == ["c1"]
        await work.end("c1")
        assert work.began[3:] == ["d1"], "whoever has waited since his last turn comes before who had one just now"
        await work.end("a1")
        assert work.began[4:] == ["a2"]

    run(test())


def test_a_queue_is_full_for_its_caller_alone() -> None:
    async def test() -> None:
        work = Work(Turns("builds", Lane(at_once=1, waiting=2)))
        await work.send("a1", "a2", "a3", "a4", "b1")
        with pytest.raises(Busy, match="2 builds of yours wait already"):
            await work.tasks["a4"]
        assert work.began == ["a1", "b1"]
        await work.end("a1", "a2", "a3", "b1")
        assert work.began == ["a1", "b1", "a2", "a3"]

    run(test())


def test_who_goes_away_leaves_his_place() -> None:
    async def test() -> None:
        work = Work(Turns("builds", Lane(at_once=1)))
        await work.send("a1", "a2", "a3")
        work.tasks["a2"].cancel()
        await work.settle()
        assert work.turns.waiting == 1
        work._ends["a1"].set()
        work.tasks["a3"].cancel()  # it may get its place at this moment
        await work.settle()
        assert (work.turns.running, work.turns.waiting) == (0, 0)
        await work.send("a5")
        assert work.began[-1] == "a5"
        work.tasks["a5"].cancel()
        await work.settle()
        assert work.turns.running == 0

    run(test())
