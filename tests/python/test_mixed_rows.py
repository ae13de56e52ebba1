"""Rows that end at once beside rows that wait, raise, or leave a mark, while another thread cancels some of them: each
row comes out once, in order, with its own value (R1, R5, R6)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import load

ROWS = 20_000
SOURCE = """
import asyncio
from contextvars import ContextVar
from arroyo_udf_plugin import udf

variable: ContextVar[int] = ContextVar("variable", default=0)

@udf(max_attempts=3, retry_on="error")
async def mixed(x: int) -> int:
    match x % 101:
        case 0:
            await asyncio.sleep(0)
        case 1:
            await asyncio.sleep(0.001)
        case 2:
            variable.set(x)
        case 3:
            raise ValueError("no")
    return x + 1
"""


@pytest.mark.parametrize("cancels", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_each_row_comes_out_once(build_plugin: Callable[..., Path], ordered: bool, cancels: bool) -> None:
    column = pa.array(range(ROWS), pa.int64())
    ids: list[int] = []
    over = threading.Event()
    function = load(build_plugin(SOURCE)).functions["mixed"]
    with function.start(ordered=ordered, timeout=60.0, allowed_in_flight=50) as runtime:

        def cancel() -> None:
            first = 0
            while not over.is_set():
                runtime.cancel(first, 20)
                first = (first + 7919) % ROWS

        canceller = threading.Thread(target=cancel)
        if cancels:
            canceller.start()
        failed = 0
        try:
            for _, results in runtime.map([column.slice(i, 1000) for i in range(0, ROWS, 1000)], stop=False):
                ids += results["id"].to_pylist()
                values = results["value"].to_pylist()
                wrong = [
                    i for i, value in zip(results["id"].to_pylist(), values, strict=True) if value not in (i + 1, None)
                ]
                assert not wrong
                failed += values.count(None)
        finally:
            over.set()
            if cancels:
                canceller.join()
        counts = runtime.statistics()
    assert ids == list(range(ROWS)) if ordered else sorted(ids) == list(range(ROWS))
    raises = sum(i % 101 == 3 for i in range(ROWS))
    assert failed == counts.errors + counts.cancelled
    assert counts.running == counts.queued == 0
    if not cancels:
        assert failed == raises
