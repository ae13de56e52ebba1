"""The first rows of keys against a plain loop, row by row: whatever comes when, whatever a checkpoint cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from window_rows import add, closed

from arroyo_udf_plugin.engine.connectors.cells import CellType
from arroyo_udf_plugin.engine.datafusion.query import WrongQuery
from arroyo_udf_plugin.engine.windows import first_rows, runs
from arroyo_udf_plugin.engine.windows.first_rows import First, FirstRows
from arroyo_udf_plugin.engine.windows.storage import StorageLimits

pytestmark = pytest.mark.once

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.string()), ("m", pa.int64()), ("v", pa.int64())])


@dataclass(frozen=True)
class Row:
    time: int
    k: str | None
    m: int | None


@dataclass(frozen=True)
class Watermark:
    time: int


Step = list[Row] | Watermark | Literal["cut"]
ROWS = st.lists(
    st.builds(Row, st.integers(-5, 30), st.none() | st.sampled_from("ab"), st.none() | st.integers(0, 1)), min_size=1
)
STEPS = st.lists(ROWS | st.builds(Watermark, st.integers(-8, 40)) | st.just("cut"), max_size=12)
Told = list[tuple[int, str | None, int | None, int]]


def expected(steps: list[Step], ttl: int) -> tuple[Told, int]:
    """Results in their order, and how many rows are late."""
    watermark, late, number = -100, 0, 0
    kept: Told = []
    for step in steps:
        if isinstance(step, Watermark):
            watermark = max(watermark, step.time)
        elif step != "cut":
            for row in step:
                if row.time >= watermark:
                    kept.append((row.time, row.k, row.m, number))
                late += row.time < watermark
                number += 1
    latest: dict[tuple[str | None, int | None], int] = {}
    found = []
    for time, k, m, v in sorted(kept, key=lambda row: row[0]):
        if (k, m) not in latest or time >= latest[k, m] + ttl:
            latest[k, m] = time
            found.append((time, k, m, v))
    return found, late


def run(steps: list[Step], ttl: int, limits: StorageLimits) -> tuple[Told, int]:
    own, late, number = First(FirstRows("t", ("k", "m"), ttl), SCHEMA, limits), 0, 0
    found: Told = []

    def take(batches: list[pa.RecordBatch]) -> None:
        for batch in batches:
            columns = [batch.column("t").cast(pa.int64()), *batch.columns[1:]]
            found.extend(zip(*(column.to_pylist() for column in columns), strict=True))

    for step in steps:
        if isinstance(step, Watermark):
            if own.watermark is None or step.time > own.watermark:
                own.watermark = step.time
                take(closed(own))
        elif step == "cut":
            kept, watermark = list(own.kept()), own.watermark
            own = First(FirstRows("t", ("k", "m"), ttl), SCHEMA, limits)
            own.restore(kept, watermark)
        else:
            numbers = range(number, number + len(step))
            number += len(step)
            columns = [[row.time for row in step], [row.k for row in step], [row.m for row in step], list(numbers)]
            late += add(own, pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA))
    take(closed(own, all_of_them=True))
    return found, late


OF_ONE_TIME = [[Row(1, "a", 0), Row(0, "a", 0)], [Row(0, "a", 0)], "cut"]
"""Rows of one time, the first in a batch that is not sorted, the second in one that is."""


@settings(max_examples=150, deadline=None)
@example(steps=OF_ONE_TIME, ttl=1, width=1, memory=1)
@given(steps=STEPS, ttl=st.integers(1, 20), width=st.sampled_from([1, 4, 100]), memory=st.sampled_from([1, 1 << 20]))
def test_first_rows_equal_a_plain_loop(steps: list[Step], ttl: int, width: int, memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_rows, "_SHORTEST", width)
        patch.setattr(runs, "WAITING_ROWS", 5)
        assert run(steps, ttl, StorageLimits(memory=memory)) == expected(steps, ttl)


def test_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "_SHORTEST", 1)
    own = First(FirstRows("t", ("m",), 80), SCHEMA)
    most = 0
    for time in range(0, 2_000, 10):
        own.add(pa.RecordBatch.from_pydict({"t": [time], "k": ["a"], "m": [time], "v": [0]}, schema=SCHEMA))
        own.watermark = time
        assert sum(batch.num_rows for batch in closed(own)) == bool(time)
        most = max(most, sum(len(known) for batch in own.kept() for known in batch.rows.column("__known").drop_null()))
    assert most <= (80 + 10) / 10 + 2


def test_cells_of_text_files_as_keys() -> None:
    schema = pa.schema([("t", pa.timestamp("ns")), ("k", CellType(None))])
    own = First(FirstRows("t", ("k",), 10), schema)
    cells = pa.ExtensionArray.from_storage(CellType(None), pa.array(["a", "b", "a"]))
    times = pa.array([1, 2, 3], pa.int64()).cast(pa.timestamp("ns"))
    own.add(pa.RecordBatch.from_arrays([times, cells], schema=schema))
    (batch,) = closed(own, all_of_them=True)
    assert batch.column("k").storage.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (FirstRows("v", ("k",), 1), "v is int64: name a column of times"),
        (FirstRows("t", ("x",), 1), "there is no column x, or several"),
    ],
)
def test_what_is_wrong(asked: FirstRows, text: str) -> None:
    with pytest.raises(WrongQuery, match=text):
        First(asked, SCHEMA)
