"""Windows in several slices: what a stop, a restart and a queue with rows in it do to them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from stored_states import stored
from worlds import Gate, Item, MemoryStore, Story, StorySource, World, once

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.datafusion.query import Select
from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.exchange import Channel, Exchanges
from arroyo_udf_plugin.engine.execution.reading import SourceReading
from arroyo_udf_plugin.engine.execution.runner import run
from arroyo_udf_plugin.engine.execution.shares import Shares
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan, GroupStage
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.queried import QueryPlan
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.stages import Counts
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.operators.watermarks import Watermark
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.spans import Hop
from arroyo_udf_plugin.host.answers import STEP_ROWS

SCHEMA = pa.schema([("t", pa.timestamp("ns"))])
COUNT = Grouping("t", Hop(10, 10), aggregates={"n": "count(*)"})


def at(*times: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times, pa.timestamp("ns"))], schema=SCHEMA)


class Windowed(Story):
    """Rows of each time, in windows of ten nanoseconds. Slice 0 reads partition a, slice 1 partition b."""

    def __init__(self, items: dict[str, Sequence[Item]], world: World, parallelism: int = 2) -> None:
        super().__init__(StorySource(items, SCHEMA, side_by_side=True), world, parallelism=parallelism, time_column="t")

    def operators(self) -> list[Operator]:
        return [GroupOperator(GroupPlan("windows", COUNT, Given(SCHEMA)))]

    @property
    def routes(self) -> Routes:
        return Routes([None], [0], exchanging=[0], gathering=[0])

    def left(self, block: Block, place: int | None) -> Block:
        return block


class InFront(Windowed):
    """The same, with a query in front of the windows."""

    def operators(self) -> list[Operator]:
        query = QueryPlan("query", Select({"t": "t"}), Given(SCHEMA))
        return [Operator("query", [query]), *super().operators()]

    @property
    def routes(self) -> Routes:
        return Routes([None, 0], [1], exchanging=[1], gathering=[1])


def counted(world: World) -> dict[int, int]:
    """Rows of each window, by its start. Each window has left once."""
    windows = [batch.column("window").field("start") for batch in world.tables["out"]]
    starts = [start for column in windows for start in column.cast(pa.int64()).to_pylist()]
    found = list(zip(starts, world.shown(column="n"), strict=True))
    assert len(dict(found)) == len(found)
    return dict(found)


def test_a_stop_closes_no_windows_that_other_slices_have_rows_for() -> None:
    """The slice that is behind reads on after the stop."""
    world, store, stop, behind = World(), MemoryStore(), StopRequest(timeout=60), Gate()
    begun: Sequence[Item] = [at(1), at(100), lambda: behind.reached.wait(60), stop.request]
    items: dict[str, Sequence[Item]] = {"a": [*begun, Gate()], "b": [at(2), behind]}
    assert run(Windowed(items, world), checkpoints=store, stop=stop).ended == "resumable"
    items = {"a": [*begun, at(110)], "b": [at(2), at(15, 25), at(105)]}
    run(Windowed(items, world), checkpoints=store, resume=True)
    assert counted(world) == {0: 2, 10: 1, 20: 1, 100: 2, 110: 1}


def on_its_way(*items: pa.RecordBatch | int) -> StoredState:
    """The state of the query in front: rows, and watermarks between them."""
    first, *_ = InFront({}, World()).operators()
    first.start()
    for item in items:
        if isinstance(item, int):
            first.push_watermark(item)
        else:
            first.push(Columns(SCHEMA).block(Rows("a", 1, item)))
    return stored(first.snapshot())


def resumed(
    monkeypatch: pytest.MonkeyPatch, watermarks: tuple[int, ...], states: Sequence[StoredState], **items: Sequence[Item]
) -> dict[int, int]:
    """What an engine counts that goes on from these states of slices."""
    world, store, width = World(), MemoryStore(), len(items)
    run(InFront({name: [] for name in items}, world, width), checkpoints=store)
    monkeypatch.setattr(Epochs, "states", lambda self, place, *_: ([watermarks], [list(states[place::width]), []]))
    run(InFront(items, world, width), checkpoints=store)
    return counted(world)


def test_rows_that_were_late_behind_a_watermark_in_flight_stay_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """O3: it is in the state, between the rows."""
    state = on_its_way(at(5), 5, at(20), 20, at(6), at(21), 21)
    assert resumed(monkeypatch, (21,), [state], a=[at(30)]) == {0: 1, 20: 2, 30: 1}


def test_they_stay_late_in_several_slices_that_are_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    late, other = on_its_way(at(5), 5, at(20), 20, at(6), at(21), 21), on_its_way(at(7), 7, at(22), 22)
    assert resumed(monkeypatch, (21, 22), [late, other], a=[at(30)], b=[at(31)])[20] == 3


@pytest.mark.parametrize("swapped", [False, True])
def test_they_stay_late_in_fewer_slices(monkeypatch: pytest.MonkeyPatch, swapped: bool) -> None:
    states = [on_its_way(at(5), 5, at(20), 20, at(6), at(21), 21), on_its_way(at(7), 7, at(22), 22, at(8))]
    states = states[::-1] if swapped else states
    assert resumed(monkeypatch, (21, 22), states, a=[at(30)]) == {0: 2, 20: 3, 30: 1}


def test_watermarks_above_those_of_slower_slices_are_told_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed slice may go on with what a slower one has left: nothing of it is late by them."""
    state, told = on_its_way(at(100), 100, at(101), 101), []
    push = GroupOperator.push_watermark
    monkeypatch.setattr(
        GroupOperator,
        "push_watermark",
        lambda self, time, input=0: (told.append((input, time)), push(self, time, input))[1],
    )
    found = resumed(monkeypatch, (10, 101), [state, on_its_way(10)], a=[at(15)], b=[])
    assert {time for input, time in told if not input} == {10, 15}
    assert found == {10: 1, 100: 2}


def test_a_slice_without_a_file_holds_no_window_back() -> None:
    """One watched file, two slices."""
    world, stop = World(), StopRequest(timeout=60)
    watched = Windowed({"a": [at(5), at(25), Gate()]}, world)
    watched.source.side_by_side, watched.source.watch = False, 0.001
    world.on_write = lambda rows: once(stop)
    in_vain = threading.Timer(30, once, [stop])
    in_vain.start()
    run(watched, checkpoints=MemoryStore(), stop=stop)
    in_vain.cancel()
    assert counted(world) == {0: 1}


def test_slices_that_have_read_all_are_as_far_as_the_furthest() -> None:
    """As one slice is that has read all files. One that gets a file goes on from there, and holds the others back."""
    shares = Shares(StorySource({}), 2, {})
    assert shares.waits(1) is None
    shares.reads(0, None)
    assert shares.waits(1) is None
    shares.reads(0, 20)
    assert shares.waits(1) == 20
    shares.reads(1, 20)
    shares.reads(0, 50)
    assert shares.waits(0) == 20
    assert shares.waits(1) == 50


def test_rows_in_a_queue_are_taken_although_nobody_sends_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several wakes of a slice are one, if it was busy when they came."""
    world, sent = World(), threading.Event()
    push, end = GroupStage.push, Channel.end

    def slowly(self: GroupStage, item: Block | Watermark) -> None:
        if isinstance(item, Block):
            assert sent.wait(60)
        push(self, item)

    def ending(self: Channel, is_last: bool) -> None:
        end(self, is_last)
        sent.set()

    monkeypatch.setattr(GroupStage, "push", slowly)
    monkeypatch.setattr(Channel, "end", ending)
    large = at(*[1] * STEP_ROWS)
    items: dict[str, Sequence[Any]] = {"a": [at(1)], "b": [large, large, large]}
    run(Windowed(items, world))
    assert counted(world) == {0: 1 + 3 * STEP_ROWS}


KEYED = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64())])


def keyed(*times: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times, pa.timestamp("ns")), pa.array([1] * len(times))], schema=KEYED)


class OfKeys(Windowed):
    """Of two partitions, each in a slice of its own, the windows of one key."""

    def __init__(self, items: dict[str, Sequence[Item]], world: World, idle_seconds: float | None) -> None:
        super().__init__(items, world)
        self.source, self.idle_seconds = StorySource(items, KEYED, side_by_side=True), idle_seconds
        self.counts: list[Counts] = []
        self.__post_init__()

    def operators(self) -> list[Operator]:
        grouping = Grouping("t", Hop(10, 10), keys=("k",), aggregates={"n": "count(*)"})
        operator = GroupOperator(GroupPlan("windows", grouping, Given(KEYED)))
        self.counts.append(operator.stages[1].counts)
        return [operator]

    @property
    def routes(self) -> Routes:
        return Routes([None], [0], exchanging=[0])


@pytest.mark.parametrize("may_idle", [False, True])
def test_rows_of_a_slice_that_was_idle_are_in_windows_or_late(may_idle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other slice has gone on meanwhile, and closed windows: of what comes then, each row is counted. It goes on
    only when the first one has told that it is idle: otherwise it might be idle itself by then, and close nothing."""
    world, shown, read, all_idle = World(), Gate(), Gate(), Gate()
    world.on_write = lambda rows: shown.open()
    look, idle = SourceReading.look, set[SourceReading]()

    def looked(self: SourceReading) -> None:
        look(self)
        if self._inputs[0].idleness._is_idle:
            idle.add(self)
        is_idle = [each._inputs[0].idleness._is_idle for each in idle]
        if shown.reached.is_set() and len(is_idle) == 2 and all(is_idle):
            all_idle.open()

    monkeypatch.setattr(SourceReading, "look", looked)
    first: Sequence[Item] = [keyed(5, 5, 5), shown] if may_idle else [keyed(5, 5, 5)]
    items: dict[str, Sequence[Item]] = {
        "a": [*first, keyed(7, 7, 7, 14, 14, 14, 95), read.open],
        "b": [*([all_idle] if may_idle else []), keyed(6, 21), keyed(31, 90), read],
    }
    story = OfKeys(items, world, 0.005 if may_idle else None)
    run(story)
    late = sum(counts.late for counts in story.counts)
    assert sum(counted(world).values()) + late == 14
    assert late == (6 if may_idle else 0)


@pytest.mark.parametrize("may_idle", [False, True])
def test_rows_are_sent_as_they_are_if_a_source_may_be_idle(may_idle: bool) -> None:
    """Else they wait, and what is sent cannot be late: nobody would know how many rows it stands for."""
    story = OfKeys({}, World(), None)
    operators = [story.operators()[0] for _ in range(2)]
    exchanges = Exchanges(story.routes, [lambda: None] * 2, may_idle)
    sender, receiver = (exchanges.of(place, [operator])[0] for place, operator in enumerate(operators))
    rows = pa.record_batch([pa.array(range(100), pa.timestamp("ns")), pa.array(range(100))], schema=KEYED)
    sender.push(Columns(KEYED).block(Rows("a", 0, rows)))
    assert receiver.is_ready == may_idle
