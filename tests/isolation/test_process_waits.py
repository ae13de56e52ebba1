"""A host does not wait for ever for a worker that says nothing: one that is stopped, traced, or that hangs."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import stand_still, until

from arroyo_udf_plugin import InvalidState, Plugin, PluginEnvironmentError, RowError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import ctypes
import os
import threading
import time

from arroyo_udf_plugin import udf

PTRACE_SEIZE = 0x4206


@udf
def worker(a: int) -> int:
    return os.getpid()


@udf(timeout=1.0)
def limited(a: int) -> int:
    return a * 10


@udf
def same(a: int) -> int:
    return a


@udf(timeout=1.0)
def is_traced(a: int) -> int:
    ready, readied = os.pipe()
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).ptrace(PTRACE_SEIZE, os.getppid(), None, None)
        os.write(readied, b"x")
        while os.getppid() != 1 and not os.path.exists(os.environ["TRACED"]):
            time.sleep(0.01)  # between two looks; no result depends on its length
        os._exit(0)
    os.read(ready, 1)
    threading.Event().wait()


@udf
def hangs(a: int) -> int:
    with open(os.environ["CALLED"], "w"):
        pass
    threading.Event().wait()


@udf
async def later(a: int) -> int:
    return a


class Context:
    def note(self, what: str) -> None:
        with open(os.environ["CALLED"], "a") as called:
            called.write(what + "\\n")

    async def init(self) -> None:
        self.note("open")

    async def close(self) -> None:
        self.note("closed")


@udf
async def opens(context: Context, a: int) -> int:
    return a
"""
ONE = pa.array([1], pa.int64())


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="waits")


def stop(plugin: Plugin) -> int:
    worker: int = plugin.functions["worker"](ONE)[0].as_py()
    stand_still(worker)
    return worker


def test_a_worker_that_is_stopped_before_a_call_costs_no_row(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        stopped = stop(plugin)
        assert plugin.functions["limited"](pa.array([1, 2], pa.int64())).to_pylist() == [10, 20]
        assert plugin.functions["worker"](ONE)[0].as_py() != stopped


def test_a_worker_whose_tracer_keeps_it_is_given_up(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACED", str(tmp_path / "end"))
    with load(file, isolation="process") as plugin:
        with pytest.raises(RowError, match=r"timed out \(timeout 1 s\)"):
            plugin.functions["is_traced"](ONE)
        assert plugin.functions["same"](ONE).to_pylist() == [1]
    (tmp_path / "end").touch()


def test_a_stopped_worker_takes_no_more_functions_than_fit(file: Path) -> None:
    """Each start is an error that says what is wrong, and none of them waits for room."""
    with load(file, isolation="process") as plugin:
        stop(plugin)
        texts = []

        def start() -> None:
            with pytest.raises(PluginEnvironmentError) as raised:
                plugin.functions["later"].start()
            texts.append(str(raised.value))

        threads = [threading.Thread(target=start) for _ in range(400)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    full = [text for text in texts if "it takes no further functions: is it stopped?" in text]
    silent = [text for text in texts if "its worker process has not answered for 12 s" in text]
    assert full
    assert len(full) + len(silent) == 400


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)  # between two looks; no result depends on its length


def test_close_ends_a_call_in_another_thread(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = tmp_path / "called"
    monkeypatch.setenv("CALLED", str(called))
    raised: list[BaseException] = []
    with load(file, isolation="process") as plugin:

        def call() -> None:
            try:
                plugin.functions["hangs"](ONE)
            except InvalidState as error:
                raised.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        wait_for(called)
        plugin.close()
        thread.join()
    assert [str(error) for error in raised] == ["waits.hangs: the plugin was closed during this call"]


CLOSE = """
import os, signal, sys, time
import pyarrow as pa
from arroyo_udf_plugin import load
one = pa.array([1])
with open(sys.argv[2], "w") as python:
    python.write(f"#!/bin/sh\\n[ ! -e {sys.argv[3]} ] || exec sleep 600\\nexec {sys.executable} \\"$@\\"\\n")
os.chmod(sys.argv[2], 0o755)
os.environ["ARROYO_UDF_PYTHON"] = sys.argv[2]
plugin = load(sys.argv[1], isolation="process", workers=2)
runtimes = [plugin.functions["later"].start() for _ in range(3)]
workers = {plugin.functions["worker"](one)[0].as_py() for _ in range(20)}
what = sys.argv[4]
if what == "stopped":
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
else:
    open(sys.argv[3], "w").close()
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    for runtime in runtimes:
        runtime.send(1, one)  # the next worker hangs while it starts
start = time.monotonic()
plugin.close()
print("closed" if time.monotonic() - start < 20 else "late", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("what", ["stopped", "starting"])
def test_close_does_not_wait_for_a_worker_that_hangs(file: Path, tmp_path: Path, what: str) -> None:
    """Within two seconds on a quiet machine; it was a minute."""
    arguments = [str(file), str(tmp_path / "python"), str(tmp_path / "hang"), what]
    host = [sys.executable, "-c", CLOSE, *arguments]
    done = subprocess.run(host, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "closed\n", done.stderr


def test_a_worker_that_the_host_has_ended_is_not_said_to_be_killed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call of the other function ends with the worker, whose time was over in a sync one."""
    monkeypatch.setenv("CALLED", str(tmp_path / "called"))
    with load(file, isolation="process") as plugin, plugin.functions["later"].start() as runtime:
        stop(plugin)
        runtime.send(0, ONE)
        until(lambda: runtime.statistics().running == 1, "the call, which goes to the worker that stands still")
        assert plugin.functions["limited"](ONE).to_pylist() == [10]
        runtime.wait()
        assert runtime.drain_results()["error"].to_pylist() == [
            "waits.later, row 0: the worker process was ended by its host during this call"
        ]


def test_a_start_that_is_given_up_closes_its_context_once_it_comes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = tmp_path / "called"
    monkeypatch.setenv("CALLED", str(called))
    with load(file, isolation="process") as plugin:
        stopped = stop(plugin)
        with pytest.raises(PluginEnvironmentError, match="its worker process has not answered for 12 s"):
            plugin.functions["opens"].start()
        os.kill(stopped, signal.SIGCONT)
        until(lambda: called.exists() and called.read_text().split() == ["open", "closed"], "the end of the Context")
        assert plugin.functions["worker"](ONE)[0].as_py() == stopped
