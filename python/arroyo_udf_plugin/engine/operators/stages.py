"""One stage of an operator: what goes in comes out, with results.

AsyncStage is an async function behind a runtime: rows wait in its queue, run, and come out when `turn` finds them.
queued.py has those that answer in `turn`.

Guarantees: each row and watermark comes out once. No watermark overtakes a row before it. `turn` waits for nothing but
a sync function.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import dataclasses
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...abi import VALUE
from ...errors import InvalidState, UserCodeError, WouldBlock
from ...host.answers import STEP_ROWS, Answered, Waiting, Window
from ...host.batches import contract_broken
from ...host.policy import Decided, Policy
from ...host.runtime import Runtime
from ...host.started import Mode
from ...host.statistics import Statistics
from . import keys as keys_
from .blocks import Block, Given, Sizes
from .calls import PlacedCall
from .failures import Failures
from .pace import MOST_STEP_ROWS
from .state import FunctionSnapshot, StateIdentity
from .watermarks import Lowest, Watermark

_log = logging.getLogger("arroyo_udf_plugin")
_VALUES = pa.Array.from_buffers(pa.uint8(), MOST_STEP_ROWS, [None, pa.py_buffer(bytes([VALUE]) * MOST_STEP_ROWS)])


@dataclasses.dataclass(frozen=True)
class Dead:
    """Rows that are dead letters by policy. letters: `host.policy.LETTER`, one for each."""

    rows: Block
    letters: pa.RecordBatch


Item = Block | Watermark | Dead


@dataclasses.dataclass(frozen=True)
class Oldest:
    """The row that a stage has had longest, by its origin. since: when a look at it first found it the oldest, as
    `time.time()`."""

    file: str
    row: int
    since: float


@dataclasses.dataclass
class Counts:
    """Rows that a function has answered, by outcome; and what the policy made of those that failed. nulls: the values
    that are null, also because an argument was. late: rows that no window has taken, because a watermark had closed
    theirs."""

    rows: int = 0
    values: int = 0
    nulls: int = 0
    errors: int = 0
    timed_out: int = 0
    nulled: int = 0
    dropped: int = 0
    dead_letters: int = 0
    late: int = 0


class RunningStage(abc.ABC):
    """A stage with its rows.

    name: of the result, for people. identity: of what answers. given: of the rows that it is given.
    failures: why rows failed, whatever became of them. held_rows, held_bytes: of rows that have not left.
    """

    def __init__(self, name: str, identity: StateIdentity, given: Given, policy: Policy) -> None:
        self.name, self.identity, self.given = name, identity, given
        self.counts, self.failures = Counts(), Failures()
        self.held_rows = 0
        self.held_bytes = 0
        self._policy, self._sizes = policy, Sizes()
        self._latest: int | None = None
        self._holding: int | None = None
        self._lineage = os.urandom(16)

    @property
    def kept_as(self) -> Given:
        """Of the rows that `kept` has."""
        return self.given

    @property
    @abc.abstractmethod
    def is_ready(self) -> bool:
        """Whether `turn` has something to do without anything happening first."""

    @property
    @abc.abstractmethod
    def is_empty(self) -> bool:
        """Whether all rows and watermarks have come out."""

    @property
    @abc.abstractmethod
    def wants_input(self) -> bool:
        """Whether there is room for more rows; `push` takes them also without."""

    @abc.abstractmethod
    def push(self, item: Block | Watermark) -> None: ...

    @abc.abstractmethod
    def turn(self) -> Iterator[Item]:
        """What can come out now."""

    @property
    def is_waiting(self) -> bool:
        """Whether something is under way elsewhere that `wait_results` can wait for."""
        return False

    async def wait_results(self) -> None:
        """Waits until `turn` has something to do."""
        raise InvalidState(f"{self.name} has nothing under way")

    @abc.abstractmethod
    def kept(self) -> FunctionSnapshot:
        """Rows and watermarks that have not come out."""

    @abc.abstractmethod
    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Takes in the rows and watermarks of snapshots, before all others."""

    def _rises(self, watermark: Watermark) -> bool:
        """Notes a watermark that comes in. False: it says nothing new, as where each stage of several snapshots tells
        the same one."""
        if watermark.time is not None and self._holding is not None and watermark.time <= self._holding:
            return False
        self._holding = watermark.time
        if watermark.time is not None:
            self._latest = watermark.time
        return True

    def close(self) -> None:  # noqa: B027 (few have something to release)
        """Releases what it has opened."""

    def _count(self, n_rows: int, decided: Decided) -> None:
        counts = self.counts
        counts.rows += n_rows
        failed = decided.failures.num_rows
        counts.values += n_rows - failed
        counts.errors += failed - decided.timed_out
        counts.timed_out += decided.timed_out
        counts.nulled += decided.nulled
        counts.dropped += decided.dropped
        counts.dead_letters += len(decided.dead_at)
        for first in self.failures.add(decided.failures):
            _log.info("a row failed, the first of its kind: %s", first.message, extra={"operator": self.name})

    def _holds(self, block: Block) -> int:
        """Counts its rows and bytes, and returns these."""
        size = self._sizes.of(block)
        self.held_rows += len(block)
        self.held_bytes += size
        return size

    def _without_added(self, block: Block) -> Block:
        """The columns that the stage was given, without those that it has added for the output."""
        width = len(self.given.schema)
        if block.rows.num_columns == width:
            return block
        return block.with_rows(block.rows.select(range(width)))


class CallStage(RunningStage):
    """A stage that calls a function."""

    def __init__(self, stage: PlacedCall, policy: Policy) -> None:
        self._stage, self._function = stage, stage.call.function
        super().__init__(stage.call.name, StateIdentity.of(self._function), stage.given, policy)

    def _decided(self, answered: Answered[Block], are_values: bool = False) -> Iterator[Item]:
        """The rows after the policy. are_values: it is known that none has failed. Raises RowError."""
        rows, results = answered
        if are_values or _are_values(results):
            self.counts.rows += len(rows)
            self.counts.values += len(rows)
        else:
            decided = self._policy.apply(results, self._function, origin=rows.origin)
            self._count(results.num_rows, decided)
            self.counts.nulls -= decided.nulled
            if len(decided.dead_at):
                yield Dead(rows.take(decided.dead_at), decided.dead)
            results = decided.results
            if decided.kept is not None:
                rows = rows.filter(decided.kept)
        if len(rows):
            values = results.column("value")
            self.counts.nulls += values.null_count
            yield self._stage.answered(rows, values)


def _are_values(results: pa.RecordBatch) -> bool:
    """Whether it is seen at once that no row has failed. The policy finds the same, but wants to know where rows come
    from, which is not made for the others."""
    place = results.schema.get_field_index("outcome")
    return place < 0 or bool(results.column(place).equals(_VALUES.slice(0, results.num_rows)))


class AsyncStage(CallStage):
    """An async function. options: for its start. key: 16 bytes that make its rows' idempotency keys its own; None: they
    have lineage and id."""

    def __init__(self, stage: PlacedCall, policy: Policy, options: Mapping[str, Any], key: bytes | None = None) -> None:
        super().__init__(stage, policy)
        self._options, self._key = options, key
        self._runtime: Runtime | None = None
        self._ended: Statistics | None = None  # the last ones
        self._next_id = 1
        self._unsent: collections.deque[tuple[int, Sequence[pa.Array], memoryview | None]] = collections.deque()
        self._sent = 0  # rows that the runtime has
        self._is_refused = False
        self._may_have_more = False  # results in the runtime
        self._must_have = False  # results: `wait` has seen some
        self._is_stopping = False
        self._close_error: str | None = None
        self._watermarks: collections.deque[tuple[int, Watermark]] = collections.deque()
        self._oldest: Oldest | None = None

    def start(self) -> None:
        """Raises what `Function.start` raises. Other threads read a stage that has a runtime: it comes last."""
        runtime = self._function.start(lineage=self._lineage, **self._options)
        self._window = Window(runtime.at_once)
        self._waiting: Waiting[Block] = Waiting(self._function.where, self._function.returns)
        self._runtime = runtime

    @property
    def is_started(self) -> bool:
        return self._runtime is not None

    @property
    def runtime(self) -> Runtime:
        assert self._runtime is not None, "the stage was not started"
        return self._runtime

    @property
    def is_ready(self) -> bool:
        return self._may_have_more

    @property
    def is_empty(self) -> bool:
        return self._waiting.first is None and not self._watermarks

    @property
    def wants_input(self) -> bool:
        return not self._unsent and self._waiting.open < self._window.rows

    @property
    def wants_room(self) -> bool:
        """Whether the runtime has refused rows."""
        return self._is_refused

    def push(self, item: Block | Watermark) -> None:
        if isinstance(item, Watermark):
            if self._rises(item):
                self._watermarks.append((self._next_id, item))
            return
        for start in range(0, len(item), STEP_ROWS):
            part = item.slice(start, STEP_ROWS)
            self._add(self._next_id, part)
            self._next_id += len(part)

    def _add(self, first: int, block: Block) -> None:
        rows, piece = self._stage.prepare(block)
        self._holds(block)
        self._waiting.add(first, rows, piece.refused)
        keys = None if self._key is None else block.keys(self._key)
        for start, arrays in piece.runs():
            self._unsent.append((first + start, arrays, _of_rows(keys, start, start + len(arrays[0]))))

    def turn(self) -> Iterator[Item]:
        """One step of the results: those of a fast function would never end."""
        self._send()
        yield from self._out(self._waiting.uncalled())
        drained = self.runtime.drain(self._window.step)
        if drained is None and self._must_have:
            raise contract_broken(self._function.where, "wait answers OK, and drain_results has no results")
        self._must_have = False
        self._may_have_more = drained is not None
        if drained is not None:
            self._window.drained(drained.results.num_rows, drained.size)
            self._sent -= drained.results.num_rows
            # Beside refused rows, which come out as failed ones, what is known of all results says too little.
            are_values = drained.are_values and not self._waiting.refused
            yield from self._out(self._waiting.answered(drained), are_values)
            self._send()
        yield from self._leaving()

    def _out(self, answers: Iterator[Answered[Block]], are_values: bool = False) -> Iterator[Item]:
        for answered in answers:
            n_rows, held = len(answered.rows), self.held_rows
            self.held_bytes -= self.held_bytes * n_rows // max(held, 1)
            self.held_rows -= n_rows
            yield from self._decided(answered, are_values)
            yield from self._leaving()

    def _leaving(self) -> Iterator[Item]:
        """Watermarks whose rows have all left (O2)."""
        while self._watermarks:
            first = self._waiting.first
            if first is not None and first < self._watermarks[0][0]:
                return
            yield self._watermarks.popleft()[1]

    def _send(self) -> None:
        """As many rows as the window has: what the runtime does not have cannot become large results there."""
        self._is_refused = False
        while self._unsent and self._sent < self._window.rows:
            first, arrays, keys = self._unsent[0]
            n_rows, step = len(arrays[0]), self._window.step
            now = arrays if n_rows <= step else [array.slice(0, step) for array in arrays]
            try:
                self.runtime.send_nowait(first, *now, idempotency_keys=_of_rows(keys, 0, len(now[0])))
            except WouldBlock:
                self._is_refused = True
                return
            self._sent += len(now[0])
            if n_rows <= step:
                self._unsent.popleft()
            else:
                left = [array.slice(step) for array in arrays]
                self._unsent[0] = first + step, left, _of_rows(keys, step, n_rows)

    @property
    def is_waiting(self) -> bool:
        return bool(self.held_rows)

    async def wait_results(self) -> None:
        await self.runtime.wait_async()
        self._must_have = not self._is_stopping

    def begin_end(self) -> Callable[[], None]:
        """Nothing more comes. Returns what the caller must call in another thread, because it waits: it stops the
        runtime, while rows still run and come out. A plugin that has lost rows then says so, or breaks the contract.

        It raises what `Runtime.stop` raises, and keeps the text of a Context that failed to close.
        """
        self._is_stopping = True

        def end() -> None:
            self._close_error = self._stopped("drain", None)

        return end

    @property
    def can_end(self) -> bool:
        """Whether the runtime has all rows, and `begin_end` was not called."""
        return not self._unsent and not self._is_stopping

    def statistics(self) -> Statistics | None:
        """Of the runtime, also after its end. None: it has not started."""
        if self._ended is None and self._runtime is not None:
            with contextlib.suppress(InvalidState):  # released a moment ago, by another thread
                return self._runtime.statistics()
        return self._ended

    def oldest(self) -> Oldest | None:
        """None: it has no rows. Others wait for this one where results keep their order."""
        for _, positions, block in self._waiting.unanswered():
            origin = block.take(positions[:1]).origin
            file, row = origin.column("file")[0].as_py(), origin.column("row")[0].as_py()
            if self._oldest is None or (self._oldest.file, self._oldest.row) != (file, row):
                self._oldest = Oldest(file, row, time.time())
            return self._oldest
        return None

    def kept(self) -> FunctionSnapshot:
        rows = []
        for first, positions, block in self._waiting.unanswered():
            whole = len(positions) == len(block)
            block = self._without_added(block if whole else block.take(positions))
            rows.append((pc.add(positions, pa.scalar(first, pa.uint64())), block))
        watermarks = [(first, watermark.time) for first, watermark in self._watermarks]
        return FunctionSnapshot(self.identity, self._lineage, self._next_id, watermarks, self._latest, rows)

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Rows of one snapshot keep their ids; those of several get new ones, above all that were used."""
        kept = [self._with_former_keys(snapshot) if snapshot.is_former else snapshot for snapshot in kept]
        if len(kept) == 1:
            (snapshot,) = kept
            self._latest = snapshot.latest
            for ids, block in snapshot.rows:
                for first, part in _runs(ids, block):
                    self._add(first, part)
            self._watermarks.extend((first, Watermark(time)) for first, time in snapshot.watermarks)
            self._next_id = snapshot.next_id
            return
        self._next_id = max((snapshot.next_id for snapshot in kept), default=1)
        for item in in_order(kept):
            self.push(item)

    def _with_former_keys(self, kept: FunctionSnapshot) -> FunctionSnapshot:
        """Calls find the keys as they were: `_add` makes them the stage's own, which this undoes."""
        own = self._key or bytes(16)
        rows = [(ids, block.with_keys(keys_.masked(block.keys(), own))) for ids, block in kept.rows]
        return dataclasses.replace(kept, rows=rows)

    def choose_lineage(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Before `start`: the lineage of the first snapshot goes on. Ids of others' rows become new ones."""
        if kept:
            self._lineage = kept[0].lineage

    def stop(self, mode: Mode, deadline: float | None) -> str | None:
        """Ends the runtime and closes its Context; the text of a `close` that failed."""
        return self._close_error or self._stopped(mode, deadline)

    def _stopped(self, mode: Mode, deadline: float | None) -> str | None:
        try:
            self.runtime.stop(mode, deadline)
        except UserCodeError as error:
            return str(error)
        return None

    def close(self) -> None:
        if self._runtime is not None and self._ended is None:
            self._ended = self._runtime.statistics()
            self._runtime.release()


def _of_rows(keys: memoryview | None, start: int, stop: int) -> memoryview | None:
    return None if keys is None else keys[start * keys_.BYTES : stop * keys_.BYTES]


def in_order(kept: Sequence[FunctionSnapshot]) -> Iterator[Block | Watermark]:
    """The rows of snapshots, and the watermarks between them.

    Those of one snapshot stand where they stood. Several are merged: the one whose watermark is the lowest goes on
    next, and the lowest of all watermarks is told. So a row is only late by it if it was late in its own snapshot.
    """
    if len(kept) == 1:
        yield from _items(kept[0])
        return
    lowest, streams = Lowest(len(kept)), [collections.deque(_items(snapshot)) for snapshot in kept]
    reached: list[float] = [-math.inf] * len(kept)  # of each, its watermark

    def pass_on(number: int, time: int | None) -> Iterator[Watermark]:
        reached[number] = math.inf if time is None else time
        if (risen := lowest.after(number, time)) is not None:
            yield risen

    for number, snapshot in enumerate(kept):
        if snapshot.latest is not None and not snapshot.watermarks:  # it has left
            yield from pass_on(number, snapshot.latest)
    while left := [number for number, stream in enumerate(streams) if stream]:
        number = min(left, key=reached.__getitem__)
        item = streams[number].popleft()
        if isinstance(item, Watermark):
            yield from pass_on(number, item.time)
        else:
            yield item


def _items(kept: FunctionSnapshot) -> Iterator[Block | Watermark]:
    watermarks = collections.deque(kept.watermarks)
    for ids, block in kept.rows:
        while watermarks and watermarks[0][0] <= ids[0].as_py():
            yield Watermark(watermarks.popleft()[1])
        yield block
    yield from (Watermark(time) for _, time in watermarks)


def _runs(ids: pa.UInt64Array, block: Block) -> Iterator[tuple[int, Block]]:
    """Cut where ids have gaps."""
    if not len(ids):
        return
    first, last = ids[0].as_py(), ids[-1].as_py()
    if last - first + 1 == len(ids):
        yield first, block
        return
    jumps = pc.indices_nonzero(pc.not_equal(pc.subtract(ids[1:], ids[:-1]), pa.scalar(1, pa.uint64()))).to_pylist()
    for start, stop in zip([0, *(jump + 1 for jump in jumps)], [*(jump + 1 for jump in jumps), len(ids)], strict=True):
        yield ids[start].as_py(), block.slice(start, stop - start)
