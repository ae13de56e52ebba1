"""Memory that a host shares with its workers: what earlier batches have left there, and what functions keep."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from waiting import drained, until

from arroyo_udf_plugin import Plugin, PluginEnvironmentError, load

PYTHON = """
import asyncio
import os
import resource

import pyarrow as pa

from arroyo_udf_plugin import udf

kept = []


@udf
def words(items: list[str], count: int) -> str:
    return f"{items} {count}"


@udf
def pairs(items: list[list[int]], count: int) -> str:
    return f"{items} {count}"


@udf(vectorized=True)
def first_ever(a: pa.Int64Array) -> pa.Int64Array:
    kept.append(a)
    return pa.array([kept[0][0].as_py()] * len(a), pa.int64())


@udf
def worker(a: int) -> int:
    return os.getpid()


@udf(vectorized=True)
def lengths(a: pa.BinaryArray) -> pa.Int64Array:
    return pa.array([len(value) for value in a.to_pylist()], pa.int64())


@udf
async def length(a: bytes) -> int:
    return len(a)


@udf
def own_memory(a: int) -> bytes:
    status = open("/proc/self/status").read()
    return status[status.index("RssAnon:") :].split()[1].encode().ljust(1 << 20)


def lack_shared_memory(mebibytes: int) -> bytes:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    return bytes(mebibytes << 20)


@udf
def sync_without_room(a: int) -> bytes:
    return lack_shared_memory(a)


@udf(vectorized=True)
def arrays_without_room(a: pa.Int64Array) -> pa.BinaryArray:
    return pa.array([lack_shared_memory(value) for value in a.to_pylist()], pa.binary())


@udf
async def async_without_room(a: int) -> bytes:
    return lack_shared_memory(a)


@udf(batch_size=10)
async def batches_without_room(a: list[int]) -> list[bytes]:
    return [lack_shared_memory(value) for value in a]


@udf
def large(mebibytes: int) -> bytes:
    return bytes(mebibytes << 20)


@udf
async def large_later(mebibytes: int) -> bytes:
    return bytes(mebibytes << 20)


@udf
async def wait(a: bytes) -> int:
    if a == b"wait":
        await asyncio.Event().wait()
    return len(a)
"""
ONE = pa.array([1], pa.int64())
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(PYTHON, name="remembers")


@pytest.fixture(scope="module")
def plugin(file: Path) -> Iterator[Plugin]:
    with load(file, isolation="process") as plugin:
        yield plugin


@pytest.mark.parametrize("rows", [0, 1, 8, 100])
@pytest.mark.parametrize(
    ("function", "item", "items"),
    [("words", ["a word"] * 20, pa.list_(pa.string())), ("pairs", [[1, 2, 3]] * 20, pa.list_(pa.list_(pa.int64())))],
)
def test_lists_without_items_are_those_of_their_own_batch(
    plugin: Plugin, function: str, item: list[object], items: pa.DataType, rows: int
) -> None:
    call = plugin.functions[function]
    numbers = pa.array(range(rows), pa.int64())
    call(pa.array([item] * 300, items), pa.array(range(300), pa.int64()))
    assert call(pa.array([[]] * rows, items), numbers).to_pylist() == [f"[] {number}" for number in range(rows)]


def test_a_vectorized_function_may_keep_its_arrays(plugin: Plugin) -> None:
    for number, rows in enumerate((10, 1_000, 1_000_000)):
        answer = plugin.functions["first_ever"](pa.array([number] * rows, pa.int64()))
        assert answer.equals(pa.array([0] * rows, pa.int64()))


def own_memory(process: int) -> int:
    """Bytes of a process that no other one shares."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))


def test_an_idle_worker_gives_back_the_arguments_of_async_functions(plugin: Plugin) -> None:
    worker = plugin.functions["worker"](ONE)[0].as_py()
    with plugin.functions["length"].start() as runtime:
        before = own_memory(worker)
        runtime.send(0, pa.array([b"x" * (100 * MEBIBYTE)], pa.binary()))
        assert drained(runtime, 1)["value"].to_pylist() == [100 * MEBIBYTE]
        until(lambda: own_memory(worker) < before + 50 * MEBIBYTE, "memory that is given back")


def test_arguments_without_room_in_a_worker_are_errors_of_their_rows(file: Path) -> None:
    """Not the end of the worker, whose other calls go on."""
    huge, small = (pa.array([b"x" * size], pa.binary()) for size in (600 * MEBIBYTE, 3))
    with load(file, isolation="process", memory_limit=512 * MEBIBYTE) as plugin:
        worker = plugin.functions["worker"](ONE)
        with pytest.raises(PluginEnvironmentError, match="lengths: no memory in its worker process for the arguments"):
            plugin.functions["lengths"](huge)
        assert plugin.functions["lengths"](small).to_pylist() == [3]
        with plugin.functions["length"].start(timeout=1000.0) as runtime:
            rows = []
            for number, column in enumerate((small, huge, small)):
                runtime.send(number, column)
                rows += drained(runtime, 1).to_pylist()
        assert [row["value"] for row in rows] == [3, None, 3]
        assert "length, row 1: no memory in its worker process for the arguments: " in rows[1]["error"]
        assert plugin.functions["worker"](ONE) == worker


def test_results_exist_once_in_a_worker(plugin: Plugin) -> None:
    """In the memory that it shares, and not in its own, too."""
    answer = plugin.functions["own_memory"](pa.array(range(64), pa.int64()))
    first, last = (int(answer[row].as_py()) << 10 for row in (0, 63))
    assert last < first + 16 * MEBIBYTE


@pytest.mark.parametrize("kind", ["sync", "arrays", "async", "batches"])
def test_results_without_room_are_errors_of_their_rows(file: Path, kind: str) -> None:
    """Not the end of the worker, whose other calls go on."""
    sizes = pa.array([0, 2, 0, 3], pa.int64())
    with load(file, isolation="process") as plugin:
        worker = plugin.functions["worker"](ONE)
        answer = plugin.functions[f"{kind}_without_room"].outcomes(sizes)
        assert pc.binary_length(answer.field("value")).to_pylist() == [0, None, 0, None]
        errors = answer.field("error").to_pylist()
        assert f"{kind}_without_room, row 1: no shared memory for its value: File too large" in errors[1]
        assert plugin.functions["worker"](ONE) == worker


def test_calls_with_large_results_that_end_together_are_told_one_after_another(plugin: Plugin) -> None:
    sizes = [6, 0, 6, 6, 9, 0]
    values = plugin.functions["large_later"](pa.array(sizes, pa.int64()))
    assert [len(value) for value in values.to_pylist()] == [size * MEBIBYTE for size in sizes]


def test_the_limit_of_memory_is_one_of_an_answer_too(file: Path) -> None:
    with load(file, isolation="process", memory_limit=192 * MEBIBYTE) as plugin:
        sizes = pa.array([60, 60, 60, 60, 1], pa.int64())
        answer = plugin.functions["large"].outcomes(sizes)
        assert answer.field("outcome").to_pylist() == [0, 0, 0, 1, 0]
        text = "no shared memory for its value: an answer has at most 201326592 bytes (memory_limit): send fewer rows"
        assert text in answer.field("error")[3].as_py()


LIMITED = """
import os, resource, signal, sys
import pyarrow as pa
from arroyo_udf_plugin import load

plugin = load(sys.argv[1], isolation="process")
worker = plugin.functions["worker"](pa.array([1]))[0].as_py()
runtime = plugin.functions["wait"].start()
runtime.send(0, pa.array([b"wait"], pa.binary()))
runtime.send(1, pa.array([b"one"], pa.binary()))
while runtime.statistics().values != 1:  # row 1 has come back, and row 0 waits
    runtime.wait(1)
def states():
    return {open(f"/proc/{worker}/task/{thread}/stat").read().rpartition(")")[2].split()[0]
            for thread in os.listdir(f"/proc/{worker}/task")}

os.kill(worker, signal.SIGSTOP)
while states() != {"T"}:  # it does not stop at once
    pass
runtime.send(2, pa.array([b"two"], pa.binary()))  # nobody takes this message, so the next one waits
while runtime.statistics().running != 2:
    pass
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))  # of shared memory, too
runtime.cancel(0)
runtime.send(3, pa.array([b"x" * (1 << 22)], pa.binary()))
os.kill(worker, signal.SIGCONT)
rows = []
while len(rows) < 4:
    runtime.wait(60)
    if (batch := runtime.drain_results()) is not None:
        rows += batch.to_pylist()
rows.sort(key=lambda row: row["id"])
print([row["value"] for row in rows], rows[3]["error"])
plugin.close()
"""


def test_a_message_without_room_loses_no_cancellation(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.startswith("[None, 3, 3, None] "), done.stderr
    assert "row 3: no shared memory for its arguments: File too large" in done.stdout
