"""Rows on their way to the slice that has their key.

    slice 0: operators ──► exchange ──► windows, of some key groups ──► operators ──► sinks
                               ▲ │ channels
                               │ ▼
    slice 1: operators ──► exchange ──► windows, of the others      ──► operators ──► sinks

From each slice to each other one there is a channel for each exchange: a queue that is bounded in rows and bytes. The
watermark of a slice's windows is the lowest of all that come in.

A checkpoint needs no pause. Each slice is sealed at a moment of its own, with the rows that have passed one of the two
slices of a channel, and not the other one:

    the receiver is sealed first   The channel notes what is in it, and what comes until the sender is sealed: the
                                   sender does not read these rows again. They are part of the sender's state.
    the sender is sealed first     What is in the channel is part of the receiver's state. It takes what comes behind
                                   only when it is sealed.

Guarantees: each row is in one state, or read again. What is in a channel is bounded, and so is what it notes. A slice
waits for another one's seal only if a whole channel has passed meanwhile.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from ...host.answers import HELD_BYTES, STEP_ROWS
from ..operators.blocks import Block, PartialRows
from ..operators.grouped import GroupOperator
from ..operators.operator import Operator
from ..operators.routes import Routes
from ..operators.state import OperatorSnapshot
from ..operators.state_parts import StoredState
from ..operators.watermarks import Watermark
from ..windows.group_ranges import GroupRange

_MOST_ROWS = 4 * STEP_ROWS  # of a channel; the last block may go beyond


Sent = Block | PartialRows
"""What goes from slice to slice, besides watermarks."""


class Channel:
    """From one slice to another. put, end, seal_sender: called by the one. take, seal_receiver: by the other."""

    def __init__(self, wake_sender: Callable[[], None], wake_receiver: Callable[[], None]) -> None:
        self._wake_sender, self._wake_receiver = wake_sender, wake_receiver
        self._lock = threading.Lock()
        self._items: collections.deque[Sent | Watermark] = collections.deque()
        self._rows = self._bytes = 0
        self._has_ended = self._is_last = False
        self._noted: list[Sent] | None = None  # the receiver is sealed, and the sender is not
        self._noted_rows = self._noted_bytes = 0  # put since then
        self._before_barrier: int | None = None  # items; the sender is sealed, and the receiver is not

    @property
    def has_room(self) -> bool:
        rows, size = max(self._rows, self._noted_rows), max(self._bytes, self._noted_bytes)
        return rows < _MOST_ROWS and size < HELD_BYTES

    @property
    def is_ready(self) -> bool:
        """Whether something can be taken."""
        return bool(self._items) and self._before_barrier != 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is in it, and nothing more comes. An end behind the sender's seal does not count before the
        receiver is sealed, too: after a restart, rows may come in front of it."""
        with self._lock:
            return self._has_ended and not self._items and self._before_barrier is None

    @property
    def is_at_end(self) -> bool:
        """The same, and nothing is left for an engine that goes on from here."""
        return self.is_over and self._is_last

    def put(self, item: Sent | Watermark) -> None:
        with self._lock:
            self._items.append(item)
            if not isinstance(item, Watermark):
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

    def take(self) -> Sent | Watermark | None:
        with self._lock:
            if not self.is_ready:
                return None
            item, was_full = self._items.popleft(), not self.has_room
            if self._before_barrier is not None:
                self._before_barrier -= 1
            if not isinstance(item, Watermark):
                self._rows -= len(item)
                self._bytes -= item.nbytes
        if was_full and self.has_room:
            self._wake_sender()
        return item

    def seal_receiver(self) -> list[Sent]:
        """Returns rows on their way that are part of its state: if the sender was sealed before."""
        with self._lock:
            before, self._before_barrier = self._before_barrier, None
            if before is not None:
                return _rows(list(self._items)[:before])
            self._noted, self._noted_rows, self._noted_bytes = _rows(self._items), 0, 0
            return []

    def seal_sender(self) -> list[Sent]:
        """The same of the sender's state: if the receiver was sealed before."""
        with self._lock:
            if self._noted is None:
                self._before_barrier = len(self._items)
                return []
            noted, self._noted = self._noted, None
            was_full = not self.has_room
            self._noted_rows = self._noted_bytes = 0
        if was_full and self.has_room:
            self._wake_sender()
        return noted


def _rows(items: Iterable[Sent | Watermark]) -> list[Sent]:
    return [item for item in items if not isinstance(item, Watermark)]


class Outgoing:
    """Rows of one slice on their way to all of them, in front of windows or joins. operator: it knows whose they are.

    out: takes in what a slice gets, for each. may_idle: sources may be told to be idle, and come back behind the
    watermark of others."""

    def __init__(self, operator: GroupOperator, out: Sequence[Callable[[Sent], None]], may_idle: bool) -> None:
        self._operator, self._out = operator, out
        self._ranges = [GroupRange.of(place, len(out)) for place in range(len(out))]
        self._local = operator.local_parts() if len(out) > 1 and not may_idle else None

    def push(self, block: Block) -> None:
        if len(self._out) == 1:
            self._out[0](block)
            return
        if self._local is None:
            self._send(self._operator.parts_of(block, self._ranges))
            return
        as_they_are = self._local.add(block.rows)
        n_rows = 0 if as_they_are is None else as_they_are.true_count
        self._operator.count(len(block) - n_rows)
        if as_they_are is not None and n_rows:
            rest = block if n_rows == len(block) else block.filter(as_they_are)
            self._send(self._operator.parts_of(rest, self._ranges))
        if self._local.is_full:
            self.send_parts()

    def before_watermark(self, time: int | None) -> None:
        """It will be told to all: what must be there before leaves now."""
        if self._local is not None:
            if self._local.must_leave(time):
                self.send_parts()
            self._local.tell(time)

    def send_parts(self) -> None:
        """What has been kept back leaves."""
        for parts in () if self._local is None else self._local.take():
            self._send(self._operator.partial_rows(parts, self._ranges))

    def _send(self, items: Sequence[Sent | None]) -> None:
        """To each slice what is its own."""
        for put, item in zip(self._out, items, strict=True):
            if item is not None:
                put(item)


class Exchange:
    """In front of an operator, in one slice. out, into: the channels to and from each slice; None: its own. may_idle:
    see `Outgoing`."""

    def __init__(
        self,
        operator: GroupOperator,
        slice: int,
        out: Sequence[Channel | None],
        into: Sequence[Channel | None],
        may_idle: bool,
    ) -> None:
        self._operator, self._slice, self._out, self._into = operator, slice, out, into
        puts = [self._keep if channel is None else channel.put for channel in out]
        self._outgoing = Outgoing(operator, puts, may_idle)
        self._ended: set[int] = set()  # slices
        self._turn = 0
        operator.share(slice, len(out))

    # ---- From this slice ----

    @property
    def wants_input(self) -> bool:
        return self._operator.wants_input and all(channel.has_room for channel in self._channels(self._out))

    def push(self, block: Block) -> None:
        self._outgoing.push(block)

    def push_watermark(self, time: int | None) -> None:
        self._outgoing.before_watermark(time)
        self._operator.push_watermark(time, self._slice)
        for channel in self._channels(self._out):
            channel.put(Watermark(time))

    def end(self, is_last: bool) -> None:
        """Nothing more comes from this slice: it holds nothing back. is_last: nor does it after a resume. After a stop,
        rows that are left hold windows open, for the next engine."""
        self._outgoing.send_parts()
        for channel in self._channels(self._out):
            channel.end(is_last)
        if is_last:
            self._end(self._slice)

    def _keep(self, item: Sent) -> None:
        if isinstance(item, PartialRows):
            self._operator.push_parts(item)
        else:
            self._operator.push(item)

    # ---- From the others ----

    def receive(self) -> None:
        """Hands on what has come, while there is room."""
        self._turn += 1  # each has the first turn once
        for number in range(len(self._into)):
            sender = (self._turn + number) % len(self._into)
            if (channel := self._into[sender]) is None:
                continue
            while self._operator.wants_input and (item := channel.take()) is not None:
                if isinstance(item, Watermark):
                    self._operator.push_watermark(item.time, sender)
                else:
                    self._keep(item)
            if channel.is_at_end:
                self._end(sender)

    @property
    def is_ready(self) -> bool:
        """Whether `receive` has something to hand on now. Nobody wakes the slice for it again."""
        return self._operator.wants_input and any(channel.is_ready for channel in self._channels(self._into))

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes from other slices."""
        return all(channel.is_over for channel in self._channels(self._into))

    def _end(self, input: int) -> None:
        if input not in self._ended:
            self._ended.add(input)
            self._operator.end(input)

    # ---- Checkpoints ----

    def restore(self, states: Sequence[StoredState], allow_changed_plugin: bool) -> float | None:
        """See `Operator.restore`. Returns `GroupOperator.bound`."""
        self._operator.restore(states, allow_changed_plugin=allow_changed_plugin)
        return self._operator.bound

    def snapshot(self) -> OperatorSnapshot | None:
        """Of the operator, with rows on their way. The slice is sealed in this moment."""
        self._outgoing.send_parts()
        came = [block for channel in self._channels(self._into) for block in channel.seal_receiver()]
        went = [block for channel in self._channels(self._out) for block in channel.seal_sender()]
        return self._operator.snapshot(came + went)

    @staticmethod
    def _channels(every: Sequence[Channel | None]) -> Iterator[Channel]:
        return (channel for channel in every if channel is not None)


class Exchanges:
    """Those of a pipeline. wakes: wakes a slice. may_idle: see `Exchange`."""

    def __init__(self, routes: Routes, wakes: Sequence[Callable[[], None]], may_idle: bool = False) -> None:
        self._may_idle = may_idle
        self._channels = {
            place: [
                [
                    Channel(wakes[sender], wakes[receiver]) if sender != receiver else None
                    for receiver in range(len(wakes))
                ]
                for sender in range(len(wakes))
            ]
            for place in routes.exchanging
        }

    def of(self, slice: int, operators: Sequence[Operator]) -> dict[int, Exchange]:
        """Of a slice, by the places of its operators."""
        exchanges = {}
        for place, channels in self._channels.items():
            operator = operators[place]
            assert isinstance(operator, GroupOperator)
            into = [row[slice] for row in channels]
            exchanges[place] = Exchange(operator, slice, channels[slice], into, self._may_idle)
        return exchanges
