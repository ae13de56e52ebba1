"""The operator against a naive model, row by row: random blocks, watermarks, completions, snapshots, restores into any
number of slices (O1 to O5)."""

from __future__ import annotations

import collections
import copy
import dataclasses
import math
import time
from typing import Any, ClassVar

import gates
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from stored_states import stored

from arroyo_udf_plugin.engine.operators.blocks import Block
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.operators.watermarks import Watermark


@dataclasses.dataclass
class Slice:
    """One slice as the model sees it. waiting: rows (x) and watermarks (time,) that have not left, as they came."""

    waiting: list[int | tuple[int]] = dataclasses.field(default_factory=list)
    latest: int | None = None
    left: int | None = None  # the latest watermark that has left

    def leaving(self, opened: set[int], ordered: bool) -> list[int | tuple[int]]:
        """What leaves now: rows whose gate is open, and watermarks without a row before them."""
        out: list[int | tuple[int]] = []
        if not ordered:
            out = [item for item in self.waiting if item in opened]
            self.waiting = [item for item in self.waiting if item not in opened]
        while self.waiting and (isinstance(self.waiting[0], tuple) or self.waiting[0] in opened):
            out.append(self.waiting.pop(0))
            if isinstance(out[-1], tuple):
                (self.left,) = out[-1]
        return out


def merged(slices: list[Slice]) -> Slice:
    """The slice with the lowest watermark goes on next, and the lowest of all is told: no row is late by it that was
    not late in its own slice. The lowest of those that had left is told first."""
    if len(slices) == 1:
        return slices[0]
    together, reached = Slice(), [-math.inf] * len(slices)
    times = [one.left for one in slices if one.left is not None]
    if slices and len(times) == len(slices):
        together.latest = min(times)
        together.waiting.append((together.latest,))

    def tell(number: int, time: int) -> None:
        reached[number] = time
        lowest = min(reached)
        if lowest > (-math.inf if together.latest is None else together.latest):
            together.latest = int(lowest)
            together.waiting.append((together.latest,))

    for number, one in enumerate(slices):
        if one.latest is not None and not any(isinstance(item, tuple) for item in one.waiting):
            tell(number, one.latest)
    streams = [collections.deque(one.waiting) for one in slices]
    while left := [number for number, stream in enumerate(streams) if stream]:
        number = min(left, key=reached.__getitem__)
        item = streams[number].popleft()
        if isinstance(item, tuple):
            tell(number, item[0])
        else:
            together.waiting.append(item)
    return together


class Machine(RuleBasedStateMachine):
    functions: ClassVar[Any]
    ordered: ClassVar[bool]

    @initialize()
    def begin(self) -> None:
        self.gates = gates.new_gates()
        self.opened: set[int] = set()
        self.next = 0
        self.time = 0
        self.restores = 0
        self.slices = [Slice()]
        self.operators = [self.made([])]
        self.done: collections.Counter[int] = collections.Counter()
        self.kept: tuple[list[bytes], list[Slice], collections.Counter[int]] | None = None

    def made(self, states: list[StoredState]) -> Operator:
        names = ["in_order" if self.ordered else "as_done", "plus"]
        one = gates.operator(self.functions, names, action="null")
        one.start(states)
        return one

    # ---- Rules ----

    @rule(n_rows=st.integers(1, 5), data=st.data())
    def push(self, n_rows: int, data: st.DataObject) -> None:
        i = data.draw(st.integers(0, len(self.slices) - 1))
        rows = list(range(self.next, self.next + n_rows))
        self.next += n_rows
        self.operators[i].push(gates.block(rows))
        self.slices[i].waiting += rows

    @rule(data=st.data())
    def watermark(self, data: st.DataObject) -> None:
        i = data.draw(st.integers(0, len(self.slices) - 1))
        self.time += 1
        self.operators[i].push_watermark(self.time)
        self.slices[i].waiting.append((self.time,))
        self.slices[i].latest = self.time

    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        waiting = [x for one in self.slices for x in one.waiting if isinstance(x, int) and x not in self.opened]
        chosen = data.draw(st.lists(st.sampled_from(waiting), unique=True) if waiting else st.just([]))
        self.opened.update(chosen)
        self.gates.open(chosen)

    @rule()
    def snapshot(self) -> None:
        states = [stored(one.snapshot()) for one in self.operators]
        self.kept = states, copy.deepcopy(self.slices), self.done.copy()

    @rule(n_slices=st.integers(1, 3))
    def crash(self, n_slices: int) -> None:
        """Back to the latest snapshot; rows that were pushed after it are the source's to read again."""
        if self.kept is None:
            return
        for one in self.operators:
            one.close()
        self.restores += 1
        states, slices, self.done = self.kept
        shares = [list(range(i, len(slices), n_slices)) for i in range(n_slices)]
        self.slices = [merged([copy.deepcopy(slices[j]) for j in share]) if share else Slice() for share in shares]
        self.operators = [self.made([states[j] for j in share]) for share in shares]
        self.kept = None

    # ---- What must hold ----

    @invariant()
    def rows_and_watermarks_leave_as_in_the_model(self) -> None:
        for operator, model in zip(self.operators, self.slices, strict=True):
            expected = model.leaving(self.opened, self.ordered)
            found = self.drained(operator, len(expected))
            if self.ordered:
                assert found == expected
            else:
                assert collections.Counter(found) == collections.Counter(expected)
                assert [one for one in found if isinstance(one, tuple)] == [
                    one for one in expected if isinstance(one, tuple)
                ]
            self.done.update(x for x in found if isinstance(x, int))
        assert all(times == 1 for times in self.done.values())  # O4

    def drained(self, operator: Operator, n_items: int) -> list[int | tuple[int]]:
        found: list[int | tuple[int]] = []
        end = time.monotonic() + gates.PATIENCE
        while True:
            for item in operator.take():
                if isinstance(item, Block):
                    self.check(item.rows)
                    found += item.rows.column("x").to_pylist()
                elif isinstance(item, Watermark):
                    assert item.time is not None
                    found.append((item.time,))
            if operator.is_ready:
                continue
            if len(found) >= n_items:
                return found
            assert time.monotonic() < end, (found, n_items)
            operator.runtimes[0].wait(0.01)

    def check(self, rows: pa.RecordBatch) -> None:
        """O1."""
        for x, tag, y0, y1 in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            assert tag == ("odd" if x % 2 else "even")
            assert y0 == (None if x % 7 == 3 else 2 * x)
            assert y1 == (None if y0 is None else y0 + 1)

    def teardown(self) -> None:
        self.gates.open(range(self.next))
        left = [x for one in self.slices for x in one.waiting if isinstance(x, int)]
        for operator in self.operators:
            operator.finish()
        self.opened.update(left)
        self.rows_and_watermarks_leave_as_in_the_model()
        for operator in self.operators:
            assert operator.is_finished  # O5
            assert operator.stop() == []
            operator.close()
        assert max(self.gates.calls.values(), default=0) <= self.restores + 1  # O4


@pytest.mark.parametrize("ordered", [True, False])
def test_operator_and_model_agree(functions: Any, ordered: bool) -> None:
    machine = type("Model", (Machine,), {"functions": functions, "ordered": ordered})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@dataclasses.dataclass
class Chosen:
    """Instead of `st.DataObject`: what is drawn."""

    slice: int

    def draw(self, _: object) -> int:
        return self.slice


@pytest.mark.parametrize("ordered", [True, False])
def test_a_watermark_leaves_once_after_a_merge_and_another_restore(functions: Any, ordered: bool) -> None:
    """The second slice still has a row, so the lowest watermark of both stands behind it in the first function. The
    second function has been told it already: both slices had."""
    machine: Any = type("Model", (Machine,), {"functions": functions, "ordered": ordered})()

    def restored(n_slices: int) -> None:
        machine.snapshot()
        machine.crash(n_slices=n_slices)
        machine.rows_and_watermarks_leave_as_in_the_model()

    machine.begin()
    machine.watermark(data=Chosen(0))
    machine.rows_and_watermarks_leave_as_in_the_model()
    restored(n_slices=2)
    machine.watermark(data=Chosen(1))
    machine.rows_and_watermarks_leave_as_in_the_model()
    machine.push(n_rows=1, data=Chosen(1))
    machine.watermark(data=Chosen(1))
    machine.rows_and_watermarks_leave_as_in_the_model()
    restored(n_slices=1)
    restored(n_slices=1)
    machine.teardown()
