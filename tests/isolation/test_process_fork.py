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


@udf
async def beside(a: int) -> int:
    if a == 0:
        for _ in range(20):  # until the others have begun
            await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            await asyncio.sleep(0)
            return -1
        return _ended(child)
    for _ in range(100):
        await asyncio.sleep(0)
        _note(os.getpid())
    return os.getpid()


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


def _note(what):
    with open(os.environ["ENDED"], "a") as ended:
        ended.write(f"{what} ")


class Context:
    async def init(self) -> None:
        if child := os.fork():
            _note(_ended(child))
        else:
            sys.exit(3)

    async def close(self) -> None:
        if child := os.fork():
            _note(_ended(child))


@udf
async def opens(context: Context, a: int) -> int:
    return a


class Blocking:
    def init(self) -> None:
        if child := os.fork():
            _note(_ended(child))

    def close(self) -> None:
        if child := os.fork():
            _note(_ended(child))
        else:
            raise ValueError


@udf(blocking=True)
def opens_blocking(context: Blocking, a: int) -> int:
    return a
"""
RUST = """
use arroyo_udf_plugin::udf;

extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
}

fn ended(a: i64) -> i64 {
    let mut status = 0;
    unsafe {
        match fork() {
            0 if a == 1 => panic!("in the child"),
            0 => -1,
            child => {
                waitpid(child, &mut status, 0);
                i64::from(status >> 8)
            }
        }
    }
}

#[udf]
fn sync(a: i64) -> i64 { ended(a) }

#[udf]
async fn later(a: i64) -> i64 { ended(a) }

#[udf(blocking)]
fn blocks(a: i64) -> i64 { ended(a) }
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
    printed = run_host(PROGRAM, str(file), isolation)
    assert printed == [str(rows) for rows in (FORKED, FORKED, [70]) for _ in range(2)]


BESIDE = """
import os, sys
import pyarrow as pa
from arroyo_udf_plugin import load

with load(sys.argv[1], isolation=sys.argv[2]) as plugin:
    ended, *others = plugin.functions["beside"](pa.array(range(9), pa.int64())).to_pylist()
with open(os.environ["ENDED"]) as noted:
    print(ended, len(set(others)), noted.read() == f"{others[0]} " * 100 * len(others))
"""


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_child_runs_no_step_of_other_calls(file: Path, tmp_path: Path, isolation: str) -> None:
    """They are ready in the same turn of the loop in which the child awaits something."""
    assert run_host(BESIDE, str(file), isolation, ENDED=str(tmp_path / "noted")) == ["0 1 True"]


CONTEXTS = """
import os, sys
import pyarrow as pa
from arroyo_udf_plugin import load

row = pa.array([7], pa.int64())
with load(sys.argv[1], isolation=sys.argv[2]) as plugin:
    for name in ("opens", "opens_blocking"):
        print(plugin.functions[name](row).to_pylist(), flush=True)
with open(os.environ["ENDED"]) as ended:
    print(ended.read())
"""


def run_host(program: str, *arguments: str, **environment: str) -> list[str]:
    host = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *arguments]
    variables = {**os.environ, **environment}
    done = subprocess.run(host, capture_output=True, text=True, timeout=120, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_what_a_context_forks_ends_when_it_comes_back(file: Path, tmp_path: Path, isolation: str) -> None:
    printed = run_host(CONTEXTS, str(file), isolation, ENDED=str(tmp_path / "ended"))
    assert printed == ["[7]", "[7]", "3 0 0 1 "]


PANICS = """
import sys
import pyarrow as pa
from arroyo_udf_plugin import load

rows = pa.array([0, 1], pa.int64())
with load(sys.argv[1], isolation="process") as plugin:
    for name in ("sync", "later", "blocks"):
        print(plugin.functions[name](rows).to_pylist(), flush=True)
"""


def test_the_child_of_a_rust_function_that_panics_has_not_succeeded(build_plugin: BuildPlugin) -> None:
    assert run_host(PANICS, str(build_plugin(RUST, ".rs", "forks_rust"))) == ["[0, 1]"] * 3


NESTED = """
import os, sys
import pyarrow as pa
from arroyo_udf_plugin import load

row = pa.array([7], pa.int64())
assert load(sys.argv[1]).functions["later"](row).to_pylist() == [7]  # from now on the toolkit learns of forks
child = os.fork()
if child == 0:
    with load(sys.argv[1], isolation="subinterpreter") as inside:
        print(inside.functions["plain"](row).to_pylist(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
PLAIN = """
from arroyo_udf_plugin import udf


@udf
async def later(a: int) -> int:
    return a


@udf
def plain(a: int) -> int:
    return a * 10
"""


@pytest.mark.skipif(sys.version_info < (3, 13), reason="has no subinterpreters")
def test_a_child_that_the_host_forks_has_functions_of_its_own(build_plugin: BuildPlugin) -> None:
    assert run_host(NESTED, str(build_plugin(PLAIN))) == ["[70]"]


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
