"""Ctrl-C and SIGTERM end a command, whatever it does: each in a process of its own, with a real signal.

A function shows that it runs by a file, whose name is its argument. Where the command must end by itself, the native
thread would end it only an hour later, so that the test shows which of the two it was.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until

BuildPlugin = Callable[..., Path]

DRIVER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for processes in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup this one
from arroyo_udf_plugin.cli import main, stopping
stopping.PATIENCE = float(sys.argv.pop(1))
main()
"""
BY_ITSELF, BY_FORCE = 3600, 0.1

PYTHON = """
import asyncio
import itertools
import pathlib
import time

import pyarrow as pa

from arroyo_udf_plugin import udf


# `time.sleep(3600)` below is the case itself: user code in native code, where no signal handler of Python runs.


def touch(path):
    pathlib.Path(path).touch()


def forever():
    while True:
        pass


@udf
def computes(path: str) -> int:
    touch(path)
    forever()

@udf
def raises(path: str) -> int:
    touch(path)
    while True:
        raise ValueError

@udf
def catches(path: str) -> int:
    touch(path)
    while True:
        try:
            forever()
        except BaseException:
            touch("caught")

@udf
def turns_into_another_error(path: str) -> int:
    touch(path)
    try:
        forever()
    except BaseException:
        raise ValueError("an error") from None

@udf
def keeps_the_gil(path: str) -> int:
    touch(path)
    return sum(itertools.repeat(0))

@udf(vectorized=True)
def vectorized(path: pa.StringArray) -> pa.Int64Array:
    touch(str(path[0]))
    forever()

@udf
async def waits(path: str) -> int:
    touch(path)
    await asyncio.sleep(3600)

@udf
async def blocks_the_loop(path: str) -> int:
    touch(path)
    time.sleep(3600)

@udf
async def ignores_its_cancellation(path: str) -> int:
    touch(path)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@udf
async def says_its_cancellation(path: str) -> int:
    touch(path)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            touch("cancelled")

@udf(blocking=True)
def blocks_a_thread(path: str) -> int:
    touch(path)
    time.sleep(3600)

class Opens:
    async def init(self):
        touch("runs")
        await asyncio.sleep(3600)

@udf
async def init_waits(context: Opens, path: str) -> int:
    return 1

class OpensAndBlocks:
    async def init(self):
        touch("runs")
        time.sleep(3600)

@udf
async def init_blocks(context: OpensAndBlocks, path: str) -> int:
    return 1

class Closes:
    async def close(self):
        touch("runs")
        await asyncio.sleep(3600)

@udf
async def close_waits(context: Closes, path: str) -> int:
    return 1

class ClosesAndBlocks:
    async def close(self):
        touch("runs")
        time.sleep(3600)

@udf
async def close_blocks(context: ClosesAndBlocks, path: str) -> int:
    return 1
"""

RUST = """
use arroyo_udf_plugin::udf;

#[udf]
fn computes(path: String) -> i64 {
    std::fs::write(path, "").unwrap();
    loop { std::hint::spin_loop() }
}

#[udf]
async fn blocks_the_thread(path: String) -> i64 {
    std::fs::write(path, "").unwrap();
    loop { std::thread::park() }
}
"""

C = """
#include <stdio.h>
#include <unistd.h>
#include "arroyo_udf_plugin.h"

static const char *computes(arroyo_udf_utf8 path, int64_t *out) {
  (void)path;
  *out = fclose(fopen("runs", "w"));
  while (*out == 0) pause();
  return NULL;
}
ARROYO_UDF_FUNCTION(computes, int64, (utf8, path));
ARROYO_UDF_PLUGIN(computes);
"""


@pytest.fixture(scope="module")
def python(build_plugin: BuildPlugin) -> Path:
    return build_plugin(PYTHON, ".py", "stopping")


class Command:
    """A command that runs in `folder` and touches the file `runs` there."""

    def __init__(self, folder: Path, *words: object, patience: float = BY_ITSELF, **environment: str) -> None:
        self.folder = folder
        command = [sys.executable, "-c", DRIVER, str(patience), *map(str, words)]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
        )

    @classmethod
    def run(cls, folder: Path, function: object, *options: str, patience: float) -> Command:
        """`run` of a function that takes a path."""
        (folder / "in.csv").write_text("path\n" + "runs\n" * 100)
        return cls(folder, "run", function, "in.csv", "--args", "path", "--out", "out.csv", *options, patience=patience)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()  # if the test has failed
        self.process.communicate()

    def until(self, file: str) -> None:
        """Waits until the function has touched a file."""
        until(lambda: (self.folder / file).exists() or self.process.poll() is not None, f"the function's file {file!r}")

    def ends_by(self, number: signal.Signals) -> None:
        self.until("runs")
        self.process.send_signal(number)
        self.has_ended_by(number)

    def has_ended_by(self, number: signal.Signals) -> None:
        _, errors = self.process.communicate(timeout=60)
        assert errors == f"arroyo-udf: stopped by {number.name}\n"
        assert self.process.returncode == 128 + number


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run(python: Path, tmp_path: Path, number: signal.Signals) -> None:
    with Command.run(tmp_path, f"{python}:computes", patience=BY_ITSELF) as command:
        command.ends_by(number)
    assert files(tmp_path) == ["in.csv", "runs"]


@pytest.mark.parametrize("policy", [["null"], ["drop"], ["dead_letter", "--dead-letter", "dead.parquet"]])
@pytest.mark.parametrize("function", ["computes", "raises"])
def test_ctrl_c_is_no_error_of_a_row(python: Path, tmp_path: Path, function: str, policy: list[str]) -> None:
    with Command.run(tmp_path, f"{python}:{function}", "--on-error", *policy, patience=BY_ITSELF) as command:
        command.ends_by(signal.SIGINT)
    assert files(tmp_path) == ["in.csv", "runs"]


@pytest.mark.parametrize("function", ["vectorized", "waits", "blocks_a_thread", "init_waits", "close_waits"])
def test_a_run_ends_by_itself(python: Path, tmp_path: Path, function: str) -> None:
    with Command.run(tmp_path, f"{python}:{function}", patience=BY_ITSELF) as command:
        command.ends_by(signal.SIGTERM)
    assert files(tmp_path) == ["in.csv", "runs"]


@pytest.mark.parametrize(
    "function",
    [
        "catches",
        "turns_into_another_error",
        "keeps_the_gil",
        "blocks_the_loop",
        "ignores_its_cancellation",
        "init_blocks",
        "close_blocks",
    ],
)
def test_a_run_that_cannot_end_is_ended(python: Path, tmp_path: Path, function: str) -> None:
    with Command.run(tmp_path, f"{python}:{function}", "--on-error", "null", patience=BY_FORCE) as command:
        command.ends_by(signal.SIGINT)
    assert {*files(tmp_path)} - {"caught"} == {"in.csv", "runs"}


@pytest.mark.parametrize(
    ("source", "suffix", "function"),
    [(RUST, ".rs", "computes"), (RUST, ".rs", "blocks_the_thread"), (C, ".c", "computes")],
)
def test_a_run_of_native_code_is_ended(
    build_plugin: BuildPlugin, tmp_path: Path, source: str, suffix: str, function: str
) -> None:
    with Command.run(tmp_path, f"{build_plugin(source, suffix, 'stopping')}:{function}", patience=BY_FORCE) as command:
        command.ends_by(signal.SIGTERM)
    assert files(tmp_path) == ["in.csv", "runs"]


def test_the_second_signal_ends_a_run_at_once(python: Path, tmp_path: Path) -> None:
    with Command.run(tmp_path, f"{python}:says_its_cancellation", patience=BY_ITSELF) as command:
        command.until("runs")
        command.process.send_signal(signal.SIGINT)
        command.until("cancelled")
        command.process.send_signal(signal.SIGTERM)
        command.has_ended_by(signal.SIGINT)
    assert files(tmp_path) == ["cancelled", "in.csv", "runs"]


ELSEWHERE = """
import queue, signal, sys, threading, time

from arroyo_udf_plugin.cli import stopping

def signalled(number):
    # To this thread alone, as the system may do it. The main thread waits, and nothing wakes it.
    thread = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), number))
    thread.start()
    thread.join()

def signals():
    ready.get()
    signalled(signal.SIGTERM)
    ready.get()
    while time.monotonic() - asked_at <= stopping.TOGETHER:
        pass
    signalled(signal.SIGINT)

ready, asked = queue.SimpleQueue(), queue.SimpleQueue()
threading.Thread(target=signals, daemon=True).start()
with stopping.stoppable(), stopping.drainable(lambda: asked.put(None)) as came:
    ready.put(None)
    asked.get()
    asked_at = time.monotonic()
    print(came, flush=True)
    ready.put(None)
    asked.get()
"""


def test_signals_that_another_thread_gets_ask_for_a_stop_and_end_it() -> None:
    ended = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("[15]\n", 128 + signal.SIGINT), ended.stderr


def test_ctrl_c_ends_the_import_of_a_module(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    plugin = build_plugin("""
        import os, pathlib
        from arroyo_udf_plugin import udf

        @udf(native=False)
        def length(path: str) -> int:
            return len(path)

        while "HANGS" in os.environ:
            pathlib.Path("runs").touch()
        """)
    (tmp_path / "in.csv").write_text("path\nx\n")
    words = ["run", plugin, "in.csv", "--args", "path", "--out", "out.csv"]
    with Command(tmp_path, *words, HANGS="1") as command:
        command.ends_by(signal.SIGINT)


@pytest.mark.parametrize(("name", "tool"), [("mine.c", "cc"), ("mine.py", "cc"), ("mine.rs", "cargo")])
def test_a_build_ends_with_its_compiler(tmp_path: Path, name: str, tool: str) -> None:
    """And with what that has started."""
    shim = tmp_path / "bin" / tool
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nsleep 3600 & echo $$ $! > pids && mv pids $RUNS; wait\n")
    shim.chmod(0o755)
    (tmp_path / name).write_text("")
    if name == "mine.py":
        (tmp_path / name).write_text("from arroyo_udf_plugin import udf\n@udf\ndef f(x: int) -> int:\n    return x\n")
    path = f"{shim.parent}:{os.environ['PATH']}"
    runs = str(tmp_path / "runs")
    with Command(tmp_path, "build", name, PATH=path, CC=str(shim), RUNS=runs, XDG_CACHE_HOME=str(tmp_path)) as command:
        command.ends_by(signal.SIGTERM)
    for pid in map(int, (tmp_path / "runs").read_text().split()):
        until(lambda pid=pid: not is_alive(pid), f"the end of process {pid}")  # type: ignore[misc]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
