"""Windows as an operator: rows of all slices in, results of windows out.

    rows, watermarks ──► gather: the lowest watermark ──► group: open windows ──► results, watermark

It works for some key groups, those of its slice; rows of others go to other slices before (execution/exchange.py).

Rows wait in `gather` only until the next turn, and while windows close. A row whose event time is null, or too far from
1970, fails there. Open windows are no rows that are held: a stop does not wait for them. They leave when a watermark
closes them, or at the end of the input.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...abi import ERROR, VALUE
from ...host.ordinals import ordinals
from ..windows.group_ranges import GroupRange
from ..windows.join_query import Joining
from ..windows.key_groups import KeyGroups
from ..windows.local_parts import LocalParts
from ..windows.portions import lowest
from ..windows.spans import unusable
from .blocks import Block, PartialRows
from .failures import Failures
from .group_stage import GroupPlan, GroupStage
from .operator import Operator
from .pace import MOST_STEP_ROWS, Pace
from .queued import QueuedStage
from .stages import Dead, Item, in_order
from .state import FunctionSnapshot, OperatorSnapshot
from .state_parts import StoredState
from .watermarks import Lowest, Watermark

_NOWHERE = pa.nulls(0, pa.uint64())


class GatherStage(QueuedStage):
    """Rows on their way to the windows."""

    def __init__(self, plan: GroupPlan) -> None:
        super().__init__(plan.name, plan.identity, plan.given, plan.policy)
        self._plan = plan
        time = plan.grouping.time
        self._time = None if time is None else plan.given.schema.get_field_index(time)
        self._queue = collections.deque()
        self._pace = Pace(MOST_STEP_ROWS)
        self.on_their_way: Sequence[Block] = ()
        self.own_part: Callable[[Block], Block | None] = lambda block: block

    def _answer(self, block: Block) -> tuple[int, Iterator[Item]]:
        window = self._plan.grouping.window
        if self._time is None or window is None:
            return len(block), iter([block])
        times = block.rows.column(self._time)
        failed = unusable(times, window)
        return len(block), iter([block] if failed is None else self._failed(block, times, failed))

    def _failed(self, block: Block, times: pa.Array, failed: pa.BooleanArray) -> list[Item]:
        """The rows after the policy. Raises RowError."""
        outcomes = pc.if_else(failed, *(pa.scalar(outcome, pa.uint8()) for outcome in (ERROR, VALUE)))
        name = repr(self._plan.grouping.time)
        far = f"column {name} is before 1678 or after 2261, and windows know the event times between"
        is_null = f"column {name} is null, and windows need an event time"
        texts = pc.if_else(times.is_valid(), far, is_null)
        results = pa.RecordBatch.from_arrays([outcomes, texts], names=["outcome", "error"])
        decided = self._policy.apply(results, self._plan, origin=block.origin)
        self._count(decided.failures.num_rows, decided)
        items: list[Item] = [Dead(block.take(decided.dead_at), decided.dead)] if len(decided.dead_at) else []
        kept = block.filter(decided.kept)
        return [*items, kept] if len(kept) else items

    def kept(self) -> FunctionSnapshot:
        """With the rows that are on their way here."""
        kept = super().kept()
        rows, next_id = list(kept.rows), kept.next_id
        for block in self.on_their_way:
            rows.append((ordinals(len(block), next_id), block))
            next_id += len(block)
        return dataclasses.replace(kept, rows=rows, next_id=next_id)

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Of all slices, with the lowest watermarks of all: those rows whose key groups are this slice's."""
        for item in in_order(kept):
            own = self.own_part(item) if isinstance(item, Block) else item
            if own is not None:
                self.push(own)


class GroupOperator(Operator):
    """A grouping. In several slices, each works for some key groups, and has an `Exchange` in front of it.

    operator.share(slice=0, width=3)             before anything else
    operator.push_watermark(time, input=2)       of slice 2; its own is the one that has its number
    operator.end(input=2)                        nothing more comes from there
    """

    def __init__(self, plan: GroupPlan, hidden: Callable[[str], str] = str) -> None:
        super().__init__(plan.name, [])
        self._gather, self._group = GatherStage(plan), GroupStage(plan)
        self._gather.failures = Failures(hidden)
        self._gather.own_part = self._own_part
        self.stages = [self._gather, self._group]
        self._given = plan.given.schema
        self._groups = KeyGroups(plan.grouping, self._given)
        self._groups_of_parts = KeyGroups(plan.grouping, self._group.kept_as.schema)
        self._lowest, self._range, self._lateness = Lowest(1), GroupRange(), plan.lateness
        self._delay = plan.grouping.delay if isinstance(plan.grouping, Joining) else 0
        self._local: LocalParts | None = None

    def share(self, slice: int, width: int, inputs: int | None = None) -> None:
        """A slice has the rows of its key groups, or, if all are needed together, the first one has all. inputs: the
        number of those that tell watermarks; None: each slice does."""
        every = GroupRange(0, 0) if self._groups.is_one else GroupRange()
        self._lowest, self._range = Lowest(inputs or width), every.common(GroupRange.of(slice, width))
        self._group.share(self._range)

    def parts_of(self, block: Block, ranges: Sequence[GroupRange]) -> list[Block | None]:
        """The rows of some ranges of key groups. None: there are none."""
        every = self._places(block.rows, self._groups, ranges)
        taken = [block if places is None else block.take(places) for places in every]
        return [own if len(own) else None for own in taken]

    def partial_rows(self, parts: pa.RecordBatch, ranges: Sequence[GroupRange]) -> list[PartialRows | None]:
        """The same of parts, as windows keep them."""
        every = self._places(parts, self._groups_of_parts, ranges)
        taken = [parts if places is None else parts.take(places) for places in every]
        return [PartialRows(own) if own.num_rows else None for own in taken]

    @staticmethod
    def _places(rows: pa.RecordBatch, groups: KeyGroups, ranges: Sequence[GroupRange]) -> list[pa.UInt64Array | None]:
        """Of the rows of each range; None: all rows are."""
        own = groups.of(rows)
        if own is None:
            return [None if range_ and range_.first == 0 else _NOWHERE for range_ in ranges]
        places = [pc.indices_nonzero(range_.mask(own)) for range_ in ranges]
        return [None if len(found) == rows.num_rows else found for found in places]

    def _own_part(self, block: Block) -> Block | None:
        (own,) = self.parts_of(block, [self._range])
        return own

    def start(self, states: Sequence[StoredState] = (), *, allow_changed_plugin: bool = False) -> None:
        super().start(states, allow_changed_plugin=allow_changed_plugin)
        if self._local is not None:  # slices at their end hold nothing back: windows may be ahead of what is told now
            self._local.tell(self._group.former_watermark)
        if self._group.is_behind:  # what others had taken was told to all, behind the rows that were on their way
            assert self._group.former_watermark is not None
            self._gather.push(Watermark(self._group.former_watermark + self._lateness))

    def push_parts(self, parts: PartialRows) -> None:
        """Of its own key groups."""
        self._group.push_parts(parts.rows)

    def count(self, rows: int) -> None:
        """So many rows have become parts."""
        self._group.counts.rows += rows
        self._group.counts.values += rows

    def push_watermark(self, time: int | None, input: int = 0) -> None:
        self._hand_on(self._lowest.after(input, time))

    def end(self, input: int) -> None:
        """Nothing more comes from there: it holds nothing back."""
        self._hand_on(self._lowest.end(input))

    def _hand_on(self, lowest: Watermark | None) -> None:
        if lowest is not None:
            self._gather.push(lowest)

    def take(self) -> list[Item]:
        """While windows close, rows and watermarks wait in front of them."""
        items: list[Item] = []
        for item in () if self._group.is_closing else self._gather.turn():
            if isinstance(item, Dead):
                items.append(item)  # dead letters pass
                continue
            self._group.push(item)
            if self._group.is_closing:
                break
        if self._is_at_end and self._gather.is_empty:
            self._group.finish()
        return [*items, *self._group.turn()]

    @property
    def is_ready(self) -> bool:
        return super().is_ready or (self._is_at_end and not self._group.is_empty)

    @property
    def is_drained(self) -> bool:
        return super().is_drained and not self._group.is_ready

    def local_parts(self) -> LocalParts | None:
        """For the rows of a slice. None: they go as they are."""
        self._local = LocalParts.of(self._groups.asked, self._given)
        return self._local

    @property
    def bound(self) -> float | None:
        """Of restored watermarks of those behind it: above it, some slices had not closed all windows. None: they had
        closed none. A slice alone goes on with what it has told."""
        kept = [snapshot for stage, kept in self._restored if stage is self._group for snapshot in kept]
        passed = [entry for snapshot in kept for entry in snapshot.passed]
        if len(kept) < 2 or not passed:
            return math.inf
        closed = lowest(entry.closed for entry in passed)
        return None if closed is None else closed - self._delay

    def snapshot(self, on_their_way: Sequence[Block | PartialRows] = ()) -> OperatorSnapshot | None:
        """on_their_way: what is of any key group, and in no other state."""
        self._gather.on_their_way = [item for item in on_their_way if isinstance(item, Block)]
        self._group.on_their_way = [item.rows for item in on_their_way if isinstance(item, PartialRows)]
        try:
            return super().snapshot()
        finally:
            self._gather.on_their_way = self._group.on_their_way = ()
