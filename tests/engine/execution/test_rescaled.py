"""Windows in several slices, sealed at any moment and resumed in another number of slices, against a sum over rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rescaling import SOURCES, Grouped, found

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.spans import Hop, Session, Window

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
Row = tuple[int, int, int]
Result = tuple[int, int, int, int]
"""Start and end of a window, key, sum."""


def block(row: Row) -> Block:
    columns = [pa.array([value], type_) for value, type_ in zip(row, SCHEMA.types, strict=True)]
    return Columns(SCHEMA).block(Rows("a", 0, pa.record_batch(columns, schema=SCHEMA)))


def shown(rows: pa.RecordBatch) -> list[Result]:
    bounds = [rows.column("window").field(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    return list(zip(*bounds, rows.column("k").to_pylist(), rows.column("s").to_pylist(), strict=True))


def grouped(window: Window, aggregate: str) -> Grouped:
    asked = Grouping("t", window, keys=("k",), aggregates={"s": aggregate})
    return Grouped(GroupPlan("windows", asked, Given(SCHEMA)), block, shown)  # type: ignore[arg-type]


def expected(window: Window, rows: Sequence[Row]) -> Counter[Result]:
    sums: Counter[tuple[int, int, int]] = Counter()
    if isinstance(window, Session):
        for key in {k for _, k, _ in rows}:
            first = last = None
            total = 0
            for t, _, x in sorted(row for row in rows if row[1] == key):
                if last is not None and t - last >= window.gap:
                    sums[first, last + window.gap, key] += total  # type: ignore[index]
                    first, total = None, 0
                first, last, total = t if first is None else first, t, total + x
            sums[first, last + window.gap, key] += total  # type: ignore[index, operator]
    else:
        assert isinstance(window, Hop)
        for t, k, x in rows:
            for start in range(t - t % window.slide - window.width + window.slide, t + 1, window.slide):
                sums[start, start + window.width, k] += x
    return Counter({(*bounds, total): 1 for bounds, total in sums.items()})


ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5), st.integers(1, 1000)), max_size=14).map(sorted)


@pytest.mark.parametrize("aggregate", ["sum(x)", "median(x) * 0 + sum(DISTINCT x) * 0 + sum(x)"], ids=["parts", "rows"])
@pytest.mark.parametrize("window", [Hop(10, 10), Hop(30, 10), Session(6)], ids=["tumble", "hop", "session"])
@given(sources=st.lists(ROWS, min_size=SOURCES, max_size=SOURCES), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_no_row_is_lost_or_counted_twice(window: Window, aggregate: str, sources: list[list[Row]], seed: int) -> None:
    rows = [row for source in sources for row in source]
    assert found(grouped(window, aggregate), sources, seed) == expected(window, rows)
