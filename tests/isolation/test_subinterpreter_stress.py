"""Many starts and stops of subinterpreters, in processes of their own, because what they look for is a crash."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import datetime
import decimal
import json
import threading
import zoneinfo
from arroyo_udf_plugin import udf

@udf
def plus(x: int) -> int:
    return x + len(json.dumps([1]))

@udf
async def later(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1
"""

AT_ONCE = """
import sys
import threading
import pyarrow as pa
from arroyo_udf_plugin import load
numbers = pa.array(range(2000), pa.int64())

def one():
    with load(sys.argv[1], isolation="subinterpreter", workers=1) as plugin:
        assert plugin.functions["plus"](numbers)[0].as_py() == 3
        with plugin.functions["later"].start() as runtime:
            parts = [part for _, part in runtime.map([pa.record_batch({"x": numbers[:20]})])]
        assert pa.Table.from_batches(parts)["value"].to_pylist() == list(range(1, 21))
    done.append(1)

for _ in range(int(sys.argv[2])):
    done = []
    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
print("ok")
"""

CYCLES = """
import os
import sys
import pyarrow as pa
from arroyo_udf_plugin import load
numbers = pa.array(range(20), pa.int64())

def state():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

for cycle in range(500):
    with load(sys.argv[1], isolation="subinterpreter") as plugin:
        plugin.functions["plus"](numbers)
        with plugin.functions["later"].start() as runtime:
            for rows, results in runtime.map([pa.record_batch({"x": numbers})]):
                pass
    if cycle == 50:
        before = state()
after = state()
print(after[0] - before[0] < 4 << 20, after[1:] == before[1:], before, after)
"""


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="stress")


def _run(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("process", range(5))
def test_four_interpreters_that_start_at_once_in_a_fresh_process_do_not_crash(file: Path, process: int) -> None:
    assert _run(AT_ONCE, str(file), "1") == "ok\n"


@pytest.mark.isolation
def test_four_interpreters_start_at_once_fifty_times(file: Path) -> None:
    assert _run(AT_ONCE, str(file), "50") == "ok\n"


@pytest.mark.isolation
def test_five_hundred_plugins_come_and_go_and_memory_stays(file: Path) -> None:
    assert _run(CYCLES, str(file)).startswith("True True")
