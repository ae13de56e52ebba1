"""A waiting stage: async functions and lookups, whose results come later, and what follows them without a hop.

    stage = WaitingStage(program, stage)
    stage.start()
    posted = await stage.answer(message)         in one event loop; any number at a time

Messages of all slices of a subtask share one operator, and so one budget, one runtime, one cache. Messages are answered
in the order in which they came, each when all its rows are. Where a message has a watermark, its place is marked in the
operator: by a watermark of ours, which is only a number, and which comes out behind all rows before it. (Rows of an
unordered function may come out before the mark of an earlier message, and then leave with that one.)

Guarantees: it has no state; a message is answered as a whole, or again from the beginning after a restart.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
from dataclasses import dataclass
from typing import Literal

from ..operators.routes import Place
from ..operators.stages import Item
from ..operators.watermarks import Watermark
from .cut import CutStage
from .messages import items, sender_of, time_of
from .moving import StageChain
from .outlets import Outlets, Posted, codec_of
from .program import Program


@dataclass
class _Segment:
    """Rows of a message, up to a watermark or its end. behind: what follows them. answer: of the message, if it is the
    last one."""

    mark: int
    sender: int
    behind: Watermark | Literal["end"] | None
    answer: asyncio.Future[list[Posted]] | None


class WaitingStage:
    """Of a subtask."""

    def __init__(self, program: Program, stage: CutStage) -> None:
        (edge,) = program.cut.edges_to(stage)
        self._program, self._stage = program, stage
        self._codec = codec_of(program, edge)
        operators = program.operators(stage)
        self._head, self._head_place = operators[stage.head], stage.head
        self._outlets: dict[int, Outlets] = {}  # by sender
        self._chain = StageChain(program.planned, stage, operators, self)
        self._marks = itertools.count(1)
        self._open: collections.deque[_Segment] = collections.deque()
        self._pump: asyncio.Task[None] | None = None
        self._pushed = asyncio.Event()

    def start(self) -> None:
        """Raises what `Function.start` raises."""
        for operator in self._chain.operators.values():
            operator.start()

    async def answer(self, message: bytes) -> list[Posted]:
        """Raises RowError for a row whose policy is "fail"."""
        sender = sender_of(message)
        for kind, payload in items(message):
            if kind == "rows":
                self._head.push(self._codec.decode(payload))
            elif kind == "end":
                self._close_segment(sender, "end")
            else:
                self._close_segment(sender, Watermark(time_of(payload) if kind == "watermark" else None))
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Posted]] = loop.create_future()
        self._close_segment(sender, None, answer)
        self._pushed.set()
        if self._pump is None:
            self._pump = loop.create_task(self._work())
        return await answer

    def _close_segment(
        self,
        sender: int,
        behind: Watermark | Literal["end"] | None,
        answer: asyncio.Future[list[Posted]] | None = None,
    ) -> None:
        segment = _Segment(next(self._marks), sender, behind, answer)
        self._head.push_watermark(segment.mark)
        self._open.append(segment)

    async def _work(self) -> None:
        """Until all messages are answered."""
        try:
            while self._open:
                self._pushed.clear()
                self._turn()
                if not self._open:
                    break
                if self._head.is_ready:
                    await asyncio.sleep(0)
                else:
                    await self._wait()
        except Exception as error:
            for segment in self._open:
                if segment.answer is not None and not segment.answer.done():
                    segment.answer.set_exception(error)
            self._open.clear()
        finally:
            self._pump = None

    async def _wait(self) -> None:
        waits = [self._pushed.wait(), *(stage.wait_results() for stage in self._head.waiting)]
        waits += [runtime.wait_room_async() for runtime in self._head.wanting_room]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _turn(self) -> None:
        for item in self._head.take():
            if isinstance(item, Watermark):
                assert item.time == self._open[0].mark, "marks leave in their order"
                while self._chain.turn(behind=self._head_place):
                    pass
                self._close_first()
            else:
                self._chain.hand_on(item, self._head_place)

    def _close_first(self) -> None:
        """All rows of the first segment have left the stage."""
        segment = self._open.popleft()
        outlets = self._outlets_of(segment.sender)
        if segment.behind == "end":
            outlets.end()
        elif segment.behind is not None:
            outlets.tell(segment.behind.time)
        if segment.answer is not None and not segment.answer.done():
            segment.answer.set_result(list(outlets.take()))

    def take_in(self, item: Item, place: Place) -> None:
        """Rows of the first segment leave the stage."""
        self._outlets_of(self._open[0].sender).take_in(item, place)

    def _outlets_of(self, sender: int) -> Outlets:
        if sender not in self._outlets:
            self._outlets[sender] = Outlets(self._program, self._stage, sender)
        return self._outlets[sender]

    def stop(self) -> None:
        """Gives up what is under way, and closes Contexts."""
        for operator in self._chain.operators.values():
            operator.stop("cancel")
        self._chain.close()
