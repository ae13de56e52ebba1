"""Blocking functions: rows in threads (R4), outcomes (R1, R2, F3), timeouts (R6), stuck calls (R8), context variables
(R11), Context (R12), stop (R13), the interpreter's end (R18), and mistakes in the source (F5)."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import advance, drained, rest, until

from arroyo_udf_plugin import BuildError, Function, InvalidState, Runtime, UserCodeError, build, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import contextvars
import dataclasses
import threading
from arroyo_udf_plugin import udf

gates: dict[int, threading.Event] = {}

def gate(number: int) -> threading.Event:
    return gates.setdefault(number, threading.Event())

@udf(blocking=True)
def plus(x: int) -> int:
    return x + 1

@udf(blocking=True, timeout=60.0)
def passes(number: int, opens: int | None) -> int:
    '''Opens a gate, or waits for its own.'''
    if opens is not None:
        gate(opens).set()
        return number
    waiting.append(number)
    gate(number).wait()
    return number

waiting: list[int] = []

@udf(blocking=True)
def waits(number: int) -> int:
    '''How many calls have come to a gate.'''
    return waiting.count(number)

four = threading.Barrier(4)
threads: set[int] = set()

@udf(blocking=True, allowed_in_flight=4)
def together(x: int) -> int:
    '''Needs four threads at a time; with fewer it waits for ever.'''
    threads.add(threading.get_ident())
    four.wait()
    return len(threads)

@udf(blocking=True)
def word(x: int) -> str:
    if x == 1:
        raise ValueError("no")
    if x == 2:
        raise SystemExit(2)
    if x == 3:
        raise KeyboardInterrupt
    if x == 4:
        return None
    if x == 5:
        return 5
    return f"word {x}"

variable = contextvars.ContextVar("variable", default=0)

@udf(blocking=True, allowed_in_flight=2)
def remembers(x: int) -> int:
    before = variable.get()
    variable.set(x)
    return before

@udf(blocking=True)
def runs_a_loop(x: int) -> int:
    async def main() -> int:
        await asyncio.sleep(0)
        return x
    return asyncio.run(main())

@dataclasses.dataclass
class Point:
    x: int
    y: list[str] | None

@udf(blocking=True, allowed_in_flight=3)
def flipped(point: Point) -> Point:
    return Point(-point.x, point.y and point.y[::-1])

class Context:
    made = 0
    closed = 0
    def init(self) -> None:
        Context.made += 1
        self.number = Context.made
    def close(self) -> None:
        Context.closed += 1

@udf(blocking=True)
def context(context: Context, x: int) -> int:
    return context.number * 1000 + x

@udf(blocking=True)
def counts(x: int) -> int:
    return Context.made * 1000 + Context.closed

class Broken:
    def init(self) -> None:
        raise ValueError("no database")

@udf(blocking=True)
def broken(context: Broken, x: int) -> int:
    return x

class Unclosable:
    def close(self) -> None:
        raise ValueError("still busy")

@udf(blocking=True)
def unclosable(context: Unclosable, x: int) -> int:
    return x
"""
ERROR, TIMED_OUT, CANCELLED = 1, 2, 3


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="blocking")).functions


@pytest.fixture
def opens(functions: dict[str, Function]) -> Iterator[Callable[[int], None]]:
    """Opens a gate of `passes`."""
    with functions["passes"].start() as opener:
        ids = iter(range(100))

        def open_gate(number: int) -> None:
            opener.send(next(ids), ints(0), ints(number))

        yield open_gate
        opener.stop()
        rest(opener)


def stopped_when_idle(runtime: Runtime) -> bool:
    """Stops once all calls have returned; whether none is stuck then."""
    until(lambda: runtime.statistics().running == 0, "all calls to return")
    return runtime.stop()


def all_of(function: Function, *columns: pa.Array, **options: Any) -> pa.Table:
    with function.start(**options) as runtime:
        runtime.send(0, *columns)
        assert runtime.stop()
        return rest(runtime)


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def pool_threads() -> int:
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            names.append(Path(f"/proc/self/task/{task}/comm").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return names.count("udf-pool\n")


def test_rows_in_results_out(functions: dict[str, Function]) -> None:
    """F3: the function is not called for a null."""
    results = all_of(functions["plus"], pa.chunked_array([[1, None, 3], [4]]))
    assert results["id"].to_pylist() == [0, 1, 2, 3]
    assert results["value"].to_pylist() == [2, None, 4, 5]
    assert results["outcome"].to_pylist() == [0] * 4
    assert results["attempts"].to_pylist() == [1] * 4


def test_many_rows(functions: dict[str, Function]) -> None:
    """R1, R5: a hundred threads, ten batches of a thousand rows."""
    ids: list[int] = []
    values: list[int] = []
    with functions["plus"].start() as runtime:
        for first in range(0, 10_000, 1000):
            runtime.send(first, ints(*range(first, first + 1000)))
            while (results := runtime.drain_results()) is not None:
                ids += results["id"].to_pylist()
                values += results["value"].to_pylist()
        runtime.stop()
        results = rest(runtime)
    assert ids + results["id"].to_pylist() == list(range(10_000))
    assert values + results["value"].to_pylist() == list(range(1, 10_001))


def test_order(functions: dict[str, Function], opens: Callable[[int], None]) -> None:
    """R5: the second row ends first; only with ordered=False it comes out first."""
    with functions["passes"].start(ordered=True) as runtime:
        runtime.send(0, ints(100, 0), ints(None, 0))
        until(lambda: runtime.statistics().held == 1, "the second row to end")
        assert runtime.drain_results() is None
        opens(100)
        assert drained(runtime, 2)["id"].to_pylist() == [0, 1]
    with functions["passes"].start(ordered=False) as runtime:
        runtime.send(0, ints(101, 0), ints(None, 0))
        assert drained(runtime, 1)["id"].to_pylist() == [1]
        opens(101)
        assert drained(runtime, 1)["id"].to_pylist() == [0]


def test_as_many_threads_as_allowed(functions: dict[str, Function]) -> None:
    """R4"""
    results = all_of(functions["together"], ints(*range(40)))
    assert results["outcome"].to_pylist() == [0] * 40
    assert results["value"].to_pylist()[-1] == 4


def test_outcomes(functions: dict[str, Function]) -> None:
    """R1, R2, F4: each row is answered once, and one row's failure touches no other."""
    results = all_of(functions["word"], ints(0, 1, 2, 3, 4, 5, 6))
    assert results["outcome"].to_pylist() == [0] + [ERROR] * 5 + [0]
    assert results["value"].to_pylist() == ["word 0", None, None, None, None, None, "word 6"]
    texts = results["error"].to_pylist()
    for row, text in ((1, "ValueError: no"), (2, "SystemExit: 2"), (3, "KeyboardInterrupt"), (4, "None"), (5, "int")):
        assert text in texts[row]
        assert f"blocking.word, row {row}: " in texts[row]
    assert "at word" in texts[1]


def test_structs(functions: dict[str, Function]) -> None:
    """Values that pyarrow converts, on several threads, in batches that may lie at the same address."""
    kind = pa.struct([pa.field("x", pa.int64(), False), pa.field("y", pa.list_(pa.field("item", pa.utf8(), False)))])
    with functions["flipped"].start() as runtime:
        for batch in range(200):
            rows: list[dict[str, Any]] = [{"x": 10 * batch + i, "y": [str(i), "end"]} for i in range(1, 4)]
            runtime.send(3 * batch, pa.array(rows, kind))
            expected = [{"x": -row["x"], "y": row["y"][::-1]} for row in rows]
            assert drained(runtime, 3)["value"].to_pylist() == expected
        runtime.stop()


def test_context_variables(functions: dict[str, Function]) -> None:
    """R11: each call has its own context, although threads are reused."""
    assert all_of(functions["remembers"], ints(*range(1, 50)))["value"].to_pylist() == [0] * 49


def test_a_loop_of_its_own(functions: dict[str, Function]) -> None:
    assert all_of(functions["runs_a_loop"], ints(1, 2, 3))["value"].to_pylist() == [1, 2, 3]


def test_timeout(functions: dict[str, Function], opens: Callable[[int], None]) -> None:
    """R6: the row times out at its deadline while the thread still waits; the thread counts until it returns."""
    with functions["passes"].start(timeout=0.05, allowed_in_flight=1, max_stuck=9) as runtime:
        runtime.send(0, ints(300), ints(None))
        results = drained(runtime, 1)
        assert results["outcome"].to_pylist() == [TIMED_OUT]
        assert results["error"].to_pylist()[0]
        runtime.send(1, ints(0), ints(301))
        opens(300)
        assert drained(runtime, 1)["id"].to_pylist() == [1]
        assert stopped_when_idle(runtime)


def test_cancel(functions: dict[str, Function], opens: Callable[[int], None]) -> None:
    """A running row is answered at once, and its thread goes on; for a waiting row, the function is never called."""
    with functions["passes"].start(allowed_in_flight=1, max_stuck=9) as runtime:
        runtime.send(0, ints(400, 401, 0), ints(None, None, 402))
        runtime.cancel(0, 2)
        assert drained(runtime, 2)["outcome"].to_pylist() == [CANCELLED, CANCELLED]
        opens(400)
        assert drained(runtime, 1)["outcome"].to_pylist() == [0]
        assert stopped_when_idle(runtime)


def test_stop_while_busy(functions: dict[str, Function], opens: Callable[[int], None]) -> None:
    """R13: a drain waits for accepted rows; send is refused from then on."""
    with functions["passes"].start(allowed_in_flight=2) as runtime:
        runtime.send(0, ints(500, 500, 0, 0), ints(None, None, 501, 501))
        stopped: list[bool] = []
        stopper = threading.Thread(target=lambda: stopped.append(runtime.stop("drain")))
        stopper.start()
        opens(500)
        stopper.join()
        assert stopped == [True]
        with pytest.raises(InvalidState):
            runtime.send(4, ints(0), ints(0))
        assert rest(runtime)["outcome"].to_pylist() == [0] * 4


@pytest.mark.parametrize("mode", ["drain", "cancel"])
def test_stop_gives_up_on_a_call_that_does_not_return(
    functions: dict[str, Function], opens: Callable[[int], None], mode: Any
) -> None:
    """R1, R13: every row is answered, and the threads end when their calls do."""
    number = {"drain": 600, "cancel": 601}[mode]
    before = pool_threads()
    with functions["passes"].start(allowed_in_flight=2, ordered=False) as runtime:
        runtime.send(0, ints(0, number, number, number), ints(700, None, None, None))
        assert drained(runtime, 1)["id"].to_pylist() == [0]
        assert runtime.stop(mode, deadline=0) is False
        results = rest(runtime)
        assert results["outcome"].to_pylist() == [CANCELLED] * 3
        assert sorted(results["id"].to_pylist()) == [1, 2, 3]
    opens(number)
    until(lambda: pool_threads() <= before, "the threads to end")


def test_stuck_calls(
    functions: dict[str, Function], opens: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    """R8: reported once, with their stack, and out of the cap."""

    def reports() -> list[str]:
        return [record.getMessage() for record in caplog.records if "blocking.passes" in record.getMessage()]

    with functions["passes"].start(allowed_in_flight=2, max_stuck=9) as runtime:
        runtime.send(0, ints(800, 800), ints(None, None))
        until(lambda: all_of(functions["waits"], ints(800))["value"].to_pylist() == [2], "the calls")
        advance(120)
        assert drained(runtime, 2)["outcome"].to_pylist() == [TIMED_OUT, TIMED_OUT]
        runtime.send(2, ints(*range(20)), ints(*[801] * 20))
        drained(runtime, 20)
        until(lambda: runtime.statistics().stuck == 2 and len(reports()) == 2, "two reports")
        opens(800)
        assert stopped_when_idle(runtime)
    texts = reports()
    assert sorted(text.split(":")[0] for text in texts) == ["blocking.passes, row 0", "blocking.passes, row 1"]
    assert all("gate(number).wait()" in text for text in texts)


def test_context(functions: dict[str, Function]) -> None:
    """R12: one per runtime, opened before its first row, closed at its stop; its methods are plain functions."""

    def counts() -> tuple[int, int]:
        return divmod(int(all_of(functions["counts"], ints(0))["value"][0].as_py()), 1000)

    made, closed = counts()
    with functions["context"].start() as one, functions["context"].start() as two:
        assert counts() == (made + 2, closed)
        one.send(0, ints(1, 2))
        two.send(0, ints(3))
        one.stop()
        assert counts() == (made + 2, closed + 1)
        two.stop()
        numbers = rest(one)["value"].to_pylist() + rest(two)["value"].to_pylist()
    assert sorted(n % 1000 for n in numbers) == [1, 2, 3]
    assert {n // 1000 for n in numbers} == {made + 1, made + 2}
    assert counts() == (made + 2, closed + 2)


def test_context_that_fails(functions: dict[str, Function]) -> None:
    before = pool_threads()
    with pytest.raises(UserCodeError, match=r"blocking\.broken: start failed: ValueError: no database"):
        functions["broken"].start()
    until(lambda: pool_threads() <= before, "the threads to end")


def test_context_that_does_not_close(functions: dict[str, Function]) -> None:
    with functions["unclosable"].start() as runtime:
        runtime.send(0, ints(1))
        with pytest.raises(UserCodeError, match="close failed: ValueError: still busy"):
            runtime.stop()
        assert rest(runtime)["value"].to_pylist() == [1]


def test_threads_end_with_their_runtimes(functions: dict[str, Function]) -> None:
    """R13: a thousand times, busy or idle."""
    before = pool_threads()
    for cycle in range(1000):
        with functions["plus"].start(allowed_in_flight=1 + cycle % 4) as runtime:
            runtime.send(0, ints(*range(cycle % 10)))
            runtime.stop("cancel" if cycle % 3 else "drain")
            assert rest(runtime).num_rows == cycle % 10
        assert pool_threads() <= before + 50, "threads of ended pools end soon and do not add up"
    until(lambda: pool_threads() <= before, "the last threads to end")


BUSY = """
import itertools
import os
import time
from arroyo_udf_plugin import udf

reading, writing = os.pipe()

@udf(blocking=True, timeout=1000.0)
def busy(x: int) -> int:
    for i in itertools.count():
        if x == 1:
            time.sleep(0.0001)  # the case itself: a thread that releases the GIL and takes it again
        elif x == 2:
            os.read(reading, 1)
        else:
            sum(range(i % 1000))
"""

CHILD = """
import sys
import time
import pyarrow as pa
from arroyo_udf_plugin import load
runtime = load(sys.argv[1]).functions["busy"].start()
runtime.send(0, pa.array([1, 2, 3, 1, 1, 1]))
while runtime.statistics().running < 6:
    time.sleep(0.001)  # between two looks: releases the GIL, so that the calls can begin
print("leaves")
"""


def test_interpreter_ends_while_threads_are_blocked(build_plugin: BuildPlugin) -> None:
    """R18: calls still sleep, read and compute, and the process exits with status 0."""
    plugin = build_plugin(BUSY, name="busy")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(plugin)], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout) == (0, "leaves\n"), done.stderr
        assert "Fatal" not in done.stderr


def test_bare_host_ends_while_threads_are_blocked(
    build_plugin: BuildPlugin, bare_host: Callable[..., list[str]]
) -> None:
    assert "SIGINT is the host's" in bare_host(build_plugin(BUSY, name="busy"), threads=2)


@pytest.mark.parametrize("suffix", [".py", ".rs"])
def test_example(build_plugin: BuildPlugin, examples: Path, tmp_path: Path, suffix: str) -> None:
    size = load(build_plugin(examples / "blocking" / f"udf{suffix}")).functions["size"]
    (tmp_path / "three").write_text("abc")
    (tmp_path / "none").write_text("")
    paths = pa.array([str(tmp_path / "three"), str(tmp_path / "absent"), None, str(tmp_path / "none")])
    results = all_of(size, paths)
    assert results["value"].to_pylist() == [3, None, None, 0]
    assert results["outcome"].to_pylist() == [0, ERROR, 0, 0]
    assert "No such file" in results["error"].to_pylist()[1]


HEAD = "from arroyo_udf_plugin import udf\nclass Opened:\n    async def init(self) -> None: ...\n"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("@udf(blocking=True)\nasync def f(x: int) -> int: return x", "is async, and blocking=True"),
        ("@udf(blocking=True, vectorized=True)\ndef f(x: int) -> int: return x", "leave one out"),
        ("@udf(blocking=1)\ndef f(x: int) -> int: return x", "blocking=1; write True or False"),
        ("@udf(blocking=False, seed=1)\ndef f(x: int) -> int: return x", "'seed' is for async functions"),
        ("@udf(blocking=True, timeout=0)\ndef f(x: int) -> int: return x", "timeout=0; write seconds"),
        ("@udf(blocking=True)\ndef f(opened: Opened, x: int) -> int: return x", "write `def init(self) -> None`"),
        ("@udf(blocking=True)\ndef f(x: int) -> int: yield x", "write `return`"),
    ],
)
def test_mistakes(tmp_path: Path, function: str, said: str) -> None:
    """F5: refused at build time, with file, line and the cure."""
    source = tmp_path / "mine.py"
    source.write_text(f"{HEAD}{function}\n")
    with pytest.raises(BuildError) as caught:
        build(source, tmp_path / "mine.so")
    assert said in str(caught.value)
    assert caught.value.line == HEAD.count("\n") + 1
