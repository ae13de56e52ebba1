"""Calls of async Python functions compared with plain Tasks: asyncio's constructs behave alike, calls do not affect
each other (R2, R11), and tasks that calls leave running end in time (R11, R12).

Runs on uvloop if installed; `test_with_the_standard_loop` repeats all of it on asyncio's own loop."""

import asyncio
import decimal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import advance, answers, drained, rest, until

from arroyo_udf_plugin import Function, load

BuildPlugin = Callable[..., Path]
ERROR, TIMED_OUT, CANCELLED = 1, 2, 3
HERE = Path(__file__).parent
CASES = (HERE / "asyncio_cases.py").read_text()

SOURCE = """
import asyncio
import decimal
import itertools
import sys
import threading
from contextvars import ContextVar
from arroyo_udf_plugin import udf

variable: ContextVar[int] = ContextVar("variable", default=0)
kept: list = []
events: list[str] = []
gates: dict[int, asyncio.Event] = {}
swallows = itertools.count(600)  # gates

def gate(number: int) -> asyncio.Event:
    return gates.setdefault(number, asyncio.Event())

@udf
async def takes_events(x: int) -> str:
    taken = " ".join(events)
    events.clear()
    return taken

@udf
async def looks(x: int) -> str:
    '''What the Tasks of calls show; the first call waits.'''
    if x == 0:
        await gate(700).wait()
        return ""
    shown = [f"{[frame.f_code.co_name for frame in task.get_stack()]} {task!r}" for task in asyncio.all_tasks()]
    gate(700).set()
    return " ".join(shown)

@udf(allowed_in_flight=3)
async def sees(x: int, pause: int) -> int:
    '''0, unless it sees what another call left in the context.'''
    seen = variable.get() + decimal.getcontext().prec - decimal.DefaultContext.prec
    variable.set(x)
    decimal.getcontext().prec = 100
    for _ in range(pause):
        await asyncio.sleep(0)
    return seen

@udf(allowed_in_flight=3)
async def marks(how: str) -> str:
    '''Does something to its own Task that outlasts the call.'''
    task = asyncio.current_task()
    if how == "cancel":
        task.cancel()
    elif how == "uncancel":
        task.cancel()
        task.uncancel()
    elif how == "keep":
        kept.append(task)
    elif how == "name":
        task.set_name("another")
    elif how == "callback":
        task.add_done_callback(lambda task: events.append("called"))
    elif how == "timeout":
        async def ticks():
            async with asyncio.timeout(0.001):
                yield 1
                await asyncio.Event().wait()
        kept.append(ticks())
        await anext(kept[-1])
    elif how == "kill":
        for one in kept:
            if isinstance(one, asyncio.Task):
                one.cancel()
    elif how == "swallow":
        gate(next(swallows)).set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
    for _ in range(3 if how in ("plain", "kill") else 0):
        await asyncio.sleep(0.001)
    return task.get_name()

@udf
async def cancels_all(x: int) -> int:
    if x == 0:
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        return 0
    await gate(100).wait()
    return x

@udf
async def opens(x: int) -> int:
    gate(x).set()
    return x

@udf
async def waits(x: int) -> int:
    await gate(x).wait()
    return x

class Context:
    async def init(self) -> None:
        self.task = asyncio.create_task(self.live("init"))
    async def live(self, name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            events.append(name + " ends")
    async def close(self) -> None:
        variable.set(7)
        events.append("close" if not self.task.done() else "close-after-its-task")

@udf
async def leaves(context: Context, x: int) -> int:
    async def grandchild():
        try:
            await context.live("call")
        finally:
            kept.append(asyncio.create_task(context.live("late")))  # made while it is cancelled
    async def child():
        gate(200 + x).set()
        kept.append(asyncio.create_task(grandchild()))
    kept.append(asyncio.create_task(child()))
    return x

class Entered:
    '''Enters in init, leaves in close.'''
    async def init(self) -> None:
        self.group = asyncio.TaskGroup()
        await self.group.__aenter__()
        self.token = variable.set(5)
    async def close(self) -> None:
        variable.reset(self.token)
        await self.group.__aexit__(None, None, None)
        events.append("left")

@udf
async def entered(context: Entered, x: int) -> int:
    await context.group.create_task(asyncio.sleep(0))
    return variable.get()

class Fails:
    async def init(self) -> None:
        self.task = asyncio.create_task(Context().live("failed"))
        await asyncio.sleep(0)
        sys.exit("no")

@udf
async def fails(context: Fails, x: int) -> int:
    return x

@udf
async def loop_name(x: int) -> str:
    assert threading.get_ident() != threading.main_thread().ident
    return type(asyncio.get_running_loop()).__module__
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="tasks")).functions


@pytest.fixture(scope="module")
def cases(build_plugin: BuildPlugin) -> tuple[dict[str, Any], Function]:
    """The cases as plain coroutine functions and as a plugin."""
    plain: dict[str, Any] = {"__name__": "cases"}
    exec(CASES, plain)
    return plain, load(build_plugin(CASES, name="cases")).functions["case"]


def wait_for(functions: dict[str, Function], *numbers: int) -> None:
    """Waits until the gates are open."""
    table = answers(functions["waits"], numbers)
    assert table["outcome"].to_pylist() == [0] * len(numbers)


def events(functions: dict[str, Function]) -> list[str]:
    text: str = answers(functions["takes_events"], [0])["value"][0].as_py()
    return text.split(" ") if text else []


def plainly(plain: dict[str, Any], program: str) -> str:
    """The result or exception of a program in its own Task."""

    async def main() -> str:
        task = asyncio.create_task(plain["case"].function(program))
        await asyncio.wait([task])
        try:
            result: str = task.result()
            return result
        except BaseException as error:
            return "! " + "".join(traceback.format_exception_only(error)).partition("\n")[0]

    with decimal.localcontext():  # Tasks share the thread's, and a program changes it
        return asyncio.run(main())


def in_slots(function: Function, programs: list[str], **options: Any) -> list[str]:
    table = answers(function, programs, **options)
    assert set(table["outcome"].to_pylist()) <= {0, ERROR}
    assert table["id"].to_pylist() == list(range(len(programs)))
    values = zip(table["value"].to_pylist(), table["error"].to_pylist(), strict=True)
    return [value if error is None else "! " + first_line(error) for value, error in values]


def first_line(error: str) -> str:
    """`Type: message` of a row's error."""
    return error.partition("\n")[0].partition(", row ")[2].partition(": ")[2]


def names() -> list[str]:
    plain: dict[str, Any] = {"__name__": "cases"}
    exec(CASES, plain)
    return sorted(plain["CASES"])


@pytest.mark.parametrize("name", names())
def test_as_in_a_plain_task(cases: tuple[dict[str, Any], Function], name: str) -> None:
    """Twelve times, so that calls follow each other in one slot."""
    plain, function = cases
    expected = plainly(plain, name)
    assert in_slots(function, [name] * 12, allowed_in_flight=3) == [expected] * 12


programs = st.lists(st.text("zsrwtTgGcuekqh", max_size=8).map("p:".__add__), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs=programs, allowed_in_flight=st.integers(1, 5), ordered=st.booleans())
def test_programs_as_in_plain_tasks(
    cases: tuple[dict[str, Any], Function], programs: list[str], allowed_in_flight: int, ordered: bool
) -> None:
    """Sequences of awaits, timeouts, groups, cancellations, variables and errors, nested at random."""
    plain, function = cases
    expected = [plainly(plain, program) for program in programs]
    table = answers(function, programs, allowed_in_flight=allowed_in_flight, ordered=ordered)
    found = {
        row["id"]: row["value"] if row["error"] is None else "! " + first_line(row["error"])
        for row in table.to_pylist()
    }
    assert [found[i] for i in range(len(programs))] == expected


@pytest.mark.parametrize("pause", [0, 1, 3])
def test_context_variables_stay_in_their_call(functions: dict[str, Function], pause: int) -> None:
    """R11; `decimal` keeps its settings in one as well."""
    assert set(answers(functions["sees"], range(1, 500), [pause] * 499)["value"].to_pylist()) == {0}


@pytest.mark.parametrize("how", ["cancel", "uncancel", "keep", "name", "callback", "timeout"])
def test_marks_stay_in_their_call(functions: dict[str, Function], how: str) -> None:
    """R2: changes to a call's own Task never reach a later call."""
    rows = [how, "plain"] * 20 + ["kill"] + ["plain"] * 20
    table = answers(functions["marks"], rows)
    assert table["error"].to_pylist() == [None] * len(rows)
    others = {name for row, name in zip(rows, table["value"].to_pylist(), strict=True) if row != how}
    assert others == {"tasks.marks"}
    assert events(functions) == (["called"] * 20 if how == "callback" else [])


def test_a_swallowed_cancellation(functions: dict[str, Function]) -> None:
    """R6: the row times out, whatever its call returns; the next call in its slot is not affected."""

    with functions["marks"].start(timeout=1000, allowed_in_flight=1) as runtime:
        for turn in range(10):
            runtime.send(2 * turn, pa.array(["swallow", "plain"]))
            wait_for(functions, 600 + turn)
            advance(1000)
            assert drained(runtime, 2)["outcome"].to_pylist() == [TIMED_OUT, 0]
        assert runtime.statistics().discarded == 10, "each call was cancelled, and answered"


def test_cancel_races_with_completion(functions: dict[str, Function]) -> None:
    """R1, R2: a row ends once, as a value or cancelled; those after it in the same slot are untouched.

    Of the ten cancelled rows of a round, five can end at the same moment, and five cannot end otherwise.
    """
    with functions["waits"].start(allowed_in_flight=20) as runtime:
        for round_ in range(30):
            first, number = 100 * round_, 1000 + round_
            runtime.send(first, pa.array([number] * 5 + [999] * 5 + [number] * 40))
            with functions["opens"].start() as opener:
                opener.send(0, pa.array([number]))
                runtime.cancel(first, 10)
                opener.stop("drain")
                opener.drain_results()
            runtime.send(first + 50, pa.array([number] * 50))
        runtime.stop()
        table = rest(runtime)
    assert table["id"].to_pylist() == list(range(3000))
    for id_, outcome in zip(table["id"].to_pylist(), table["outcome"].to_pylist(), strict=True):
        possible = {0, CANCELLED} if id_ % 100 < 5 else {CANCELLED} if id_ % 100 < 10 else {0}
        assert outcome in possible, id_


def test_a_call_that_cancels_every_task_of_the_loop(functions: dict[str, Function]) -> None:
    """Running calls become errors, of this function and of others; the executor's own Tasks go on."""
    with functions["leaves"].start() as other, functions["cancels_all"].start() as runtime:
        other.send(0, pa.array([50]))
        wait_for(functions, 250)
        runtime.send(0, pa.array([1, 2, 3, 0]))
        assert runtime.wait()
        with functions["opens"].start() as opener:
            opener.send(0, pa.array([100]))
            opener.stop()
            rest(opener)
        for first in (4, 8):
            runtime.send(first, pa.array([1, 2, 3, 4]))
            other.send(first, pa.array([5, 6, 7]))
        runtime.stop()
        other.stop()
        assert rest(runtime)["outcome"].to_pylist() == [ERROR] * 3 + [0] * 9
        assert rest(other)["outcome"].to_pylist() == [0] * 7
    assert events(functions)[-1] == "close-after-its-task"


def test_tasks_left_by_calls_and_by_init(functions: dict[str, Function]) -> None:
    """R11, R12: tasks left by calls go on and end before close; those left by init end after it."""
    with functions["leaves"].start() as runtime:
        runtime.send(0, pa.array([0, 1]))
        assert runtime.wait()
        wait_for(functions, 200, 201)
        assert events(functions) == []
        runtime.stop()
        assert rest(runtime).num_rows == 2
        assert runtime.statistics().left_behind == 4
    assert " ".join(events(functions)) == "call ends call ends late ends late ends close init ends"


def test_init_and_close_are_one_task(functions: dict[str, Function]) -> None:
    """close may leave what init entered; calls do not see the variables that init set."""
    assert answers(functions["entered"], [1, 2])["value"].to_pylist() == [0, 0]
    assert events(functions) == ["left"]


def test_tasks_left_by_an_init_that_fails(functions: dict[str, Function]) -> None:
    with pytest.raises(Exception, match="SystemExit: no"):
        functions["fails"].start()
    seen: list[str] = []

    def ended() -> bool:
        seen.extend(events(functions))
        return bool(seen)

    until(ended, "its task to end")
    assert seen == ["failed", "ends"]


def test_the_task_of_a_call_shows_the_authors_function(functions: dict[str, Function]) -> None:
    """To debuggers, and to code that lists the Tasks of the loop."""
    _, shown = answers(functions["looks"], [0, 1], allowed_in_flight=2)["value"].to_pylist()
    assert "['looks']" in shown
    assert "coro=<looks()" in shown


def test_the_loop(functions: dict[str, Function]) -> None:
    """uvloop, if importable."""
    uvloop = sys.modules.get("uvloop", "not imported")
    (name,) = answers(functions["loop_name"], [1])["value"].to_pylist()
    assert name.startswith("asyncio" if uvloop is None else "uvloop")


def test_a_thread_with_the_id_of_the_main_thread(build_plugin: BuildPlugin) -> None:
    """Python may take an ended thread for its main one. If that id is reused, the loop must not run in that thread."""
    program = """
import sys, threading
import pyarrow as pa
from arroyo_udf_plugin import load
functions = load(sys.argv[1]).functions
class Main:
    ident = None
real, asked = threading.main_thread, []
def main_thread():
    if not asked:
        asked.append(threading.get_ident())
        Main.ident = asked[0]
    return Main
from arroyo_udf_plugin.plugin import executor
threading.main_thread = main_thread
with functions["loop_name"].start() as runtime:
    runtime.send(0, pa.array([1]))
    runtime.stop()
    print(runtime.drain_results()["outcome"].to_pylist(), len(asked))
threading.main_thread = real
"""
    plugin = build_plugin(SOURCE, name="tasks")
    done = subprocess.run([sys.executable, "-c", program, plugin], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0] 1\n", "")


def test_with_the_standard_loop() -> None:
    """These tests and others of async functions, without uvloop."""
    if sys.modules.get("uvloop", "not imported") is None:
        return  # this is that run
    program = (
        "import sys; sys.modules['uvloop'] = None; import pytest; "
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *sys.argv[1:]]))"
    )
    files = [__file__, *(str(HERE / f"test_{name}.py") for name in ("async", "executor", "lifecycle"))]
    done = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
