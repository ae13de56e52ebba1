"""A process that starts very many async functions does not run out of threads and descriptors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BuildPlugin = Callable[..., Path]
PLAIN_PY = """
from arroyo_udf_plugin import udf

@udf
async def plus(x: int) -> int:
    return x + 1
"""
WITH_CONTEXT_PY = """
from arroyo_udf_plugin import udf

class Context:
    async def init(self) -> None:
        self.more = 1

@udf
async def plus(context: Context, x: int) -> int:
    return x + context.more
"""
PLAIN_RS = """
use arroyo_udf_plugin::udf;

#[udf]
async fn plus(x: i64) -> i64 {
    x + 1
}
"""
# Prints how many threads and descriptors a thousand started functions add.
PROGRAM = """
import os, sys
import pyarrow as pa
from arroyo_udf_plugin import load

def used():
    return [len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd")]

plus = load(sys.argv[1]).functions["plus"]
with plus.start() as first:  # makes what is made once
    assert len(list(first.map([1]))) == 1
before = used()
started = [plus.start() for _ in range(1000)]
for x, runtime in enumerate(started):
    runtime.send(0, pa.record_batch({"x": [x]}))
for x, runtime in enumerate(started):
    assert runtime.wait(60) and runtime.drain_results()["value"].to_pylist() == [x + 1]
print(*(now - then for now, then in zip(used(), before)))
"""


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        pytest.param(PLAIN_PY, ".py", id="python"),
        pytest.param(WITH_CONTEXT_PY, ".py", id="python, with a Context"),
        pytest.param(PLAIN_RS, ".rs", id="rust"),
    ],
)
def test_a_thousand_started_functions_need_few_threads_and_descriptors(
    build_plugin: BuildPlugin, text: str, suffix: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(build_plugin(text, suffix))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    threads, descriptors = map(int, done.stdout.split())
    assert threads <= 100
    assert descriptors <= 2 * 1000
