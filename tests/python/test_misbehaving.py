"""Functions and hosts with unusual behaviour: each row has its outcome, and the process goes on (R1, R2, F4)."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import answers, drained, until

from arroyo_udf_plugin import Function, InvalidState, Runtime, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

class Loud(int):
    def __str__(self) -> str:
        return "\\u20ac" * 50
    __repr__ = __str__

@udf(native=False)
def loud(x: int) -> int:
    return Loud(2**70 + x)

@udf
async def loud_later(x: int) -> int:
    return Loud(2**70 + x)

@udf(native=False)
def wordy(x: int) -> int:
    raise ValueError("\u20ac" * x)

class Unwilling:
    def __len__(self) -> int:
        raise RuntimeError
    def __getitem__(self, index: int) -> int:
        raise RuntimeError

@udf(native=False)
def unwilling(x: int) -> list[int]:
    return Unwilling() if x == 1 else [x]

@udf
async def total(numbers: list[int]) -> int:
    return sum(numbers)

begun = asyncio.Event()

@udf
async def waits_for_call(x: int) -> int:
    await begun.wait()
    return x

@udf
async def ignores(x: int) -> int:
    begun.set()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
"""
WITH_PYARROW = """
import datetime
from typing import Annotated
import pyarrow as pa
from arroyo_udf_plugin import udf

Moment = Annotated[datetime.datetime, pa.timestamp("us", "UTC")]

class Timeless(datetime.datetime):
    def astimezone(self, tz=None):
        return self.day

@udf(native=False)
def timeless(x: int) -> Moment:
    return Timeless(2020, 1, x, tzinfo=datetime.timezone.utc)
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="misbehaving")).functions


def refuses(runtime: Runtime) -> bool:
    """Whether it refuses rows."""
    try:
        runtime.send_nowait(1, pa.array([], pa.int64()))
    except InvalidState:
        return True
    return False


def test_numbers_with_a_text_of_their_own(functions: dict[str, Function]) -> None:
    """The error names the number that does not fit; its text is cut between characters."""
    text = "\u20ac" * 40 + "... does not fit int64"
    assert text in functions["loud"].outcomes(pa.array([1]))[0]["error"].as_py()
    with functions["loud_later"].start() as runtime:
        runtime.send(0, pa.array([1]))
        assert text in drained(runtime, 1)["error"][0].as_py()


def test_datetime_whose_conversion_answers_something_else(build_plugin: BuildPlugin) -> None:
    functions = load(build_plugin(WITH_PYARROW, name="misbehaving")).functions
    error = functions["timeless"].outcomes(pa.array([1]))[0]["error"].as_py()
    assert "returned a Timeless whose astimezone() answers int" in error


def test_a_long_text_of_an_error_is_cut(functions: dict[str, Function]) -> None:
    text = functions["wordy"].outcomes(pa.array([100_000]))[0]["error"].as_py()
    assert len(text.encode()) <= 1 << 16
    assert text.endswith("€...")


def test_lists_that_raise_when_they_are_read(functions: dict[str, Function]) -> None:
    """R2: only that row fails."""
    rows = functions["unwilling"].outcomes(pa.array([0, 1, 2])).to_pylist()
    assert [row["value"] for row in rows] == [[0], None, [2]]
    assert [row["error"] is None for row in rows] == [True, False, True]
    assert "row 1: returned Unwilling, not list<" in rows[1]["error"]


def test_converted_batches_are_told_apart(functions: dict[str, Function]) -> None:
    """A batch often comes to lie where the one before it lay; its rows are nevertheless its own."""
    with functions["total"].start() as runtime:
        for batch in range(100):
            lists = pa.array([[batch]] * (1 + batch % 3), pa.list_(pa.int64()))
            runtime.send(3 * batch, lists)
            assert drained(runtime, len(lists))["value"].to_pylist() == [batch] * len(lists)


def test_one_stop_that_gives_up_ends_the_others(functions: dict[str, Function]) -> None:
    """R13: every stop returns the same answer, also one that would wait for ever."""
    stops: list[bool] = []
    with functions["ignores"].start(timeout=1e6) as runtime:
        runtime.send(0, pa.array([1]))
        answers(functions["waits_for_call"], [0])  # a call that has not begun would simply be cancelled
        patient = threading.Thread(target=lambda: stops.append(runtime.stop()), daemon=True)
        patient.start()
        until(lambda: refuses(runtime), "the patient stop to begin")
        assert not runtime.stop("cancel", 0)
        patient.join(10)
    assert stops == [False]


FORKS = """
import os, signal, sys
import pyarrow as pa
from arroyo_udf_plugin import InvalidState, load

functions = load(sys.argv[1]).functions
runtime = functions["ignores"].start(timeout=1e6)
runtime.send(0, pa.array([1]))
child = os.fork()
if child == 0:
    signal.alarm(10)  # kills it, should it wait
    try:
        functions["total"].start()
    except InvalidState as refused:
        assert "before a fork" in str(refused)
        print("refused")
    sys.exit()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
runtime.stop("cancel", 0)
"""


def test_a_forked_child_starts_nothing_and_ends(build_plugin: BuildPlugin) -> None:
    """The threads of loop and timer are in the parent; the child never waits for them, not even at its exit.

    In a process of its own: CPython ends the forked child of one that has had subinterpreters."""
    path = build_plugin(SOURCE, name="misbehaving")
    done = subprocess.run([sys.executable, "-c", FORKS, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


NESTED = """
import asyncio
import gc
import sys
from arroyo_udf_plugin import udf

sys.modules["uvloop"] = None  # its loop cannot be nested
gc.set_threshold(1, 1000, 1000)  # up to Python 3.11, making the next coroutine collects the garbage

class Garbage:
    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None or not loop._ready:
            return
        asyncio.tasks._leave_task(loop, task)
        loop._run_once()  # other calls begin and end meanwhile
        asyncio.tasks._enter_task(loop, task)

@udf(ordered=False, allowed_in_flight=10)
async def nested(name: str, x: int) -> str:
    await asyncio.sleep(0)
    text = f"{name} {x}"
    if x % 7 == 3:
        Garbage()
    return text
"""

NEST = """
import sys
import pyarrow as pa
from arroyo_udf_plugin import load

names = [f"name {i}" for i in range(1000)]
numbers = [10**12 + i for i in range(1000)]
with load(sys.argv[1]).functions["nested"].start() as runtime:
    runtime.send(0, pa.array(names), pa.array(numbers))
    runtime.stop()
    rows = 0
    while (batch := runtime.drain_results()) is not None:
        for row in batch.to_pylist():
            rows += 1
            assert row["value"] == f"{names[row['id']]} {numbers[row['id']]}", row
    assert rows == 1000
"""


def test_a_call_that_nests_the_event_loop(build_plugin: BuildPlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other calls that begin before it returns have arguments of their own. (-X dev notices a double release.)"""
    monkeypatch.setitem(sys.modules, "uvloop", sys.modules.get("uvloop"))  # a build executes the source
    command = [sys.executable, "-X", "dev", "-c", NEST, str(build_plugin(NESTED))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
