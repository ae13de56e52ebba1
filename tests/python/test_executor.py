"""What becomes of rows when calls, the event loop or the executor of async Python functions fail: a task that exits, a
blocked loop (R9), stuck calls (R8), poisoning (R17)."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance, answers, drained, rest, until

from arroyo_udf_plugin import Function, InternalError, Runtime, load
from arroyo_udf_plugin.plugin import executor

BuildPlugin = Callable[..., Path]
ERROR, TIMED_OUT, CANCELLED = 1, 2, 3

SOURCE = """
import asyncio
import threading
from arroyo_udf_plugin import udf

events: list[str] = []
gates: dict[int, asyncio.Event] = {}
thread_gate = threading.Event()

def gate(number: int) -> asyncio.Event:
    return gates.setdefault(number, asyncio.Event())

@udf(native=False)
def open_gate(x: int) -> int:
    thread_gate.set()
    return x

@udf
async def takes_events(x: int) -> str:
    taken = " ".join(events)
    events.clear()
    return taken

@udf
async def opens(x: int) -> int:
    gate(x).set()
    return x

@udf
async def waits(x: int) -> int:
    await gate(x).wait()
    return x

@udf
async def exits_later(x: int) -> int:
    async def later():
        gate(300 + x).set()
        raise SystemExit(x)
    asyncio.create_task(later())
    return x

@udf
async def blocks(x: int) -> int:
    thread_gate.wait()
    return x

others, blocked, unblocked = threading.Semaphore(0), threading.Event(), threading.Event()

@udf(timeout=1000)
async def blocks_others(x: int) -> int:
    if x == 0:
        await gate(600).wait()
        blocked.set()
        unblocked.wait()
    else:
        others.release()
        await asyncio.Event().wait()
    return x

@udf(native=False)
def wait_for_others(x: int) -> int:
    for _ in range(x):
        others.acquire(timeout=60)
    return x

@udf(native=False)
def wait_until_blocked(x: int) -> int:
    blocked.wait(60)
    return x

@udf(native=False)
def unblock(x: int) -> int:
    unblocked.set()
    return x

@udf(allowed_in_flight=2, timeout=1000, ordered=False)
async def ignores(x: int) -> int:
    gate(401).set()
    while x and not gate(400).is_set():
        try:
            await gate(400).wait()
        except asyncio.CancelledError:
            pass
    return x

@udf
async def starts(x: int) -> int:
    from arroyo_udf_plugin import load
    with load(PATH).functions["opens"].start():
        return x

@udf(native=False)
def set_path(path: str) -> int:
    global PATH
    PATH = path
    return 0

class Watched:
    async def close(self) -> None:
        events.append("closed")

@udf(ordered=False, timeout=1000)
async def watched(context: Watched, x: int) -> int:
    gate(700 + x).set()
    while not gate(500 + x).is_set():
        try:
            await gate(500 + x).wait()
        except asyncio.CancelledError:
            if x == 9:
                continue
            events.append(f"{x}-cancelled")
            raise
    return x
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="tasks")).functions


def wait_for(functions: dict[str, Function], *numbers: int) -> None:
    """Waits until the gates are open."""
    table = answers(functions["waits"], numbers)
    assert table["outcome"].to_pylist() == [0] * len(numbers)


def events(functions: dict[str, Function]) -> list[str]:
    text: str = answers(functions["takes_events"], [0])["value"][0].as_py()
    return text.split(" ") if text else []


def test_a_task_that_exits_does_not_end_the_loop(
    functions: dict[str, Function], caplog: pytest.LogCaptureFixture
) -> None:
    with functions["exits_later"].start() as runtime:
        runtime.send(0, pa.array([1]))
        assert drained(runtime, 1)["value"].to_pylist() == [1]
        wait_for(functions, 301)
        until(lambda: bool(runtime.statistics() and "the loop continues" in caplog.text), "a warning")
        assert answers(functions["exits_later"], [2])["value"].to_pylist() == [2]
        runtime.stop()


@contextlib.contextmanager
def executor_warnings() -> Iterator[Any]:
    """Yields a function that waits for the next warning. The host hands warnings on in its calls."""
    records: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    def following(runtime: Runtime) -> str:
        until(lambda: bool(runtime.statistics() and records), "a warning")
        return records.pop(0)

    logger, handler = logging.getLogger("arroyo_udf_plugin"), Handler()
    logger.addHandler(handler)
    try:
        yield following
        assert not records
    finally:
        logger.removeHandler(handler)


def test_a_blocked_loop(functions: dict[str, Function]) -> None:
    """R9: it is counted, and reported once with the stack; meanwhile a row times out (R6)."""
    with executor_warnings() as following, functions["blocks"].start(timeout=1000) as runtime:
        runtime.send(0, pa.array([1]))
        warning = following(runtime)
        assert "the event loop is blocked" in warning
        assert "at blocks, " in warning.splitlines()[1]
        assert "thread_gate.wait()" in warning
        assert runtime.statistics().blocked == 1
        advance(1000)
        assert drained(runtime, 1)["outcome"].to_pylist() == [TIMED_OUT]
        functions["open_gate"](pa.array([1]))
        runtime.send(1, pa.array([2]))
        runtime.stop()
        assert rest(runtime)["outcome"].to_pylist() == [0]


def test_a_stuck_attempt(functions: dict[str, Function]) -> None:
    """R8: reported with its stack and out of the cap; the rows behind it go on."""
    with executor_warnings() as following, functions["ignores"].start() as runtime:
        runtime.send(0, pa.array([1, 0, 0]))
        wait_for(functions, 401)
        advance(1000)
        warning = following(runtime)
        assert "tasks.ignores, row 0: a call ignores its cancellation" in warning
        assert "at ignores, " in warning
        assert sorted(drained(runtime, 3)["id"].to_pylist()) == [0, 1, 2]
        with functions["opens"].start() as opener:
            opener.send(0, pa.array([400]))
            opener.stop()
            rest(opener)
        until(lambda: runtime.statistics().stuck == 0, "its end")
        assert runtime.stop()


def test_calls_that_a_blocked_loop_could_not_cancel_are_not_reported(
    functions: dict[str, Function], caplog: pytest.LogCaptureFixture
) -> None:
    """R8: they end as soon as their cancellations reach them. So it is if the loop's thread had no processor."""
    with functions["opens"].start() as opener, functions["blocks_others"].start() as runtime:
        runtime.send(0, pa.array(range(21)))
        functions["wait_for_others"](pa.array([20]))
        opener.send(0, pa.array([600]))
        functions["wait_until_blocked"](pa.array([0]))
        runtime.cancel(1, 20)
        advance(1)
        until(lambda: runtime.statistics().stuck == 20, "their time to be over")
        functions["unblock"](pa.array([0]))
        until(lambda: runtime.statistics().stuck == 0, "their end")
        assert runtime.stop()
        assert drained(runtime, 21)["outcome"].to_pylist() == [0, *[CANCELLED] * 20]
        opener.stop()
        rest(opener)
    assert "ignores its cancellation" not in caplog.text


def server_of(name: str) -> Any:
    """The half of a started function that the loop has."""
    (server,) = (server for server in executor._servers if server.name == name)
    return server


def test_calls_that_run_at_a_poisoning_are_cancelled_before_the_context_is_closed(
    functions: dict[str, Function],
) -> None:
    """R17: rows are answered at once. The stop waits until nothing uses the Context."""
    runtime = functions["watched"].start()
    runtime.send(0, pa.array([1, 2]))
    until(lambda: runtime.statistics().running == 2, "two calls")
    server_of("tasks.watched").executor.poison("a mistake")
    assert drained(runtime, 2)["error"].to_pylist() == [f"tasks.watched, row {row}: a mistake" for row in (0, 1)]
    with pytest.raises(InternalError, match=r"tasks\.watched: a mistake"):
        runtime.stop("cancel", 60)
    assert events(functions) == ["1-cancelled", "2-cancelled", "closed"]
    runtime.release()


def test_a_turn_that_fails_is_not_the_last_one(functions: dict[str, Function]) -> None:
    """R17: the executor still cancels and closes."""
    runtime = functions["watched"].start()
    runtime.send(0, pa.array([1]))
    until(lambda: runtime.statistics().running == 1, "a call")

    def fail() -> None:
        raise RuntimeError("a mistake")

    server_of("tasks.watched").add_slot = fail
    runtime.send(1, pa.array([2]))
    assert "the asyncio executor failed" in drained(runtime, 2)["error"][1].as_py()
    with pytest.raises(InternalError, match="a mistake"):
        runtime.stop("cancel", 60)
    assert events(functions) == ["1-cancelled", "closed"]
    runtime.release()


def test_healthy_calls_are_cancelled_when_others_are_stuck(functions: dict[str, Function]) -> None:
    """R8: too many stuck calls end the runtime, and with it all other calls. The Context is not closed meanwhile."""
    with executor_warnings() as following:
        runtime = functions["watched"].start(max_stuck=1)
        runtime.send(0, pa.array([9, 8]))
        wait_for(functions, 709, 708)
        runtime.cancel(0)
        advance(1)
        assert sorted(drained(runtime, 2)["outcome"].to_pylist()) == [ERROR, CANCELLED]
        assert "row 0: a call ignores its cancellation" in following(runtime)
        assert not runtime.stop("cancel", 60)
        assert "its Context, if it has one, is not closed" in following(runtime)
        assert (runtime.statistics().running, events(functions)) == (1, ["8-cancelled"])
        runtime.release()
        with functions["opens"].start() as opener:
            opener.send(0, pa.array([509]))
            opener.stop()
            rest(opener)
    assert events(functions) == []


def test_a_start_in_the_loops_own_thread_is_refused_at_once(build_plugin: BuildPlugin) -> None:
    """It would wait for itself, and block every async function, until its time was over."""
    path = build_plugin(SOURCE, name="tasks")
    functions = load(path).functions
    functions["set_path"](pa.array([str(path)]))
    (text,) = answers(functions["starts"], [0])["error"].to_pylist()
    assert "this thread runs the event loop of async functions" in text
    assert "await start_async" in text
