"""Sync functions in worker processes: the same answers, and what a crash costs."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import InvalidArgument, InvalidState, Plugin, RowError, UserCodeError, load

Answer = tuple[list[object], list[str | None]]

PYTHON = """
import os
import time
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

from arroyo_udf_plugin import udf


@udf
def plus(a: int, b: int) -> int:
    if a == 13:
        raise ValueError("unlucky")
    return a + b


@udf
def greet(name: str | None) -> str | None:
    return None if name == "nobody" else f"hello {name}"


@udf
def at(moment: datetime) -> datetime:
    return moment


@udf
def price(cents: Decimal, count: int) -> Decimal:
    return cents * count


@udf
def items(words: list[str]) -> list[str]:
    return [word.upper() for word in words]


@udf(vectorized=True)
def twice(a: pa.Int64Array) -> pa.Int64Array:
    return pa.array([None if x is None else 2 * x for x in a.to_pylist()], pa.int64())


@udf
def dies(a: int) -> int:
    if a == 7:
        os.kill(os.getpid(), 11)
    if a == 8:
        os._exit(3)
    return a * 10


@udf(vectorized=True)
def all_die(a: pa.Int64Array) -> pa.Int64Array:
    os._exit(4)


@udf
def worker(a: int) -> int:
    return os.getpid()


called = 0


@udf
def waits_for_the_others(a: int) -> int:
    global called
    called += 1
    path = f"{__file__}.{os.getppid()}"
    if a == 0:
        while not os.path.exists(path):
            time.sleep(0.001)  # between two looks; no result depends on its length
    elif called == 7 * 256:
        open(path, "x").close()
    return os.getpid()


@udf
def group(a: int) -> int:
    return os.getpgid(0)
"""


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(PYTHON, name="isolated")


@pytest.fixture
def plugin(file: Path) -> Iterator[Plugin]:
    with load(file, isolation="process") as plugin:
        yield plugin


def answers(plugin: Plugin, function: str, *columns: pa.Array) -> Answer:
    """The values and the errors' texts, row by row."""
    outcomes = plugin.functions[function].outcomes(*columns)
    names = [field.name for field in outcomes.type]
    errors = outcomes.field("error").to_pylist() if "error" in names else [None] * len(outcomes)
    return outcomes.field("value").to_pylist(), errors


def test_values_of_all_kinds_are_as_in_a_thread(file: Path, plugin: Plugin) -> None:
    here = load(file)
    text = pa.array(["a", None, "nobody", "\u20ac" * 1000])
    numbers = pa.array(range(1000), pa.int64())
    moments = pa.array([0, -1, None], pa.timestamp("us"))
    decimals = pa.array(["1.50", "-2.00", None]).cast(pa.decimal128(38, 9))
    lists = pa.array([["a"], [], None, ["b", "c"]])
    batches = {
        "plus": (numbers, numbers),
        "greet": (text,),
        "twice": (pa.array([1, None, 3]),),
        "at": (moments.cast(here.functions["at"].arguments[0].type),),
        "price": (decimals.cast(here.functions["price"].arguments[0].type), numbers[:3]),
        "items": (lists,),
    }
    for name, columns in batches.items():
        assert answers(plugin, name, *columns) == answers(here, name, *columns), name
        slices = [column[1:] for column in columns]
        assert answers(plugin, name, *slices) == answers(here, name, *slices), name
        nothing = [column[:0] for column in columns]
        assert answers(plugin, name, *nothing) == answers(here, name, *nothing), name


def test_r2_an_exception_is_the_error_of_its_row_with_its_number_in_the_batch(file: Path, plugin: Plugin) -> None:
    numbers = pa.array(range(20), pa.int64())
    assert answers(plugin, "plus", numbers, numbers) == answers(load(file), "plus", numbers, numbers)
    with pytest.raises(RowError, match=r"isolated.plus, row 13: ValueError: unlucky"):
        plugin.functions["plus"](numbers, numbers)


def test_a_crash_costs_the_row_in_hand_and_says_how_the_process_ended(plugin: Plugin) -> None:
    values, errors = answers(plugin, "dies", pa.array(range(12), pa.int64()))
    assert values == [a * 10 if a not in (7, 8) else None for a in range(12)]
    assert errors[7] == "isolated.dies, row 7: the worker process was killed by signal 11 (SIGSEGV) during this call"
    assert errors[8] == "isolated.dies, row 8: the worker process ended with exit status 3 during this call"
    assert [row for row, text in enumerate(errors) if text] == [7, 8]


def test_a_crash_of_a_vectorized_function_costs_its_batch_and_the_next_one_runs(plugin: Plugin) -> None:
    values, errors = answers(plugin, "all_die", pa.array([1, 2], pa.int64()))
    how = "the worker process ended with exit status 4 during a call for a batch with this row"
    assert values == [None, None]
    assert errors == [f"isolated.all_die, row {row}: {how}" for row in range(2)]
    assert plugin.functions["twice"](pa.array([1, 2], pa.int64())).to_pylist() == [2, 4]


def test_a_worker_that_is_killed_between_two_calls_costs_no_row(plugin: Plugin) -> None:
    one = pa.array([1], pa.int64())
    process = plugin.functions["worker"](one)[0].as_py()
    assert process != os.getpid()
    descriptor = os.pidfd_open(process)
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOWAIT)
    os.close(descriptor)
    assert plugin.functions["worker"](one)[0].as_py() != process


def test_a_worker_is_not_in_the_process_group_that_a_terminal_interrupts(plugin: Plugin) -> None:
    assert plugin.functions["group"](pa.array([1], pa.int64()))[0].as_py() != os.getpgid(0)


def test_a_batch_larger_than_any_before_has_room(plugin: Plugin) -> None:
    for size in (10, 100_000, 3):
        text = pa.array(["x" * 100] * size)
        assert plugin.functions["greet"](text).to_pylist() == ["hello " + "x" * 100] * size


def test_several_workers_share_a_batch_and_keep_its_order(file: Path) -> None:
    numbers = pa.array(range(2_000), pa.int64())
    with load(file, isolation="process", workers=2) as plugin:
        assert len(set(plugin.functions["worker"](numbers).to_pylist())) == 2
        assert answers(plugin, "plus", numbers, numbers) == answers(load(file), "plus", numbers, numbers)
        assert answers(plugin, "dies", numbers)[0] == [a * 10 if a not in (7, 8) else None for a in range(2_000)]


def test_a_worker_that_is_done_takes_the_next_share(file: Path) -> None:
    """A share of one worker waits until the other one has run all the rest."""
    numbers = pa.array(range(8 * 256), pa.int64())
    with load(file, isolation="process", workers=2) as plugin:
        processes = plugin.functions["waits_for_the_others"](numbers).to_pylist()
    assert [processes.count(process) for process in (processes[0], processes[-1])] == [256, 7 * 256]


def test_several_threads_of_a_host_call_at_once(file: Path) -> None:
    numbers = pa.array(range(1_000), pa.int64())
    expected = [2 * a if a != 13 else None for a in range(1_000)]
    with load(file, isolation="process", workers=2) as plugin:
        got = []
        threads = [
            threading.Thread(target=lambda: got.append(answers(plugin, "plus", numbers, numbers)[0])) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == [expected] * 6


def test_a_closed_plugin_refuses_calls_by_name(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        process = plugin.functions["worker"](pa.array([1], pa.int64()))[0].as_py()
    with pytest.raises(InvalidState, match=r"isolated\.plus: the plugin is closed: load it again"):
        plugin.functions["plus"](pa.array([1]), pa.array([1]))
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    plugin.close()


def test_a_module_that_fails_is_an_error_of_the_call_and_not_of_the_process(build_plugin: Callable[..., Path]) -> None:
    file = build_plugin(
        """
        import os
        from arroyo_udf_plugin import udf

        if "FAIL_AT_RUN" in os.environ:
            raise OSError("no model file")

        @udf
        def f(a: int) -> int:
            return a
        """,
        name="broken",
    )
    os.environ["FAIL_AT_RUN"] = "1"
    try:
        with load(file, isolation="process") as plugin, pytest.raises(UserCodeError, match="no model file"):
            plugin.functions["f"](pa.array([1]))
    finally:
        del os.environ["FAIL_AT_RUN"]


FORKS = """
import os, sys
import pyarrow as pa
from arroyo_udf_plugin import InvalidState, load

with load(sys.argv[1], isolation="process") as plugin:
    one = pa.array([1])
    process = plugin.functions["worker"](one)
    child = os.fork()
    if child == 0:
        try:
            plugin.functions["worker"](one)
        except InvalidState:
            plugin.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert plugin.functions["worker"](one) == process
"""


def test_r13_calls_in_a_forked_child_are_refused_and_the_parents_worker_lives_on(plugin: Plugin) -> None:
    """In a process of its own: CPython ends the forked child of one that has had subinterpreters."""
    done = subprocess.run([sys.executable, "-c", FORKS, plugin.path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"isolation": "fiber"}, "isolation='fiber': write one of 'thread', 'subinterpreter', 'process'"),
        ({"isolation": "process", "workers": 0}, 'workers=0: it is a number from 1 on, or "auto"'),
        ({"workers": 2}, 'workers=2 with isolation="thread"'),
        ({"memory_limit": 1 << 30}, 'memory_limit is for isolation="process"'),
        ({"isolation": "process", "cpu_limit": 0}, "cpu_limit=0: it is a whole number from 1 on"),
    ],
)
def test_a_wrong_choice_is_refused_by_name(file: Path, options: dict[str, object], wrong: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load(file, **options)  # type: ignore[arg-type]
    assert wrong in str(refused.value)
