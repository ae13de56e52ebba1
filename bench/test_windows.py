"""Windows whose cost grows with what arrives: sessions, whatever is open; hops of many panes; joins of many times."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from arroyo_udf_plugin.engine.windows.grouping import Grouping, GroupingPlan
from arroyo_udf_plugin.engine.windows.join_query import Joining
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.opened import opened
from arroyo_udf_plugin.engine.windows.spans import Hop, Session
from conftest import BATCH_ROWS, Compare

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
SECOND = 1_000_000_000
BATCHES = 32  # of a measured round


def _sessions(n_keys: int, aggregates: dict[str, str]) -> Callable[[], None]:
    """The next batches of a stream that has as many open sessions as it will have: 63 % of its keys have one."""
    gap = 600 * SECOND
    windows = opened(Grouping("t", Session(gap), keys=("k",), aggregates=aggregates), SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        first, seed = 0, random.Random(1)
        while True:
            numbers = range(first, first + BATCH_ROWS)
            columns = [
                [n * (gap // n_keys) for n in numbers],
                seed.choices(range(n_keys), k=BATCH_ROWS),
                [n % 97 for n in numbers],
            ]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, type_) for column, type_ in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
            )
            first += BATCH_ROWS

    stream = batches()

    def take(given: list[pa.RecordBatch]) -> None:
        for batch in given:
            windows.add(batch)
            windows.watermark = batch.column(0)[-1].value
            for step in windows.close():
                assert step is not None

    take([next(stream) for _ in range(int(1.5 * n_keys / BATCH_ROWS) + BATCHES)])
    rounds = [[next(stream) for _ in range(BATCHES)] for _ in range(11)]
    return lambda: take(rounds.pop(0))


@pytest.mark.parametrize(
    ("name", "aggregates"), [("count", {"n": "count(*)"}), ("count distinct", {"n": "count(DISTINCT x)"})]
)
def test_sessions(compare: Compare, name: str, aggregates: dict[str, str]) -> None:
    compare(
        f"windows: 600,000 open sessions, {name}",
        _sessions(1_000_000, aggregates),
        _sessions(10_000, aggregates),
        n=BATCHES * BATCH_ROWS,
        unit="ns/row",
        scale=1e9,
        reference_name="6,000 open sessions",
        goal=1 / 0.75,
    )


def test_hop(compare: Compare) -> None:
    """A window of an hour each second: 3,600 panes, each with parts of ten keys."""
    asked = Grouping("t", Hop(3600 * SECOND, SECOND), keys=("k",), aggregates={"n": "count(*)", "s": "sum(x)"})
    windows = opened(asked, SCHEMA)
    plan = GroupingPlan(asked, SCHEMA, [])
    keys, xs = (pa.array([n % m for n in range(1_000)], pa.int64()) for m in (10, 97))
    panes = [
        parts
        for _ in range(3600)
        for parts in plan.parts.of_one([pa.RecordBatch.from_arrays([keys[:100], xs[:100]], names=["k", "x"])])
    ]
    now = 0

    def ten_seconds() -> None:
        nonlocal now
        times = pa.array(range(now, now + 10 * SECOND, SECOND // 100), pa.timestamp("ns"))
        windows.add(pa.RecordBatch.from_arrays([times, keys, xs], schema=SCHEMA))
        now += 10 * SECOND
        windows.watermark = now
        found = sum(batch.num_rows for step in windows.close() for batch in step)
        assert found == 100

    while now < 4000 * SECOND:
        ten_seconds()

    def merged() -> None:
        for _ in range(10):
            assert sum(batch.num_rows for batch in plan.result.of_one(panes)) == 10

    compare(
        "windows: one of an hour each second",
        ten_seconds,
        merged,
        n=10,
        unit="ms/window",
        scale=1e3,
        reference_name="DataFusion over all panes",
        goal=0.05,
    )


@pytest.mark.parametrize(("name", "per_time"), [("a time for each row", 1), ("1,000 rows of a time", 1_000)])
def test_join(compare: Compare, name: str, per_time: int) -> None:
    sides = Sides([SCHEMA, SCHEMA], "t")
    joining = Joining("t", "inner", "a.k = b.k", {"k": "a.k", "x": "a.x", "y": "b.x"}, ("a", "b"))
    n_rows = 16 * BATCH_ROWS
    numbers = pa.array(range(n_rows), pa.int64())
    times = pc.multiply(pc.divide(numbers, per_time), 1_000_003).cast(pa.timestamp("ns"))
    rows = pa.RecordBatch.from_arrays([times, numbers, pc.subtract(numbers, 7)], schema=SCHEMA)
    batches = [rows.slice(start, BATCH_ROWS) for start in range(0, n_rows, BATCH_ROWS)]
    joined = opened(joining, sides.schema)

    def taken() -> None:
        joined.watermark = joined.closed = None
        for batch in batches:
            for side in (0, 1):
                joined.add(sides.together(batch, side))
        assert sum(batch.num_rows for step in joined.close(all_of_them=True) for batch in step) == n_rows

    def plain() -> None:
        left, right = (pa.Table.from_batches(batches) for _ in range(2))
        assert left.join(right, ["t", "k"], join_type="inner", right_suffix="2", use_threads=False).num_rows == n_rows

    compare(
        f"windows: a join of the same time, {name}",
        taken,
        plain,
        n=n_rows,
        unit="ns/row",
        scale=1e9,
        reference_name="pyarrow over all rows",
        goal=3,
    )
