"""A program: calls a plugin's functions over and over, and fails if memory, descriptors, threads or objects grow.

    python leaks.py PLUGIN ROWS CYCLES

The plugin is leaks_udf.py or leaks_udf.rs. Of ROWS async calls, a tenth fails and a tenth times out; CYCLES runtimes
of each kind are started, used and stopped. A quarter of that comes first, uncounted: it makes what is made once. Bounds
are constants, far below one object or descriptor per start. Memory may grow by four mebibytes: the allocator keeps free
pages.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from arroyo_udf_plugin import Runtime, load

BATCH = 1000
functions = load(sys.argv[1]).functions


@dataclass
class Usage:
    kibibytes: int
    threads: int
    descriptors: int
    objects: int
    arrow_bytes: int

    def growth(self, before: "Usage") -> list[str]:
        """What has grown since."""
        # The host keeps a small array for each schema that it has seen.
        bounds = {"kibibytes": 4096, "threads": 0, "descriptors": 0, "objects": 20, "arrow_bytes": 0}
        return [name for name, bound in bounds.items() if getattr(self, name) - getattr(before, name) > bound]


def usage() -> Usage:
    gc.collect()
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    return Usage(
        kibibytes=int(status["RssAnon"].split()[0]),
        threads=int(status["Threads"]),
        descriptors=len(os.listdir("/proc/self/fd")),
        objects=len(gc.get_objects()),
        arrow_bytes=pa.total_allocated_bytes(),
    )


def settled(before: Usage | None = None) -> Usage:
    """The usage once nothing has grown, or after half a minute. Threads end what was cancelled in their own time, and
    arrays are released by the host's next calls (R19)."""
    patience = time.monotonic() + 30
    exclaim()
    while (now := usage()).growth(before or now) and time.monotonic() < patience:
        time.sleep(0.01)  # between two looks: the threads that end need the processor
        exclaim()
    return now


def answered(runtime: Runtime, rows: int, column: Callable[[range], pa.Array]) -> None:
    """Sends rows in batches, and drains them."""
    batches = (column(range(first, first + BATCH)) for first in range(0, rows, BATCH))
    assert sum(len(part) for part, _ in runtime.map(batches, stop=False)) == rows


def calls(rows: int) -> None:
    """Async calls, a tenth of which fails and a tenth of which times out."""
    with functions["mixed"].start(timeout=0.001, allowed_in_flight=1000) as runtime:
        answered(runtime, rows, pa.array)
        counted = runtime.statistics()
        assert (counted.accepted, counted.drained) == (rows, rows)
        assert counted.errors > 0.05 * rows
        assert counted.timed_out >= 0.1 * rows
        runtime.stop()


def batches(rows: int) -> None:
    """Sync calls, a tenth of which fails, and async ones through pyarrow: of lists, which Rust does not have."""
    for first in range(0, rows, BATCH):
        numbers = pa.array(range(first, first + BATCH))
        functions["fussy"].outcomes(numbers, numbers.cast(pa.utf8()))
    if "total" not in functions:
        return
    with functions["total"].start() as runtime:
        answered(runtime, rows // 10 // BATCH * BATCH, lambda ids: pa.array([[n] for n in ids], pa.list_(pa.int64())))
        runtime.stop()


def exclaim() -> None:
    with functions["exclaimed"].start() as runtime:
        runtime.send(0, pa.array(["a"]))
        runtime.wait()
        runtime.drain_results()
        runtime.stop()


def cycles(count: int) -> None:
    """Runtimes that are used, and runtimes that are stopped while a row runs."""
    for _ in range(count):
        exclaim()
        with functions["mixed"].start() as runtime:
            runtime.send(0, pa.array([2]))
            runtime.stop("cancel")


def main() -> None:
    rows, count = int(sys.argv[2]), int(sys.argv[3])
    for body, much in [(calls, rows), (batches, rows), (cycles, count)]:
        body(max(BATCH, much // 4))
        before = settled()
        body(much)
        after = settled(before)
        print(f"{body.__name__}, {much}: {before} -> {after}")
        assert not after.growth(before), after.growth(before)


main()
