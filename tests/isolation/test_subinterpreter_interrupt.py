"""Ctrl-C in a host's main thread during a sync call in subinterpreters (R2)."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Plugin, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import os
import signal
import time
from arroyo_udf_plugin import udf

calls = 0

@udf
def spins(x: int) -> int:
    global calls
    calls += 1
    if x == 1:
        os.kill(os.getpid(), signal.SIGINT)
    while x:
        pass
    return x

@udf
def catches(x: int) -> int:
    global calls
    calls += 1
    try:
        return spins(x)
    except KeyboardInterrupt:
        return -1

@udf
def hangs(x: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    os.read(x, 1)
    return x

@udf
def count(x: int) -> int:
    return calls
"""


@pytest.fixture
def file(build_plugin: BuildPlugin) -> Iterator[Path]:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield build_plugin(SOURCE, name="interrupts")
    signal.signal(signal.SIGINT, former)


@pytest.fixture(params=[1, 2], ids=["one", "two"])
def plugin(file: Path, request: pytest.FixtureRequest) -> Iterator[Plugin]:
    with load(file, isolation="subinterpreter", workers=request.param) as plugin:
        yield plugin


ROWS = pa.array([0, 1, *[0] * 510, 2, *[0] * 511])


@pytest.mark.parametrize("function", ["spins", "catches"])
def test_it_ends_the_call_in_all_workers(plugin: Plugin, function: str) -> None:
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            plugin.functions[function](ROWS)
    assert plugin.functions[function](pa.array([0, 0])).to_pylist() == [0, 0], "nothing is left of it"


@pytest.mark.parametrize(("function", "calls"), [("spins", 2), ("catches", 4)])
def test_no_row_after_it_is_called(file: Path, function: str, calls: int) -> None:
    with load(file, isolation="subinterpreter") as one:
        with pytest.raises(KeyboardInterrupt):
            one.functions[function](ROWS)
        assert one.functions["count"](ROWS[:1]).to_pylist() == [calls]


def test_a_call_in_native_code_is_left_to_itself(plugin: Plugin) -> None:
    reads, writes = os.pipe()
    with pytest.raises(KeyboardInterrupt):
        plugin.functions["hangs"](pa.array([reads]))
    os.write(writes, b"x")
    assert plugin.functions["spins"](pa.array([0])).to_pylist() == [0]
    os.close(reads)
    os.close(writes)


def test_calls_of_other_threads_go_on(plugin: Plugin) -> None:
    got = list[object]()
    thread = threading.Thread(target=lambda: got.append(plugin.functions["spins"](pa.array([0] * 2000)).to_pylist()))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        plugin.functions["spins"](ROWS)
    thread.join()
    assert got == [[0] * 2000]
