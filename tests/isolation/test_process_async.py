"""Started functions in worker processes: what calls learn of themselves, and what the death of a worker costs."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import answers, drained, rest, until

from arroyo_udf_plugin import InvalidState, Plugin, UserCodeError, load

SOURCE = """
import asyncio
import mmap
import os
import signal
import threading
import time

from arroyo_udf_plugin import call_info, udf


class Counter:
    async def init(self) -> None:
        self.calls = 0

    async def close(self) -> None:
        if os.environ.get("CLOSES") == "badly":
            raise OSError("still in use")


@udf
async def counts(context: Counter, a: int) -> str:
    context.calls += 1
    return f"{os.getpid()} {context.calls}"


@udf(ordered=False, retry_on=("error",), max_attempts=3, backoff=0.001)
async def third_time(a: int) -> str:
    info = call_info()
    if a == 5 and info.attempt < 3:
        os.abort()
    return f"{info.row_id} {info.attempt} {info.idempotency_key.hex()}"


@udf
async def babbles(a: int) -> int:
    if a == 1:
        for number in os.listdir("/proc/self/fd"):
            path = f"/proc/self/fd/{number}"
            target = os.readlink(path) if os.path.exists(path) or os.path.lexists(path) else ""
            if "memfd:arroyo-udf" in target:
                with open(path, "r+b") as file, mmap.mmap(file.fileno(), 128) as memory:
                    if memory[64] == 5:  # what the worker says of its calls
                        memory[64] = 99
                        memory[0:8] = (int.from_bytes(memory[0:8], "little") + 1).to_bytes(8, "little")
            elif "eventfd" in target:
                os.write(int(number), (1).to_bytes(8, "little"))
        await asyncio.Event().wait()
    return a


@udf
async def dies(a: int) -> int:
    if a == 7:
        os._exit(3)
    await asyncio.sleep(0)
    return a


begun = threading.Semaphore(0)


@udf(timeout=1000.0)
async def waits(a: int) -> int:
    begun.release()
    await asyncio.Event().wait()
    return a


@udf
def reads(path: str) -> str:
    with open(path) as pipe:
        return pipe.read()


@udf
def wait_for_calls(count: int) -> int:
    for _ in range(count):
        assert begun.acquire(timeout=60)
    return count


@udf(blocking=True)
def blocks(a: int) -> int:
    if a == 7:
        os._exit(3)
    return a * 2


def die(path):
    with open(path, "a") as file:
        file.write(f"{time.time_ns()}\\n")
    os._exit(3)


@udf
def dies_in_a_sync_call(path: str) -> int:
    die(path)


@udf(allowed_in_flight=1)
async def dies_in_a_call(path: str) -> int:
    die(path)


@udf(batch_size=10)
async def many(numbers: list[int]) -> list[int]:
    if 13 in numbers:
        raise ValueError("unlucky")
    return [len(numbers) * 1000 + a for a in numbers]


class Refuses:
    async def init(self) -> None:
        raise OSError("no model file")


@udf
async def never_starts(context: Refuses, a: int) -> int:
    return a


class Dies:
    async def init(self) -> None:
        os._exit(9)


@udf
async def dies_at_start(context: Dies, a: int) -> int:
    return a


class DiesTwice:
    async def init(self) -> None:
        with open(os.environ["DEATHS"], "a") as deaths:
            if deaths.tell() < 2:
                deaths.write("x")
                deaths.flush()
                os.kill(os.getpid(), signal.SIGKILL)


@udf
async def starts_in_the_third_worker(context: DiesTwice, a: int) -> int:
    return a
"""
LINEAGE = bytes(range(1, 17))


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE, name="started")


@pytest.fixture
def plugin(file: Path) -> Iterator[Plugin]:
    with load(file, isolation="process") as plugin:
        yield plugin


def numbers(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())


def test_calls_share_a_context_and_run_in_another_process(plugin: Plugin) -> None:
    told = [text.split() for text in plugin.functions["counts"](numbers(50)).to_pylist()]
    assert {process for process, _ in told} != {str(os.getpid())}
    assert [int(calls) for _, calls in told] == list(range(1, 51))


def test_r10_row_attempt_and_key_are_those_of_the_hosts_runtime(plugin: Plugin) -> None:
    rows = answers(plugin.functions["third_time"], numbers(10), lineage=LINEAGE).sort_by("id")
    key = [(LINEAGE + row.to_bytes(8, "big")).hex() for row in range(10)]
    attempts = rows["attempts"].to_pylist()
    # Whatever ran beside row 5 in a worker that died was called again, too.
    assert attempts[5] == 3
    assert rows["value"].to_pylist() == [f"{row} {attempts[row]} {key[row]}" for row in range(10)]


def test_r10_keys_that_come_with_rows_reach_the_calls_in_workers(plugin: Plugin) -> None:
    keys = [bytes([row]) * 24 for row in range(10)]
    with plugin.functions["third_time"].start(lineage=LINEAGE) as runtime:
        runtime.send(5, numbers(10), idempotency_keys=b"".join(keys))
        runtime.send(20, numbers(1))
        runtime.stop()
        rows = runtime.drain_results()
        assert rows is not None
        said = {row["id"]: row["value"].split()[2] for row in rows.to_pylist()}
    given = {5 + place: key.hex() for place, key in enumerate(keys)}
    assert said == given | {20: (LINEAGE + (20).to_bytes(8, "big")).hex()}


def test_calls_that_had_started_in_a_worker_that_dies_are_errors_and_the_next_rows_run(plugin: Plugin) -> None:
    rows = answers(plugin.functions["dies"], numbers(20), allowed_in_flight=1)
    assert rows["value"].to_pylist() == [a if a != 7 else None for a in range(20)]
    text = rows["error"].to_pylist()[7]
    assert text == "started.dies, row 7: the worker process ended with exit status 3 during this call"


def test_a_worker_that_is_killed_while_calls_run_costs_those_calls(plugin: Plugin) -> None:
    process = int(plugin.functions["counts"](numbers(1))[0].as_py().split()[0])
    with plugin.functions["waits"].start(allowed_in_flight=3) as runtime:
        runtime.send(0, numbers(3))
        plugin.functions["wait_for_calls"](pa.array([3]))
        os.kill(process, signal.SIGKILL)
        rows = drained(runtime, 3)
        assert {text.partition(": ")[2] for text in rows["error"].to_pylist()} == {
            "the worker process was killed by signal 9 (SIGKILL) during this call"
        }
        runtime.send(3, numbers(1))
        until(lambda: runtime.statistics().running == 1, "a call in the next worker")
        runtime.stop("cancel")
        assert rest(runtime)["outcome"].to_pylist() == [3]


def test_calls_of_a_dead_worker_end_while_a_sync_call_goes_on_in_the_next_one(plugin: Plugin, tmp_path: Path) -> None:
    process = int(plugin.functions["counts"](numbers(1))[0].as_py().split()[0])
    first, second = (tmp_path / name for name in ("first", "second"))
    os.mkfifo(first)
    os.mkfifo(second)
    with ThreadPoolExecutor(1) as pool, plugin.functions["waits"].start() as runtime:
        runtime.send(0, numbers(1))
        plugin.functions["wait_for_calls"](pa.array([1]))
        reading = pool.submit(plugin.functions["reads"].outcomes, pa.array([str(first), str(second)]))
        with first.open("w"):  # once the worker reads
            os.kill(process, signal.SIGKILL)
        with second.open("w") as pipe:
            (text,) = drained(runtime, 1)["error"].to_pylist()
            pipe.write("read")
        assert text.endswith("row 0: the worker process was killed by signal 9 (SIGKILL) during this call")
        assert reading.result().field("value").to_pylist() == [None, "read"]


def test_a_worker_that_is_killed_while_a_function_starts_is_followed_by_another(
    plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEATHS", str(tmp_path / "deaths"))
    assert plugin.functions["starts_in_the_third_worker"](numbers(3)).to_pylist() == [0, 1, 2]
    assert (tmp_path / "deaths").read_text() == "xx"


NOTES_ITS_START = """\
#!/bin/sh
date +%s%N >> "{file}"
exec "{python}" "$@"
"""


@pytest.mark.parametrize("function", ["dies_in_a_sync_call", "dies_in_a_call"])
def test_workers_that_answer_nothing_start_after_longer_and_longer_pauses(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    starts, ends, python = (tmp_path / name for name in ("starts", "ends", "python"))
    python.write_text(NOTES_ITS_START.format(file=starts, python=sys.executable))
    python.chmod(0o755)
    monkeypatch.setenv("ARROYO_UDF_PYTHON", str(python))
    with load(file, isolation="process") as plugin:
        rows = plugin.functions[function].outcomes(pa.array([str(ends)] * 4))
    assert rows.field("outcome").to_pylist() == [1] * 4
    begun, ended = ([int(line) for line in path.read_text().splitlines()] for path in (starts, ends))
    pauses = [(next - last) / 1e6 for next, last in zip(begun[1:], ended, strict=False)]
    assert [pause >= least for pause, least in zip(pauses[:3], (50, 100, 200), strict=True)] == [True] * 3, pauses


def test_cancelled_calls_end_in_the_worker(plugin: Plugin) -> None:
    with plugin.functions["waits"].start() as runtime:
        runtime.send(0, numbers(10))
        plugin.functions["wait_for_calls"](pa.array([10]))
        runtime.cancel(0, 10)
        assert drained(runtime, 10)["outcome"].to_pylist() == [3] * 10
        until(lambda: runtime.statistics().running == 0, "the calls' ends")
        assert runtime.statistics().stuck == 0


def test_a_crash_of_a_blocking_function_costs_its_call(plugin: Plugin) -> None:
    rows = answers(plugin.functions["blocks"], numbers(12), allowed_in_flight=1)
    assert rows["value"].to_pylist() == [2 * a if a != 7 else None for a in range(12)]


def test_micro_batches_are_gathered_by_the_host_and_split_in_the_worker(plugin: Plugin) -> None:
    rows = answers(plugin.functions["many"], numbers(20))
    values = rows["value"].to_pylist()
    assert values[:10] == [10_000 + a for a in range(10)]
    assert values[13] is None
    assert [a % 1000 for a in values[10:13] + values[14:]] == [10, 11, 12, *range(14, 20)]
    assert rows["error"].to_pylist()[13].startswith("started.many, row 13: ValueError: unlucky")


def test_several_workers_serve_one_runtime(file: Path) -> None:
    with load(file, isolation="process", workers=2) as plugin:
        rows = answers(plugin.functions["counts"], numbers(5_000))
        told = [text.split() for text in rows["value"].to_pylist()]
        assert len({process for process, _ in told}) == 2
        assert rows["id"].to_pylist() == list(range(5_000))


@pytest.mark.parametrize(
    ("function", "why"),
    [("never_starts", "no model file"), ("dies_at_start", "the worker process ended with exit status 9")],
)
def test_r12_an_init_that_fails_is_an_error_of_the_start(plugin: Plugin, function: str, why: str) -> None:
    with pytest.raises(UserCodeError, match=f"started.{function}: start failed: .*{why}"):
        plugin.functions[function].start()
    assert plugin.functions["counts"](numbers(1))


def test_r12_a_close_that_fails_is_an_error_of_the_stop(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOSES", "badly")
    with load(file, isolation="process") as plugin:
        runtime = plugin.functions["counts"].start()
        runtime.send(0, numbers(1))
        with pytest.raises(UserCodeError, match=r"started.counts: close failed: OSError: still in use"):
            runtime.stop()
        assert rest(runtime).num_rows == 1


def test_a_closed_plugin_ends_its_runtimes_calls(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plugin = load(file, isolation="process")
    with plugin.functions["waits"].start() as runtime:
        runtime.send(0, numbers(1))
        plugin.functions["wait_for_calls"](pa.array([1]))
        plugin.close()
        assert drained(runtime, 1)["outcome"].to_pylist() == [3]
        with pytest.raises(InvalidState, match="stopped; start it again to send more"):
            runtime.send(1, numbers(1))
    assert capfd.readouterr().err == ""
    with pytest.raises(InvalidState, match="the plugin is closed"):
        plugin.functions["waits"].start()


def test_a_broken_answer_ends_one_worker_and_no_runtime(plugin: Plugin) -> None:
    with plugin.functions["babbles"].start() as runtime:
        rows = []
        for number in range(3):
            runtime.send(number, pa.array([number], pa.int64()))
            rows += drained(runtime, 1).to_pylist()
    assert [row["value"] for row in rows] == [0, None, 2]
    why = "the worker process was ended, because its answer is broken: the worker process wrote a message of kind 99"
    assert rows[1]["error"].endswith(f"babbles, row 1: {why}")
