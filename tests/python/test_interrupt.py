"""R2: a KeyboardInterrupt that leaves a sync function, a module or a `start` in the main thread is Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import drained

from arroyo_udf_plugin import Function, RowError, UserCodeError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import signal

import pyarrow as pa

from arroyo_udf_plugin import udf

called = []


class Mine(KeyboardInterrupt):
    pass


@udf(native=False)
def interrupted_at(x: int) -> int:
    called.append(x)
    if x == 3:
        raise Mine("now")
    return x

@udf(native=False)
def interrupted_by_a_signal(x: int) -> int:
    signal.raise_signal(signal.SIGINT)
    return x

@udf(native=False)
def through_pyarrow(x: int) -> list[int]:
    return [interrupted_at.function(x)]

@udf(vectorized=True)
def vectorized(xs: pa.Int64Array) -> pa.Int64Array:
    raise Mine("now")

@udf
async def later(x: int) -> int:
    raise Mine("now")

@udf(blocking=True)
def blocking(x: int) -> int:
    raise Mine("now")

ended = []

class Context:
    async def init(self):
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

@udf
async def starts(context: Context, x: int) -> int:
    return x

main = None
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    return load(build_plugin(SOURCE, name="interrupts")).functions


@pytest.fixture
def module(functions: Mapping[str, Function]) -> object:
    functions["interrupted_at"](pa.array([0]))  # its first call imports it
    found = next(module for name, module in sys.modules.items() if name.startswith("arroyo_udf_interrupts_"))
    found.called.clear()
    return found


@pytest.mark.parametrize("name", ["interrupted_at", "through_pyarrow", "vectorized"])
def test_it_ends_the_batch_and_is_raised(functions: Mapping[str, Function], name: str) -> None:
    """It is the exception that the function has raised."""
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt, match="now") as caught:
            functions[name](pa.array([1, 3, 5]))
        assert type(caught.value).__name__ == "Mine"
        assert caught.traceback[-1].path != __file__, "the traceback begins here and ends in the function"


def test_no_row_after_it_is_called(functions: Mapping[str, Function], module: object) -> None:
    with pytest.raises(KeyboardInterrupt):
        functions["interrupted_at"].outcomes(pa.array([1, 3, 5]))
    assert module.called == [1, 3]  # type: ignore[attr-defined]
    assert functions["interrupted_at"](pa.array([5])).to_pylist() == [5], "the function can be called again"


def test_ctrl_c_during_a_sync_call(functions: Mapping[str, Function]) -> None:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            functions["interrupted_by_a_signal"](pa.array([1, 2]))
    finally:
        signal.signal(signal.SIGINT, former)


def test_in_another_thread_it_is_the_row_s_error(functions: Mapping[str, Function]) -> None:
    def call(name: str) -> list[int]:
        with pytest.raises(RowError, match="Mine: now") as caught:
            functions[name](pa.array([1, 3, 5]))
        return list(caught.value.errors)

    with ThreadPoolExecutor() as pool:
        assert pool.submit(call, "interrupted_at").result() == [1]
        assert pool.submit(call, "vectorized").result() == [0, 1, 2]


@pytest.mark.parametrize("name", ["later", "blocking"])
def test_in_an_async_call_it_is_the_row_s_error(functions: Mapping[str, Function], name: str) -> None:
    with functions[name].start() as runtime:
        runtime.send(0, pa.array([1]))
        assert "Mine: now" in drained(runtime, 1).column("error")[0].as_py()


def test_ctrl_c_during_a_start_cancels_init(functions: Mapping[str, Function], module: object) -> None:
    module.main = threading.main_thread().ident  # type: ignore[attr-defined]
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            functions["starts"].start()
    finally:
        signal.signal(signal.SIGINT, former)
    with functions["later"].start() as runtime:  # on the same loop, so init has ended before
        runtime.stop()
    assert module.ended == [True]  # type: ignore[attr-defined]


def test_ctrl_c_during_the_import_of_a_module(build_plugin: BuildPlugin) -> None:
    """The next call tries again."""
    function = load(
        build_plugin("""
        import sys
        from arroyo_udf_plugin import udf

        if __name__.startswith("arroyo_udf_plugin_") and not hasattr(sys, "interrupted_once"):
            sys.interrupted_once = True
            raise KeyboardInterrupt

        @udf(native=False)
        def f(x: int) -> int:
            return x
        """)
    ).functions["f"]
    with pytest.raises(KeyboardInterrupt):
        function(pa.array([1]))
    assert function(pa.array([1])).to_pylist() == [1]


def test_a_close_that_takes_too_long_is_given_up(build_plugin: BuildPlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """R12: it is cancelled and reported, and no results are lost."""
    from arroyo_udf_plugin.plugin import executor

    function = load(
        build_plugin("""
        import asyncio
        from arroyo_udf_plugin import udf

        class Context:
            async def close(self) -> None:
                await asyncio.sleep(3600)

        @udf
        async def f(context: Context, x: int) -> int:
            return x
        """)
    ).functions["f"]
    monkeypatch.setattr(executor, "CLOSE_SECONDS", 0)
    with function.start() as runtime:
        runtime.send(0, pa.array([1]))
        with pytest.raises(
            UserCodeError, match=r"close failed: TimeoutError: close of the Context took more than 10 s"
        ):
            runtime.stop()
        assert drained(runtime, 1).column("value").to_pylist() == [1]
        assert runtime.drain_results() is None
