"""A program: opens a plugin in isolation over and over, uses and closes it, and fails if anything grows or crashes.

    python cycles.py PLUGIN MODE cycles COUNT      one worker at a time; memory, descriptors and threads stay flat
    python cycles.py PLUGIN MODE crowd COUNT       four threads, each with a worker of its own, all at once

A quarter of the cycles comes first, uncounted: it makes what is made once. Memory may grow by four mebibytes: the
allocator keeps free pages.
"""

import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import Literal

import pyarrow as pa

from arroyo_udf_plugin import load

path, mode, what, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
isolation: Literal["subinterpreter", "process"] = "process" if mode == "process" else "subinterpreter"
BOUNDS = {"kibibytes": 4096, "threads": 0, "descriptors": 0, "children": 0}


def cycle() -> None:
    with load(path, isolation=isolation) as plugin:
        assert plugin.functions["plus"](pa.array([1, None])).to_pylist() == [2, None]
        with plugin.functions["late"].start() as runtime:
            runtime.send(0, pa.array([1, 2]))
            runtime.stop()
            results = runtime.drain_results()
            assert results is not None
            assert results["value"].to_pylist() == [2, 3]


def usage() -> dict[str, int]:
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "kibibytes": int(status["RssAnon"].split()[0]),
        "threads": int(status["Threads"]),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "children": sum(len(task.read_text().split()) for task in Path("/proc/self/task").glob("*/children")),
    }


def growth(before: dict[str, int], now: dict[str, int]) -> list[str]:
    return [name for name, bound in BOUNDS.items() if now[name] - before[name] > bound]


def cycles() -> None:
    for _ in range(count // 4):
        cycle()
    before = usage()
    for _ in range(count):
        cycle()
    patience = time.monotonic() + 30
    while growth(before, now := usage()) and time.monotonic() < patience:
        time.sleep(0.01)  # between two looks: threads and processes end in their own time
    print(f"{count} cycles: {before} -> {now}")
    assert not growth(before, now), growth(before, now)


def crowd() -> None:
    together = threading.Barrier(4)
    done = []

    def start() -> None:
        for _ in range(count):
            together.wait()
            cycle()
        done.append(True)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [True] * 4


cycles() if what == "cycles" else crowd()
