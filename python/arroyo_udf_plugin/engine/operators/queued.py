"""Stages whose rows are answered one step after another: sync functions and queries (queried.py), which answer in
`turn`, in the thread that asks, and lookups (lookup.py), which may have to wait for a database.

Rows wait in a queue until their turn. A turn is a step of about a tenth of a second: a slow function's rows leave as
they are done.
"""

from __future__ import annotations

import abc
import collections
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from ...abi import ERROR
from ...host.answers import STEP_ROWS, Answered, schema_of, with_refused
from ...host.arguments import Piece
from ...host.ordinals import ordinals
from ...host.policy import Answers, Policy
from .blocks import Block, Given
from .calls import PlacedCall
from .keys import RowParts
from .pace import Pace
from .stages import CallStage, Dead, Item, RunningStage, in_order
from .state import FunctionSnapshot, StateIdentity
from .watermarks import Watermark


class QueuedStage(RunningStage):
    """Rows and watermarks in a queue, each with its bytes."""

    _queue: collections.deque[tuple[Block | Watermark, int]]
    _pace: Pace

    @abc.abstractmethod
    def _answer(self, block: Block) -> tuple[int, Iterator[Item]]:
        """How many of a step's rows are answered, the first ones, and what comes of them. Others wait for the next."""

    def _has_answer(self, step: Block) -> bool:
        """Whether `_answer` waits for nothing. Called of each step, at least once before it."""
        return True

    def _rows_of_step(self, block: Block) -> int:
        """Of this block, which is the first one."""
        return self._pace.rows

    def _as_given(self, block: Block) -> Block:
        """A block of the queue, with the columns that the stage is given."""
        return block

    @property
    def is_ready(self) -> bool:
        return bool(self._queue)

    @property
    def is_empty(self) -> bool:
        return not self._queue

    @property
    def wants_input(self) -> bool:
        return self.held_rows < STEP_ROWS

    def push(self, item: Block | Watermark) -> None:
        size = 0
        if isinstance(item, Block):
            size = self._holds(item)
        elif not self._rises(item):
            return
        self._queue.append((item, size))

    def turn(self) -> Iterator[Item]:
        """One step of the first block, and the watermarks around it."""
        stepped = False
        while self._queue:
            item, size = self._queue[0]
            if isinstance(item, Watermark):
                self._queue.popleft()
                yield item
                continue
            n_rows = min(self._rows_of_step(item), len(item))
            step = item.slice(0, n_rows) if n_rows < len(item) else item
            if not self._has_answer(step) or stepped:
                return
            stepped = True
            n_rows, answered = self._answer(step)
            left_size = 0
            if n_rows == len(item):
                self._queue.popleft()
            else:
                left = item.slice(n_rows, len(item) - n_rows)
                left_size = self._sizes.of(left)
                self._queue[0] = left, left_size
            self.held_rows -= n_rows
            self.held_bytes -= size - left_size
            yield from answered

    def kept(self) -> FunctionSnapshot:
        first, rows, watermarks = 0, [], []
        for item, _ in self._queue:
            if isinstance(item, Watermark):
                watermarks.append((first, item.time))
            else:
                rows.append((ordinals(len(item), first), self._as_given(item)))
                first += len(item)
        return FunctionSnapshot(self.identity, self._lineage, first, watermarks, self._latest, rows)

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        for item in in_order(kept):
            self.push(item)
        if len(kept) == 1:
            self._lineage, self._latest = kept[0].lineage, kept[0].latest


class SharedPass(Protocol):
    """What answers for several stages: see fused.py."""

    def begins_at(self, stage: SyncStage) -> bool: ...
    def answer(self, block: Block) -> tuple[Iterable[Item], int]: ...
    def unanswered(self, block: Block, stage: SyncStage) -> Block: ...


class SyncStage(QueuedStage, CallStage):
    """A sync function. placed: its call."""

    def __init__(self, stage: PlacedCall, policy: Policy) -> None:
        super().__init__(stage, policy)
        self.placed = stage
        self._queue = collections.deque()
        self._pace = Pace()
        self._schema = schema_of(self._function.returns).remove(0)  # without ids
        self._pass: SharedPass | None = None

    def join(self, shared: SharedPass) -> None:
        """Another one answers for this stage, or this one for others."""
        self._pass = shared

    def _is_answered(self, block: Block) -> bool:
        """Whether the pass has answered it, before it came here."""
        return self._pass is not None and block.rows.num_columns > len(self.given.schema)

    def _rows_of_step(self, block: Block) -> int:
        if self._is_answered(block):
            return len(block)
        # Two things are said of all rows of a call: how many further calls find those for which a vectorized function
        # raises, and the timeout in a worker process.
        is_whole = self._function.vectorized or self._function.timeout is not None
        return min(self._pace.rows, STEP_ROWS) if is_whole else self._pace.rows

    def _as_given(self, block: Block) -> Block:
        if self._pass is None or not self._is_answered(block):
            return block
        return self._pass.unanswered(block, self)

    def _answer(self, block: Block) -> tuple[int, Iterator[Item]]:
        if self._is_answered(block):
            return len(block), iter((block,))
        begun = time.perf_counter()
        if self._pass is not None and self._pass.begins_at(self):
            items, size = self._pass.answer(block)
        else:
            items, size = self.alone(block)
        self._pace.observe(len(block), time.perf_counter() - begun, size)
        return len(block), iter(items)

    def alone(self, block: Block) -> tuple[Iterable[Item], int]:
        """What becomes of rows in this stage, and the bytes of its results. The items raise RowError."""
        answered = self._called(block)
        return self._decided(answered), answered.results.nbytes

    def recalled(self, block: Block) -> Block:
        """The rows with their results, without a policy: null where the call fails."""
        rows, results = self._called(block)
        return self.placed.answered(rows, results.column("value"))

    def _called(self, block: Block) -> Answered[Block]:
        rows, piece = self._stage.prepare(block)
        if not piece.refused:
            return Answered(rows, self._run(piece))
        kept = piece.kept()
        at = pa.array(kept, pa.int64())
        called = self._run(Piece([array.take(at) for array in piece.arrays], {})) if kept else None
        return Answered(rows, with_refused(called, kept, piece.refused, self._schema))

    def _run(self, piece: Piece) -> pa.RecordBatch:
        return pa.RecordBatch.from_struct_array(self._function.outcomes(*piece.arrays))


class FailingStage(QueuedStage):
    """Something that rows ask, and that may fail for some of them. Those follow the policy.

    A policy cannot make null of such a row: it has no result to be null.
    """

    def __init__(self, asked: Answers, identity: StateIdentity, given: Given, policy: Policy) -> None:
        super().__init__(asked.name, identity, given, policy)
        self._asked = asked

    def _failed(self, block: Block, failed: Mapping[int, str]) -> list[Item]:
        """failed: rows of the block, and why. Raises RowError."""
        if not failed:
            return []
        places = sorted(failed)
        rows = block.take(pa.array(places, pa.int64()))
        outcomes = pa.array([ERROR] * len(places), pa.uint8())
        result = pa.RecordBatch.from_pydict({"outcome": outcomes, "error": [failed[place] for place in places]})
        decided = self._policy.apply(result, self._asked, origin=rows.origin)
        self._count(len(places), decided)
        return [Dead(rows.take(decided.dead_at), decided.dead)] if len(decided.dead_at) else []


def part_of(block: Block, rows: pa.RecordBatch, of: pa.Array | None, parts: RowParts | None) -> Block:
    """Rows that a block has become. of: which of its rows each comes from, rising. parts: None: they need no keys."""
    part = block.with_rows(rows, of)
    own = None if parts is None or of is None or not len(of) else parts.keys(block.keys, of)
    return part if own is None else part.with_keys(own)
