"""Signals in functions and in what they start: what a host or the toolkit blocks or ignores is not theirs."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import RowError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import os
import signal
import subprocess

from arroyo_udf_plugin import udf


def _terminated(number):
    child = subprocess.Popen(["sleep", "600"])
    child.send_signal(number)
    try:
        return child.wait(60)
    finally:
        child.kill()


@udf
def sync(a: int) -> int:
    return _terminated(a)


@udf
async def later(a: int) -> int:
    return _terminated(a)


@udf
async def through_asyncio(a: int) -> int:
    child = await asyncio.create_subprocess_exec("sleep", "600")
    child.send_signal(a)
    return await asyncio.wait_for(child.wait(), 60)


@udf
async def in_thread(a: int) -> int:
    return await asyncio.to_thread(_terminated, a)


@udf(blocking=True)
def blocks(a: int) -> int:
    return _terminated(a)


@udf(timeout=600.0, max_attempts=1)
async def spins(a: int) -> int:
    while True:
        pass


@udf
async def blocks_later(number: int) -> bool:
    return number in signal.pthread_sigmask(signal.SIG_BLOCK, [])


SIGNALS_OF_IT = ["grep", "SigBlk", "/proc/self/status"]


def _of_fork(fork):
    reading, writing = os.pipe()
    if fork() == 0:
        os.dup2(writing, 1)
        os.execvp(SIGNALS_OF_IT[0], SIGNALS_OF_IT)
    os.close(writing)
    with os.fdopen(reading) as told:
        return told.read()


def _told(start):
    # What the program says to whose standard output `start` gives a descriptor.
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    start(writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        return told.read()


WAYS = {
    "run": lambda: subprocess.run(SIGNALS_OF_IT, capture_output=True, text=True, check=True).stdout,
    "spawn": lambda: _told(
        lambda out: os.waitpid(
            os.posix_spawnp(
                SIGNALS_OF_IT[0], SIGNALS_OF_IT, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)]
            ),
            0,
        )
    ),
    "system": lambda: _told(lambda out: os.system(f"grep SigBlk /proc/self/status >/proc/self/fd/{out}")),
    "preexec": lambda: subprocess.run(
        SIGNALS_OF_IT, capture_output=True, text=True, check=True, preexec_fn=lambda: None
    ).stdout,
    "fork": lambda: _of_fork(os.fork),
    "popen": lambda: os.popen(" ".join(SIGNALS_OF_IT)).read(),
}


@udf
def sync_starts(how: str) -> str:
    return WAYS[how]()


@udf
async def later_starts(how: str) -> str:
    return WAYS[how]()


@udf
async def in_thread_starts(how: str) -> str:
    return await asyncio.to_thread(WAYS[how])


@udf(blocking=True)
def blocking_starts(how: str) -> str:
    return WAYS[how]()


@udf
def ignored(a: int) -> str:
    numbers = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    return " ".join(number.name for number in sorted(numbers) if signal.getsignal(number) == signal.SIG_IGN)
"""
SIGNALS = pa.array([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1], pa.int64())
ENDED = [-number for number in SIGNALS.to_pylist()]


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="signals")


MODES = [
    "thread",
    "process",
    pytest.param("subinterpreter", marks=pytest.mark.skipif(sys.version_info < (3, 13), reason="needs Python 3.13")),
]


@pytest.mark.parametrize("isolation", MODES)
@pytest.mark.parametrize("first", ["sync", "later"])
def test_a_program_that_a_function_starts_can_be_asked_to_end(file: Path, isolation: str, first: str) -> None:
    """In each kind of function; and whichever call has started the worker."""
    program = """
import signal, sys
import pyarrow as pa
from arroyo_udf_plugin import load
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
file, isolation, first, *signals = sys.argv[1:]
with load(file, isolation=isolation) as plugin:
    for name in [first, "sync", "later", "through_asyncio", "in_thread", "blocks"]:
        print(plugin.functions[name](pa.array(map(int, signals), pa.int64())).to_pylist(), flush=True)
"""
    host = [sys.executable, "-c", program, str(file), isolation, first, *map(str, SIGNALS.to_pylist())]
    done = subprocess.run(host, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines() == [str(ENDED)] * 6


@pytest.mark.parametrize("isolation", MODES)
@pytest.mark.parametrize("way", ["run", "popen", "system", "spawn", "preexec", "fork"])
def test_a_program_that_a_function_starts_blocks_what_the_host_blocks(file: Path, isolation: str, way: str) -> None:
    """Nothing here. In each kind of function, by each way to start one, and the second time, too."""
    if isolation == "subinterpreter" and way in ("preexec", "fork"):
        pytest.skip("Python refuses it there")
    program = """
import sys
from arroyo_udf_plugin import load
file, isolation, way = sys.argv[1:]
with load(file, isolation=isolation) as plugin:
    for kind in ["sync", "later", "in_thread", "blocking"] * 2:
        print(*plugin.functions[f"{kind}_starts"]([way])[0].as_py().split())
"""
    host = [sys.executable, "-W", "ignore", "-c", program, str(file), isolation, way]
    done = subprocess.run(host, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == ["SigBlk: 0000000000000000"] * 8, done.stderr


def test_what_a_host_ignores_and_blocks_its_workers_do_not(file: Path) -> None:
    program = """
import signal, sys
import pyarrow as pa
from arroyo_udf_plugin import load
for number in [signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1]:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])
with load(sys.argv[1], isolation="process") as plugin:
    print(plugin.functions["ignored"](pa.array([0]))[0], plugin.functions["sync"](pa.array([15])))
"""
    host = [sys.executable, "-c", program, str(file)]
    done = subprocess.run(host, capture_output=True, text=True, timeout=300, check=True)
    assert "".join(done.stdout.split()) == "[-15]"


def test_the_processor_time_of_a_worker_that_an_async_function_has_started_can_be_limited(file: Path) -> None:
    with (
        load(file, isolation="process", cpu_limit=1) as plugin,
        pytest.raises(RowError, match=r"signal 24 \(SIGXCPU\): it has used up its processor time \(cpu_limit\)"),
    ):
        plugin.functions["spins"](pa.array([0], pa.int64()))


def test_signals_of_a_host_stay_with_its_threads(file: Path) -> None:
    """A main thread that waits would not learn of a signal that a thread of the toolkit has got."""
    with load(file) as plugin:
        assert plugin.functions["blocks_later"](pa.array([signal.SIGTERM], pa.int64())).to_pylist() == [True]
    with load(file, isolation="process") as plugin:
        assert plugin.functions["blocks_later"](pa.array([signal.SIGTERM], pa.int64())).to_pylist() == [False]
