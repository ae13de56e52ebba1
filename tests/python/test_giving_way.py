"""A busy event loop gives way to threads that wait for the GIL (native/python/src/asyncio/giving_way.rs).

How a thread fares without it depends on the machine; bench/test_runtime.py measures that. Here the loop's thread
releases the GIL in no other way, and CPython does not make it switch: the switch interval is endless.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = """
import asyncio, sys, threading
from arroyo_udf_plugin import udf
from arroyo_udf_plugin._native import answer
from arroyo_udf_plugin.plugin import executor

answers = 0

def counting():
    global answers
    answers += 1
    answer()

executor.answer = counting  # the loop starts later

@udf
async def computes(times: int) -> int:
    counted, gate = 0, threading.Lock()
    gate.acquire()

    def count():
        nonlocal counted
        for _ in range(times):
            gate.acquire()
            counted += 1

    waiting = threading.Thread(target=count)
    waiting.start()
    sys.setswitchinterval(1000)
    for _ in range(times):
        before = counted
        gate.release()
        while counted == before:
            sum(range(10_000))
            answer()
    waiting.join()
    return counted

@udf
async def sleeps(milliseconds: int) -> float:
    before, start = answers, asyncio.get_running_loop().time()
    await asyncio.sleep(milliseconds / 1000)
    return (answers - before) / (asyncio.get_running_loop().time() - start)
"""
PROGRAM = """
import sys
import pyarrow as pa
from arroyo_udf_plugin import load
if sys.argv[4] == "asyncio":
    sys.modules["uvloop"] = None
with load(sys.argv[1]) as plugin, plugin.functions[sys.argv[2]].start() as runtime:
    runtime.send(0, pa.array([int(sys.argv[3])]))
    runtime.wait()
    print(runtime.drain_results()["value"][0])
"""


pytestmark = pytest.mark.parametrize("loop", ["asyncio", "uvloop if it is installed"])


def called(file: Path, function: str, argument: int, loop: str) -> float:
    program = [sys.executable, "-c", PROGRAM, str(file), function, str(argument), loop]
    return float(subprocess.check_output(program, text=True))


def test_a_busy_loop_that_is_asked_gives_way(build_plugin: Callable[..., Path], loop: str) -> None:
    assert called(build_plugin(SOURCE, name="computes"), "computes", 20, loop) == 20


def test_a_loop_that_sleeps_is_seldom_asked(build_plugin: Callable[..., Path], loop: str) -> None:
    """Fifty times a second, not a thousand times. asyncio's loop answers each question twice; the second counts for
    nothing."""
    assert 0 < called(build_plugin(SOURCE, name="sleeps"), "sleeps", 1000, loop) <= 200
