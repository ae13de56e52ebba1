"""A program: runs an async Python function through its plugin, in turns with its references, on one kind of loop.

    python async_rows.py PLUGIN FUNCTION

ROWS rows in batches of 8,192, ordered, with a timeout, CAP in flight: the whole path from this host through the ABI and
the loop back into Arrow arrays. BENCH_LOOP (asyncio or uvloop, see udf.py) names the loop. Prints one line per turn, in
CPU seconds: {"name": "plugin" | "slots" | "handed" | "workers" | "tasks", "value": ...}.

`slots` and `handed` are nearest to the plugin: they follow each turn of the plugin, PAIRS times per round; the other
two run once per round. All five warm up first. Results are compared after the clock has stopped.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa

import references
from arroyo_udf_plugin import Runtime, load

ROWS, BATCH_ROWS, CAP = 200_000, 8192, 1000
ROUNDS = 3
PAIRS = {"at_once": 9, "sleep_zero": 3, "sleep_ms": 2}  # shorter turns are repeated more often
WARM_UP = 20_000


def through(runtime: Runtime, first_id: int, column: pa.Array) -> list[pa.Array]:
    """Sends all rows and drains them. Returns the values in order."""
    batches = [column.slice(offset, BATCH_ROWS) for offset in range(0, len(column), BATCH_ROWS)]
    return [results["value"] for _, results in runtime.map(batches, first_id=first_id, stop=False)]


def main() -> None:
    path, name = sys.argv[1:]
    kind = os.environ["BENCH_LOOP"]
    loop: asyncio.AbstractEventLoop = importlib.import_module(kind).new_event_loop()
    functions = load(path).functions
    with functions["loop_name"].start() as runtime:
        (used,) = through(runtime, 0, pa.array([0]))[0].to_pylist()
        assert used.startswith(kind), f"the plugin's event loop is {used}"

    column = pa.array(range(ROWS), pa.int64())
    rows = column.to_pylist()
    expected = [row + 1 for row in rows]
    function: Callable[[int], Awaitable[int]] = getattr(references, name)
    sent = 0
    handed = references.Handed(function, importlib.import_module(kind).new_event_loop(), CAP)
    with functions[name].start(ordered=True, timeout=10.0, allowed_in_flight=CAP) as runtime:

        def take_turn(way: str, count: int = ROWS) -> None:
            nonlocal sent
            result: Any
            start = time.process_time()
            if way == "plugin":
                result = through(runtime, sent, column.slice(0, count))
            elif way == "handed":
                result = handed.map(column.slice(0, count), BATCH_ROWS)
            else:
                result = loop.run_until_complete(getattr(references, way)(function, rows[:count], CAP))
            spent = time.process_time() - start
            if way == "plugin":
                sent += count
                result = pa.chunked_array(result).to_pylist()
            elif way == "handed":
                pairs = [zip(numbers.to_pylist(), values.to_pylist(), strict=True) for numbers, values in result]
                result = [value for _, value in sorted(itertools.chain.from_iterable(pairs))]
            assert result == expected[:count]
            if count == ROWS:
                print(json.dumps({"name": way, "value": spent}), flush=True)

        for way in ("plugin", "slots", "handed", "workers", "tasks"):
            take_turn(way, WARM_UP)
        for _ in range(ROUNDS):
            for way in ("plugin", "slots", "handed") * PAIRS[name]:
                take_turn(way)
            take_turn("workers")
            take_turn("tasks")
    handed.stop()
    loop.close()


if __name__ == "__main__":
    main()
