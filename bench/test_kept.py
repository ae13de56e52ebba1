"""Calls that need not be made: an async function of all flights' planes, whose values are kept (docs/functions.md)."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, build, load
from conftest import BATCH_ROWS, note

ROUNDS = 9
SOURCE = """
from arroyo_udf_plugin import udf

@udf(deterministic=True, cache=100_000, cache_bytes=10_000_000)
async def kept(tailnum: str) -> str:
    return tailnum + "!"

@udf
async def called(tailnum: str) -> str:
    return tailnum + "!"
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    source: Path = tmp_path_factory.mktemp("kept") / "planes.py"
    source.write_text(SOURCE)
    return load(build(source)).functions


@pytest.fixture(scope="module")
def planes(flights: pa.Table) -> list[pa.Array]:
    column = flights["tailnum"].drop_null().combine_chunks()
    return [column.slice(start, BATCH_ROWS) for start in range(0, len(column), BATCH_ROWS)]


def test_a_kept_value(benchmark: Any, functions: dict[str, Function], planes: list[pa.Array]) -> None:
    """All rows but the first of each plane are hits. From Arrow to Arrow, ordered; the goal is for all of it."""
    rows = sum(map(len, planes))
    spent: dict[str, list[float]] = {"kept": [], "called": []}

    def measure() -> None:
        with functions["kept"].start(ordered=True) as kept, functions["called"].start(ordered=True) as called:
            for turn in range(ROUNDS):
                for name, runtime in (("kept", kept), ("called", called)):
                    begun = time.process_time()
                    for _, results in runtime.map(planes, first_id=turn * rows, stop=False):
                        assert len(results)
                    spent[name].append(time.process_time() - begun)
            counts = kept.statistics()
        distinct = len(pa.chunked_array(planes).unique())
        assert (counts.cache_misses, counts.cache_entries) == (distinct, distinct)
        assert counts.cache_bytes <= 10_000_000

    benchmark.pedantic(measure, rounds=1)
    kept, called = (median(spent[name][1:]) for name in ("kept", "called"))  # the first turn makes the calls
    note(
        benchmark,
        "`planes`: kept values of an async function",
        kept / rows * 1e9,
        "ns/row",
        "called",
        kept / called,
        None,
    )
