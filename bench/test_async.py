"""Async Python functions: ordered, with a timeout, 1,000 in flight, 200,000 rows in 8,192-row batches."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pyarrow as pa
import pytest

import references
from arroyo_udf_plugin import WouldBlock
from conftest import BATCH_ROWS, Compare

ROWS = 200_000
CAP = 1000
# How much of `tasks`' CPU time at_once may take. The other pairs have no goal; they show where the time goes.
GOALS = {("at_once", "tasks"): 0.1}


def new_loop() -> asyncio.AbstractEventLoop:
    """The event loop that plugins use as well: uvloop's where it is installed."""
    try:
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
    except ImportError:
        loop = asyncio.new_event_loop()
    return loop


@pytest.mark.parametrize("reference", ["tasks", "workers", "slots"])
@pytest.mark.parametrize("name", ["at_once", "sleep_zero", "sleep_ms"])
def test_async(python_plugin: Any, compare: Compare, name: str, reference: str) -> None:
    column = pa.array(range(ROWS), pa.int64())
    batches = [column.slice(first, BATCH_ROWS) for first in range(0, ROWS, BATCH_ROWS)]
    rows = column.to_pylist()
    expected = [row + 1 for row in rows]
    loop = new_loop()
    plain, way = getattr(references, name), getattr(references, reference)

    with python_plugin.functions[name].start(ordered=True, timeout=10.0, allowed_in_flight=CAP) as runtime:
        first_id = 0

        def subject() -> list[pa.Array]:
            """Sends until the runtime is full, drains, until every row is back."""
            nonlocal first_id
            values: list[pa.Array] = []
            back = 0

            def drain() -> int:
                runtime.wait()
                drained = runtime.drain_results()
                if drained is None:
                    return 0
                values.append(drained["value"])
                return int(drained.num_rows)

            for batch in batches:
                while True:
                    try:
                        runtime.send_nowait(first_id, batch)
                        break
                    except WouldBlock:
                        back += drain()
                first_id += len(batch)
            while back < ROWS:
                back += drain()
            return values

        assert pa.chunked_array(subject()).to_pylist() == expected
        compare(
            f"{name}: async Python",
            subject,
            lambda: loop.run_until_complete(way(plain, rows, CAP)),
            reference_name=reference,
            n=ROWS,
            unit="ns/row",
            scale=1e9,
            goal=GOALS.get((name, reference)),
            rounds=3,
        )
    loop.close()
