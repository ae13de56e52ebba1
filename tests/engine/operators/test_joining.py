"""Joins of two inputs against a plain one, row by row: whatever comes when, whatever a checkpoint cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_rows import add, closed

from arroyo_udf_plugin.engine.datafusion import feed
from arroyo_udf_plugin.engine.datafusion.query import WrongQuery
from arroyo_udf_plugin.engine.operators import watermarks
from arroyo_udf_plugin.engine.operators.watermarks import Lowest
from arroyo_udf_plugin.engine.windows.join_query import Joining
from arroyo_udf_plugin.engine.windows.joining import Joined, Sides

pytestmark = pytest.mark.once

Kind = Literal["inner", "left", "right", "full"]
SIDE = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("v", pa.int64()), ("text", pa.string())])
SIDES = Sides([SIDE, SIDE], "t")
SELECT = {"k": "a.k", "other": "b.k", "sum": "a.v + b.v"}


@dataclass(frozen=True)
class Row:
    time: int
    k: int | None
    v: int


@dataclass(frozen=True)
class Watermark:
    time: int


Step = tuple[int, list[Row]] | Watermark | Literal["cut"]
ROWS = st.lists(st.builds(Row, st.integers(0, 5), st.none() | st.integers(0, 2), st.integers(0, 3)), min_size=1)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), ROWS) | st.builds(Watermark, st.integers(0, 7)) | st.just("cut"), max_size=12
)


def stream(side: int, rows: list[Row]) -> pa.RecordBatch:
    columns = {"t": [row.time for row in rows], "k": [row.k for row in rows], "v": [row.v for row in rows]}
    batch = pa.RecordBatch.from_pydict({**columns, "text": ["x"] * len(rows)}, schema=SIDE)
    return SIDES.together(batch, side)


def values(batch: pa.RecordBatch, names: Iterable[str]) -> list[tuple[Any, ...]]:
    """The rows of these columns, times as integers."""
    columns = [batch.column(name) for name in names]
    as_numbers = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in columns]
    return list(zip(*(one.to_pylist() for one in as_numbers), strict=True))


def expected(steps: list[Step], kind: Kind) -> tuple[Counter[Any], int]:
    """Results, and how many rows are late."""
    watermark, late = -1, 0
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
            if a.time == b.time and a.k is not None and a.k == b.k and a.v + b.v > 2:
                found[a.time, a.k, b.k, a.v + b.v] += 1
                met[0].add(i)
                met[1].add(j)
    if kind in ("left", "full"):
        found.update((a.time, a.k, None, None) for i, a in enumerate(kept[0]) if i not in met[0])
    if kind in ("right", "full"):
        found.update((b.time, None, b.k, None) for j, b in enumerate(kept[1]) if j not in met[1])
    return found, late


def joined(kind: Kind, on: str = "a.k = b.k AND a.v + b.v > 2") -> Joined:
    return Joined(Joining("t", kind, on, SELECT, ("a", "b")), SIDES.schema)


@pytest.mark.parametrize("kind", get_args(Kind))
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_a_join_equals_a_plain_one(kind: Kind, steps: list[Step]) -> None:
    own, late = joined(kind), 0
    batches: list[pa.RecordBatch] = []
    for step in steps:
        if isinstance(step, Watermark):
            if own.watermark is None or step.time > own.watermark:
                own.watermark = step.time
                batches += closed(own)
                assert all(time >= step.time for batch in own.kept() for time, *_ in values(batch.left, ["t"]))
        elif step == "cut":
            kept, watermark = list(own.kept()), own.watermark
            own = joined(kind)
            own.restore(kept, watermark)
        else:
            late += add(own, stream(*step))
    batches += closed(own, all_of_them=True)
    assert list(own.kept()) == []
    assert not own.size
    rows = [row for batch in batches for row in values(batch, ["t", *SELECT])]
    assert (Counter(rows), late) == expected(steps, kind)


def test_the_last_end_of_several_inputs_is_not_idleness() -> None:
    """What is open behind them leaves after it, and would be late if others went on without it."""
    lowest = Lowest(3)
    assert [lowest.after(0, 5), lowest.after(1, 7), lowest.after(2, 6)] == [None, None, watermarks.Watermark(5)]
    assert lowest.end(0) == watermarks.Watermark(6)
    assert lowest.after(2, None) == watermarks.Watermark(7), "it is idle"
    assert lowest.end(1) == watermarks.Watermark(None), "it is idle still"
    assert lowest.end(2) is None


def test_without_the_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a DataFusion that does not take batches as they are handed over."""
    monkeypatch.setattr(feed, "works", lambda: False)
    own = joined("full")
    for side, rows in ((0, [Row(1, 1, 3), Row(2, 1, 3)]), (1, [Row(1, 1, 3)])):
        own.add(stream(side, rows))
    for expected_ in ([(1, 1, 6), (1, None, None)], []):
        assert [row for batch in closed(own, all_of_them=True) for row in values(batch, SELECT)] == expected_


@pytest.mark.parametrize(
    ("on", "item", "text"),
    [
        ("a.k = b.nothing", "on", "there is no column b.nothing"),
        ("a.k = b.k AND", "on", r"write an expression here, not \)"),
        ("a.t < now()", "on", r"now\(\) is another time for each row"),
    ],
)
def test_a_condition_that_is_wrong(on: str, item: str, text: str) -> None:
    with pytest.raises(WrongQuery, match=text) as error:
        joined("inner", on)
    assert error.value.item == item


def test_sides_without_times() -> None:
    with pytest.raises(WrongQuery, match="a side has no column v of times"):
        Sides([SIDE, SIDE], "v")
