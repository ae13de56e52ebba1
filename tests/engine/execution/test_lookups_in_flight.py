"""Lookups whose database takes its time: what goes on meanwhile, what is kept, and how it ends."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from stored_states import stored
from waiting import until
from worlds import SCHEMA, Gate, MemoryStore, Story, StorySource, World, batches

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution.runner import Interval, run
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.lookup import LookupPlan
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.watermarks import Watermark
from arroyo_udf_plugin.errors import InvalidArgument, RowError

NEVER = Interval(None, None)


@dataclasses.dataclass
class SlowTable:
    """A table in which each number has its square. It answers while `is_open` is set."""

    is_open: threading.Event = dataclasses.field(default_factory=threading.Event)
    asked: list[list[int]] = dataclasses.field(default_factory=list)
    is_asked: threading.Event = dataclasses.field(default_factory=threading.Event)
    is_closed: threading.Event = dataclasses.field(default_factory=threading.Event)
    error: str | None = None
    table = "squares"
    schema = pa.schema([("square", pa.int64())])
    columns = ("square",)
    keys = {"n": "integer"}  # noqa: RUF012 (nobody changes it)
    key_types = (pa.int64(),)

    def open(self) -> SlowTable:
        return self

    def close(self) -> None:
        self.is_closed.set()

    def rows(self, keys: Sequence[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
        numbers = keys[0].to_pylist()
        self.asked.append(numbers)
        self.is_asked.set()
        assert self.is_open.wait(20)
        if self.error is not None:
            raise InvalidArgument(self.error)
        squares = pa.array([n * n for n in numbers], pa.int64())
        return pa.RecordBatch.from_arrays([squares], schema=self.schema), pa.array(range(len(numbers)), pa.int64())


def lookup(table: SlowTable) -> Operator:
    plan = LookupPlan("squares", table, ("n",), None, True, 8 << 20, 60.0, Given(SCHEMA))  # type: ignore[arg-type]
    return Operator("squares", [plan])


def block(*numbers: int) -> Block:
    rows = pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)
    return Columns(SCHEMA).block(Rows("file", 1, rows))


def taken(operator: Operator) -> list[Any]:
    """Rows, and times of watermarks as texts."""
    items: list[Any] = []
    for item in operator.take():
        if isinstance(item, Watermark):
            items.append(str(item.time))
        elif isinstance(item, Block):
            items += zip(*(column.to_pylist() for column in item.rows.columns), strict=True)
    return items


def all_taken(operator: Operator) -> list[Any]:
    items = []
    while operator.held_rows:
        until(lambda: operator.is_ready, "an answer")
        items += taken(operator)
    return items


# ---- An operator ----


def test_rows_in_the_cache_leave_at_once_unless_others_wait_before_them() -> None:
    table = SlowTable()
    table.is_open.set()
    with contextlib.closing(lookup(table)) as operator:
        operator.start()
        operator.push(block(1, 2))
        assert all_taken(operator) == [(1, 1), (2, 4)]
        operator.push(block(2, 1))
        found = []
        while operator.held_rows:  # a step after another one, of as many rows as a slow machine can do
            found += taken(operator)
            assert operator.waiting == []
        assert found == [(2, 4), (1, 1)]
        table.is_open.clear()
        for item in (3, 4):
            operator.push(block(item))
            operator.push_watermark(item)
        operator.push(block(1))
        assert taken(operator) == []
        assert not operator.is_ready, "whoever drives it need not ask again until there is an answer"
        assert [stage.name for stage in operator.waiting] == ["squares"]
        table.is_open.set()
        assert all_taken(operator) == [(3, 9), "3", (4, 16), "4", (1, 1)]
    assert table.asked == [[1, 2], [3], [4]]
    assert table.is_closed.is_set(), "the connection is closed when the operator is"


def test_the_next_rows_are_asked_for_while_answered_ones_leave() -> None:
    table = SlowTable()
    table.is_open.set()
    with contextlib.closing(lookup(table)) as operator:
        operator.start()
        operator.push(block(1))
        operator.push(block(2))
        operator.push_watermark(9)
        assert taken(operator) == []
        until(lambda: operator.is_ready, "an answer")
        assert taken(operator) == [(1, 1)]
        until(lambda: len(table.asked) == 2, "the next query")
        assert all_taken(operator) == [(2, 4), "9"]


def test_a_snapshot_has_the_rows_in_flight_and_the_watermarks_between_them() -> None:
    table, again = SlowTable(), SlowTable()
    with contextlib.closing(lookup(table)) as operator:
        operator.start()
        operator.push(block(1, 2))
        operator.push_watermark(5)
        operator.push(block(3))
        assert taken(operator) == []
        assert table.is_asked.wait(20)
        state = stored(operator.snapshot())
        assert operator.held_rows == 3
    again.is_open.set()
    with contextlib.closing(lookup(again)) as resumed:
        resumed.start([state])
        assert all_taken(resumed) == [(1, 1), (2, 4), "5", (3, 9)]
    assert not table.is_closed.is_set(), "its query is under way"
    table.is_open.set()
    assert table.is_closed.wait(20), "after the query, nobody needs the connection"


def test_rows_that_wait_hold_those_before_back() -> None:
    with contextlib.closing(lookup(SlowTable())) as operator:
        operator.start()
        pushed = 0
        while operator.wants_input:
            operator.push(block(*range(pushed, pushed + 4096)))
            operator.take()
            pushed += 4096
        assert operator.held_rows == pushed == 16384


# ---- In a slice ----


class LookupStory(Story):
    """The source's rows go to "out" as they are; those with their squares go to "found"."""

    def __init__(self, source: StorySource, world: World, table: SlowTable) -> None:
        super().__init__(source, world, sink_names=("out", "found"))
        self.table = table

    def operators(self) -> list[Operator]:
        return [lookup(self.table)]

    @property
    def routes(self) -> Routes:
        return Routes([None], [None, 0])

    def left(self, block: Block, place: int | None) -> Block:
        return block


SQUARES = [n * n for n in range(30)]


def test_a_database_that_takes_its_time_holds_up_neither_other_rows_nor_epochs() -> None:
    """The last rows are read after an epoch that was committed while the first ones waited."""
    store, world, table, gate = MemoryStore(), World(), SlowTable(), Gate()
    source = StorySource({"a": [*batches(0, 20), gate, *batches(20, 30)]})

    def look(verb: str, name: str) -> None:
        if table.is_asked.is_set() and world.shown() == list(range(20)):
            assert world.shown("found") == []
            gate.open()

    def written(batch: pa.RecordBatch) -> None:
        if batch.column(0)[-1].as_py() == 29:
            table.is_open.set()

    store.before, world.on_write = look, written
    run(LookupStory(source, world, table), checkpoints=store, interval=Interval(0.005))
    assert world.shown() == list(range(30))
    assert world.shown("found", "square") == SQUARES


def test_rows_in_flight_are_asked_for_again_after_a_kill() -> None:
    store, world, table = MemoryStore(), World(), SlowTable()
    source = StorySource({"a": [*batches(0, 30), Gate()]})

    class Killed(BaseException):
        pass

    def kill(verb: str, name: str) -> None:
        if table.is_asked.is_set() and world.shown() == list(range(30)):
            raise Killed

    store.before = kill
    with pytest.raises(Killed):
        run(LookupStory(source, world, table), checkpoints=store, interval=Interval(0.005))
    store.before = lambda verb, name: None
    assert (world.shown(), world.shown("found")) == (list(range(30)), [])
    source.items["a"], table = batches(0, 30), SlowTable()
    table.is_open.set()
    run(LookupStory(source, world, table), checkpoints=store, resume=True)
    assert world.shown() == list(range(30))
    assert world.shown("found", "square") == SQUARES
    assert sorted(n for numbers in table.asked for n in numbers) == list(range(30)), "the state had them all"


def test_a_stop_waits_for_rows_in_flight() -> None:
    store, world, table, stop = MemoryStore(), World(), SlowTable(), StopRequest(timeout=60)

    def answer() -> None:
        assert table.is_asked.wait(20)
        stop.request()
        table.is_open.set()

    answering = threading.Thread(target=answer)
    answering.start()
    source = StorySource({"a": [*batches(0, 30), Gate()]})
    summary = run(LookupStory(source, world, table), checkpoints=store, interval=NEVER, stop=stop)
    answering.join()
    assert (summary.ended, summary.in_flight) == ("resumable", 0)
    assert world.shown("found", "square") == [n * n for n in world.shown()]


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_stop_that_ends_all_at_once_does_not_wait_for_the_database(checkpoints: bool) -> None:
    world, table, stop = World(), SlowTable(), StopRequest(timeout=60)

    def request() -> None:
        assert table.is_asked.wait(20)
        stop.request()
        stop.request()

    requesting = threading.Thread(target=request)
    requesting.start()
    source = StorySource({"a": [*batches(0, 30), Gate()]})
    store = MemoryStore() if checkpoints else None
    assert run(LookupStory(source, world, table), checkpoints=store, interval=NEVER, stop=stop).ended == "cut off"
    requesting.join()
    assert not table.is_open.is_set()
    table.is_open.set()
    assert table.is_closed.wait(20)


def test_an_error_of_the_database_ends_the_run_as_the_policy_says() -> None:
    table = SlowTable(error="the database is gone")
    table.is_open.set()
    source = StorySource({"a": [[1], Gate()]})
    with pytest.raises(RowError, match=r"lookup squares, .*: the database is gone"):
        run(LookupStory(source, World(), table))
