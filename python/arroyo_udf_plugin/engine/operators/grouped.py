"""Windows as an operator: rows of all slices in, results of windows out.

    rows, watermarks ──► gather: the lowest watermark ──► group: open windows ──► results, watermark

It works for some key groups, those of its slice; rows of others go to other slices before (execution/exchange.py). A
state says which groups it is of, and how far each of them was. So a restart with another number of slices gives each
slice what there is of its groups, and no window is answered twice, and no row late that was not.

Rows wait in `gather` only until the next turn. A row whose event time is null, or too far from 1970, fails there. Open
windows are no rows that are held: a stop does not wait for them. They leave when a watermark closes them, or at the end
of the input.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...abi import ERROR, VALUE
from ...errors import ArroyoUdfError, InvalidArgument
from ...host.answers import STEP_ROWS
from ...host.ordinals import ordinals
from ...host.policy import Action, Policy
from ..connectors.unnamed import Data
from ..datafusion.query import error_message
from ..windows.collecting import Collecting
from ..windows.first_rows import FirstRows
from ..windows.grouping import Grouping
from ..windows.join_query import Joining
from ..windows.look_back import LookBackRows
from ..windows.key_groups import COUNT, Asked, GroupRange, KeyGroups
from ..windows.opened import opened
from ..windows.panes import WAITING_ROWS, WindowPanes
from ..windows.spans import bounded, later, nanoseconds, unusable
from ..windows.storage import StorageLimits
from .blocks import ORIGIN, Block, Given
from .failures import Failures
from .keys import OfResults, of_pairs
from .operator import Operator
from .pace import Pace
from .queued import QueuedStage
from .stages import Dead, Item, RunningStage, in_order
from .state import FunctionSnapshot, Passed, StateIdentity, hash_of, lowest, plain
from .watermarks import Lowest, Watermark

LATE = "late"
"""The outcome of late rows as dead letters."""
WINDOW_OF = "window of "
"""Begins the names of the origins of windows' results."""


@dataclass(frozen=True)
class GroupPlan:
    """A grouping in its place. name: for people. given: the rows that it is given. policy: for rows without windows.
    key: of the operator, if its results need idempotency keys. lateness: for how many nanoseconds windows stay open
    behind the watermark. on_late: what happens to late rows."""

    name: str
    grouping: Asked
    given: Given
    policy: Policy = Policy()  # noqa: RUF009 (frozen)
    limits: StorageLimits = StorageLimits()  # noqa: RUF009 (frozen)
    key: bytes | None = None
    lateness: int = 0
    on_late: Action = "drop"

    @property
    def where(self) -> str:
        return f"windows {self.name}"

    @property
    def plugin_hash(self) -> str:
        return self.identity.plugin_hash

    @property
    def identity(self) -> StateIdentity:
        """Of what it asks. What it keeps is said by its columns, and what it makes of that may change."""
        return StateIdentity("windows", self.name, hash_of(self.grouping), _lasting(self.grouping))


class GatherStage(QueuedStage):
    """Rows on their way to the windows."""

    def __init__(self, plan: GroupPlan) -> None:
        super().__init__(plan.name, plan.identity, plan.given, plan.policy)
        self._plan = plan
        time = plan.grouping.time
        self._time = None if time is None else plan.given.schema.get_field_index(time)
        self._queue = collections.deque()
        self._pace = Pace(STEP_ROWS)
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


class ResultKeys:
    """The idempotency keys of results that leave together. schema: of them, without their sides' keys."""

    def __init__(self, operator: bytes, grouping: Grouping | Joining | Collecting, schema: pa.Schema) -> None:
        self._operator, self._width = operator, len(schema)
        self._sides = isinstance(grouping, Joining)
        are_rows = not isinstance(grouping, Grouping) or grouping.by_row
        self._columns: Sequence[str] = schema.names
        if isinstance(grouping, Grouping) and not grouping.by_row:
            self._columns = [grouping.column, *grouping.keys]
        self._results = OfResults(operator, are_rows)

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        if self._sides:
            return of_pairs(self._operator, *rows.columns[self._width :])
        return self._results.keys([rows.column(name) for name in self._columns])


class GroupStage(RunningStage):
    """The open windows. A snapshot comes between two turns, and so never between a watermark and what it closes."""

    def __init__(self, plan: GroupPlan) -> None:
        super().__init__(plan.name, plan.identity, plan.given, Policy())
        self._window = plan.grouping.window
        self._passes = isinstance(plan.grouping, FirstRows | LookBackRows)
        self._given = _with_origin(plan.given) if self._passes else plan.given.schema
        self._windows = opened(plan.grouping, self._given, plan.limits)
        self._origin, self._key = plan.given.origin, plan.key
        self._plan, self._grouping = plan, plan.grouping
        self._delay = plan.grouping.delay if isinstance(plan.grouping, Joining) else 0
        self._out: list[Item] = []
        self._closing: Iterator[Sequence[pa.RecordBatch]] | None = None
        self._behind: Watermark | None = None  # leaves when windows have closed
        self._is_at_end = self._is_over = False
        self._answered = 0  # rows of results
        self.groups, self.range = KeyGroups(plan.grouping, self._given), GroupRange()
        self._former: Sequence[Passed] = ()  # of key groups that were further than others

    @property
    def kept_as(self) -> Given:
        return Given(self._windows.kept_schema, meanings=self._windows.meanings)

    @property
    def is_closing(self) -> bool:
        """Whether results of windows that are over have not left yet. Nothing is pushed then."""
        return self._closing is not None

    @property
    def is_ready(self) -> bool:
        return bool(self._out) or self.is_closing or (self._is_at_end and not self._is_over)

    @property
    def is_empty(self) -> bool:
        """Whether all windows have left."""
        return self._is_over

    @property
    def wants_input(self) -> bool:
        return True

    def push(self, item: Block | Watermark) -> None:
        if isinstance(item, Watermark):
            time = None if item.time is None else item.time - self._plan.lateness
            self._behind = Watermark(None if time is None else time - self._delay)
            if time is not None and (self._latest is None or time > self._latest):
                self._latest = time
                if self._window is not None:
                    self._windows.watermark = bounded(time, self._window)
                    self._begin_close()
            self._close()
            return
        self.counts.rows += len(item)
        with self._errors():
            late = self._late(item.rows)
        if late is not None:
            self._leave_out(item.filter(late))
            item = item.filter(pc.invert(late))
        self.counts.values += len(item)
        if len(item):
            with self._errors():
                self._windows.add(_with_origins(item, self._given) if self._passes else item.rows)

    def _late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        late = self._windows.late(rows)
        for former in self._former:
            own, self._windows.watermark = self._windows.watermark, former.watermark
            by_it, self._windows.watermark = self._windows.late(rows), own
            if by_it is not None and (groups := self.groups.of(rows)) is not None:
                by_it = pc.and_(by_it, former.range.mask(groups))
            late = by_it if late is None else late if by_it is None else pc.or_(late, by_it)
        return late

    def _leave_out(self, late: Block) -> None:
        """Late rows, after the policy."""
        self.counts.late += len(late)
        if self._plan.on_late != "dead_letter":
            return
        times = late.rows.column(self._plan.grouping.time)
        outcomes = pa.repeat(pa.scalar(ERROR, pa.uint8()), len(late))
        results = pa.RecordBatch.from_arrays([outcomes, self._why(times)], names=["outcome", "error"])
        letters = Policy("dead_letter").apply(results, self._plan, origin=late.origin).dead
        place = letters.schema.get_field_index("failed_outcome")
        letters = letters.set_column(place, letters.schema.field(place), pa.repeat(LATE, len(late)))
        self.counts.dead_letters += len(late)
        self._out.append(Dead(late, letters))

    def _why(self, times: pa.Array) -> pa.StringArray:
        watermark = pa.array([self._windows.watermark], pa.timestamp("ns"))
        event_times, upto = (
            pc.replace_substring_regex(array.cast(pa.string()), r"\.0+$", "") for array in (times, watermark)
        )
        return pc.binary_join_element_wise(
            "late: its event time is ", event_times, ", and windows were over up to ", upto[0], ""
        )

    def finish(self) -> None:
        """Nothing more comes: all windows are over."""
        self._is_at_end = True

    def turn(self) -> Iterator[Item]:
        if self._is_at_end and not self._is_over and not self.is_closing:
            self._begin_close(all_of_them=True)
        self._close()
        out, self._out = self._out, []
        return iter(out)

    def _begin_close(self, all_of_them: bool = False) -> None:
        """Of a query over all rows, only the slice that has got them answers."""
        self._closing = iter(self._windows.close(all_of_them) if self.range else ())

    def _close(self) -> None:
        """The next results of windows that are over, as many as may be in memory; behind the last, the watermark."""
        keys = None
        if self._key is not None and isinstance(self._grouping, Grouping | Joining | Collecting):
            keys = ResultKeys(self._key, self._grouping, self._windows.schema)
        while self._closing is not None and self._n_out < WAITING_ROWS:
            with self._errors():
                step = next(self._closing, None)
            if step is None:
                self._closing = None
                self._has_closed()
            else:
                self._out += [block for rows in step for block in self._blocks(self._unanswered(rows), keys)]
        if self._closing is None and self._behind is not None:
            self._out.append(self._behind)
            self._behind = None

    @property
    def _n_out(self) -> int:
        return sum(len(item) for item in self._out if isinstance(item, Block))

    def _has_closed(self) -> None:
        closed = self._windows.closed
        self._former = [former for former in self._former if former.is_further(self._latest, closed)]
        if self._is_at_end:
            self._latest = later(self._latest, self._windows.watermark)  # rows that come after a resume are late
            self._is_over = True

    def _unanswered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Without results of windows that have left before a restart. Of hops, panes of theirs are needed by others."""
        if not self._former or not isinstance(self._windows, WindowPanes):
            return rows
        ends = pc.add(nanoseconds(rows.column(self._grouping.time)), 1)
        for former in self._former:
            if former.closed is not None:
                groups = KeyGroups(self._grouping, rows.schema).of(rows)
                assert groups is not None, "all rows without keys were in one slice"
                left = pc.and_(former.range.mask(groups), pc.less_equal(ends, former.closed))
                rows, ends = rows.filter(pc.invert(left)), ends.filter(pc.invert(left))
        return rows

    def _blocks(self, rows: pa.RecordBatch, keys: ResultKeys | None) -> Iterator[Block]:
        for start in range(0, rows.num_rows, STEP_ROWS):
            part = rows.slice(start, STEP_ROWS)
            if self._passes:
                yield _without_origins(part, len(self._given), self._origin)
                continue
            own = pa.nulls(part.num_rows, pa.binary()) if keys is None else keys.of(part)
            if part.num_columns > (width := len(self._windows.schema)):
                part = part.select(range(width))
            yield Block(part, self._origins(part.num_rows, own))

    def _origins(self, n_rows: int, keys: pa.Array) -> pa.RecordBatch:
        """A result comes from many rows: it is told by its number. Of the source's own columns it has none."""
        numbers = ordinals(n_rows, self._answered)
        self._answered += n_rows
        name = pa.repeat(f"{WINDOW_OF}{self.name}", n_rows)
        others = [pa.nulls(n_rows, type_) for type_ in self._origin.types[len(ORIGIN) :]]
        unread = pa.nulls(n_rows, pa.string())
        return pa.RecordBatch.from_arrays([name, numbers, unread, keys, *others], schema=self._origin)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ArroyoUdfError:
            raise
        except Exception as error:  # whatever DataFusion raises
            what = "its query" if self._window is None else "its windows"
            raise InvalidArgument(f"operator {self.name}: {what} cannot be computed: {error_message(error)}") from error

    def kept(self) -> FunctionSnapshot:
        """next_id: of the next result, behind the numbers of what is kept."""
        with self._errors():
            next_id = self._windows.kept_rows + self._answered
        snapshot = FunctionSnapshot(self.identity, self._lineage, next_id, [], self._latest, self._kept_rows())
        return dataclasses.replace(snapshot, passed=self._passed())

    def _passed(self) -> list[Passed]:
        if not self.range:
            return []
        own = self._latest, self._windows.closed
        return [Passed(self.range, *own), *(former.moved_on(*own) for former in self._former)]

    def _kept_rows(self) -> Iterator[tuple[pa.UInt64Array, Block]]:
        n_rows = 0
        with self._errors():
            for batch in self._windows.kept():
                yield ordinals(batch.num_rows, n_rows), Block(batch, _nowhere(batch.num_rows))
                n_rows += batch.num_rows

    @property
    def kept_bytes(self) -> int:
        return self._windows.size

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Of all slices: what there is of this one's key groups.

        Slices had not closed the same windows. It goes on from the lowest, and `_former` says who was further.
        """
        first, *_ = kept
        if not any(snapshot.passed for snapshot in kept):  # all windows were in the first slice
            kept = [dataclasses.replace(first, passed=[Passed(GroupRange(), first.latest, first.latest)]), *kept[1:]]
        passed = [own for snapshot in kept for entry in snapshot.passed if (own := entry.within(self.range)).range]
        n_rows = [sum(len(block) for _, block in snapshot.rows) for snapshot in kept]
        self._answered = max(snapshot.next_id - own for snapshot, own in zip(kept, n_rows, strict=True))
        closed = lowest(entry.closed for entry in passed)
        self._latest = later(lowest(entry.watermark for entry in passed), closed)
        self._former = [entry for entry in passed if entry.is_further(self._latest, closed)]
        rows = [own for snapshot in kept for own in self._own_rows(snapshot) if own.num_rows]
        if closed is not None and self._window is not None:
            closed = bounded(closed, self._window)
        self._windows.restore(rows, self._latest if self._window is None else closed)
        if self._latest is not None and self._window is not None:
            self._windows.watermark = bounded(self._latest, self._window)
            if self._windows.watermark != closed:
                self._begin_close()

    def _own_rows(self, snapshot: FunctionSnapshot) -> Iterator[pa.RecordBatch]:
        """Large ones are read page by page."""
        ranges = [entry.range for entry in snapshot.passed]
        if not any(range_.common(self.range) for range_ in ranges):
            return
        groups = KeyGroups(self._grouping, self._windows.kept_schema)
        are_own = all(range_.common(self.range) == range_ for range_ in ranges)
        for _, block in snapshot.rows:
            yield block.rows if are_own else groups.within(block.rows, self.range)

    @property
    def former_watermark(self) -> int | None:
        """The highest that a slice has taken before a restart."""
        times = [former.watermark for former in self._former if former.watermark is not None]
        return max(times, default=None)


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
        self._groups = KeyGroups(plan.grouping, plan.given.schema)
        self._lowest, self._lateness = Lowest(1), plan.lateness
        self._delay = plan.grouping.delay if isinstance(plan.grouping, Joining) else 0

    def share(self, slice: int, width: int) -> None:
        """A slice has the rows of its key groups, or, if all are needed together, the first one has all."""
        every = GroupRange(0, 0) if self._groups.is_one else GroupRange()
        self._lowest, self._group.range = Lowest(width), every.common(GroupRange.of(slice, width))

    def parts_of(self, block: Block, ranges: Sequence[GroupRange]) -> list[Block | None]:
        """The rows of some ranges of key groups. None: there are none."""
        if len(ranges) == 1:  # of the only slice
            return [block]
        groups = self._groups.of(block.rows)
        if groups is None:
            return [block if range_.first == 0 and range_ else None for range_ in ranges]
        places = [pc.indices_nonzero(range_.mask(groups)) for range_ in ranges]
        return [None if not len(own) else block if len(own) == len(block) else block.take(own) for own in places]

    def _own_part(self, block: Block) -> Block | None:
        if self._group.range == GroupRange():
            return block
        own, _ = self.parts_of(block, [self._group.range, GroupRange(COUNT)])
        return own

    def start(self, states: Sequence[Data] = (), *, allow_changed_plugin: bool = False) -> None:
        super().start(states, allow_changed_plugin=allow_changed_plugin)
        former = self._group.former_watermark
        if former is not None:  # it had been told to all, behind the rows that were on their way
            self._gather.push(Watermark(former + self._lateness))

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

    def snapshot(self, on_their_way: Sequence[Block] = ()) -> Data | None:
        """on_their_way: further rows, of any key group, that are in no other state."""
        self._gather.on_their_way = on_their_way
        try:
            return super().snapshot()
        finally:
            self._gather.on_their_way = ()


def _lasting(grouping: Asked) -> dict[str, Any]:
    """What must stay while rows are kept."""
    if isinstance(grouping, LookBackRows):
        return {"time": grouping.time, "keys": [plain(key) for key in grouping.keys], "order": plain(grouping.order)}
    if isinstance(grouping, FirstRows):
        return {"time": grouping.time, "keys": list(grouping.keys)}
    if isinstance(grouping, Collecting):
        return {"query": plain(grouping.sql), "tables": list(grouping.tables)}
    if isinstance(grouping, Joining):
        within = plain(grouping.within)
        return {"time": grouping.time, "kind": grouping.kind, "on": plain(grouping.on), "within": within}
    return {"time": grouping.time, "window": plain(grouping.window), "keys": list(grouping.keys)}


def _with_origin(given: Given) -> pa.Schema:
    """Of rows that keep their origins."""
    return pa.schema([*given.schema, *(field.with_name(f"origin.{field.name}") for field in given.origin)])


def _with_origins(block: Block, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*block.rows.columns, *block.origin.columns], schema=schema)


def _without_origins(rows: pa.RecordBatch, width: int, origin: pa.Schema) -> Block:
    """width: of what was given, whose last columns the origins are; further ones are behind it."""
    first = width - len(origin)
    origins = pa.RecordBatch.from_arrays(rows.columns[first:width], schema=origin)
    return Block(rows.select([*range(first), *range(width, rows.num_columns)]), origins)


def _nowhere(n_rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(n_rows, type_) for type_ in ORIGIN.types], schema=ORIGIN)
