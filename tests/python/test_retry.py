"""Retry, row deadline and stuck attempts through a real plugin (R6-R8). native/runtime/src/machine/tests proves the
rules."""

import logging
import logging.handlers
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance, drained, until

from arroyo_udf_plugin import Plugin, UserCodeError, load

VALUE, ERROR, TIMED_OUT, CANCELLED = range(4)

SOURCE = """
import asyncio
from collections import Counter

from arroyo_udf_plugin import udf

calls = Counter()
begun: dict[int, asyncio.Event] = {}

@udf
async def waits_for_call(x: int) -> int:
    await begun.setdefault(x, asyncio.Event()).wait()
    return x

@udf(max_attempts=3, retry_on="error", backoff=0.001)
async def third_time(x: int) -> int:
    calls[x] += 1
    if calls[x] < 3:
        raise ValueError(f"attempt {calls[x]}")
    return calls[x]

@udf(max_attempts=2, retry_on=("timeout", "error"), backoff=0.001, ordered=False)
async def slow_once(x: int) -> int:
    calls[x] += 1
    if calls[x] == 1 and x > 0:
        await asyncio.Event().wait()
    return calls[x]

@udf(max_attempts=1000, retry_on="error", backoff=0.001, allowed_in_flight=1)
async def never(x: int) -> int:
    raise ValueError("not yet")

@udf(max_attempts=3, retry_on="error", backoff=0.001)
async def appends(x: list[int]) -> list[int]:
    x.append(0)
    return refused_at_first(x)

@udf(max_attempts=3, retry_on="error", backoff=0.001, blocking=True)
def appends_in_a_thread(x: list[int]) -> list[int]:
    x.append(0)
    return refused_at_first(x)

@udf(max_attempts=3, retry_on="error", backoff=0.001, batch_size=2)
async def appends_to_each(x: list[list[int]]) -> list[list[int]]:
    for row in x:
        row.append(0)
    return [refused_at_first(row) for row in x]

def refused_at_first(x):
    calls[x[0]] += 1
    if calls[x[0]] < 3:
        raise ValueError(f"not {x}")
    return x

@udf(timeout=1000, max_stuck=2)
async def deaf(x: int) -> int:
    begun.setdefault(x, asyncio.Event()).set()
    while x < 2:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
    await asyncio.Event().wait()
    return x

class Context:
    closed = 0

    async def close(self) -> None:
        Context.closed += 1

opened = asyncio.Event()

@udf
async def stubborn(context: Context, x: int) -> int:
    begun.setdefault(x, asyncio.Event()).set()
    while not opened.is_set():
        try:
            await opened.wait()
        except asyncio.CancelledError:
            pass
    return x

@udf
async def opens(x: int) -> int:
    opened.set()
    return x

@udf
async def closed(x: int) -> int:
    return Context.closed
"""


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Plugin:
    return load(build_plugin(SOURCE))


def results(runtime: Any, rows: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = drained(runtime, rows).to_pylist()
    return found


def wait_for_calls(plugin: Plugin, *numbers: int) -> None:
    """Waits until the calls for these numbers have begun: a call that is cancelled before just ends."""
    with plugin.functions["waits_for_call"].start(timeout=1e6) as runtime:
        runtime.send(0, pa.array(numbers))
        results(runtime, len(numbers))


def test_r7_errors_are_retried_in_order(plugin: Plugin) -> None:
    with plugin.functions["third_time"].start() as runtime:
        runtime.send(0, pa.array([10, 11, 12]))
        rows = results(runtime, 3)
        statistics = runtime.statistics()
    assert [(row["id"], row["value"], row["attempts"]) for row in rows] == [(0, 3, 3), (1, 3, 3), (2, 3, 3)]
    assert statistics.retries == 6
    assert statistics.backing_off == 0


def test_r7_the_last_error_is_the_rows(plugin: Plugin) -> None:
    with plugin.functions["third_time"].start(max_attempts=2) as runtime:
        runtime.send(0, pa.array([20]))
        (row,) = results(runtime, 1)
    assert (row["outcome"], row["attempts"]) == (ERROR, 2)
    assert "ValueError: attempt 2" in row["error"]


@pytest.mark.parametrize(
    ("name", "first"), [("appends", 1000), ("appends_in_a_thread", 2000), ("appends_to_each", 3000)]
)
def test_r7_a_retry_does_not_see_what_the_failed_attempt_changed(plugin: Plugin, name: str, first: int) -> None:
    """Each attempt gets values of its own: lists too."""
    with plugin.functions[name].start() as runtime:
        runtime.send(0, pa.array([[first, 1], [first + 1]], pa.list_(pa.field("item", pa.int64(), False))))
        rows = results(runtime, 2)
    assert [row["value"] for row in rows] == [[first, 1, 0], [first + 1, 0]]


def test_r7_a_timeout_is_retried(plugin: Plugin) -> None:
    with plugin.functions["slow_once"].start(timeout=1000) as runtime:
        runtime.send(0, pa.array([30, 0]))
        assert results(runtime, 1)[0]["id"] == 1, "it has ended, so the first attempt for the other row has begun"
        advance(1000)
        (row,) = results(runtime, 1)
    assert (row["outcome"], row["value"], row["attempts"]) == (VALUE, 2, 2)


def test_a_row_deadline_ends_waiting_and_retrying_rows(plugin: Plugin) -> None:
    with plugin.functions["never"].start(deadline=1000) as runtime:
        runtime.send(0, pa.array([1] * 50))
        until(lambda: runtime.statistics().retries > 50, "the second retry of some row")
        advance(1000)
        rows = results(runtime, 50)
    assert {row["outcome"] for row in rows} == {TIMED_OUT}
    assert max(row["attempts"] for row in rows) >= 2
    assert "row deadline" in rows[0]["error"]


def of_calls(record: logging.LogRecord) -> bool:
    """Leaves out that the loop was blocked: on a busy machine, imports may do that."""
    return "the event loop is blocked" not in record.getMessage()


def test_r8_stuck_attempts_are_reported_and_end_the_runtime(plugin: Plugin) -> None:
    reported: queue.Queue[logging.LogRecord] = queue.Queue()
    handler = logging.handlers.QueueHandler(reported)
    handler.addFilter(of_calls)
    logging.getLogger("arroyo_udf_plugin").addHandler(handler)
    with plugin.functions["deaf"].start() as runtime:
        runtime.send(0, pa.array([0, 1, 2]))
        wait_for_calls(plugin, 0, 1, 2)
        advance(1000)
        rows = results(runtime, 3)
        assert [row["outcome"] for row in rows] == [TIMED_OUT] * 3
        until(lambda: bool(runtime.statistics() and reported.qsize() == 2), "two reports")
        reports = sorted(reported.get().getMessage() for _ in range(2))
        with pytest.raises(UserCodeError, match="2 calls ignore their cancellation"):
            runtime.send(3, pa.array([3]))
        assert runtime.stop("drain") is False
    logging.getLogger("arroyo_udf_plugin").removeHandler(handler)
    for row, report in enumerate(reports):
        assert report.startswith(f"plugin.deaf, row {row}: a call ignores its cancellation, in")
        assert "at deaf" in report


def test_r13_a_stop_does_not_wait_for_stuck_attempts(plugin: Plugin) -> None:
    with plugin.functions["deaf"].start(max_stuck=9) as runtime:
        runtime.send(0, pa.array([-1]))
        wait_for_calls(plugin, -1)
        advance(1000)
        (row,) = results(runtime, 1)
        assert row["outcome"] == TIMED_OUT
        assert runtime.stop("drain") is False
        assert runtime.statistics().stuck == 1


def test_r13_the_context_is_not_closed_after_a_stop_that_gave_up(plugin: Plugin) -> None:
    reported: queue.Queue[logging.LogRecord] = queue.Queue()
    handler = logging.handlers.QueueHandler(reported)
    handler.addFilter(of_calls)
    logging.getLogger("arroyo_udf_plugin").addHandler(handler)
    with plugin.functions["stubborn"].start() as runtime:
        runtime.send(0, pa.array([100]))
        wait_for_calls(plugin, 100)
        assert runtime.stop("cancel") is False
        assert runtime.stop("cancel") is False, "the same answer as the first"
    reports = [reported.get().getMessage() for _ in range(reported.qsize())]
    assert len([report for report in reports if "its Context, if it has one, is not closed" in report]) == 1
    with plugin.functions["opens"].start() as runtime:
        runtime.send(0, pa.array([1]))
        results(runtime, 1)
    logging.getLogger("arroyo_udf_plugin").removeHandler(handler)
    with plugin.functions["closed"].start() as runtime:
        runtime.send(0, pa.array([1]))
        assert results(runtime, 1)[0]["value"] == 0


def test_options_of_the_head_block_of_the_decorator_and_of_start(build_plugin: Callable[..., Path]) -> None:
    head = """\
# /// script
# dependencies = []
# [tool.arroyo-udf]
# async_max_concurrency = 7
# timeout = 2.5
# retry_on = ["timeout", "error"]
# ///
from arroyo_udf_plugin import udf

@udf(timeout=1.5)
async def f(x: int) -> int:
    return x

@udf(native=False)
def g(x: int) -> int:
    return x
"""
    functions = load(build_plugin(head)).functions
    chosen = {"allowed_in_flight": 7, "timeout": 1.5, "retry_on": ("timeout", "error")}
    assert functions["f"].chosen == chosen
    assert functions["f"].options is not None
    assert functions["f"].options.max_attempts == 1
    assert functions["g"].options is None


def test_example(build_plugin: Callable[..., Path], examples: Path) -> None:
    function = load(build_plugin(examples / "retry" / "udf.py")).functions["price"]
    assert function.chosen["allowed_in_flight"] == 1000
    with function.start() as runtime:
        runtime.send(0, pa.array(["four"] * 200))
        rows = results(runtime, 200)
    assert {row["value"] for row in rows if row["outcome"] == VALUE} == {4.0}
    assert all(row["attempts"] == 5 for row in rows if row["outcome"] == ERROR)
    assert max(row["attempts"] for row in rows) > 1
