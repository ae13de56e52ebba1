"""Late rows: how long windows wait for them, and what becomes of those that come later."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_states import stored
from window_models import DAY, Model, SessionModel, monthly, tumbling
from window_rows import PARTS, SCHEMA, Row, batch, grouping, shown

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.stages import Dead
from arroyo_udf_plugin.engine.operators.watermarks import Watermark
from arroyo_udf_plugin.engine.windows.joining import Joining, Sides
from arroyo_udf_plugin.engine.windows.spans import Hop, Months, Session

LATENESS = 7
ROWS_OF = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-5, 5), st.integers(-40, 60)), max_size=8
)
STEPS = st.lists(ROWS_OF | st.integers(-45, 65) | st.just("kept"), max_size=12)


def planned(lateness: int = 0, **asked: Any) -> GroupPlan:
    wanted = dataclasses.replace(grouping(), **asked)
    return GroupPlan("groups", wanted, Given(SCHEMA), lateness=lateness, on_late="dead_letter")


def block(rows: Sequence[Row], first: int = 0) -> Block:
    return Columns(SCHEMA).block(Rows("file", first, batch(rows)))


class Taken:
    """What has left an operator. numbers: those of late rows."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.watermarks: list[int | None] = []
        self.letters: list[dict[str, Any]] = []
        self.late: list[Row] = []

    def take(self, operator: GroupOperator) -> list[Any]:
        """The results of now."""
        found: list[Any] = []
        while operator.is_ready:
            for item in operator.take():
                if isinstance(item, Watermark):
                    self.watermarks.append(item.time)
                elif isinstance(item, Dead):
                    self.letters += item.letters.to_pylist()
                    times = item.rows.rows.column("t").cast("int64").to_pylist()
                    others = [item.rows.rows.column(name).to_pylist() for name in ("k", "x")]
                    self.late += zip(*others, times, strict=True)
                else:
                    found += shown([item.rows])
        self.results += found
        return found


@pytest.mark.parametrize(
    ("window", "model", "unit"),
    [
        (Hop(10, 10), lambda: Model(tumbling(10, 10), PARTS), 1),
        (Hop(12, 4), lambda: Model(tumbling(12, 4), PARTS), 1),
        (Months(2, 1), lambda: Model(monthly(2, 1), PARTS), 7 * DAY),
        (Session(10), lambda: SessionModel(10, PARTS), 1),
    ],
    ids=["tumble", "hop", "months", "session"],
)
def test_windows_wait_for_late_rows_and_those_that_come_later_are_dead_letters(
    window: Any, model: Callable[[], Any], unit: int
) -> None:
    """As a model has them whose watermark is so much earlier; whatever the batches and the restarts."""

    @settings(max_examples=25, deadline=None)
    @given(STEPS)
    def check(steps: list[Any]) -> None:
        plan = planned(LATENESS * unit, window=window)
        wanted, taken, operator, n_rows = model(), Taken(), GroupOperator(plan), 0
        operator.start()
        for step in steps:
            if step == "kept":
                state = stored(operator.snapshot())
                operator = GroupOperator(plan)
                operator.start([state])
            elif isinstance(step, int):
                operator.push_watermark(step * unit)
                found = taken.take(operator)
                if wanted.watermark is None or (step - LATENESS) * unit > wanted.watermark:
                    wanted.watermark = (step - LATENESS) * unit
                    assert Counter(found) == Counter(wanted.close())
            elif step:
                rows = [(key, value, time * unit) for key, value, time in step]
                wanted.add(rows)
                operator.push(block(rows, n_rows))
                assert not taken.take(operator)
                n_rows += len(rows)
        assert taken.late == wanted.late
        operator.finish()
        assert Counter(taken.take(operator)) == Counter(wanted.close(all_of_them=True))
        assert [letter["failed_outcome"] for letter in taken.letters] == ["late"] * len(taken.late)

    check()


def test_results_and_the_watermark_leave_when_no_row_can_come_any_more() -> None:
    """What follows finds no result late: it is told the earlier watermark."""
    operator, taken = GroupOperator(planned(5)), Taken()
    operator.start()
    operator.push(block([("a", 1, 1)]))
    operator.push_watermark(12)
    assert not taken.take(operator)
    operator.push(block([("a", 2, 9)]))
    operator.push_watermark(None)
    operator.push_watermark(15)
    assert taken.take(operator) == [(0, 10, "a", 2, 3, 1.5, None)]
    assert taken.watermarks == [7, None, 10]
    assert (operator.stages[1].counts.values, operator.stages[1].counts.late) == (2, 0)


def test_a_late_row_says_where_it_comes_from_and_how_late_it_was() -> None:
    plan = planned(2 * 10**9, window=Hop(60 * 10**9, 60 * 10**9))
    operator, taken = GroupOperator(plan), Taken()
    operator.start()
    operator.push_watermark(90 * 10**9)
    operator.push(block([("a", 1, 61 * 10**9), ("b", 2, 5 * 10**9), ("b", 3, 59_500_000_000)], 7))
    taken.take(operator)
    assert [letter["failed_error"] for letter in taken.letters] == [
        "late: its event time is 1970-01-01 00:00:05, and windows were over up to 1970-01-01 00:01:28",
        "late: its event time is 1970-01-01 00:00:59.500000000, and windows were over up to 1970-01-01 00:01:28",
    ]
    first = taken.letters[0]
    assert {name: first[f"failed_{name}"] for name in ("file", "row", "outcome", "function", "attempts")} == {
        "file": "file",
        "row": 8,
        "outcome": "late",
        "function": "groups",
        "attempts": 1,
    }
    counts = operator.stages[1].counts
    assert (counts.rows, counts.values, counts.late, counts.dead_letters, counts.errors) == (3, 1, 2, 2, 0)


def test_late_rows_of_a_join_are_dead_letters() -> None:
    sides = Sides([SCHEMA, SCHEMA], "t")
    joining = Joining("t", "inner", "a.k = b.k", {"x": "a.x + b.x"}, ("a", "b"))
    operator, taken = GroupOperator(GroupPlan("join", joining, Given(sides.schema), on_late="dead_letter")), Taken()
    operator.start()
    operator.push_watermark(20)
    for side in (0, 1):
        rows = block([("a", 1, 19 + side), ("a", 2, 25)])
        operator.push(rows.with_rows(sides.together(rows.rows, side)))
    found = [item for item in operator.take() if isinstance(item, Dead)]
    assert [letter["failed_row"] for one in found for letter in one.letters.to_pylist()] == [0]
    assert operator.stages[1].counts.late == 1
    assert taken.take(operator) == []


def test_another_lateness_counts_from_the_next_watermark_on() -> None:
    """A window that has left is not opened again for a longer one."""
    first, taken = GroupOperator(planned(0)), Taken()
    first.start()
    first.push(block([("a", 1, 1), ("a", 1, 12)]))
    first.push_watermark(15)
    assert len(taken.take(first)) == 1
    state = stored(first.snapshot())
    resumed = GroupOperator(planned(8))
    resumed.start([state])
    resumed.push_watermark(16)
    resumed.push(block([("a", 1, 2), ("a", 4, 13)]))
    resumed.push_watermark(27)
    assert not taken.take(resumed)
    resumed.push_watermark(28)
    assert taken.take(resumed) == [(10, 20, "a", 2, 5, 2.5, 4)]
    assert taken.late == [("a", 1, 2)]
