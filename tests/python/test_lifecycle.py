"""The start and the end of a runtime: options, Context (R12), stop (R13); and a runtime after its release, garbage
collection and fork."""

import contextlib
import gc
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import drained, rest, until

from arroyo_udf_plugin import Function, InvalidArgument, InvalidState, UserCodeError, load
from arroyo_udf_plugin.host.started import RELEASES
from arroyo_udf_plugin.plugin import executor

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

@udf
async def plus(x: int) -> int:
    return x + 1

@udf
async def never(x: int) -> int:
    await asyncio.Event().wait()
    return x

class Context:
    made = 0
    closed = 0
    async def init(self) -> None:
        await asyncio.sleep(0)
        Context.made += 1
        self.number = Context.made
    async def close(self) -> None:
        await asyncio.sleep(0)
        Context.closed += 1

@udf
async def context(context: Context, x: int) -> int:
    return context.number * 1000 + x

@udf
async def counts(x: int) -> int:
    return Context.made * 1000 + Context.closed

class Broken:
    async def init(self) -> None:
        raise ValueError("no database")

@udf
async def broken(context: Broken, x: int) -> int:
    return x
"""
CANCELLED = 3


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="lifecycle")).functions


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def test_stop(functions: dict[str, Function]) -> None:
    """R13: a stop with a deadline while calls run; send and a second stop afterwards."""
    with functions["never"].start() as runtime:
        runtime.send(0, ints(1, 2, 3))
        assert runtime.stop("drain", deadline=0.01)
        with pytest.raises(InvalidState):
            runtime.send(3, ints(4))
        assert runtime.stop("cancel")
        assert rest(runtime)["outcome"].to_pylist() == [CANCELLED] * 3
        assert runtime.drain_results() is None
        counters = runtime.statistics()
        assert (counters.accepted, counters.cancelled, counters.drained) == (3, 3, 3)
        assert (counters.queued, counters.running, counters.held, counters.ready) == (0, 0, 0, 0)


def test_after_release(functions: dict[str, Function]) -> None:
    runtime = functions["plus"].start()
    runtime.release()
    runtime.release()
    for use in (
        lambda: runtime.send(0, ints(1)),
        lambda: runtime.send_nowait(0, ints(1)),
        runtime.drain_results,
        runtime.statistics,
        runtime.stop,
        lambda: runtime.wait(0),
        lambda: runtime.cancel(0),
    ):
        with pytest.raises(InvalidState, match="was released; start a new one"):
            use()


def test_leaving_with_unanswered_rows(functions: dict[str, Function]) -> None:
    """Leaving `with` reports lost results, except after an exception or a cancel."""
    with pytest.raises(InvalidState, match="left with 2 rows not drained"), functions["plus"].start() as runtime:
        runtime.send(0, ints(1, 2))
    with contextlib.suppress(KeyError), functions["never"].start() as runtime:
        runtime.send(0, ints(1, 2))
        raise KeyError
    with functions["never"].start() as runtime:
        runtime.send(0, ints(1, 2))
        runtime.stop("cancel")


@pytest.mark.usefixtures("young")
def test_collection(functions: dict[str, Function]) -> None:
    """Garbage collection releases a runtime with rows in flight, and its eventfds."""

    def forget() -> None:
        runtime = functions["never"].start()
        runtime.send(0, ints(1))
        runtime.wait(0.001)
        del runtime
        gc.collect()
        for thread in threading.enumerate():
            if thread.name == RELEASES:
                thread.join()

    forget()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        forget()
    # A call that does not end within a second of its cancellation keeps its runtime; on a slow machine some do.
    until(lambda: len(os.listdir("/proc/self/fd")) <= before + 10, "all but a few of fifty eventfds to close")


def test_a_forgotten_runtime_stays_where_the_system_has_no_thread_to_release_it(
    functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is printed: what a finalizer raises is a warning, and so an error here."""
    runtime = functions["never"].start()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    del runtime
    gc.collect()


def test_context(functions: dict[str, Function]) -> None:
    """R12: one per runtime, opened before its first row, closed at its stop."""

    def counts() -> tuple[int, int]:
        with functions["counts"].start() as runtime:
            runtime.send(0, ints(0))
            runtime.stop()
            return divmod(int(rest(runtime)["value"][0].as_py()), 1000)

    made, closed = counts()
    with functions["context"].start() as one, functions["context"].start() as two:
        assert counts() == (made + 2, closed)
        one.send(0, ints(1, 2))
        two.send(0, ints(3))
        one.stop()
        assert counts() == (made + 2, closed + 1)
        two.stop()
        numbers = rest(one)["value"].to_pylist() + rest(two)["value"].to_pylist()
    assert sorted(n // 1000 for n in numbers) == [made + 1, made + 1, made + 2]
    assert counts() == (made + 2, closed + 2)


def test_context_that_fails(functions: dict[str, Function]) -> None:
    with pytest.raises(UserCodeError, match="ValueError: no database"):
        functions["broken"].start()


@pytest.mark.parametrize(
    "options", [{"allowed_in_flight": 0}, {"timeout": 0}, {"timeout": math.nan}, {"max_rows": 0}, {"max_bytes": -1}]
)
def test_bad_options(functions: dict[str, Function], options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InvalidArgument, match=rf"lifecycle\.plus: {name}="):
        functions["plus"].start(**options)


FORKS = """
import os, signal, sys
import pyarrow as pa
from arroyo_udf_plugin import InvalidState, load

with load(sys.argv[1]).functions["plus"].start() as runtime:
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # kills it, should it wait
        try:
            runtime.send(0, pa.array([1]))
        except InvalidState:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    runtime.send(0, pa.array([1]))
    runtime.stop()
    assert runtime.drain_results()["value"].to_pylist() == [2]
"""


def test_in_a_forked_child(build_plugin: BuildPlugin) -> None:
    """R13: the child has the objects and may not use them.

    In a process of its own: CPython ends the forked child of one that has had subinterpreters."""
    path = build_plugin(SOURCE, name="lifecycle")
    done = subprocess.run([sys.executable, "-c", FORKS, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_r12_start_gives_up_on_an_init_that_blocks_the_loop(
    build_plugin: BuildPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
import threading
from arroyo_udf_plugin import udf

opened, closed = threading.Event(), threading.Event()

class Context:
    async def init(self) -> None:
        opened.wait()  # blocks the loop

    async def close(self) -> None:
        closed.set()

@udf
async def f(context: Context, x: int) -> int:
    return x
"""
    function = load(build_plugin(source, name="blocks_in_init")).functions["f"]
    monkeypatch.setattr(executor, "INIT_SECONDS", -0.99)
    with pytest.raises(UserCodeError, match="neither ends nor awaits"):
        function.start()
    module = next(module for name, module in sys.modules.items() if name.startswith("arroyo_udf_blocks_in_init_"))
    monkeypatch.undo()
    module.opened.set()
    assert module.closed.wait(60), "it opened late, and closed"
    with function.start() as runtime:
        runtime.send(0, ints(7))
        assert drained(runtime, 1)["value"].to_pylist() == [7]
