"""Sync functions over 8,192-row batches of the flights, Arrow in, Arrow out, through the shared library."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import references
from arroyo_udf_plugin import load
from conftest import BATCH_ROWS, Compare, plugin_path


@pytest.mark.parametrize(("name", "columns"), [("mph", ("distance", "air_time")), ("tail", ("carrier", "tailnum"))])
def test_scalar(python_plugin: Any, flights: pa.Table, compare: Compare, name: str, columns: tuple[str, str]) -> None:
    """Against a comprehension over existing lists, which neither reads nor makes Arrow arrays."""
    function, plain = python_plugin.functions[name], getattr(references, name)
    batches = [batch.columns for batch in flights.select(columns).to_batches(BATCH_ROWS)]
    lists = [[column.to_pylist() for column in batch] for batch in batches]
    assert function(*batches[0]).to_pylist() == references.comprehension(plain, *lists[0])

    goal = 1.1 if name == "tail" else 1.0 if sys.version_info >= (3, 13) else 0.95
    compare(
        f"{name}: Python, row by row",
        lambda: [function(left, right) for left, right in batches],
        lambda: [references.comprehension(plain, left, right) for left, right in lists],
        reference_name="comprehension",
        n=flights.num_rows,
        unit="ns/row",
        scale=1e9,
        goal=goal,
    )


def test_vectorized(python_plugin: Any, flights: pa.Table, compare: Compare) -> None:
    """Against the same pyarrow calls without a plugin."""
    function = python_plugin.functions["mph_vectorized"]
    batches = [batch.columns for batch in flights.select(["distance", "air_time"]).to_batches(BATCH_ROWS)]

    def direct(distance: pa.Array, air_time: pa.Array) -> pa.Array:
        return pc.divide(pc.multiply(pc.cast(distance, pa.float64()), 60.0), pc.cast(air_time, pa.float64()))

    assert function(*batches[0]).equals(direct(*batches[0]))
    compare(
        "mph: Python, vectorised",
        lambda: [function(left, right) for left, right in batches],
        lambda: [direct(left, right) for left, right in batches],
        reference_name="pyarrow",
        n=flights.num_rows,
        unit="ns/row",
        scale=1e9,
        goal=1.1,
    )


def test_fixed_cost(python_plugin: Any, compare: Compare) -> None:
    """One call with one row: the fixed cost of a call."""
    function, calls = python_plugin.functions["mph"], 2000
    distance, air_time = pa.array([1400]), pa.array([227])

    def subject() -> None:
        for _ in range(calls):
            function(distance, air_time)

    compare("one call from the Python host, one row", subject, None, n=calls, unit="us/call", scale=1e6, goal=3.0)


def test_validation(flights: pa.Table, compare: Compare) -> None:
    """What it costs to check every value of a result: texts from C, the dearest and the fastest."""
    path = plugin_path(".c")
    validated, plain = load(path, validate=True).functions["same"], load(path).functions["same"]
    batches = [batch.column(0).drop_null() for batch in flights.select(["tailnum"]).to_batches(BATCH_ROWS)]
    assert validated(batches[0]).equals(batches[0])
    compare(
        "same: C, texts validated",
        lambda: [validated(batch) for batch in batches],
        lambda: [plain(batch) for batch in batches],
        reference_name="not validated",
        n=sum(map(len, batches)),
        unit="ns/row",
        scale=1e9,
    )
