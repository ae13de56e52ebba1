"""Async functions through their runtime: order (R5), room (R4), outcomes (R1, R2), timeouts (R6), waiting (R14).
Its start and its end are in test_lifecycle.py."""

import asyncio
import errno
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance, drained, rest, until

from arroyo_udf_plugin import Function, InvalidArgument, WouldBlock, load
from arroyo_udf_plugin.host.waiters import Waiters

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import dataclasses
from arroyo_udf_plugin import udf

gates: dict[int, asyncio.Event] = {}
cancelled: list[int] = []

def gate(number: int) -> asyncio.Event:
    return gates.setdefault(number, asyncio.Event())

@udf
async def plus(x: int) -> int:
    return x + 1

@udf
async def passes(number: int, opens: int | None) -> int:
    '''Opens a gate, or waits for its own.'''
    if opens is not None:
        gate(opens).set()
        return number
    try:
        await gate(number).wait()
    except asyncio.CancelledError:
        cancelled.append(number)
        raise
    return number

@udf
async def cancelled_calls(x: int) -> list[int]:
    return sorted(cancelled)

@udf
async def never_of(xs: list[list[int]]) -> int:
    await asyncio.Event().wait()
    return 0

@udf
async def never(x: int) -> int:
    await asyncio.Event().wait()
    return x

@udf
async def word(x: int) -> str:
    await asyncio.sleep(0)
    if x == 1:
        raise ValueError("no")
    if x == 2:
        raise SystemExit(2)
    if x == 3:
        raise asyncio.CancelledError
    if x == 4:
        return None
    if x == 5:
        return 5
    return f"word {x}"

@dataclasses.dataclass
class Point:
    x: int
    y: list[str]

@udf
async def flipped(point: Point) -> Point:
    return Point(-point.x, point.y[::-1])

"""
ERROR, TIMED_OUT, CANCELLED = 1, 2, 3


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="asynchronous")


@pytest.fixture(scope="module")
def functions(file: Path) -> Any:
    return load(file).functions


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def test_rows_in_results_out(functions: dict[str, Function]) -> None:
    with functions["plus"].start() as runtime:
        runtime.send(10, ints(1, None, 3))
        runtime.send(20, pa.chunked_array([[4], [5, 6]]))
        runtime.send(30, pa.record_batch([ints(7)], names=["x"]))
        assert runtime.stop()
        results = rest(runtime)
    assert results.column_names == ["id", "value", "outcome", "attempts", "error"]
    assert results["id"].to_pylist() == [10, 11, 12, 20, 21, 22, 30]
    assert results["value"].to_pylist() == [2, None, 4, 5, 6, 7, 8]
    assert results["outcome"].to_pylist() == [0] * 7
    assert results["error"].to_pylist() == [None] * 7


def test_order(functions: dict[str, Function]) -> None:
    """R5: the second row ends first; with ordered=False it comes out first."""
    for ordered, expected in ((True, [0, 1]), (False, [1, 0])):
        number = 100 + ordered
        with functions["passes"].start(ordered=ordered) as runtime:
            runtime.send(0, ints(number, number), ints(None, number))
            runtime.stop()
            assert rest(runtime)["id"].to_pylist() == expected


def test_room(functions: dict[str, Function]) -> None:
    """R4: a batch is taken whole if fewer than max_rows rows are held before it, else not at all."""
    with functions["passes"].start(max_rows=2) as runtime:
        runtime.send_nowait(0, ints(200), ints(None))
        runtime.send_nowait(1, ints(201, 202, 203), ints(None, None, None))
        with pytest.raises(WouldBlock):
            runtime.send_nowait(4, ints(204), ints(None))
        assert runtime.statistics().accepted == 4
        with functions["passes"].start() as opener:
            opener.send(0, ints(0, 0, 0, 0), ints(200, 201, 202, 203))
            opener.stop()
            assert rest(opener).num_rows == 4
        assert drained(runtime, 4).num_rows == 4
        runtime.send_nowait(4, ints(0), ints(0))
        runtime.stop()
        assert rest(runtime)["id"].to_pylist() == [4]


def test_r4_a_slice_counts_its_own_bytes_only(functions: dict[str, Function]) -> None:
    item = pa.field("item", pa.int64(), False)
    rows = pa.array([[list(range(100))]] * 1000, pa.list_(pa.field("item", pa.list_(item), False)))
    with functions["never_of"].start(max_bytes=1000) as runtime:  # a row has 808 bytes, the whole 808,000
        runtime.send_nowait(0, rows.slice(500, 1))
        runtime.send_nowait(1, rows.slice(501, 1))
        with pytest.raises(WouldBlock):
            runtime.send_nowait(2, rows.slice(502, 1))
        runtime.stop("cancel")


def test_sender_and_drainer(functions: dict[str, Function]) -> None:
    """One runtime; one thread waits for room, another for results."""
    batch, batches = ints(*range(100)), 200
    with functions["plus"].start(max_rows=150, allowed_in_flight=50) as runtime:

        def send() -> None:
            for first in range(0, 100 * batches, 100):
                runtime.send(first, batch)

        sender = threading.Thread(target=send)
        sender.start()
        ids: list[int] = []
        while len(ids) < 100 * batches:
            assert runtime.wait(60)
            if (results := runtime.drain_results()) is not None:
                ids += results["id"].to_pylist()
        sender.join()
    assert ids == list(range(100 * batches))


def test_asyncio(functions: dict[str, Function]) -> None:
    """The same in an event loop."""

    async def main() -> list[int]:
        ids: list[int] = []
        async with functions["plus"].start(max_rows=150) as runtime:

            async def send() -> None:
                for first in range(0, 20_000, 100):
                    await runtime.send_async(first, ints(*range(100)))

            sender = asyncio.create_task(send())
            while len(ids) < 20_000:
                await runtime.wait_async()
                if (results := runtime.drain_results()) is not None:
                    ids += results["id"].to_pylist()
            await sender
            assert await runtime.stop_async()
            assert runtime.drain_results() is None
        return ids

    assert asyncio.run(main()) == list(range(20_000))


def test_outcomes(functions: dict[str, Function]) -> None:
    """R1, R2: each row is answered once, and one row's failure touches no other."""
    with functions["word"].start() as runtime:
        runtime.send(0, ints(0, 1, 2, 3, 4, 5, 6))
        runtime.stop()
        results = rest(runtime)
    assert results["outcome"].to_pylist() == [0] + [ERROR] * 5 + [0]
    assert results["value"].to_pylist() == ["word 0", None, None, None, None, None, "word 6"]
    texts = results["error"].to_pylist()
    for row, text in ((1, "ValueError: no"), (2, "SystemExit: 2"), (3, "CancelledError"), (4, "None"), (5, "int")):
        assert text in texts[row]
        assert "word" in texts[row]
    assert results["attempts"].to_pylist() == [1] * 7


def test_timeout(functions: dict[str, Function]) -> None:
    """R6: the row says so; its neighbours, before and after, go on."""
    with functions["passes"].start(timeout=1000, ordered=False, max_attempts=1) as runtime:
        runtime.send(0, ints(300, 0), ints(None, 0))
        assert drained(runtime, 1).select(["id", "outcome", "value"]).to_pylist() == [
            {"id": 1, "outcome": 0, "value": 0}
        ]
        assert runtime.drain_results() is None
        advance(1000)
        (row,) = drained(runtime, 1).to_pylist()
        assert (row["id"], row["outcome"], row["value"]) == (0, TIMED_OUT, None)
        assert row["error"] == "asynchronous.passes, row 0: timed out (timeout 1000 s) in attempt 1"
        runtime.send(2, ints(0), ints(0))
        runtime.stop()
        assert rest(runtime)["outcome"].to_pylist() == [0]


def test_structs_of_one_batch_after_another(functions: dict[str, Function]) -> None:
    """The values are this batch's, even if it lies at the address of an earlier one."""
    kind = pa.struct(
        [pa.field("x", pa.int64(), False), pa.field("y", pa.list_(pa.field("item", pa.utf8(), False)), False)]
    )
    with functions["flipped"].start() as runtime:
        for x in range(100):
            runtime.send(x, pa.array([{"x": x, "y": ["a", str(x)]}], kind))
            assert runtime.wait(60)
            results = runtime.drain_results()
            assert results is not None
            assert results["value"].to_pylist() == [{"x": -x, "y": [str(x), "a"]}]
        runtime.stop()


def test_cancel_rows(functions: dict[str, Function]) -> None:
    """Rows come out as cancelled, and their calls end; ids that are not there do no harm."""
    with functions["passes"].start() as runtime:
        runtime.send(0, ints(400, 401, 402, 403, 0), ints(None, None, None, None, 0))
        until(lambda: runtime.statistics().held == 1, "the calls, which begin before the last one ends")
        runtime.cancel(0, 2)
        runtime.cancel(3)
        runtime.cancel(1000, 5)
        runtime.send(5, ints(0), ints(402))
        runtime.stop()
        assert rest(runtime)["outcome"].to_pylist() == [CANCELLED, CANCELLED, 0, CANCELLED, 0, 0]
    with functions["cancelled_calls"].start() as runtime:
        runtime.send(0, ints(0))
        assert {400, 401, 403} <= set(drained(runtime, 1)["value"][0].as_py())
        runtime.stop()


def test_wait(functions: dict[str, Function]) -> None:
    with functions["never"].start() as runtime:
        assert runtime.wait(0) is False
        assert runtime.wait(0.01) is False
        runtime.send(0, ints(1))
        assert runtime.drain_results() is None
        stopper = threading.Thread(target=runtime.stop, args=("cancel",))
        stopper.start()
        assert runtime.wait() is True, "a stop ends it"
        stopper.join()
        assert rest(runtime)["outcome"].to_pylist() == [CANCELLED]


def test_signals_interrupt_a_wait(functions: dict[str, Function]) -> None:
    """R15, as with Ctrl-C: the handler's exception leaves the wait, and the runtime goes on."""

    class Interrupted(Exception):
        pass

    arrived = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is Waiters.block.__code__ and not arrived.is_set():
            arrived.set()
            raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with functions["passes"].start() as runtime:
            runtime.send(0, ints(500), ints(None))

            def when_it_waits() -> None:
                # A signal before it waits does nothing, and one just before the waiting system call is handled only
                # after it: repeat the signal.
                while not arrived.wait(0.01):
                    os.kill(os.getpid(), signal.SIGUSR1)

            thread = threading.Thread(target=when_it_waits)
            thread.start()
            with pytest.raises(Interrupted):
                runtime.wait()
            thread.join()
            runtime.send(1, ints(500), ints(500))
            assert runtime.wait()
            runtime.stop()
            assert rest(runtime)["id"].to_pylist() == [0, 1]
    finally:
        signal.signal(signal.SIGUSR1, before)


WITHOUT_DESCRIPTORS = """
import os, resource, sys
import pyarrow as pa
from arroyo_udf_plugin import load

with load(sys.argv[1]).functions["plus"].start() as runtime:
    _, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    end, taken = max(map(int, os.listdir("/proc/self/fd"))) + 1, []
    file = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (end, hard))
    try:
        while True:
            taken.append(os.dup(file))
    except OSError:
        pass
    try:
        runtime.wait()
    except OSError as error:
        print(error.strerror)
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    runtime.send(0, pa.array([1]))
    runtime.wait()
    print(runtime.drain_results()["value"].to_pylist())
    runtime.stop()
"""


def test_a_wait_without_descriptors_says_so_and_the_runtime_goes_on(file: Path) -> None:
    host = [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(file)]
    done = subprocess.run(host, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == [os.strerror(errno.EMFILE), "[2]"]


def test_bad_arguments(functions: dict[str, Function]) -> None:
    with functions["plus"].start(timeout=math.inf) as runtime:
        runtime.send(5, ints(1))
        for use in (
            lambda: runtime.send(5, ints(1)),
            lambda: runtime.send(-1, ints(1)),
            lambda: runtime.send(2**64 - 1, ints(1, 2)),
            lambda: runtime.send(6, pa.array([1.5])),
            lambda: runtime.send(6),
            lambda: runtime.drain_results(-1),
            lambda: runtime.cancel(-1),
            lambda: runtime.stop("later"),  # type: ignore[arg-type]
            lambda: runtime.stop("drain", -1),
        ):
            with pytest.raises(InvalidArgument, match=r"asynchronous\.plus(, row 6)?: "):
                use()
        runtime.stop()
        assert rest(runtime)["id"].to_pylist() == [5]
