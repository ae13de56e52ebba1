"""Windows as an operator: what leaves it when, policies, and what a snapshot has."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from stored_states import stored
from window_rows import MANY, SCHEMA, WINDOWS_OF_MANY, Row, batch, grouping, many, shown

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.datafusion.query import Select
from arroyo_udf_plugin.engine.operators import state
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.stages import Dead
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.operators.watermarks import Lowest, Watermark
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.join_query import Joining
from arroyo_udf_plugin.engine.windows.spans import Hop, Session
from arroyo_udf_plugin.engine.windows.storage import StorageLimits
from arroyo_udf_plugin.errors import RowError
from arroyo_udf_plugin.host.answers import STEP_ROWS
from arroyo_udf_plugin.host.policy import Policy


def plan(asked: Grouping | None = None) -> GroupPlan:
    return GroupPlan("groups", asked or grouping(), Given(SCHEMA))


def block(*rows: Row) -> Block:
    return Columns(SCHEMA).block(Rows("file", 0, batch(rows)))


def taken(operator: GroupOperator) -> list[Any]:
    """Results as tuples, and watermarks."""
    found: list[Any] = []
    while operator.is_ready:
        for item in operator.take():
            found += shown([item.rows]) if isinstance(item, Block) else [item]
    return found


def blocks(operator: GroupOperator) -> list[Block]:
    """Results, to the end."""
    found: list[Block] = []
    while operator.is_ready:
        found += [item for item in operator.take() if isinstance(item, Block)]
    return found


def test_results_leave_before_the_watermark_that_closes_them() -> None:
    """O2, O5"""
    operator = GroupOperator(plan())
    operator.start()
    operator.push(block(("a", 1, 1), ("a", 3, 12)))
    operator.push_watermark(11)
    operator.push(block(("b", 5, 2)))
    assert taken(operator) == [(0, 10, "a", 1, 1, 1.0, None), Watermark(11)]
    assert operator.stages[1].counts.late == 1
    operator.finish()
    assert not operator.is_finished
    assert taken(operator) == [(10, 20, "a", 1, 3, 3.0, 3)]
    assert operator.is_finished


def test_a_row_behind_a_watermark_is_not_in_the_windows_that_it_closes() -> None:
    """Also if both wait for the same turn."""
    operator = GroupOperator(plan(grouping(12, 4)))
    operator.start()
    operator.push(block(("a", 1, 4)))
    operator.push_watermark(8)
    operator.push(block(("a", 5, 4)))
    operator.push_watermark(12)
    assert taken(operator) == [
        *[(-4, 8, "a", 1, 1, 1.0, None), Watermark(8)],
        *[(0, 12, "a", 2, 6, 3.0, 5), Watermark(12)],
    ]


def test_the_lowest_watermark_of_several_inputs() -> None:
    lowest = Lowest(3)
    assert lowest.after(0, 5) is None
    assert lowest.after(1, 3) is None
    assert lowest.after(2, 4) == Watermark(3)
    assert lowest.after(1, 9) == Watermark(4)
    assert lowest.after(2, None) == Watermark(5)  # it is idle
    assert lowest.after(2, 1) is None  # a watermark never falls
    assert lowest.after(0, None) is None
    assert lowest.after(1, None) is None
    assert lowest.after(2, None) == Watermark(None)


def test_the_end_of_all_inputs_is_no_idleness() -> None:
    """The last results come behind it. Who takes it for idleness goes on without them, and finds them late."""
    operator = GroupOperator(plan())
    operator.start()
    operator.share(0, 2)
    operator.push(block(("a", 1, 12)))
    operator.push_watermark(5, input=0)
    operator.push_watermark(14, input=1)
    operator.end(0)
    operator.end(1)
    assert taken(operator) == [Watermark(5), Watermark(14)]
    operator.finish()
    assert taken(operator) == [(10, 20, "a", 1, 1, 1.0, None)]


def test_the_watermark_of_inputs_that_were_all_idle_holds_again() -> None:
    lowest = Lowest(2)
    assert lowest.after(0, 5) is None
    assert lowest.after(1, 7) == Watermark(5)
    assert lowest.after(0, None) == Watermark(7)
    assert lowest.after(1, None) == Watermark(None)
    assert lowest.after(1, 7) == Watermark(7)  # rows have come, and none that make it rise
    assert lowest.after(1, 7) is None
    assert lowest.after(0, 6) is None


def test_a_snapshot_has_the_windows_and_the_rows_on_their_way() -> None:
    """O3, O4: of the slice that has the windows, and of another one that sends it rows."""
    operator, other = GroupOperator(plan()), GroupOperator(plan())
    for number, slice_ in enumerate((operator, other)):
        slice_.share(number, 2)
        slice_.start()
    operator.push(block(("a", 1, 1), ("a", 3, 12)))
    for slice_ in (operator, other):
        slice_.push_watermark(10, input=0)
        slice_.push_watermark(10, input=1)
        assert taken(slice_)[-1] == Watermark(10)
    operator.push(block(("b", 5, 13)))  # it waits for its turn
    states = [operator.snapshot(), other.snapshot([block(("a", 7, 14), ("a", 0, 9))])]
    resumed = GroupOperator(plan())
    resumed.start(list(map(stored, states)))
    resumed.finish()
    results = [item for item in taken(resumed) if not isinstance(item, Watermark)]
    assert Counter(results) == Counter([(10, 20, "a", 2, 10, 5.0, 3), (10, 20, "b", 1, 5, 5.0, 5)])
    assert resumed.stages[1].counts.late == 1


@pytest.mark.parametrize("window", [Hop(10, 10), Hop(20, 10), Session(10)], ids=["tumble", "hop", "session"])
def test_what_the_end_of_the_input_has_closed_is_not_opened_again(window: Hop | Session) -> None:
    """A folder is read to its end, and gets more files before the next run."""
    asked = plan(dataclasses.replace(grouping(), window=window))
    first = GroupOperator(asked)
    first.start()
    first.push(block(("a", 1, 11)))
    first.push_watermark(5)
    first.finish()
    taken(first)
    state_ = stored(first.snapshot())
    resumed = GroupOperator(asked)
    resumed.start([state_])
    resumed.push_watermark(5)
    resumed.push(block(("a", 7, 11), ("a", 9, 45)))
    resumed.finish()
    found = taken(resumed)
    assert resumed.stages[1].counts.late == 1
    assert not any(row[4] == 7 for row in found if isinstance(row, tuple))
    assert any(row[4] == 9 for row in found if isinstance(row, tuple))


@pytest.mark.parametrize("window", WINDOWS_OF_MANY, ids=["tumble", "hop", "session"])
def test_a_large_state_is_in_a_file(window: Hop | Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """O3, O4: memory stays flat while it is written, and while it is read."""
    asked = dataclasses.replace(grouping(aggregates={"n": "count(*)", "d": "count(DISTINCT x)"}), window=window)
    limited = dataclasses.replace(plan(asked), limits=StorageLimits(memory=1 << 20))
    operator, before = GroupOperator(limited), pa.total_allocated_bytes()
    operator.start()
    for number in range(20):
        for start in range(0, MANY, STEP_ROWS):
            operator.push(Columns(SCHEMA).block(Rows("file", 1, many(number).slice(start, STEP_ROWS))))
            operator.take()
    snapshot = stored(operator.snapshot())
    assert len(snapshot.parts[0][1]) > 8 << 20
    resumed = GroupOperator(limited)
    resumed.start([snapshot])
    assert pa.total_allocated_bytes() - before < 10 << 20
    del operator, snapshot
    resumed.finish()
    found = taken(resumed)
    assert found
    assert {(row[2], *row[3:]) for row in found} == {(key, 10 * MANY, 10 * MANY) for key in "ab"}


def test_a_large_state_that_is_damaged_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LARGE", 1)
    operator = GroupOperator(plan())
    operator.start()
    operator.push(block(("a", 1, 1)))
    taken(operator)
    snapshot = stored(operator.snapshot())
    head = bytearray(snapshot.head)
    damaged = StoredState(memoryview(head), snapshot.parts)
    GroupOperator(plan()).start([damaged])
    head[-30] ^= 1
    with pytest.raises(InvalidArgument, match="the state is damaged"):
        GroupOperator(plan()).start([damaged])


def test_results_are_numbered_across_a_restart() -> None:
    first = GroupOperator(plan())
    first.start()
    first.push(block(("a", 1, 1), ("b", 3, 2), ("b", 3, 12)))
    first.push_watermark(10)
    taken(first)
    snapshot = stored(first.snapshot())
    resumed = GroupOperator(plan())
    resumed.start([snapshot])
    resumed.finish()
    (found,) = resumed.take()
    assert isinstance(found, Block)
    assert found.origin.to_pylist() == [{"file": "window of groups", "row": 2, "unread": None, "key": None}]


WITHOUT_TIME = pa.schema([("k", pa.string()), ("x", pa.int64()), ("t", pa.timestamp("us"))])


def untimed(policy: Policy, *times: int | None) -> GroupOperator:
    """Rows of these times, in microseconds, on their way to an operator."""
    operator = GroupOperator(GroupPlan("groups", grouping(10_000), Given(WITHOUT_TIME), policy))
    operator.start()
    columns = [
        pa.array(["a"] * len(times)),
        pa.array(range(len(times)), pa.int64()),
        pa.array(times, pa.timestamp("us")),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=WITHOUT_TIME)
    operator.push(Columns(WITHOUT_TIME).block(Rows("file", 5, rows)))
    return operator


FAR = 9_223_372_036_854_775  # microseconds: a window around it ends behind 64 bits of nanoseconds


@pytest.mark.parametrize(("time", "why"), [(None, "is null"), (FAR, "is before 1678 or after 2261")])
def test_a_row_without_a_usable_event_time_follows_the_policy(time: int | None, why: str) -> None:
    with pytest.raises(RowError, match=f"windows groups, file, row 6: column 't' {why}"):
        untimed(Policy(), 0, time).take()
    for action in ("drop", "dead_letter"):
        operator = untimed(Policy(action), 0, time, 0, time)
        dead = [item for item in operator.take() if isinstance(item, Dead)]
        assert [row for one in dead for row in one.letters.column("failed_row").to_pylist()] == (
            [6, 8] if action == "dead_letter" else []
        )
        operator.finish()
        assert [item.rows.column("n").to_pylist() for item in operator.take() if isinstance(item, Block)] == [[2]]
        counts = operator.stages[0].counts
        assert (counts.errors, counts.dropped + counts.dead_letters) == (2, 2)


@pytest.mark.parametrize("window", [Hop(10, 10), Session(10)], ids=["tumble", "session"])
def test_the_first_and_last_times_that_windows_know(window: Hop | Session) -> None:
    limit = (1 << 63) - 11
    operator = GroupOperator(plan(dataclasses.replace(grouping(aggregates={"n": "count(*)"}), window=window)))
    operator.start()
    operator.push(block(("a", 1, -limit), ("a", 1, limit), ("a", 1, limit - 10)))
    operator.push_watermark(1 << 70)
    found = [item for item in operator.take() if isinstance(item, Block)]
    assert sum(one.rows.column("n").to_pylist() == [1] * len(one) and len(one) for one in found) == 3
    operator.push(block(("a", 1, 0)))
    operator.push_watermark((1 << 70) + 1)
    assert not any(isinstance(item, Block) for item in operator.take())
    assert operator.stages[1].counts.late == 1


def test_the_layout_of_an_aggregate_may_change() -> None:
    asked = Grouping("t", Hop(10, 10), keys=("k",), aggregates={"n": "sum(x + 1)"})
    first = GroupOperator(plan(asked))
    first.start()
    first.push(block(("a", 1, 1)))
    taken(first)
    snapshot = stored(first.snapshot())
    resumed = GroupOperator(plan(dataclasses.replace(asked, aggregates={"n": "sum( x+1 ) -- one more"})))
    resumed.start([snapshot])
    resumed.finish()
    assert len(resumed.take()) == 1


def test_another_grouping_is_refused() -> None:
    first = GroupOperator(plan())
    first.start()
    snapshot = stored(first.snapshot())
    with pytest.raises(InvalidArgument, match=r'the window of windows was \{"width": 10, .*undo the change'):
        GroupOperator(plan(grouping(20))).start([snapshot], allow_changed_plugin=True)


@pytest.mark.parametrize("window", [Hop(10, 10), Session(5)])
def test_aggregates_may_be_made_of_what_open_windows_keep(window: Hop | Session) -> None:
    """In another order, and without some (O3)."""
    asked = Grouping("t", window, keys=("k",), aggregates={"a": "sum(x)", "b": "count(x)", "c": "max(x)"})
    first = GroupOperator(plan(asked))
    first.start()
    first.push(block(("a", 1, 1), ("a", 4, 2)))
    taken(first)
    snapshot = stored(first.snapshot())
    resumed = GroupOperator(plan(dataclasses.replace(asked, aggregates={"c": "max(x)", "a": "sum(x)"})))
    resumed.start([snapshot])
    resumed.push(block(("a", 2, 3)))
    resumed.finish()
    (found,) = blocks(resumed)
    assert found.rows.select(["c", "a"]).to_pylist() == [{"c": 4, "a": 7}]


@pytest.mark.parametrize(
    ("aggregates", "told"),
    [
        ({"a": "min(x)"}, r"columns .*sum \( x \) int64.*, and now gets .*min \( x \) int64"),
        ({"a": "array_agg(x)"}, r"sum \( x \) int64.*, and now gets .* x int64"),
    ],
)
def test_an_aggregate_that_open_windows_do_not_keep_is_refused_by_name(aggregates: dict[str, str], told: str) -> None:
    asked = Grouping("t", Hop(10, 10), keys=("k",), aggregates={"a": "sum(x)"})
    first = GroupOperator(plan(asked))
    first.start()
    first.push(block(("a", 1, 1)))
    taken(first)
    snapshot = stored(first.snapshot())
    with pytest.raises(InvalidArgument, match=told):
        GroupOperator(plan(dataclasses.replace(asked, aggregates=aggregates))).start([snapshot])


def test_rows_that_windows_keep_may_answer_something_else() -> None:
    asked = Grouping("t", Hop(10, 10), keys=("k",), aggregates={"a": "array_agg(x ORDER BY x)"})
    first = GroupOperator(plan(asked))
    first.start()
    first.push(block(("a", 1, 1), ("a", 4, 2)))
    taken(first)
    snapshot = stored(first.snapshot())
    resumed = GroupOperator(plan(dataclasses.replace(asked, aggregates={"a": "array_agg(x ORDER BY x DESC)"})))
    resumed.start([snapshot])
    resumed.finish()
    (found,) = blocks(resumed)
    assert found.rows.column("a").to_pylist() == [[4, 1]]


@pytest.mark.parametrize(
    ("asked", "sha256"),
    [
        (
            Grouping("t", Hop(10, 5), "w", ("k",), {"n": "count(*)"}, False, "rows"),
            "1bfd278995e2e991415ab9819dd4a9fcabac9628b639833e8505e9818b949c08",
        ),
        (Grouping("t", Session(7)), "f5d03c4a95e59b39e4c6a2061618d150ca5003cf2416365770b857bb02e2dd89"),
        (
            Joining("t", "left", "a.k = b.k", {"n": "a.n"}, ("a", "b")),
            "19173ce73bcb7bc0e5f4ce9464abfe6ee24b2507505777a460f9ee6de5a22555",
        ),
        (
            Select({"y": "x + 1"}, "x > 1", "rows", ("x",)),
            "8ca27b56819a3b32360d957d60fb9b1cca9bc904a8999f247d728012fcf4e463",
        ),
        (
            ("zones", ("id",), ("name",), ("zone",), None, True),
            "822d8f45d24fbd97ab150da1ee52d92c0358ee0a9642e5a4478a022285dee0a4",
        ),
        (
            ("zones", ("id",), ("name",), ("zone",), Select(None, "x > 1"), False),
            "ed3600f595ae86503b3a280446f93956917c3fa55d9fc4d968305845be909d1a",
        ),
    ],
)
def test_what_9677121_knew_a_query_by(asked: Any, sha256: str) -> None:
    """Whatever fields come later."""
    assert state.hash_of(asked) == sha256
