"""Functions that fork: the child comes back to the toolkit, and ends there. The rows are its parent's alone."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import multiprocessing
import os
import subprocess
import sys

import pyarrow as pa

from arroyo_udf_plugin import udf


def _ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _fork(a):
    child = os.fork()
    if child == 0:
        if a % 4 == 1:
            sys.exit(3)
        if a % 4 == 2:
            raise SystemExit
        return -1
    return a * 10 + _ended(child)


@udf
def sync(a: int) -> int:
    return _fork(a)


@udf(vectorized=True, split=False)
def whole(a: pa.Int64Array) -> pa.Int64Array:
    child = os.fork()
    if child == 0:
        sys.exit(3)
    status = _ended(child)
    return pa.array([row.as_py() * 10 + status for row in a], pa.int64())


@udf
async def later(a: int) -> int:
    return _fork(a)


@udf
async def awaits(a: int) -> int:
    await asyncio.sleep(0)
    child = os.fork()
    if child == 0:
        await asyncio.sleep(0)  # the loop is the parent's
        return -1
    return a * 10 + _ended(child)


@udf(blocking=True)
def blocks(a: int) -> int:
    return _fork(a)


@udf
def others(a: int) -> int:
    process = multiprocessing.get_context("fork").Process(target=sys.exit, args=(a,))
    process.start()
    process.join()
    printed = subprocess.run(["echo", str(a)], capture_output=True, check=True).stdout
    return process.exitcode * 10 + int(printed)


@udf
def left(a: int) -> int:
    child = os.fork()
    if child == 0:
        os.execv("/bin/sleep", ["sleep", "600"])
    return child


@udf
def worker(a: int) -> int:
    return os.getpid()
"""
ROWS = pa.array(range(20), pa.int64())
STATUS = [0, 3, 0, 0]
"""What `sys.exit(3)` and the others of `_fork` give."""
FORKED = [row * 10 + STATUS[row % 4] for row in range(20)]


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="forks")


def test_the_child_of_a_sync_function_ends_and_its_rows_are_its_parents(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        assert plugin.functions["sync"](ROWS).to_pylist() == FORKED
        assert plugin.functions["whole"](ROWS).to_pylist() == [row * 10 + 3 for row in range(20)]
        assert plugin.functions["sync"](ROWS).to_pylist() == FORKED


PROGRAM = """
import sys
import pyarrow as pa
from arroyo_udf_plugin import load

rows = pa.array(range(20), pa.int64())
with load(sys.argv[1], isolation=sys.argv[2]) as plugin:
    for name, column in [("later", rows), ("blocks", rows), ("awaits", rows[7:8])]:
        for _ in range(2):  # the next start is served, too
            print(plugin.functions[name](column).to_pylist(), flush=True)
"""


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_the_child_of_a_started_function_ends_and_its_rows_are_its_parents(file: Path, isolation: str) -> None:
    """In a host of its own, because children of this one would share what pytest has open."""
    host = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, str(file), isolation]
    done = subprocess.run(host, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == [str(rows) for rows in (FORKED, FORKED, [70]) for _ in range(2)]


def test_functions_may_start_other_processes(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        assert plugin.functions["others"](pa.array([1, 2], pa.int64())).to_pylist() == [11, 22]


def is_gone(process: int) -> bool:
    """Whether a process, which is not a child of this one, ends."""
    try:
        end = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([end], [], [], 60)[0])
    finally:
        os.close(end)


@pytest.mark.parametrize("end", ["killed", "closed"])
def test_what_a_function_has_started_ends_with_its_worker(file: Path, end: str) -> None:
    one = pa.array([1], pa.int64())
    with load(file, isolation="process") as plugin:
        child = plugin.functions["left"](one)[0].as_py()
        worker = plugin.functions["worker"](one)[0].as_py()
        if end == "killed":
            os.kill(worker, signal.SIGKILL)
            assert is_gone(worker)
            assert plugin.functions["worker"](one)[0].as_py() != worker
            assert is_gone(child)
    assert is_gone(child)
