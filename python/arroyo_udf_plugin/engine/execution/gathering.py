"""Rows of all slices on their way to an operator that needs them together, in the first slice.

    slice 0: operators ──────────► gathering operator ──► operators ──► sinks
    slice 1: operators ──► queue ──┘                                             its own ones are absent

In a checkpoint the first slice is sealed first, and cuts the queues. Each queue notes what is in it then, and what is
put into it until its own slice is sealed: the first slice does not have these rows in its state, and the other one does
not read them again. They are the other one's state of the gathering operator.

Guarantees: a queue is bounded, and so is what it notes. Nothing waits for a checkpoint, but a slice that sends a whole
queue before it is sealed.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Sequence

from ...host.answers import HELD_BYTES, STEP_ROWS
from ..operators.blocks import Block
from ..operators.grouped import GroupOperator
from ..operators.operator import Operator
from ..operators.routes import Routes
from ..operators.state import OperatorSnapshot
from ..operators.watermarks import Watermark

_MOST_ROWS = 4 * STEP_ROWS  # of a queue; the last block may go beyond


class RowQueue:
    """From one slice to the first. put, end, noted: called by the one. take, cut: by the first.

    What it notes for a checkpoint is bounded as what is in it: a slice that is sealed late has to wait then.
    """

    def __init__(self, wake_sender: Callable[[], None], wake_receiver: Callable[[], None]) -> None:
        self._wake_sender, self._wake_receiver = wake_sender, wake_receiver
        self._lock = threading.Lock()
        self._items: collections.deque[Block | Watermark] = collections.deque()
        self._rows = self._bytes = 0
        self._has_ended = self._is_last = False
        self._noted: list[Block] | None = None
        self._noted_rows = self._noted_bytes = 0  # put since the cut

    @property
    def has_room(self) -> bool:
        rows, size = max(self._rows, self._noted_rows), max(self._bytes, self._noted_bytes)
        return rows < _MOST_ROWS and size < HELD_BYTES

    @property
    def is_empty(self) -> bool:
        return not self._items

    @property
    def is_over(self) -> bool:
        """Whether nothing is in it, and nothing more comes."""
        with self._lock:
            return self._has_ended and not self._items

    @property
    def is_at_end(self) -> bool:
        """The same, and nothing is left for an engine that goes on from here."""
        return self.is_over and self._is_last

    def put(self, item: Block | Watermark) -> None:
        with self._lock:
            self._items.append(item)
            if isinstance(item, Block):
                self._rows += len(item)
                self._bytes += item.nbytes
                if self._noted is not None:
                    self._noted.append(item)
                    self._noted_rows += len(item)
                    self._noted_bytes += item.nbytes
        self._wake_receiver()

    def end(self, is_last: bool) -> None:
        """Nothing more comes. is_last: nor does it after a resume."""
        with self._lock:
            was_ended, self._has_ended = self._has_ended, True
            self._is_last |= is_last
        if not was_ended:
            self._wake_receiver()

    def take(self) -> Block | Watermark | None:
        with self._lock:
            if not self._items:
                return None
            item, was_full = self._items.popleft(), not self.has_room
            if isinstance(item, Block):
                self._rows -= len(item)
                self._bytes -= item.nbytes
        if was_full and self.has_room:
            self._wake_sender()
        return item

    def cut(self) -> None:
        """The first slice is sealed."""
        with self._lock:
            self._noted = [item for item in self._items if isinstance(item, Block)]

    def noted(self) -> list[Block]:
        """The slice that sends is sealed: what has passed since `cut`, with what was there."""
        with self._lock:
            noted, self._noted = self._noted, None
            was_full = not self.has_room
            self._noted_rows = self._noted_bytes = 0
        if was_full and self.has_room:
            self._wake_sender()
        assert noted is not None, "the first slice is sealed first"
        return noted


class Inlet:
    """Where rows of other slices come in, in the first slice."""

    def __init__(self, operator: GroupOperator, queues: Sequence[RowQueue]) -> None:
        self._operator, self._queues = operator, queues
        self._ended: set[int] = set()  # inputs
        self._turn = 0
        operator.expect(1 + len(queues))

    def gather(self) -> None:
        """Hands on what has come, while there is room."""
        self._turn += 1  # each has the first turn once
        for number in range(len(self._queues)):
            place = (self._turn + number) % len(self._queues)
            queue, input = self._queues[place], 1 + place
            while self._operator.wants_input and (item := queue.take()) is not None:
                if isinstance(item, Watermark):
                    self._operator.push_watermark(item.time, input)
                else:
                    self._operator.push(item)
            if queue.is_at_end:
                self._end(input)

    @property
    def is_ready(self) -> bool:
        """Whether `gather` has something to hand on now. Nobody wakes the slice for it again."""
        return self._operator.wants_input and not all(queue.is_empty for queue in self._queues)

    def end_own(self) -> None:
        """Nothing more comes from the first slice's own operators."""
        self._end(0)

    def _end(self, input: int) -> None:
        if input not in self._ended:
            self._ended.add(input)
            self._operator.end(input)

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes from other slices."""
        return all(queue.is_over for queue in self._queues)

    def cut(self) -> None:
        for queue in self._queues:
            queue.cut()


class Outlet(Operator):
    """The gathering operator, in another slice: hands everything on, and has no results."""

    def __init__(self, operator: GroupOperator, queue: RowQueue) -> None:
        super().__init__(operator.name, [])
        self._operator, self._queue = operator, queue

    @property
    def wants_input(self) -> bool:
        return self._queue.has_room

    def push(self, block: Block) -> None:
        self._queue.put(block)

    def push_watermark(self, time: int | None) -> None:
        self._queue.put(Watermark(time))

    def finish(self) -> None:
        """Nothing more comes: this slice holds nothing back."""
        super().finish()
        self._queue.end(is_last=True)

    def end(self) -> None:
        """Nothing more comes, this time. After a stop, rows that are left hold windows open, for the next engine."""
        self._queue.end(is_last=False)

    def snapshot(self) -> OperatorSnapshot | None:
        blocks = self._queue.noted()
        return self._operator.snapshot_of(blocks) if blocks else None


class Absent(Operator):
    """An operator behind a gathering one, in another slice: it gets nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name, [])

    def snapshot(self) -> None:
        return None


class Gathering:
    """The queues of a pipeline: for each gathering operator, one from each slice but the first.

    wakes: wakes a slice. inlets: by the place of their operator.
    """

    def __init__(self, routes: Routes, wakes: Sequence[Callable[[], None]]) -> None:
        self._routes = routes
        self._queues = {
            place: [RowQueue(wake, wakes[0]) for wake in wakes[1:]]
            for place in routes.gathering
            if not routes.is_absent(place)
        }

    def inlets(self, operators: Sequence[Operator]) -> dict[int, Inlet]:
        """Of the first slice, by the places of their operators."""
        inlets = {}
        for place, queues in self._queues.items():
            operator = operators[place]
            assert isinstance(operator, GroupOperator)
            inlets[place] = Inlet(operator, queues)
        return inlets

    def elsewhere(self, slice: int, operators: Sequence[Operator]) -> list[Operator]:
        """The operators of another slice."""
        return [self._elsewhere(slice, place, operator) for place, operator in enumerate(operators)]

    def _elsewhere(self, slice: int, place: int, operator: Operator) -> Operator:
        if self._routes.is_absent(place):
            return Absent(operator.name)
        if place not in self._queues:
            return operator
        assert isinstance(operator, GroupOperator)
        return Outlet(operator, self._queues[place][slice - 1])
