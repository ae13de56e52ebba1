"""call_info (R10) in async and blocking functions, and in the tasks and threads that they start.

Runs on uvloop if installed; `test_with_the_standard_loop` repeats all of it on asyncio's own loop."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance, drained, until

from arroyo_udf_plugin import CallInfo, Function, call_info, load

SOURCE = """
import asyncio
import contextvars
import threading
import time
from arroyo_udf_plugin import call_info, call_infos, udf

def told() -> str:
    info = call_info()
    left = None if info.deadline is None else info.deadline - time.monotonic()
    return f"{info.row_id} {info.attempt} {info.idempotency_key.hex()} {left}"

@udf(timeout=1000.0)
async def says(x: int) -> str:
    first = told().rpartition(" ")[0]
    await asyncio.sleep(0)
    assert told().rpartition(" ")[0] == first
    return told()

@udf
async def at_once(x: int) -> int:
    return call_info().row_id

@udf(blocking=True, timeout=1000.0)
def says_blocking(x: int) -> str:
    return told()

@udf(retry_on="error", max_attempts=3, backoff=0.001)
async def third(x: int) -> str:
    if call_info().attempt < 3:
        raise ValueError(told())
    return told()

@udf(blocking=True, retry_on="error", max_attempts=3, backoff=0.001)
def third_blocking(x: int) -> str:
    if call_info().attempt < 3:
        raise ValueError(told())
    return told()

keys: dict[int, list[bytes]] = {}

@udf(retry_on=("timeout", "error"), max_attempts=4, backoff=0.001)
async def keeps_its_key(x: int) -> int:
    info = call_info()
    keys.setdefault(x, []).append(info.idempotency_key)
    if info.attempt == 1:
        await asyncio.Event().wait()
    if info.attempt == 2:
        raise ValueError("again")
    return len(set(keys[x])) * 10 + len(keys[x])

@udf
async def kept_keys(x: int) -> int:
    return sum(map(len, keys.values()))

async def child(pause: int) -> int:
    for _ in range(pause):
        await asyncio.sleep(0)
    return call_info().row_id

@udf(allowed_in_flight=3)
async def family(x: int) -> str:
    async with asyncio.TaskGroup() as group:
        one = group.create_task(child(x % 3))
        two = group.create_task(child(x % 5))
    gathered = await asyncio.gather(child(0), child(2), asyncio.to_thread(lambda: call_info().row_id))
    alone = await asyncio.create_task(child(1))
    direct = await asyncio.Task(child(1), loop=asyncio.get_running_loop())
    later: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: later.set_result(call_info().row_id))
    seen = {one.result(), two.result(), *gathered, alone, direct, await later}
    return " ".join(map(str, sorted(seen)))

go = asyncio.Event()
tasks: list[asyncio.Task[int]] = []
mark = contextvars.ContextVar("mark", default=0)

async def orphan(x: int) -> int:
    if x % 2:
        mark.set(x)
    await go.wait()
    return call_info().row_id

@udf(allowed_in_flight=1)
async def leaves(x: int) -> int:
    '''Its Task asks only after other rows have run in the same slot.'''
    tasks.append(asyncio.create_task(orphan(x)))
    await asyncio.sleep(0)
    return x

@udf(allowed_in_flight=1)
async def joins(x: int) -> str:
    go.set()
    return " ".join(map(str, [call_info().row_id, *await asyncio.gather(*tasks)]))

@udf(allowed_in_flight=1)
async def slot(x: int) -> int:
    '''The Task that runs the row.'''
    call_info()
    return id(asyncio.current_task())

@udf(blocking=True)
def thread_of_its_own(x: int) -> int:
    seen: list[int] = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: seen.append(context.run(lambda: call_info().row_id)))
    thread.start()
    thread.join()
    return seen[0]

class Context:
    async def init(self) -> None:
        try:
            call_info()
        except RuntimeError as error:
            self.error = str(error)

@udf
async def within_init(context: Context, x: int) -> str:
    return context.error

@udf(batch_size=4, max_wait="1h", retry_on="error", max_attempts=2, backoff=0.001)
async def batched(x: list[int]) -> list[str]:
    '''A negative number fails the call.'''
    try:
        return [call_info()]
    except RuntimeError as error:
        assert "use call_infos()" in str(error)
    await asyncio.sleep(0)
    if min(x) < 0:
        raise ValueError("negative")
    pairs = zip(call_infos(), x, strict=True)
    return [f"{one.row_id} {one.attempt} {one.idempotency_key.hex()} {number}" for one, number in pairs]

@udf
async def one_of_one(x: int) -> int:
    (info,) = call_infos()
    assert info == call_info()
    return info.row_id

@udf(native=False)
def sync(x: int) -> int:
    return call_info().row_id
"""

LINEAGE = bytes(range(1, 17))


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="call_info")).functions


def answers(function: Function, rows: Sequence[int | None], first: int = 0, **options: Any) -> list[dict[str, Any]]:
    with function.start(**options) as runtime:
        runtime.send(first, pa.array(rows, pa.int64()))
        runtime.stop()
        out: list[dict[str, Any]] = []
        while (batch := runtime.drain_results()) is not None:
            out += batch.to_pylist()
    assert len(out) == len(rows)
    return out


def key(row: int, lineage: bytes = LINEAGE) -> bytes:
    return lineage + row.to_bytes(8, "big")


@pytest.mark.parametrize("name", ["says", "says_blocking"])
def test_r10_row_attempt_key_deadline(functions: dict[str, Function], name: str) -> None:
    before = time.monotonic()
    rows = answers(functions[name], list(range(200)), first=2**40, lineage=LINEAGE)
    passed = time.monotonic() - before
    for row in rows:
        row_id, attempt, told_key, left = row["value"].split()
        assert (int(row_id), int(attempt)) == (row["id"], 1)
        assert bytes.fromhex(told_key) == key(row["id"])
        assert 1000.0 - passed <= float(left) <= 1000.0


def test_r10_each_row_sees_itself(functions: dict[str, Function]) -> None:
    """Rows that do not suspend follow each other within one slot."""
    assert [row["value"] for row in answers(functions["at_once"], [0] * 5000)] == list(range(5000))


@pytest.mark.parametrize("name", ["says", "says_blocking"])
def test_r10_no_deadline(functions: dict[str, Function], name: str) -> None:
    (row,) = answers(functions[name], [0], timeout=float("inf"))
    assert row["value"].split()[-1] == "None"


@pytest.mark.parametrize("name", ["says", "says_blocking"])
def test_r10_the_rows_deadline_is_the_calls_where_it_is_earlier(functions: dict[str, Function], name: str) -> None:
    (row,) = answers(functions[name], [0], deadline=500.0)
    assert float(row["value"].split()[-1]) <= 500.0


@pytest.mark.parametrize("name", ["third", "third_blocking"])
def test_r10_a_retry_has_another_number_and_the_same_key(functions: dict[str, Function], name: str) -> None:
    rows = answers(functions[name], list(range(50)), lineage=LINEAGE)
    assert [row["value"].split()[:3] for row in rows] == [[str(i), "3", key(i).hex()] for i in range(50)]
    (row,) = answers(functions[name], [0], first=70, lineage=LINEAGE, max_attempts=2)
    assert f"ValueError: 70 2 {key(70).hex()}" in row["error"]


def test_r10_the_key_is_the_same_after_errors_and_timeouts(functions: dict[str, Function]) -> None:
    with functions["keeps_its_key"].start(timeout=1000) as runtime:
        runtime.send(0, pa.array(range(20)))
        until(lambda: answers(functions["kept_keys"], [0])[0]["value"] == 20, "the first attempts")
        advance(1000)
        rows = drained(runtime, 20)
    assert rows["value"].to_pylist() == [13] * 20
    assert rows["attempts"].to_pylist() == [3] * 20


def test_r10_a_restore_keeps_the_key_and_counts_anew(functions: dict[str, Function]) -> None:
    def run(**options: Any) -> list[list[str]]:
        return [row["value"].split()[:3] for row in answers(functions["third"], [0, 0], first=5, **options)]

    first, again = run(lineage=LINEAGE), run(lineage=LINEAGE)
    assert first == again == [["5", "3", key(5).hex()], ["6", "3", key(6).hex()]]
    others = [told[2] for told in run() + run()]
    assert len(set(others)) == 4  # each runtime has its own lineage if none is given


def test_r10_tasks_threads_and_callbacks_of_a_call_know_it(functions: dict[str, Function]) -> None:
    assert [row["value"] for row in answers(functions["family"], list(range(100)))] == [str(i) for i in range(100)]


def test_r10_tasks_left_behind_keep_what_they_knew(functions: dict[str, Function]) -> None:
    with functions["leaves"].start() as runtime:
        runtime.send(0, pa.array(range(10)))
        drained(runtime, 10)
        (row,) = answers(functions["joins"], [0], first=77)
        runtime.stop()
    assert row["value"] == " ".join(map(str, [77, *range(10)]))


def test_asking_leaves_no_mark(functions: dict[str, Function]) -> None:
    """One Task runs all rows, as it does without call_info."""
    assert len({row["value"] for row in answers(functions["slot"], list(range(300)))}) == 1


def test_r10_a_thread_with_the_variables_of_a_blocking_call(functions: dict[str, Function]) -> None:
    assert [row["value"] for row in answers(functions["thread_of_its_own"], [0] * 30)] == list(range(30))


def test_r10_a_micro_batch_sees_all_of_its_rows(functions: dict[str, Function]) -> None:
    """F3: and only the rows in its lists, also after a split (R7)."""
    numbers = [7, None, 5, 4, 3, 2, -1, 0, None, None]
    rows = answers(functions["batched"], numbers, first=100, lineage=LINEAGE)
    assert "negative" in rows[6]["error"]
    assert rows[6]["attempts"] == 2
    for row, number in zip(rows, numbers, strict=True):
        if number is None:
            assert (row["outcome"], row["value"]) == (0, None)
        elif number >= 0:
            assert row["value"] == f"{row['id']} 1 {key(row['id']).hex()} {number}"
    assert [row["value"] for row in answers(functions["one_of_one"], [0, 0])] == [0, 1]


def test_outside_of_a_call(functions: dict[str, Function]) -> None:
    with pytest.raises(RuntimeError, match=r"call_info\(\) outside of a call: it is for async and blocking functions"):
        call_info()
    (row,) = answers(functions["within_init"], [0])
    assert row["value"].startswith("call_info() outside of a call")
    assert "call_info() outside of a call" in functions["sync"].outcomes(pa.array([1])).field("error")[0].as_py()


def test_it_is_frozen_and_compares() -> None:
    info = CallInfo(1, 2, 3.0, b"k")
    assert info == CallInfo(1, 2, 3.0, b"k")
    with pytest.raises(AttributeError):
        info.attempt = 3  # type: ignore[misc]


def test_example(
    build_plugin: Callable[..., Path], examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run and its restore book each row once."""
    monkeypatch.setenv("BOOKINGS_DB", str(tmp_path / "bookings"))
    book = load(build_plugin(examples / "idempotent" / "udf.py")).functions["book"]
    database = sqlite3.connect(tmp_path / "bookings")
    database.execute("CREATE TABLE bookings (key BLOB PRIMARY KEY, account TEXT, amount INTEGER)")
    database.commit()
    for _ in range(2):
        with book.start(lineage=LINEAGE, allowed_in_flight=8) as runtime:  # SQLite lets one write at a time
            runtime.send(0, pa.array(["ann", "bob"] * 50), pa.array(range(100)))
            runtime.stop()
            results = runtime.drain_results()
        assert results is not None
        assert results["outcome"].to_pylist() == [0] * 100, results["error"].to_pylist()
    assert database.execute("SELECT count(*), sum(amount) FROM bookings").fetchone() == (100, 4950)
    database.close()


LOOKED_UP_LATE = """
import arroyo_udf_plugin
from arroyo_udf_plugin import udf

@udf
async def f(x: int) -> int:
    return arroyo_udf_plugin.call_info().row_id
"""


def test_a_source_that_looks_up_call_info_late(build_plugin: Callable[..., Path]) -> None:
    """The first call of a process has its information, too."""
    path = build_plugin(LOOKED_UP_LATE, name="late")
    host = (
        "import sys, pyarrow as pa\n"
        "from arroyo_udf_plugin import load\n"
        "function = load(sys.argv[1]).functions['f']\n"
        "assert 'arroyo_udf_plugin.author.call_info' not in sys.modules\n"
        "with function.start() as runtime:\n"
        "    runtime.send(5, pa.array([0, 0]))\n"
        "    runtime.stop()\n"
        "    print(runtime.drain_results()['value'].to_pylist())\n"
    )
    done = subprocess.run([sys.executable, "-c", host, path], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[5, 6]\n", "")


def test_with_the_standard_loop() -> None:
    """These tests, without uvloop."""
    if sys.modules.get("uvloop", "not imported") is None:
        pytest.skip("this is that run")
    code = "import sys; sys.modules['uvloop'] = None; import pytest; sys.exit(pytest.main(['-q', sys.argv[1]]))"
    done = subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
