"""The stage of an operator that has the open windows of a slice's key groups.

    rows, watermarks ──► open windows ──► results in steps, then the watermark that has closed them

A snapshot comes between two steps, and says for each key group which watermark it has taken, and up to which time its
windows have left. So a restart with another number of slices gives each slice what there is of its groups: no window is
answered twice, and what was late stays late.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...abi import ERROR
from ...errors import ArroyoUdfError, InvalidArgument
from ...host.answers import STEP_ROWS
from ...host.ordinals import ordinals
from ...host.policy import Action, Policy
from ..datafusion.query import error_message
from ..windows.collecting import Collecting
from ..windows.first_rows import FirstRows
from ..windows.group_ranges import GroupRange, Passed
from ..windows.grouping import Grouping
from ..windows.join_query import Joining
from ..windows.kept import KeptPart, KeptRows
from ..windows.key_groups import Asked, KeyGroups
from ..windows.look_back import LookBackRows
from ..windows.opened import opened
from ..windows.panes import WAITING_ROWS
from ..windows.portions import Portions
from ..windows.results import Step
from ..windows.spans import bounded
from ..windows.storage import StorageLimits
from ..windows.updating_rows import FollowedRows, JoiningRows, NetRows, Updates, UpdatingRows
from .blocks import ORIGIN, Block, Given
from .keys import OfResults, of_pairs
from .stages import Dead, Item, RunningStage
from .state import FunctionSnapshot, StateIdentity, hash_of, plain
from .watermarks import Watermark

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


class ResultKeys:
    """The idempotency keys of results that leave together. schema: of them, without their sides' keys."""

    def __init__(self, operator: bytes, grouping: Grouping | Joining | Collecting | Updates, schema: pa.Schema) -> None:
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
        self._updates, self._has_new = isinstance(plan.grouping, Updates), False
        self._given = _with_origin(plan.given) if self._passes else plan.given.schema
        self._origin, self._key = plan.given.origin, plan.key
        self._plan, self._grouping = plan, plan.grouping
        self._delay = plan.grouping.delay if isinstance(plan.grouping, Joining) else 0
        self._out: list[Item] = []
        self._closing: Iterator[Step] | None = None
        self._closes_all = False
        self._behind: Watermark | None = None  # leaves when windows have closed
        self._is_at_end = self._is_over = False
        self._answered = 0  # rows of results
        self._kept: list[KeptRows] | None = None  # of the latest snapshot, if nothing has changed
        self._waiting: list[pa.RecordBatch] = []  # parts that came while windows closed
        self.on_their_way: Sequence[pa.RecordBatch] = ()  # parts of any key groups
        self.former_watermark: int | None = None  # before a restart, some key groups had taken this one
        self.share(GroupRange())

    def share(self, range_: GroupRange) -> None:
        """Before all rows: it works for these key groups."""
        groups = KeyGroups(self._grouping, self._given)
        self._windows = Portions(partial(opened, self._grouping, self._given, self._plan.limits), groups, range_)

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
        return not self._waiting

    def push(self, item: Block | Watermark) -> None:
        if isinstance(item, Watermark):
            time = None if item.time is None else item.time - self._plan.lateness
            self._behind = Watermark(None if time is None else time - self._delay)
            if time is not None and (self._latest is None or time > self._latest):
                self._latest = time
                if self._window is not None:
                    self._windows.watermark = bounded(time, self._window)
                    self._begin_close()
            self._update()
            self._close()
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
            self._has_new = True

    def push_parts(self, parts: pa.RecordBatch) -> None:
        """Of rows that are not late. They may come before watermarks that came before them."""
        if self.is_closing:
            self._waiting.append(parts)
            return
        self._kept = None
        with self._errors():
            self._windows.add_parts(parts)

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
        self._update()
        self._close()
        out, self._out = self._out, []
        return iter(out)

    def _update(self) -> None:
        """What results of keys have become by new rows leaves at once, so a snapshot has nothing that has not left."""
        if self._updates and self._has_new and not self.is_closing:
            self._begin_close()

    def _begin_close(self, all_of_them: bool = False) -> None:
        self._kept, self._has_new = None, False
        self._closing, self._closes_all = self._windows.close(all_of_them), all_of_them

    def _close(self) -> None:
        """The next results of windows that are over, as many as may be in memory; behind the last, the watermark."""
        keys = None
        if self._key is not None and isinstance(self._grouping, Grouping | Joining | Collecting | Updates):
            keys = ResultKeys(self._key, self._grouping, self._windows.schema)
        n_rows = 0
        while self._closing is not None and n_rows < WAITING_ROWS:
            self._kept = None
            with self._errors():
                step = next(self._closing, None)
            if step is None:
                self._closing = None
                waiting, self._waiting = self._waiting, []
                for parts in waiting:
                    self.push_parts(parts)
                self._is_over = self._closes_all  # the end may come while a watermark still closes windows
            for rows in step or ():
                self._out += self._blocks(rows, keys)
                n_rows += rows.num_rows
        if self._closing is None and self._behind is not None:
            self._out.append(self._behind)
            self._behind = None

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
        except ArroyoUdfError as error:
            if self._updates and type(error) is InvalidArgument:
                raise InvalidArgument(f"operator {self.name}: {error}") from None
            raise
        except Exception as error:  # whatever DataFusion raises
            what = "its query" if self._window is None else "its windows"
            raise InvalidArgument(f"operator {self.name}: {what} cannot be computed: {error_message(error)}") from error

    def kept(self) -> FunctionSnapshot:
        """next_id: of the next result, behind the numbers of what is kept."""
        with self._errors():
            if self._kept is None:
                self._kept = list(self._windows.kept())
        on_their_way = [KeptRows(KeptPart(parts)) for parts in self.on_their_way]
        parts = [*self._kept, *(KeptRows(KeptPart(parts)) for parts in self._waiting), *on_their_way]
        next_id = sum(part.num_rows for part in parts) + self._answered
        passed = self._windows.passed
        latest = self._windows.watermark if passed else None
        snapshot = FunctionSnapshot(self.identity, self._lineage, next_id, [], latest, (), passed=passed, parts=parts)
        return dataclasses.replace(snapshot, on_their_way=len(on_their_way))

    def restore(self, kept: Sequence[FunctionSnapshot]) -> None:
        """Of all slices: what there is of this one's key groups."""
        parts = [snapshot.kept for snapshot in kept]  # large ones are read page by page
        n_rows = [sum(part.num_rows for part in own) for own in parts]
        self._answered = max(snapshot.next_id - own for snapshot, own in zip(kept, n_rows, strict=True))
        n_own = [len(own) - snapshot.on_their_way for snapshot, own in zip(kept, parts, strict=True)]
        on_their_way = [part for own, n in zip(parts, n_own, strict=True) for part in own[n:]]
        own_parts = [own[:n] for own, n in zip(parts, n_own, strict=True)]
        passed = map(self._passed_by, kept)
        self.former_watermark = self._windows.restore(list(zip(passed, own_parts, strict=True)), on_their_way)
        self._latest = self._windows.watermark
        if any(entry.watermark != entry.closed for entry in self._windows.passed):
            self._begin_close()

    @property
    def is_behind(self) -> bool:
        """Whether some key groups had taken a later watermark before a restart."""
        return self.former_watermark is not None and self._latest != self.former_watermark

    def _passed_by(self, snapshot: FunctionSnapshot) -> Sequence[Passed]:
        """Earlier programs had all windows in the first slice, and said what these had taken; others had nothing."""
        if snapshot.passed or (snapshot.latest is None and not snapshot.kept):
            return snapshot.passed
        latest = snapshot.latest
        if latest is not None and self._window is not None:
            latest = bounded(latest, self._window)
        return [Passed(GroupRange(), latest, latest)]


def _lasting(grouping: Asked) -> dict[str, Any]:
    """What must stay while rows are kept."""
    if isinstance(grouping, LookBackRows):
        return {"time": grouping.time, "keys": [plain(key) for key in grouping.keys], "order": plain(grouping.order)}
    if isinstance(grouping, FirstRows):
        return {"time": grouping.time, "keys": list(grouping.keys)}
    if isinstance(grouping, UpdatingRows):
        signs = {"signed": True, "aggregates": plain(grouping.aggregates)} if grouping.is_signed else {}
        return {"keys": list(grouping.keys), "updates": True, **signs}
    if isinstance(grouping, FollowedRows | NetRows):
        return {"keys": list(grouping.keys), "follows": isinstance(grouping, FollowedRows)}
    if isinstance(grouping, JoiningRows):
        return {"keys": plain(grouping.keys), "kind": grouping.kind, "on": plain(grouping.on), "updates": True}
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
