"""Timeouts, cancellation and fairness are the same wherever a function runs (docs/isolation.md), in every mode."""

import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance, drained, rest, until

from arroyo_udf_plugin import Plugin, load

SOURCE = """
import asyncio
import os
import time

from arroyo_udf_plugin import call_info, udf


def come_in(folder: str, a: int) -> None:
    with open(os.path.join(folder, f"in-{a}"), "x"):
        pass


def compute_until(path: str) -> None:
    # Computes: nothing else runs in this thread.
    while not os.path.exists(path):
        time.sleep(0.001)  # between two looks; no result depends on its length


@udf
async def computes(folder: str, a: int) -> int:
    come_in(folder, a)
    compute_until(os.path.join(folder, f"go-{a}"))
    return a


@udf
async def one_computes(folder: str, a: int) -> int:
    if a == 20:
        come_in(folder, a)
        compute_until(os.path.join(folder, "go-20"))
    return a


@udf
async def waits(folder: str, a: int) -> int:
    come_in(folder, a)
    try:
        await asyncio.Event().wait()
    finally:
        with open(os.path.join(folder, f"out-{a}"), "x"):
            pass
    return a


@udf
async def seconds_left(folder: str, a: int) -> float:
    return call_info().deadline - time.monotonic()


@udf(blocking=True)
def blocks(folder: str, a: int) -> int:
    come_in(folder, a)
    compute_until(os.path.join(folder, f"go-{a}"))
    return a
"""

MODES: dict[str, dict[str, Any]] = {"thread": {"isolation": "thread"}}
if sys.version_info >= (3, 13):
    MODES |= {f"subinterpreter-{n}": {"isolation": "subinterpreter", "workers": n} for n in (1, 2)}
MODES |= {f"process-{n}": {"isolation": "process", "workers": n} for n in (1, 2)}


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE, name="same")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> dict[str, Any]:
    return MODES[request.param]


@pytest.fixture
def plugin(file: Path, mode: dict[str, Any]) -> Iterator[Plugin]:
    with load(file, **mode) as plugin:
        yield plugin


def rows(folder: Path, count: int, first: int = 0) -> list[pa.Array]:
    return [pa.array([str(folder)] * count), pa.array(range(first, first + count), pa.int64())]


def let_go(folder: Path, *rows: int) -> None:
    for row in rows:
        (folder / f"go-{row}").touch()


def come_in(folder: Path) -> set[int]:
    return {int(name.removeprefix("in-")) for name in os.listdir(folder) if name.startswith("in-")}


def test_r6_a_row_that_waits_for_others_to_compute_does_not_time_out(plugin: Plugin, tmp_path: Path) -> None:
    """All of them together take far more than the timeout; each call takes no time of its clock."""
    with plugin.functions["computes"].start(timeout=1000.0, ordered=False, max_attempts=1) as runtime:
        runtime.send(0, *rows(tmp_path, 60))
        done: set[int] = set()
        while len(done) < 60:
            until(lambda done=done: come_in(tmp_path) > done, "the next call")
            advance(450)  # a call that begins meanwhile is there twice
            done = come_in(tmp_path)
            let_go(tmp_path, *done)
            until(lambda done=done: runtime.statistics().values == len(done), "the end of these calls")
        table = drained(runtime, 60)
    assert sorted(table["value"].to_pylist()) == list(range(60))


def test_r6_a_call_that_computes_times_out_and_those_behind_it_do_not(plugin: Plugin, tmp_path: Path) -> None:
    with plugin.functions["computes"].start(timeout=1000.0, ordered=False, max_attempts=1) as runtime:
        runtime.send(0, *rows(tmp_path, 20))
        workers = 1
        until(lambda: len(come_in(tmp_path)) >= workers, "a call")
        begun = come_in(tmp_path)
        advance(1001)
        late = drained(runtime, len(begun))
        assert set(late["outcome"].to_pylist()) == {2}, "they are late while they compute"
        let_go(tmp_path, *range(20))
        table = drained(runtime, 20 - len(begun))
    assert set(table["outcome"].to_pylist()) <= {0, 2}
    assert sorted(late["id"].to_pylist() + table["id"].to_pylist()) == list(range(20))
    assert 0 in table["outcome"].to_pylist()


def test_a_row_that_computes_does_not_hold_the_results_of_others_back(plugin: Plugin, tmp_path: Path) -> None:
    """Those that ended before it come out while it computes."""
    with plugin.functions["one_computes"].start(timeout=math.inf) as runtime:
        runtime.send(0, *rows(tmp_path, 60))
        until(lambda: come_in(tmp_path) == {20}, "the row that computes")
        assert drained(runtime, 20)["value"].to_pylist() == list(range(20))
        let_go(tmp_path, 20)
        assert drained(runtime, 40)["value"].to_pylist() == list(range(20, 60))


def test_cancellation_reaches_the_calls(plugin: Plugin, tmp_path: Path) -> None:
    with plugin.functions["waits"].start(timeout=math.inf) as runtime:
        runtime.send(0, *rows(tmp_path, 10))
        until(lambda: come_in(tmp_path) == set(range(10)), "all calls")
        runtime.cancel(3, 3)
        until(lambda: {f"out-{a}" for a in (3, 4, 5)} <= set(os.listdir(tmp_path)), "the end of three calls")
        until(lambda: runtime.statistics().running == 7, "what the calls said of it")
        runtime.stop("cancel")
        assert rest(runtime)["outcome"].to_pylist() == [3] * 10
    assert {f"out-{a}" for a in range(10)} <= set(os.listdir(tmp_path))


def test_r6_calls_that_wait_time_out_and_are_cancelled(plugin: Plugin, tmp_path: Path) -> None:
    with plugin.functions["waits"].start(timeout=1000.0) as runtime:
        runtime.send(0, *rows(tmp_path, 10))
        until(lambda: come_in(tmp_path) == set(range(10)), "all calls")
        advance(1001)
        assert drained(runtime, 10)["outcome"].to_pylist() == [2] * 10
        until(lambda: runtime.statistics().running == 0, "the end of the calls")
    assert {f"out-{a}" for a in range(10)} <= set(os.listdir(tmp_path))


def test_r10_a_call_has_its_whole_time_before_it(plugin: Plugin, tmp_path: Path) -> None:
    with plugin.functions["seconds_left"].start(timeout=1000.0) as runtime:
        runtime.send(0, *rows(tmp_path, 100))
        left = drained(runtime, 100)["value"].to_pylist()
    assert max(left) <= 1000.0


def test_r6_the_timeout_of_a_blocking_call_begins_with_it(plugin: Plugin, tmp_path: Path) -> None:
    with plugin.functions["blocks"].start(
        timeout=1000.0, ordered=False, max_attempts=1, allowed_in_flight=2
    ) as runtime:
        runtime.send(0, *rows(tmp_path, 6))
        for done in (0, 2, 4):
            until(lambda done=done: len(come_in(tmp_path)) == done + 2, "two calls")
            advance(600)
            let_go(tmp_path, *come_in(tmp_path))
        table = drained(runtime, 6)
    assert sorted(table["value"].to_pylist()) == list(range(6))
