"""Windows as an operator: rows of all slices in, results of windows out.

    rows, watermarks ──► gather: the lowest watermark ──► group: open windows ──► results, watermark

Rows wait in `gather` only until the next turn. A row whose event time is null, or too far from 1970, fails there. Open
windows are no rows that are held: a stop does not wait for them. They leave when a watermark closes them, or at the end
of the input.
"""

from __future__ import annotations

import collections
import contextlib
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
from ..datafusion.query import error_message
from ..windows.collecting import Collecting
from ..windows.first_rows import FirstRows
from ..windows.grouping import Grouping
from ..windows.join_query import Joining
from ..windows.kept import KeptRows
from ..windows.look_back import LookBackRows
from ..windows.opened import opened
from ..windows.spans import bounded, later, unusable
from ..windows.storage import StorageLimits
from .blocks import ORIGIN, Block, Given
from .failures import Failures
from .keys import OfResults, of_pairs
from .operator import Operator
from .pace import Pace
from .queued import QueuedStage
from .stages import Dead, Item, RunningStage, in_order
from .state import FunctionSnapshot, OperatorSnapshot, StateIdentity, hash_of, plain
from .watermarks import Lowest, Watermark

Asked = Grouping | Joining | Collecting | FirstRows | LookBackRows
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

    def clear(self) -> None:
        """Gives up what waits."""
        self._queue.clear()
        self.held_rows = self.held_bytes = 0

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Of the first slice, with the lowest watermarks of all; of others, the rows that were on their way here."""
        for snapshot in kept:
            for item in in_order([snapshot]):
                self.push(item)


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
        self._is_at_end = self._is_over = False
        self._answered = 0  # rows of results
        self._kept: list[KeptRows] | None = None  # of the latest snapshot, if nothing has changed

    @property
    def kept_as(self) -> Given:
        return Given(self._windows.kept_schema, meanings=self._windows.meanings)

    @property
    def is_ready(self) -> bool:
        return bool(self._out) or (self._is_at_end and not self._is_over)

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
            if time is not None and (self._latest is None or time > self._latest):
                self._latest = time
                if self._window is not None:
                    self._windows.watermark = bounded(time, self._window)
                    self._close()
            self._out.append(Watermark(None if time is None else time - self._delay))
            return
        self.counts.rows += len(item)
        with self._errors():
            late = self._windows.late(item.rows)
        if late is not None:
            self._leave_out(item.filter(late))
            item = item.filter(pc.invert(late))
        self.counts.values += len(item)
        if len(item):
            self._kept = None
            with self._errors():
                self._windows.add(_with_origins(item, self._given) if self._passes else item.rows)

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
        if self._is_at_end and not self._is_over:
            self._close(all_of_them=True)
            self._latest = later(self._latest, self._windows.watermark)  # rows that come after a resume are late
            self._is_over = True
        out, self._out = self._out, []
        return iter(out)

    def _close(self, all_of_them: bool = False) -> None:
        self._kept, keys = None, None
        if self._key is not None and isinstance(self._grouping, Grouping | Joining | Collecting):
            keys = ResultKeys(self._key, self._grouping, self._windows.schema)
        with self._errors():
            for rows in self._windows.close(all_of_them):
                self._out += self._blocks(rows, keys)

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
            if self._kept is None:
                self._kept = list(self._windows.kept())
        return FunctionSnapshot(self.identity, self._lineage, next_id, [], self._latest, (), parts=self._kept)

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """One slice has had the windows; the others have nothing."""
        by_snapshot = [snapshot.kept for snapshot in kept]  # large ones are read page by page
        own = [one for rows in by_snapshot for one in rows]
        times = [snapshot.latest for snapshot in kept if snapshot.latest is not None]
        self._latest = max(times, default=None)
        self._answered = max(
            snapshot.next_id - sum(one.num_rows for one in rows)
            for snapshot, rows in zip(kept, by_snapshot, strict=True)
        )
        watermark = self._latest
        if watermark is not None and self._window is not None:
            watermark = bounded(watermark, self._window)
        self._windows.restore(own, watermark)
        self._kept = own if all(one.part.place is not None for one in own) else None


class GroupOperator(Operator):
    """A grouping. It works in one slice, for the rows of all.

    operator.expect(inputs=3)                    its own slice's, which is input 0, and two others'
    operator.push_watermark(time, input=2)
    operator.end(input=2)                        nothing more comes from there
    """

    def __init__(self, plan: GroupPlan, hidden: Callable[[str], str] = str) -> None:
        super().__init__(plan.name, [])
        self._gather, self._group = GatherStage(plan), GroupStage(plan)
        self._gather.failures = Failures(hidden)
        self.stages = [self._gather, self._group]
        self._lowest = Lowest(1)

    def expect(self, inputs: int) -> None:
        """Before all watermarks."""
        self._lowest = Lowest(inputs)

    def push_watermark(self, time: int | None, input: int = 0) -> None:
        self._hand_on(self._lowest.after(input, time))

    def end(self, input: int) -> None:
        """Nothing more comes from there: it holds nothing back."""
        self._hand_on(self._lowest.end(input))

    def _hand_on(self, lowest: Watermark | None) -> None:
        if lowest is not None:
            self._gather.push(lowest)

    def take(self) -> list[Item]:
        if self._is_at_end and self._gather.is_empty:
            self._group.finish()
        return super().take()

    @property
    def is_ready(self) -> bool:
        return super().is_ready or (self._is_at_end and not self._group.is_empty)

    def snapshot_of(self, blocks: Sequence[Block]) -> OperatorSnapshot | None:
        """The state of an operator that has only these rows on their way to it."""
        for block in blocks:
            self._gather.push(block)
        state = self.snapshot()
        self._gather.clear()
        return state


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
