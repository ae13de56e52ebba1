"""Checkpoints of windows write each part once, and lose none: engines of one grouping operator, which are killed in any
step, resumed, and brought back to older checkpoints, against the rows themselves."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from engines import IDENTITY, Killed
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from worlds import MemoryStore

from arroyo_udf_plugin.engine.connectors.interface import Sink
from arroyo_udf_plugin.engine.execution import staged_state
from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.restoring import checkpoints_in
from arroyo_udf_plugin.engine.execution.retention import Retention
from arroyo_udf_plugin.engine.execution.savepoints import Savepoints
from arroyo_udf_plugin.engine.execution.snapshot import Snapshot
from arroyo_udf_plugin.engine.operators import state_parts
from arroyo_udf_plugin.engine.operators.blocks import ORIGIN, Block, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.windows import runs
from arroyo_udf_plugin.engine.windows.collecting import Collecting, Inputs
from arroyo_udf_plugin.engine.windows.first_rows import FirstRows
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.join_query import Joining, Within
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.key_groups import Asked
from arroyo_udf_plugin.engine.windows.look_back import LookBackRows
from arroyo_udf_plugin.engine.windows.result_changes import signed
from arroyo_udf_plugin.engine.windows.spans import Hop, Session
from arroyo_udf_plugin.engine.windows.storage import StorageLimits
from arroyo_udf_plugin.engine.windows.updating_rows import SIGN, FollowedRows, JoiningRows, NetRows, UpdatingRows
from arroyo_udf_plugin.errors import InvalidArgument

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
SIDES = Sides([SCHEMA, SCHEMA], "t")
INPUTS = Inputs({"a": SCHEMA, "b": SCHEMA})
SELECT = {"l": "a.x", "r": "b.x"}
RETAINED = 3


@dataclass(frozen=True)
class Kind:
    """asked: of the windows. schema: of the rows that they get. rows: from those of a side, or input."""

    asked: Asked
    schema: pa.Schema = SCHEMA
    rows: Callable[[pa.RecordBatch, int], pa.RecordBatch] = lambda rows, side: rows


def grouping(window: Any, **aggregates: str) -> Kind:
    return Kind(Grouping("t", window, keys=("k",), aggregates=aggregates))


MEDIAN, COUNT = {"m": "median(x)", "n": "count(*)"}, {"n": "count(*)", "s": "sum(x)"}
KINDS = {
    "tumble, rows": grouping(Hop(20, 20), **MEDIAN),
    "hop, rows": grouping(Hop(20, 10), **MEDIAN),
    "tumble, parts": grouping(Hop(20, 20), **COUNT),
    "sessions, rows": grouping(Session(5), **MEDIAN),
    "sessions, parts": grouping(Session(5), **COUNT),
    "join": Kind(Joining("t", "full", "a.k = b.k", SELECT, ("a", "b")), SIDES.schema, SIDES.together),
    "interval join": Kind(
        Joining("t", "full", "a.k = b.k", SELECT, ("a", "b"), Within(-9, 5)), SIDES.schema, SIDES.together
    ),
    "first rows": Kind(FirstRows("t", ("k",), 30)),
    "look back": Kind(
        LookBackRows("t", {"p": "lag(x) OVER (PARTITION BY k ORDER BY t, x)"}, ("k",), "t, x", 1, 100), SCHEMA
    ),
    "updating": Kind(UpdatingRows(("k",), {"n": "count(*)", "s": "sum(x)"}, (), 10**18)),
    "recounted": Kind(
        UpdatingRows(("k",), MEDIAN, (), None, is_signed=True), SCHEMA.append(SIGN), lambda rows, side: signed(rows, 1)
    ),
    "followed table": Kind(
        FollowedRows(("k",), "op"),
        SCHEMA.append(pa.field("op", pa.string())),
        lambda rows, side: rows.append_column("op", pa.array(["d" if side else "c"] * rows.num_rows)),
    ),
    "latest rows": Kind(NetRows(("x",)), SCHEMA.append(SIGN), lambda rows, side: signed(rows, 1)),
    "updating join": Kind(
        JoiningRows((("k", "k"),), "full", "true", SELECT, ("a", "b"), 10**18), INPUTS.schema, INPUTS.together
    ),
    "collecting": Kind(
        Collecting("SELECT k, count(*) AS n FROM a GROUP BY k UNION ALL SELECT k, x FROM b", ("a", "b"), {}, {}),
        INPUTS.schema,
        INPUTS.together,
    ),
}


def opened(kind: Kind) -> GroupOperator:
    """Rows are kept in files, if there are more than a few."""
    return GroupOperator(GroupPlan("groups", kind.asked, Given(kind.schema), limits=StorageLimits(memory=1000)))


def results(operator: GroupOperator) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for item in operator.take():
        if isinstance(item, Block):
            found.update(tuple(map(str, row.values())) for row in item.rows.to_pylist())
    return found


@dataclass
class Run:
    """What has happened up to a checkpoint. steps: rows and watermarks. shown: results."""

    steps: list[pa.RecordBatch | int] = field(default_factory=list)
    shown: Counter[Any] = field(default_factory=Counter)

    def copy(self) -> Run:
        return Run(list(self.steps), self.shown.copy())


class WindowSlice:
    """A slice of one grouping operator. run: what it has done."""

    sinks: Sequence[Sink] = ()

    def __init__(self, operator: GroupOperator, run: Run) -> None:
        self.operator, self.run = operator, run

    def do(self, step: pa.RecordBatch | int) -> None:
        self.run.steps.append(step)
        feed(self.operator, step)
        self.run.shown += results(self.operator)

    def seal(self, epoch: int) -> Future[Snapshot]:
        future: Future[Snapshot] = Future()
        position = {"a": {"at": len(self.run.steps)}}
        future.set_result(Snapshot(position, None, [("groups", self.operator.snapshot())], {}))
        return future


def feed(operator: GroupOperator, step: pa.RecordBatch | int) -> None:
    if isinstance(step, int):
        operator.push_watermark(step)
        return
    n_rows = step.num_rows
    operator.push(
        Block(step, pa.RecordBatch.from_arrays([pa.nulls(n_rows, one) for one in ORIGIN.types], schema=ORIGIN))
    )


class Incremental(RuleBasedStateMachine):
    """kept: what had happened at each epoch, by number."""

    kind: Kind

    def __init__(self) -> None:
        super().__init__()
        self.store, self.number, self.time = MemoryStore(), 0, 0
        self.kept: dict[int, Run] = {}
        self.lost: tuple[str, bytes] | None = None

    @initialize()
    def begin(self) -> None:
        self.start()

    def start(self, restore: int | str | None = None) -> None:
        self.epochs = Epochs(self.store, IDENTITY, retention=Retention(RETAINED), restore=restore)
        before = self.epochs.gone_back_to or (self.epochs.latest.epoch if self.epochs.latest else 0)
        operator = opened(self.kind)
        if self.epochs.latest is not None and self.epochs.latest.slices:
            operator.restore(self.epochs.states(0, 1)[1][0])
        run = self.kept[before].copy() if before else Run()
        self.kept[self.epochs.fence().epoch] = run.copy()
        operator.start()
        self.slice = WindowSlice(operator, run)
        if self.lost is None:
            assert not self.unneeded(), "nobody needs these files"
        assert all(one.problem is None for one in checkpoints_in(self.store) if not self.is_lost(one.epoch))

    def is_lost(self, epoch: int) -> bool:
        return self.lost is not None and f"{epoch:010}" in self.lost[0]

    def unneeded(self) -> set[str]:
        needed: set[str] = set()
        latest = self.epochs.latest
        assert latest is not None
        for number in {*self.epochs.retained, latest.epoch}:
            needed |= self.epochs._files.read(number).state_names
        return {name for name in self.store.files if name.startswith("states/")} - needed

    @rule(
        rows=st.lists(st.tuples(st.integers(0, 25), st.integers(0, 3)), min_size=1, max_size=12), side=st.integers(0, 1)
    )
    def push(self, rows: list[tuple[int, int]], side: int) -> None:
        numbers = range(self.number, self.number + len(rows))
        self.number += len(rows)
        columns = [[self.time + time for time, _ in rows], [key for _, key in rows], list(numbers)]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(*pair) for pair in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
        )
        self.slice.do(self.kind.rows(batch, side))

    @rule(delta=st.integers(1, 15))
    def watermark(self, delta: int) -> None:
        self.time += delta
        self.slice.do(self.time)

    @rule()
    def checkpoint(self) -> None:
        self.note(self.epochs.take([self.slice]))
        assert self.epochs.take([self.slice]) is None, "nothing has changed"

    def note(self, epoch: Any) -> None:
        if epoch is not None:
            self.kept[epoch.epoch] = self.slice.run.copy()

    @rule(at=st.integers(0, 12))
    def killed(self, at: int) -> None:
        """In a checkpoint, before or behind its commit."""
        accesses, run = iter(range(at)), self.slice.run.copy()

        def before(verb: str, name: str) -> None:
            if next(accesses, None) is None:
                raise Killed

        before_epoch = self.epochs.latest
        assert before_epoch is not None
        self.store.before = before
        try:
            self.note(self.epochs.take([self.slice]))
        except Killed:
            if f"epochs/{before_epoch.epoch + 1:010}.json" in self.store.files:
                self.kept[before_epoch.epoch + 1] = run
        self.store.before = lambda verb, name: None
        self.start()

    @rule(at=st.integers(0, 6))
    def fails_once(self, at: int) -> None:
        """A step of a checkpoint fails, and the next one makes up for it."""
        accesses, run = iter(range(at)), self.slice.run.copy()
        has_failed: list[int] = []

        def before(verb: str, name: str) -> None:
            if verb != "delete" and next(accesses, None) is None and not has_failed:
                has_failed.append(at)
                raise InvalidArgument("the disk is full")

        number = self.epochs.latest.epoch + 1 if self.epochs.latest else 0
        self.store.before = before
        with contextlib.suppress(InvalidArgument):
            self.note(self.epochs.take([self.slice]))
        self.store.before = lambda verb, name: None
        if self.epochs.is_unfinished:
            self.kept[number] = run
        self.note(self.epochs.take([self.slice]))

    @rule()
    def resume(self) -> None:
        self.start()

    @precondition(lambda self: len(self.epochs.retained) > 1 and self.lost is None)
    @rule(place=st.integers(0, RETAINED - 1))
    def go_back(self, place: int) -> None:
        there = self.epochs.retained
        self.start(restore=there[min(place, len(there) - 1)])

    @precondition(lambda self: bool(self.epochs.retained))
    @rule()
    def by_a_savepoint(self) -> None:
        """To a copy that shares nothing with the checkpoints."""
        savepoints = Savepoints(self.store)
        savepoints.take("here")
        assert all(name.startswith("savepoints/here/") for name in savepoints.read("here").state_names)
        self.watermark(1)
        self.checkpoint()
        self.start(restore="here")
        savepoints.delete("here")

    @precondition(lambda self: len(self.epochs.retained) > 1 and self.lost is None)
    @rule(place=st.integers(0, RETAINED - 1))
    def a_manifest_is_lost_and_put_back(self, place: int) -> None:
        """What it needs is still there when it comes back."""
        there = self.epochs.retained[:-1]
        lost = there[min(place, len(there) - 1)]
        name = f"epochs/{lost:010}.json"
        self.lost = name, self.store.files.pop(name)
        self.start()
        self.store.files[name] = self.lost[1]
        self.lost = None
        assert {one.epoch: one.problem for one in checkpoints_in(self.store)}[lost] is None
        self.start(restore=lost)

    def teardown(self) -> None:
        """All results are those of an operator that never was disturbed."""
        reference, shown = opened(self.kind), Counter[Any]()
        reference.start()
        for step in self.slice.run.steps:
            feed(reference, step)
            shown += results(reference)
        for operator in (reference, self.slice.operator):
            operator.finish()
        assert self.slice.run.shown + self.all_of(self.slice.operator) == shown + self.all_of(reference)

    def all_of(self, operator: GroupOperator) -> Counter[Any]:
        found: Counter[Any] = Counter()
        while not operator.is_finished:
            found += results(operator)
        return found


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few files are many, few rows are long runs, and rows are in many runs."""
    monkeypatch.setattr(staged_state, "MOST_FILES", 3)
    monkeypatch.setattr(state_parts, "_LONG", 2)
    monkeypatch.setattr(runs, "WAITING_ROWS", 10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("few")
def test_windows_go_on_exactly_from_any_checkpoint(kind: str) -> None:
    machine = type("Incremental", (Incremental,), {"kind": KINDS[kind]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
