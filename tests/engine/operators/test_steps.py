"""Results leave in steps: a checkpoint between any two of them has exactly what has not left, and no step is large."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_models import DAY
from window_rows import ROWS, SCHEMA, grouping

from arroyo_udf_plugin.engine.windows import (
    first_rows,
    interval_joining,
    panes,
    runs,
    session_pieces,
    session_rows,
    sessions,
    tiers,
    timed_rows,
)
from arroyo_udf_plugin.engine.windows.collecting import Collecting, Inputs
from arroyo_udf_plugin.engine.windows.first_rows import FirstRows
from arroyo_udf_plugin.engine.windows.join_query import Joining, Within
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.kept import KeptPart, KeptRows
from arroyo_udf_plugin.engine.windows.look_back import LookBackRows
from arroyo_udf_plugin.engine.windows.opened import opened
from arroyo_udf_plugin.engine.windows.spans import Months, Session

pytestmark = pytest.mark.once

SIDES = Sides([SCHEMA, SCHEMA], "t")
INPUTS = Inputs({"a": SCHEMA})
JOINING = Joining("t", "full", "a.k = b.k", {"k": "a.k", "x": "b.x"}, ("a", "b"))
LOOKING = LookBackRows("t", {"before": "lag(x) OVER (PARTITION BY k ORDER BY t, x)"}, ("k",), "t, x", 1, 20)
FEW = 3
KINDS: dict[str, Any] = {
    "tumble": grouping(10),
    "tumble, rows": grouping(10, aggregates=ROWS),
    "hop": grouping(14, 2),
    "hop, rows": grouping(14, 2, aggregates=ROWS),
    "months": dataclasses.replace(grouping(), window=Months(6, 2)),
    "session": dataclasses.replace(grouping(), window=Session(6)),
    "session, rows": dataclasses.replace(grouping(aggregates=ROWS), window=Session(6)),
    "join": JOINING,
    "interval join": dataclasses.replace(JOINING, within=Within(-3, 4)),
    "first rows": FirstRows("t", ("k",), 8),
    "look back": LOOKING,
    "query": Collecting("SELECT k, sum(x) AS s FROM a GROUP BY k ORDER BY k", ("a",), {}, {}),
}
BATCHES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5), st.integers(-20, 40)), min_size=1, max_size=8),
    min_size=1,
    max_size=5,
)


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps, buckets and runs of a few rows."""
    for module in (panes, runs, session_pieces, session_rows, sessions, timed_rows):
        monkeypatch.setattr(module, "WAITING_ROWS", FEW)
    monkeypatch.setattr(panes, "_MANY", 1)
    monkeypatch.setattr(tiers, "_FACTOR", 2)
    for module in (first_rows, interval_joining):
        monkeypatch.setattr(module, "_SHORTEST", 1)


def schema_of(kind: str) -> pa.Schema:
    return {"join": SIDES.schema, "interval join": SIDES.schema, "query": INPUTS.schema}.get(kind, SCHEMA)


def given_rows(kind: str, number: int, rows: list[tuple[str, int, int]]) -> pa.RecordBatch:
    """Batches in turns from both sides, for a join."""
    unit = 20 * DAY if kind == "months" else 1
    columns = [list(column) for column in zip(*((k, x, t * unit) for k, x, t in rows), strict=True)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, type_) for column, type_ in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )
    if "join" in kind:
        return SIDES.together(batch, number % 2)
    return INPUTS.together(batch, 0) if kind == "query" else batch


def counted(steps: Iterable[list[pa.RecordBatch]]) -> Counter[Any]:
    return Counter(str(row) for step in steps for batch in step for row in batch.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES, watermark=st.integers(-25, 60), stop=st.integers(0, 6), is_end=st.booleans())
def test_a_checkpoint_between_two_steps(
    kind: str, batches: list[list[tuple[str, int, int]]], watermark: int, stop: int, is_end: bool
) -> None:
    def filled() -> Any:
        one = opened(KINDS[kind], schema_of(kind))
        for number, rows in enumerate(batches):
            one.add(given_rows(kind, number, rows))
        if kind != "query":
            one.watermark = watermark * (20 * DAY if kind == "months" else 1)
        return one

    whole, cut = filled(), filled()
    before = counted(itertools.islice(cut.close(is_end), stop))
    kept = list(cut.kept())
    resumed = opened(KINDS[kind], schema_of(kind))
    resumed.restore(kept, cut.closed)
    if cut.watermark is not None:
        resumed.watermark = cut.watermark
    assert before + counted(resumed.close(is_end)) == counted(whole.close(is_end))
    assert before + counted(cut.close(is_end)) == counted(filled().close(is_end)), "it goes on itself"
    assert resumed.watermark == whole.watermark
    assert counted(resumed.close(all_of_them=True)) == counted(whole.close(all_of_them=True))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "query"])
def test_without_a_watermark_nothing_leaves(kind: str) -> None:
    windows = opened(KINDS[kind], schema_of(kind))
    windows.add(given_rows(kind, 0, [("a", 1, 1), ("b", 2, 100)]))
    assert list(windows.close()) == []
    assert counted(windows.close(all_of_them=True))


@pytest.mark.parametrize("kind", ["session", "session, rows", "join", "first rows", "look back"])
def test_a_part_that_has_left_as_a_whole_is_nothing(kind: str) -> None:
    """A checkpoint may still name it: the rest of a run is copied only when something leaves."""
    first = opened(KINDS[kind], schema_of(kind))
    first.add(given_rows(kind, 0, [("a", 1, 1), ("a", 2, 1)]))
    gone = [KeptRows(KeptPart(part.rows), notes=bytes([1]) * part.num_rows) for part in first.kept()]
    resumed = opened(KINDS[kind], schema_of(kind))
    resumed.restore(gone, None)
    resumed.add(given_rows(kind, 1, [("b", 4, 2), ("c", 5, 30)]))
    resumed.watermark = 20
    assert "'k': 'a'" not in str(counted(resumed.close()) + counted(resumed.close(all_of_them=True)))


N_ROWS = 200_000
STEP_ROWS = 4_096


@pytest.mark.parametrize("kind", ["tumble", "hop", "session", "session, rows", "join", "one window"])
def test_what_leaves_needs_no_more_memory_than_a_step(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many windows close at once, or one of many keys. What is kept gets less meanwhile."""
    for module in (panes, runs, session_pieces, session_rows, sessions):
        monkeypatch.setattr(module, "WAITING_ROWS", STEP_ROWS)
    empty = pa.total_allocated_bytes()
    windows = opened(KINDS["tumble"] if kind == "one window" else KINDS[kind], schema_of(kind))
    for first in range(0, N_ROWS, 10_000):
        numbers = pa.array(range(first, first + 10_000), pa.int64())
        times = pc.divide(numbers, N_ROWS if kind == "one window" else 20)
        rows = pa.RecordBatch.from_arrays(
            [numbers.cast(pa.string()), numbers, times.cast(pa.timestamp("ns"))], schema=SCHEMA
        )
        windows.add(SIDES.together(rows, first // 10_000 % 2) if kind == "join" else rows)
    del rows, numbers, times
    list(windows.kept())  # rows become parts
    before, found, steps, most = pa.total_allocated_bytes() - empty, 0, 0, 0
    for step in windows.close(all_of_them=True):
        n_rows = sum(batch.num_rows for batch in step)
        found, steps, most = found + n_rows, steps + 1, max(most, n_rows)
        del step
        assert pa.total_allocated_bytes() - empty < max(before, windows.size) + (2 << 20)
    assert found == N_ROWS * (7 if kind == "hop" else 1)
    assert most < 8 * STEP_ROWS
    assert steps > 6
    assert windows.size == 0
