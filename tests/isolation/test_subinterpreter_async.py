"""Async and blocking functions in subinterpreters: one machine in front, an executor and a Context in each worker."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import advance, answers, drained, rest, until

from arroyo_udf_plugin import InvalidState, Plugin, UserCodeError, load
from arroyo_udf_plugin.errors import OutOfMemory

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import os
import threading
import time
from arroyo_udf_plugin import call_info, udf

@udf
async def double(x: int) -> int:
    await asyncio.sleep(0)
    if x == 13:
        raise ValueError("unlucky")
    return 2 * x

@udf
async def at_once(x: int | None) -> int | None:
    return x

@udf(blocking=True)
def waits(x: int) -> int:
    time.sleep(0.0001)
    return x + 1

@udf(blocking=True, timeout=0.05, max_attempts=1)
def sleeps(x: int) -> int:
    time.sleep(3600)
    return x

@udf
async def about(x: int) -> str:
    info = call_info()
    await asyncio.sleep(0)
    return f"{info.row_id} {info.attempt} {info.idempotency_key.hex()}"

@udf(batch_size=10)
async def many(xs: list[int]) -> list[int]:
    return [x + len(xs) * 0 for x in xs]

@udf
async def thread(x: int) -> int:
    time.sleep(0.001)  # the other worker takes rows meanwhile
    return threading.get_ident()

@udf(timeout=0.05, max_attempts=1)
async def hangs(x: int) -> int:
    await asyncio.sleep(3600 if x == 1 else 0)
    return x

@udf
async def blocks(x: int) -> int:
    time.sleep(3600)
    return x

@udf(timeout=0.05, max_attempts=1)
async def ignores(x: int) -> int:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@udf
def spins(x: int) -> int:
    os.write(x, b"x")
    while True:
        pass

@udf
def home(x: int) -> int:
    return threading.get_ident()

class Connection:
    async def init(self) -> None:
        self.opened = True

    async def close(self) -> None:
        with open(os.environ["ARROYO_UDF_TEST_CLOSED"], "a") as file:
            file.write("closed\\n")

@udf
async def uses(connection: Connection, x: int) -> int:
    return x if connection.opened else -1

class Broken:
    async def init(self) -> None:
        raise LookupError("no such server")

@udf
async def broken(context: Broken, x: int) -> int:
    return x
"""


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="isolated")


@pytest.fixture(params=[1, 2], ids=["one", "two"])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def plugin(file: Path, workers: int) -> Iterator[Plugin]:
    with load(file, isolation="subinterpreter", workers=workers) as plugin:
        yield plugin


def test_r5_rows_come_out_in_order_with_their_own_outcomes(file: Path, plugin: Plugin) -> None:
    numbers = pa.array([13 if i in (5, 700) else i + 100 for i in range(1_000)], pa.int64())
    got = answers(plugin.functions["double"], numbers)
    assert got["id"].to_pylist() == list(range(1_000))
    assert got["value"].to_pylist() == [None if i in (5, 700) else 2 * (i + 100) for i in range(1_000)]
    texts = {i: text for i, text in enumerate(got["error"].to_pylist()) if text}
    assert texts.keys() == {5, 700}
    assert "ValueError: unlucky" in texts[5]


def test_f3_nulls_and_rows_that_return_at_once(plugin: Plugin) -> None:
    values = [None, 1, None, 2] * 500
    assert answers(plugin.functions["at_once"], pa.array(values, pa.int64()))["value"].to_pylist() == values
    nulls = answers(plugin.functions["double"], pa.array([None, 1], pa.int64()))
    assert nulls["value"].to_pylist() == [None, 2]


def test_blocking_functions_run_on_threads_of_their_interpreter(plugin: Plugin) -> None:
    got = answers(plugin.functions["waits"], pa.array(range(300), pa.int64()), allowed_in_flight=4)
    assert got["value"].to_pylist() == list(range(1, 301))


def test_r10_a_call_can_ask_about_itself(file: Path, plugin: Plugin) -> None:
    numbers = pa.array(range(100), pa.int64())
    lineage = bytes(range(16))
    there = answers(plugin.functions["about"], numbers, lineage=lineage)["value"].to_pylist()
    assert there == answers(load(file).functions["about"], numbers, lineage=lineage)["value"].to_pylist()
    assert there[7] == f"7 1 {lineage.hex()}{7:016x}"


def test_r10_keys_that_come_with_rows_reach_the_calls(plugin: Plugin) -> None:
    keys = [bytes([row]) * 24 for row in range(50)]
    with plugin.functions["about"].start() as runtime:
        runtime.send(5, pa.array(range(50), pa.int64()), idempotency_keys=b"".join(keys))
        runtime.stop()
        rows = runtime.drain_results()
    assert rows is not None
    assert rows["value"].to_pylist() == [f"{5 + row} 1 {key.hex()}" for row, key in enumerate(keys)]


def test_micro_batches(plugin: Plugin) -> None:
    got = answers(plugin.functions["many"], pa.array(range(95), pa.int64()))
    assert got["value"].to_pylist() == list(range(95))


def test_two_workers_share_the_rows_of_one_runtime(file: Path) -> None:
    with load(file, isolation="subinterpreter", workers=2) as plugin:
        got = answers(plugin.functions["thread"], pa.array(range(400), pa.int64()))
        assert len(set(got["value"].to_pylist())) == 2


def test_r6_a_row_times_out_while_the_others_go_on(plugin: Plugin) -> None:
    got = answers(plugin.functions["hangs"], pa.array([0, 1, 2], pa.int64()))
    assert got["value"].to_pylist() == [0, None, 2]
    assert got["outcome"].to_pylist() == [0, 2, 0]


def test_r12_each_worker_has_a_context_and_closes_it(
    file: Path, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    monkeypatch.setenv("ARROYO_UDF_TEST_CLOSED", str(closed))
    with load(file, isolation="subinterpreter", workers=workers) as plugin:
        assert answers(plugin.functions["uses"], pa.array(range(50), pa.int64()))["value"].to_pylist() == [*range(50)]
        assert closed.read_text() == "closed\n" * workers


def test_r12_a_context_that_fails_is_why_the_start_fails(plugin: Plugin) -> None:
    with pytest.raises(UserCodeError, match=r"isolated\.broken: start failed: LookupError: no such server"):
        plugin.functions["broken"].start()
    assert answers(plugin.functions["at_once"], pa.array([1]))["value"].to_pylist() == [1]


def test_closing_the_plugin_stops_its_runtimes_and_their_rows_come_out(file: Path, workers: int) -> None:
    plugin = load(file, isolation="subinterpreter", workers=workers)
    runtime = plugin.functions["hangs"].start(timeout=math.inf, ordered=False)
    runtime.send(0, pa.array([1, 0, 1], pa.int64()))
    assert drained(runtime, 1)["value"].to_pylist() == [0]
    plugin.close()
    assert rest(runtime)["outcome"].to_pylist() == [3, 3]
    with pytest.raises(InvalidState):
        runtime.send(3, pa.array([1], pa.int64()))
    runtime.release()


PROGRAM = """
import math
import sys
import pyarrow as pa
from arroyo_udf_plugin import load
plugin = load(sys.argv[1], isolation="subinterpreter", workers=2)
runtime = plugin.functions[sys.argv[2]].start(timeout=math.inf)
runtime.send(0, pa.array([1] * 10, pa.int64()))
runtime.wait(0.0)
print("sent", flush=True)
runtime.cancel(0, 10)
runtime.stop("cancel")
runtime.release()
"""


@pytest.mark.parametrize("function", ["hangs", "double", "waits"])
def test_r18_a_process_ends_without_a_word_while_plugins_are_open(file: Path, function: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, str(file), function]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sent\n", "")


STUCK = """
import gc
import logging
import sys
import pyarrow as pa
from arroyo_udf_plugin import load
from waiting import until
reports = []
handler = logging.Handler()
handler.emit = lambda record: reports.append(record.getMessage())
logging.getLogger("arroyo_udf_plugin").addHandler(handler)
plugin = load(sys.argv[1], isolation="subinterpreter", workers=2)
runtime = plugin.functions["sleeps"].start(allowed_in_flight=2)
runtime.send(0, pa.array([1, 1], pa.int64()))
until(lambda: runtime.statistics().stuck == 2 and len(reports) == 2, "both calls to be stuck, and reported")
print(runtime.drain_results()["outcome"].to_pylist(), runtime.stop("cancel", deadline=0), *reports, sep="\\n")
runtime.release()
gc.collect()
"""


def test_r8_stuck_calls_are_reported_with_their_stacks_and_the_process_ends(file: Path) -> None:
    tests = Path(__file__).resolve().parents[1] / "python"
    done = subprocess.run(
        [sys.executable, "-c", STUCK, str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[2, 2]\nFalse\n")
    assert done.stdout.count("a call ignores its cancellation") == 2
    assert done.stdout.count("at sleeps, <isolated.py") == 2


NEVER = """
import os
import sys
import threading
import pyarrow as pa
from arroyo_udf_plugin import load
from waiting import until
plugin = load(sys.argv[1], isolation="subinterpreter", workers=2)
function = plugin.functions[sys.argv[2]]
if sys.argv[2] == "spins":
    reads, writes = os.pipe()
    threading.Thread(target=function, args=(pa.array([writes]),), daemon=True).start()
    os.read(reads, 1)
else:
    runtime = function.start(allowed_in_flight=4)
    runtime.send(0, pa.array([1, 1]))
    until(lambda: runtime.statistics().running > 0, "a call")
"""


@pytest.mark.parametrize("function", ["sleeps", "blocks", "ignores", "spins"])
def test_r18_a_process_ends_while_calls_never_return(file: Path, function: str) -> None:
    tests = Path(__file__).resolve().parents[1] / "python"
    done = subprocess.run(
        [sys.executable, "-c", NEVER, str(file), function],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_interpreter_with_a_stuck_call_is_not_used_again(file: Path) -> None:
    def use() -> object:
        with load(file, isolation="subinterpreter") as plugin:
            thread = plugin.functions["home"](pa.array([1]))[0].as_py()
            runtime = plugin.functions["sleeps"].start(allowed_in_flight=1)
            runtime.send(0, pa.array([1]))
            until(lambda: runtime.statistics().running == 1, "the call")
            runtime.cancel(0)
            advance(1.5)
            until(lambda: runtime.statistics().stuck == 1, "it to be stuck")
            return thread

    assert use() != use()


FAILS_ONCE = """
import sys
from arroyo_udf_plugin import udf

class FailsOnce:
    failed = False

    def find_spec(self, name, path=None, target=None):
        if name == "asyncio.streams" and not self.failed:
            self.failed = True
            raise MemoryError

sys.meta_path.insert(0, FailsOnce())

@udf
async def double(x: int) -> int:
    return 2 * x
"""


def test_a_start_without_memory_leaves_nothing_half_done(build_plugin: BuildPlugin) -> None:
    """R12: asyncio could not be imported again after an import that failed halfway."""
    with load(build_plugin(FAILS_ONCE, name="fails_once"), isolation="subinterpreter") as plugin:
        double = plugin.functions["double"]
        with pytest.raises(OutOfMemory) as caught:
            double.start()
        assert caught.value.retryable
        assert answers(double, [4])["value"].to_pylist() == [8]


WITHOUT_ROOM = """
import resource, sys
import pyarrow as pa
from arroyo_udf_plugin import load
from arroyo_udf_plugin.errors import OutOfMemory

def limit(free):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + free, resource.RLIM_INFINITY))

def refused(start):
    try:
        start()
    except OutOfMemory as error:
        assert "256 MiB of free address space" in str(error), error
    else:
        raise AssertionError("not refused")

with load(sys.argv[1], isolation="subinterpreter") as plugin:
    double = plugin.functions["double"]
    limit(200 << 20)
    refused(double.start)
    refused(lambda: load(sys.argv[1], isolation="subinterpreter", workers=2))
    limit(4 << 30)
    assert double(pa.array([1, 2])).to_pylist() == [2, 4]
print("done")
"""


def test_a_start_without_room_is_refused(build_plugin: BuildPlugin) -> None:
    path = build_plugin(SOURCE, name="isolated")
    assert subprocess.check_output([sys.executable, "-c", WITHOUT_ROOM, str(path)], text=True) == "done\n"
