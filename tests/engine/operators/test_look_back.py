"""Functions that look back against a plain loop, row by row: whatever comes when, whatever a checkpoint cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_rows import add, closed

from arroyo_udf_plugin.engine.connectors.cells import CellType
from arroyo_udf_plugin.engine.datafusion.query import WrongQuery
from arroyo_udf_plugin.engine.windows import look_back, timed_rows
from arroyo_udf_plugin.engine.windows.look_back import LookBackRows, LookedBack
from arroyo_udf_plugin.engine.windows.storage import StorageLimits

pytestmark = pytest.mark.once

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("v", pa.int64())])
OVER = "OVER (PARTITION BY k % 2 ORDER BY t, v"
FUNCTIONS = {
    "before": f"lag(v) {OVER})",
    "second": f"lag(v, 2, -1) {OVER})",
    "total": f"sum(v) {OVER} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "twice": f"2 * max(v) {OVER} ROWS 1 PRECEDING)",
}


def asked(ttl: int, **others: Any) -> LookBackRows:
    values = {"time": "t", "functions": FUNCTIONS, "keys": ("k % 2",), "order": "t, v", "rows": 2, "ttl": ttl, **others}
    return LookBackRows(**values)


@dataclass(frozen=True)
class Row:
    time: int
    k: int | None


@dataclass(frozen=True)
class Watermark:
    time: int


Step = list[Row] | Watermark | Literal["cut"]
ROWS = st.lists(st.builds(Row, st.integers(-5, 40), st.none() | st.integers(0, 4)), min_size=1)
STEPS = st.lists(ROWS | st.builds(Watermark, st.integers(-8, 50)) | st.just("cut"), max_size=10)


def expected(steps: list[Step], ttl: int) -> tuple[list[tuple[Any, ...]], int]:
    """Results in their order, and how many rows are late."""
    watermark, late, number = -100, 0, 0
    kept: list[tuple[int, int | None, int]] = []
    for step in steps:
        if isinstance(step, Watermark):
            watermark = max(watermark, step.time)
        elif step != "cut":
            for row in step:
                if row.time >= watermark:
                    kept.append((row.time, row.k, number))
                late += row.time < watermark
                number += 1
    known: dict[int | None, list[tuple[int, int]]] = {}
    found = []
    for time, k, v in sorted(kept, key=lambda row: (row[0], row[2])):
        own = known.setdefault(None if k is None else k % 2, [])
        if own and time - own[-1][0] >= ttl:
            own.clear()
        values = [value for _, value in own]
        second = values[-2] if len(values) > 1 else -1
        total = sum(values[-2:]) if values else None
        found.append((time, k, v, values[-1] if values else None, second, total, 2 * max([v, *values[-1:]])))
        own.append((time, v))
    return found, late


def run(steps: list[Step], ttl: int, limits: StorageLimits) -> tuple[list[tuple[Any, ...]], int]:
    own, late, number = LookedBack(asked(ttl), SCHEMA, limits), 0, 0
    found: list[tuple[Any, ...]] = []

    def take(batches: list[pa.RecordBatch]) -> None:
        for batch in batches:
            assert batch.schema.names == [*SCHEMA.names, *FUNCTIONS]
            columns = [batch.column("t").cast(pa.int64()), *batch.columns[1:]]
            found.extend(zip(*(column.to_pylist() for column in columns), strict=True))

    for step in steps:
        if isinstance(step, Watermark):
            if own.watermark is None or step.time > own.watermark:
                own.watermark = step.time
                take(closed(own))
        elif step == "cut":
            kept, watermark = list(own.kept()), own.watermark
            own = LookedBack(asked(ttl), SCHEMA, limits)
            own.restore(kept, watermark)
        else:
            numbers = list(range(number, number + len(step)))
            number += len(step)
            columns = [[row.time for row in step], [row.k for row in step], numbers]
            late += add(own, pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA))
    take(closed(own, all_of_them=True))
    return found, late


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, ttl=st.integers(1, 30), width=st.sampled_from([1, 4, 100]), memory=st.sampled_from([1, 1 << 20]))
def test_looking_back_equals_a_plain_loop(steps: list[Step], ttl: int, width: int, memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(look_back, "_WAITING", width)
        patch.setattr(timed_rows, "WAITING_ROWS", 5)
        assert run(steps, ttl, StorageLimits(memory=memory)) == expected(steps, ttl)


def test_rows_of_a_key_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_back, "_WAITING", 1)
    own = LookedBack(asked(80, keys=("k",), functions={"before": "lag(v) OVER (PARTITION BY k ORDER BY t)"}), SCHEMA)
    most = 0
    for time in range(0, 1_000, 10):
        own.add(pa.RecordBatch.from_pydict({"t": [time, time], "k": [-1, time], "v": [0, 0]}, schema=SCHEMA))
        own.watermark = time
        closed(own)
        most = max(most, sum(part.num_rows for part in own.kept()))
    assert most <= 2 + (80 // 10) + 2


def test_cells_of_text_files_beside_what_is_looked_at() -> None:
    schema = pa.schema([("t", pa.timestamp("ns")), ("k", CellType(None))])
    functions = {"before": "lag(k) OVER (ORDER BY t)"}
    own = LookedBack(asked(10, functions=functions, keys=(), order="t", rows=1), schema)
    cells = pa.ExtensionArray.from_storage(CellType(None), pa.array(["a", "b"]))
    times = pa.array([1, 2], pa.int64()).cast(pa.timestamp("ns"))
    own.add(pa.RecordBatch.from_arrays([times, cells], schema=schema))
    (batch,) = closed(own, all_of_them=True)
    assert batch.column("before").to_pylist() == [None, "a"]


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({"time": "v"}, "there is no column v of times"),
        ({"functions": {"k": "lag(v) OVER (ORDER BY t)"}}, "two columns of the result have the name k"),
        ({"functions": {"x": "lag(v) OVER (ORDER BY t)", "y": "lag(w) OVER (ORDER BY t)"}}, "there is no column w"),
    ],
)
def test_what_is_wrong(others: dict[str, Any], text: str) -> None:
    with pytest.raises(WrongQuery, match=text):
        LookedBack(asked(1, **others), SCHEMA)
