"""Statistics of a runtime (R16): counts, and the latency of rows as Python shows it.

native/runtime/src/histogram.rs tests the buckets, native/runtime/src/machine/tests which rows are counted."""

from __future__ import annotations

import dataclasses
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import drained

from arroyo_udf_plugin import Function, Latency, load

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

@udf
async def half(x: int) -> int:
    if x % 2:
        raise ValueError("odd")
    return x // 2

@udf(timeout=0.02)
async def never(x: int) -> int:
    await asyncio.Event().wait()
    return x

@udf(blocking=True)
def blocking(x: int) -> int:
    return x
"""

BUCKETS = 128


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="counted")).functions


def all_of(function: Function, rows: int, **options: Any) -> Any:
    with function.start(**options) as runtime:
        runtime.send(0, pa.array(range(rows)))
        runtime.stop()
        drained(runtime, rows)
        return runtime.statistics()


@pytest.mark.parametrize("name", ["half", "blocking"])
def test_r16_each_row_is_counted(functions: dict[str, Function], name: str) -> None:
    found = all_of(functions[name], 1000)
    assert (found.accepted, found.drained, found.values + found.errors) == (1000, 1000, 1000)
    latency = found.latency
    assert (latency.rows, len(latency.counts)) == (1000, BUCKETS)
    # A clock of ticks measures them: thousand calls may take none.
    assert 0 <= latency.p50 <= latency.p90 <= latency.p99 <= latency.max == latency.percentile(100)


def test_r16_all_calls_and_pauses_of_a_row_count(functions: dict[str, Function]) -> None:
    """R6: never before the deadline. So two timeouts take at least twice the timeout and half the back-off."""
    once = all_of(functions["never"], 10)
    assert (once.timed_out, once.latency.rows) == (10, 10)
    shortest = next(i for i, count in enumerate(once.latency.counts) if count)
    assert Latency.bound(shortest + 1) > 0.02
    twice = all_of(functions["never"], 10, max_attempts=2, backoff=0.04)
    assert (twice.retries, twice.latency.rows) == (10, 10)
    assert twice.latency.percentile(1) >= 0.06


def test_r16_cancelled_rows_do_not_count(functions: dict[str, Function]) -> None:
    with functions["never"].start(timeout=3600.0, allowed_in_flight=3) as runtime:
        runtime.send(0, pa.array(range(10)))
        runtime.stop("cancel")
        drained(runtime, 10)
        found = runtime.statistics()
    assert (found.cancelled, found.latency.rows, found.latency.max) == (10, 0, 0.0)
    assert found.latency.p50 is None


def test_r16_without_a_clock_nothing_is_counted(functions: dict[str, Function]) -> None:
    found = all_of(functions["half"], 10, timeout=math.inf)
    assert (found.values, found.latency.rows, found.latency.p99) == (5, 0, None)


def test_statistics_are_immutable(functions: dict[str, Function]) -> None:
    found = all_of(functions["half"], 10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.values = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.latency.max = 0.0
    assert len(repr(found)) < 400


def of(times: list[float]) -> Latency:
    counts = [0] * BUCKETS
    bounds = [Latency.bound(i) for i in range(BUCKETS)]
    for time in times:
        counts[bisect_right(bounds, time) - 1] += 1
    return Latency(tuple(counts), max(times, default=0.0))


def test_buckets_rise_by_a_quarter_or_less() -> None:
    bounds = [Latency.bound(i) for i in range(BUCKETS)]
    assert bounds[:6] == [i * 1024e-9 for i in range(6)]
    assert all(low < high <= low * 1.25 for low, high in itertools.pairwise(bounds[4:]))
    assert bounds[-1] > 3600


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 7000), min_size=1),
    st.floats(0, 100, exclude_min=True),
)
def test_a_percentile_is_at_most_a_quarter_too_long(times: list[float], percent: float) -> None:
    times.sort()
    exact = times[max(0, math.ceil(len(times) * percent / 100) - 1)]
    found = of(times).percentile(percent)
    assert found is not None
    assert exact <= found <= max(exact * 1.25, exact + 1024e-9) * (1 + 1e-9)


def test_beyond_the_last_bucket_a_percentile_is_the_longest_time() -> None:
    assert of([1.0, 1e6]).p99 == 1e6
    assert of([1e6]).p50 == 1e6


@pytest.mark.parametrize("percent", [0, -1, 101, math.nan])
def test_percentiles_are_percent(percent: float) -> None:
    with pytest.raises(ValueError, match="pass a number above 0, up to 100"):
        of([1.0]).percentile(percent)
