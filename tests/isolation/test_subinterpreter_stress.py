"""Subinterpreters that start at once, in processes of their own, because what this looks for is a crash. test_stress.py
does it more often."""

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
