"""Joins within an interval of event time against a plain one, row by row: whatever comes when, whatever a checkpoint
cuts, in memory and in files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_rows import add, closed

from arroyo_udf_plugin.engine.datafusion.query import WrongQuery
from arroyo_udf_plugin.engine.windows import interval_joining, timed_rows
from arroyo_udf_plugin.engine.windows.interval_joining import IntervalJoined
from arroyo_udf_plugin.engine.windows.join_query import Joining, Kind, Within
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.storage import StorageLimits
from arroyo_udf_plugin.errors import InvalidArgument

pytestmark = pytest.mark.once

SIDE = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("v", pa.int64()), ("text", pa.string())])
SIDES = Sides([SIDE, SIDE], "t")
SELECT = {"k": "a.k", "left": "a.v", "right": "b.v"}
ON = "a.k = b.k AND a.v + b.v > 2"


@dataclass(frozen=True)
class Row:
    time: int
    k: int | None
    v: int


@dataclass(frozen=True)
class Watermark:
    time: int


Step = tuple[int, list[Row]] | Watermark | Literal["cut"]
ROWS = st.lists(st.builds(Row, st.integers(-5, 20), st.none() | st.integers(0, 2), st.integers(0, 3)), min_size=1)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), ROWS) | st.builds(Watermark, st.integers(-8, 30)) | st.just("cut"), max_size=12
)
BOUNDS = st.tuples(st.integers(-6, 6), st.integers(-6, 6)).map(sorted)


def stream(side: int, rows: list[Row]) -> pa.RecordBatch:
    columns = {"t": [row.time for row in rows], "k": [row.k for row in rows], "v": [row.v for row in rows]}
    batch = pa.RecordBatch.from_pydict({**columns, "text": ["x"] * len(rows)}, schema=SIDE)
    return SIDES.together(batch, side)


def values(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    columns = [batch.column("t").cast(pa.int64()), *(batch.column(name) for name in SELECT)]
    return list(zip(*(one.to_pylist() for one in columns), strict=True))


def expected(steps: list[Step], kind: Kind, within: Within) -> tuple[Counter[Any], int]:
    """Results, and how many rows are late."""
    watermark, late = -100, 0
    kept: tuple[list[Row], list[Row]] = ([], [])
    for step in steps:
        if isinstance(step, Watermark):
            watermark = max(watermark, step.time)
        elif step != "cut":
            side, rows = step
            kept[side].extend(row for row in rows if row.time >= watermark)
            late += sum(row.time < watermark for row in rows)
    found: Counter[Any] = Counter()
    met: tuple[set[int], set[int]] = (set(), set())
    for i, a in enumerate(kept[0]):
        for j, b in enumerate(kept[1]):
            is_near = within.lower <= b.time - a.time <= within.upper
            if is_near and a.k is not None and a.k == b.k and a.v + b.v > 2:
                found[max(a.time, b.time), a.k, a.v, b.v] += 1
                met[0].add(i)
                met[1].add(j)
    if kind in ("left", "full"):
        found.update((a.time, a.k, a.v, None) for i, a in enumerate(kept[0]) if i not in met[0])
    if kind in ("right", "full"):
        found.update((b.time, None, None, b.v) for j, b in enumerate(kept[1]) if j not in met[1])
    return found, late


def joined(kind: Kind, within: Within, limits: StorageLimits = StorageLimits()) -> IntervalJoined:  # noqa: B008 (frozen)
    return IntervalJoined(Joining("t", kind, ON, SELECT, ("a", "b"), within), SIDES.schema, limits)


def run(steps: list[Step], kind: Kind, within: Within, limits: StorageLimits) -> tuple[list[tuple[Any, ...]], int]:
    """The results in their order, and how many rows are late. Each is not behind the watermark that follows it."""
    own, late, told = joined(kind, within, limits), 0, -200
    found = []
    for step in [*steps, "end"]:
        if isinstance(step, Watermark) or step == "end":
            if isinstance(step, Watermark):
                if own.watermark is not None and step.time <= own.watermark:
                    continue
                own.watermark = step.time
            rows = [row for batch in closed(own, all_of_them=step == "end") for row in values(batch)]
            assert all(time >= told for time, *_ in rows)
            if isinstance(step, Watermark):
                told = step.time - Joining("t", kind, ON, SELECT, ("a", "b"), within).delay
            found += rows
        elif step == "cut":
            kept, watermark = list(own.kept()), own.watermark
            own = joined(kind, within, limits)
            own.restore(kept, watermark)
        else:
            late += add(own, stream(*step))
    assert list(own.kept()) == []
    assert not own.size
    return found, late


@pytest.mark.parametrize("kind", get_args(Kind))
@settings(max_examples=60, deadline=None)
@given(steps=STEPS, bounds=BOUNDS, shortest=st.sampled_from([1, 3, 100]), memory=st.sampled_from([1, 1 << 20]))
def test_a_join_within_an_interval_equals_a_plain_one(
    kind: Kind, steps: list[Step], bounds: list[int], shortest: int, memory: int
) -> None:
    within = Within(*bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_joining, "_SHORTEST", shortest)
        patch.setattr(timed_rows, "WAITING_ROWS", 5)
        found, late = run(steps, kind, within, StorageLimits(memory=memory))
    assert (Counter(found), late) == expected(steps, kind, within)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_order_does_not_depend_on_watermarks(kind: Kind) -> None:
    rows: list[Step] = [(side, [Row(n, n % 3, n % 4) for n in range(side, 40, 2)]) for side in (0, 1)]
    within, limits = Within(-4, 7), StorageLimits()
    watermarks: list[Step] = [Watermark(n) for n in range(1, 60)]
    one_by_one, _ = run([*rows, *watermarks], kind, within, limits)
    assert run(rows, kind, within, limits)[0] == one_by_one


def test_what_is_over_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval_joining, "_SHORTEST", 1)
    own = joined("full", Within(-80, 160))
    most = 0
    for time in range(0, 1_000, 10):
        for side in (0, 1):
            own.add(stream(side, [Row(time, time % 7, 3)]))
        own.watermark = time
        closed(own)
        most = max(most, sum(part.num_rows for part in own.kept()))
    assert most <= 2 + 2 * (160 + 20) / 10 + 2


def test_an_interval_without_times() -> None:
    with pytest.raises(InvalidArgument, match="no row is within this interval"):
        Within(2, 1)


def test_times_of_two_types() -> None:
    sides = Sides([SIDE, pa.schema([("t", pa.timestamp("s")), ("k", pa.int64()), ("v", pa.int64())])], "t")
    with pytest.raises(WrongQuery, match=r"have one type, and these are timestamp\[ns\] and timestamp\[s\]: cast one"):
        IntervalJoined(Joining("t", "inner", ON, SELECT, ("a", "b"), Within(-1, 1)), sides.schema)
