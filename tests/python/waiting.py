"""How tests wait: for a condition, for rows, or for a timeout, whose clock they move themselves."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from arroyo_udf_plugin import Function, Runtime, _native

_COLUMNS = ("id", "value", "outcome", "attempts", "error")  # of results


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for what only polling can see. The pause leaves the processor to the threads that must bring it about."""
    patience = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < patience, f"waited a minute for {what}"
        time.sleep(0.001)  # between two looks; no result depends on its length


def stand_still(process: int) -> None:
    """SIGSTOP. A process goes on for a moment; when this returns, none of its threads does."""
    os.kill(process, signal.SIGSTOP)
    threads = Path(f"/proc/{process}/task")
    until(lambda: {_state(thread / "stat") for thread in threads.iterdir()} == {"T"}, "a process to stop")


def _state(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def drained(runtime: Runtime, rows: int) -> pa.Table:
    """The results of exactly the next `rows` rows."""
    batches: list[pa.RecordBatch] = []
    while (missing := rows - sum(batch.num_rows for batch in batches)) > 0:
        assert runtime.wait(60), f"waited a minute for {missing} of {rows} rows"
        if (batch := runtime.drain_results(missing)) is not None:
            batches.append(batch)
    return pa.Table.from_batches(batches)


def rest(runtime: Runtime) -> pa.Table:
    """The remaining results, after a stop; without any row if all results have been drained before it."""
    batches = []
    while (batch := runtime.drain_results()) is not None:
        batches.append(batch)
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in _COLUMNS})


def answers(function: Function, *columns: Any, **options: Any) -> pa.Table:
    """The results of a start for these columns."""
    with function.start(**options) as runtime:
        runtime.send(0, *(pa.array(column) for column in columns))
        runtime.stop()
        return rest(runtime)


def advance(seconds: float) -> None:
    """Moves the clock by which rows time out, of all runtimes of Python functions in this process.

    A test that wants some rows to time out and others not to gives them a long timeout, waits until the others have
    ended and until the rest runs, and moves the clock: how slow the machine is does not matter.
    """
    _native.advance_clock(round(seconds * 1e9))
