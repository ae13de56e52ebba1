"""Native functions side by side, some of which take others' results, in one pass over each block (docs/native.md).

    __r2 = g(x),  __r3 = h(y),  __r1 = f(__r2, __r3)          one pass: __r1 = f(g(x), h(y))

The stage of the first call answers for all; those of the others hand its blocks on. Rows that a function defers, and
blocks with rows that are not called, go through the stages one after the other, and come back into their places.

Guarantees: rows, their order, dead letters and counts are those of the stages one after the other. Results that nothing
else takes are null in rows that have passed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...host.fused import Fused, FusedCall, FusedResults, can_be_fused
from ...host.ordinals import ordinals
from ..connectors import cells
from .blocks import Block
from .calls import ColumnArgument, PlacedCall, RepeatedArgument
from .pace import MOST_STEP_ROWS
from .queued import SyncStage
from .stages import Item, RunningStage


def fused_calls(
    calls: Sequence[PlacedCall], apart: Collection[int], needed: Collection[str] | None
) -> list[FusedCalls]:
    """Which of calls one behind the other are in one pass.

    apart: the places of calls that are in none with those before them. needed: names of results that are needed behind
    all calls; None: all.
    """
    runs: list[list[PlacedCall]] = [[]]
    for place, placed in enumerate(calls):
        if place in apart or not _joins(placed, runs[-1]):
            runs.append([])
        if can_be_fused(placed.call.function):
            runs[-1].append(placed)
        else:
            runs.append([])
    passes = []
    for run in runs:
        if any(_own(argument, run) for placed in run for argument in placed.arguments):
            others = {position for placed in calls if placed not in run for position in placed.taken}
            wanted = [needed is None or one.call.name in needed or one.position in others for one in run]
            passes.append(FusedCalls(run, wanted))
    return passes


def _own(argument: ColumnArgument | RepeatedArgument, run: Sequence[PlacedCall]) -> bool:
    """Whether an argument is made by one of these calls."""
    return isinstance(argument, ColumnArgument) and argument.position >= len(run[0].given.schema)


def _joins(placed: PlacedCall, run: Sequence[PlacedCall]) -> bool:
    """Whether a call can follow these in their pass: what it takes of them has its argument's type."""
    if not run:
        return True
    if placed.condition is not None and placed.condition >= len(run[0].given.schema):
        return False
    types = {one.position: one.call.function.returns for one in run}
    own = zip(placed.arguments, placed.call.function.arguments, strict=True)
    return can_be_fused(placed.call.function, run[0].call.function) and all(
        types.get(argument.position) == wanted.type
        for argument, wanted in own
        if isinstance(argument, ColumnArgument) and _own(argument, run)
    )


class FusedCalls:
    """calls: in one pass. wanted: which of their results somebody else takes. text: what is computed, for people."""

    def __init__(self, calls: Sequence[PlacedCall], wanted: Sequence[bool]) -> None:
        self.calls, self.wanted = calls, wanted
        self.width = len(calls[0].given.schema)
        """Of the rows before."""
        self._columns: list[tuple[ColumnArgument | RepeatedArgument, pa.Field]] = []
        made = {placed.position: -1 - number for number, placed in enumerate(calls)}
        self._arguments = [
            [
                made[argument.position]
                if isinstance(argument, ColumnArgument) and argument.position >= self.width
                else self._place(argument, field)
                for argument, field in zip(placed.arguments, placed.call.function.arguments, strict=True)
            ]
            for placed in calls
        ]
        self._fused = Fused(
            [
                FusedCall(placed.call.function, arguments, is_wanted, self._condition(placed))
                for placed, arguments, is_wanted in zip(calls, self._arguments, wanted, strict=True)
            ]
        )
        self._nulls = [pa.nulls(MOST_STEP_ROWS, placed.call.function.returns) for placed in calls]
        self._schemas: tuple[pa.Schema, pa.Schema] | None = None

    def _condition(self, placed: PlacedCall) -> int | None:
        if placed.condition is None:
            return None
        column = ColumnArgument(placed.call.condition or "", placed.condition, cells.argument)
        return self._place(column, pa.field("", pa.bool_()))

    def _place(self, argument: ColumnArgument | RepeatedArgument, field: pa.Field) -> int:
        for place, (other, wanted) in enumerate(self._columns):
            if other == argument and wanted.type == field.type:
                return place
        self._columns.append((argument, field))
        return len(self._columns) - 1

    @property
    def text(self) -> str:
        texts: dict[int, str] = {}
        shown = []
        for placed, is_wanted in zip(self.calls, self.wanted, strict=True):
            arguments = [
                texts.get(argument.position, argument.name) if isinstance(argument, ColumnArgument) else str(argument)
                for argument in placed.arguments
            ]
            text = f"{placed.call.function.name}({', '.join(arguments)})"
            text += f" if {placed.call.condition}" if placed.call.condition else ""
            if is_wanted:
                shown.append(f"{placed.call.name} = {text}")
            else:
                texts[placed.position] = text
        return ", ".join(shown)

    def columns_of(self, block: Block) -> list[pa.Array] | None:
        """What the calls take; None: there are rows that must not be called."""
        if block.unread():
            return None
        converted = [argument.of(block, field) for argument, field in self._columns]
        return None if any(one.refused for one in converted) else [one.array for one in converted]

    def run(self, columns: Sequence[pa.Array]) -> FusedResults | None:
        """None: all rows are deferred."""
        return self._fused.run(columns)

    def answered(self, block: Block, columns: Sequence[pa.Array], passed: FusedResults) -> Block:
        """The rows with all that the calls add to them. Those that are deferred have no results."""
        added, values = list(block.rows.columns), iter(passed.values)
        for number, (placed, is_wanted) in enumerate(zip(self.calls, self.wanted, strict=True)):
            added += [columns[self._arguments[number][place]] for place in placed.typed]
            added.append(next(values) if is_wanted else self._nulls[number].slice(0, len(block)))
        return block.with_rows(pa.RecordBatch.from_arrays(added, schema=self._schema(block.rows.schema)))

    def _schema(self, before: pa.Schema) -> pa.Schema:
        """Of rows with all that the calls add to them. Mostly it is the same again."""
        known = self._schemas  # of all slices
        if known is None or not known[0].equals(before, check_metadata=True):
            added = [
                field
                for placed in self.calls
                for field in (
                    *(placed.call.function.arguments.field(place) for place in placed.typed),
                    pa.field(placed.call.name, placed.call.function.returns),
                )
            ]
            known = self._schemas = before, pa.schema([*before, *added], before.metadata)
        return known[1]


class RunningPass:
    """stages: of the calls of `plan`."""

    def __init__(self, plan: FusedCalls, stages: Sequence[SyncStage]) -> None:
        self._plan, self._stages = plan, stages
        for stage in stages:
            stage.join(self)

    def begins_at(self, stage: SyncStage) -> bool:
        return stage is self._stages[0]

    def answer(self, block: Block) -> tuple[list[Item], int]:
        """What becomes of rows that come to the first stage, behind the last one; and the bytes of the results. Raises
        RowError."""
        columns = self._plan.columns_of(block)
        passed = None if columns is None else self._plan.run(columns)
        if columns is None or passed is None:
            return self._singly(block)
        answered = self._plan.answered(block, columns, passed)
        n_rows, items, size = len(block), list[Item]((answered,)), sum(values.nbytes for values in passed.values)
        if passed.deferred is not None:
            at = pc.indices_nonzero(passed.deferred)
            n_rows -= len(at)
            left, size_left = self._singly(Block(block.rows.take(at), block.origin, at))
            items, size = self._merged(block, answered, passed.deferred, at, left), size + size_left
        for stage, nulls in zip(self._stages, passed.nulls, strict=True):
            stage.counts.rows += n_rows
            stage.counts.values += n_rows
            stage.counts.nulls += nulls
        return items, size

    def unanswered(self, block: Block, stage: SyncStage) -> Block:
        """The rows of an answered block as they come to a stage: what it takes is made again, because native functions
        have no effects. A row with a failed call is there only if null has become of it."""
        rows = block.with_rows(block.rows.select(range(self._plan.width)))
        for earlier in self._stages[: self._stages.index(stage)]:
            rows = earlier.recalled(rows)
        return rows

    def _singly(self, block: Block) -> tuple[list[Item], int]:
        """The rows behind all stages, one after the other; and the bytes of the results."""
        items, size = list[Item]((block,)), 0
        for stage in self._stages:
            before, items = items, []
            for item in before:
                if isinstance(item, Block):
                    own, own_size = stage.alone(item)
                    items += own
                    size += own_size
                else:
                    items.append(item)
        return items, size

    def _merged(
        self, block: Block, answered: Block, deferred: pa.BooleanArray, at: pa.UInt64Array, items: Sequence[Item]
    ) -> list[Item]:
        """Puts what has become of deferred rows into their places, `at`."""
        left = [item for item in items if isinstance(item, Block)]
        of = pa.concat_arrays([at.slice(0, 0), *(item.of for item in left)])
        places = pc.add(pc.index_in(at, value_set=of).cast(pa.uint64()), pa.scalar(len(block), pa.uint64()))
        source = pc.replace_with_mask(ordinals(len(block)), deferred, places)  # null: the row is left out
        if source.null_count:
            block = block.take(pc.indices_nonzero(source.is_valid()))
            source = source.drop_null()
        added = [
            pa.concat_arrays([column, *(item.rows.column(place) for item in left)]).take(source)
            for place, column in enumerate(answered.rows.columns)
            if place >= self._plan.width
        ]
        rows = pa.RecordBatch.from_arrays([*block.rows.columns, *added], schema=answered.rows.schema)
        return [*(item for item in items if not isinstance(item, Block)), block.with_rows(rows)]


def join_stages(passes: Sequence[FusedCalls], stages: Sequence[RunningStage]) -> None:
    """Lets stages of a chain be in one pass. stages: all of one slice."""
    of_calls = {id(stage.placed): stage for stage in stages if isinstance(stage, SyncStage)}
    for plan in passes:
        RunningPass(plan, [of_calls[id(placed)] for placed in plan.calls])
