"""Calls of sync functions: accepted and refused arguments, errors of rows, threads, interpreter exit."""

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, InvalidArgument, RowError, UnsupportedCall, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

@udf(native=False)
def through_asyncio(x: int) -> int:
    async def answer() -> int:
        await asyncio.sleep(0)
        if x < 0:
            raise ValueError("below zero")
        return x + 1
    return asyncio.run(answer())

@udf(native=False)
def add(a: int, b: int) -> int:
    return a + b

@udf(native=False)
def word(x: int) -> str:
    return [None, 7, "ok", "\\ud800", b"bytes"][x]

@udf(native=False)
def fails(x: int) -> int:
    raise [ValueError("no"), SystemExit(3), KeyboardInterrupt(), StopIteration(1), MemoryError(), GeneratorExit()][x]

@udf(native=False)
def grouped(x: int) -> int:
    try:
        raise KeyError("cause")
    except KeyError as error:
        if x == 0:
            raise ExceptionGroup("two", [ValueError("first"), ExceptionGroup("inner", [OSError("second")])]) from error
        if x == 1:
            raise ValueError("again")
        if x == 2:
            raise ValueError("alone") from None
        circle = ValueError("circle")
        circle.__cause__ = TypeError("other")
        circle.__cause__.__cause__ = circle
        raise circle

@udf(native=False)
def deep(x: int) -> int:
    return deep(x)

@udf
async def later(x: int) -> int:
    return x
"""
WITH_PYARROW = """
from typing import Annotated

import pyarrow as pa
from arroyo_udf_plugin import udf

@udf(native=False)
def narrow(x: int) -> Annotated[int, pa.int8()]:
    return x

@udf(vectorized=True)
def wrong_length(x: pa.Int64Array) -> pa.Int64Array:
    return x[1:]

@udf(vectorized=True)
def wrong_type(x: pa.Int64Array) -> pa.Int64Array:
    return x.cast("string")

@udf(vectorized=True)
def no_array(x: pa.Int64Array) -> pa.Int64Array:
    return 7

@udf(vectorized=True)
def raises(x: pa.Int64Array) -> pa.Int64Array:
    raise ValueError("not this batch")

@udf(native=False)
def total(items: list[int]) -> int:
    return sum(items)
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="sync")).functions


@pytest.fixture(scope="module")
def of_pyarrow(build_plugin: BuildPlugin) -> Any:
    """Functions whose module needs pyarrow."""
    return load(build_plugin(WITH_PYARROW, name="sync")).functions


class Exporter:
    """An array of another library: it has the protocol alone."""

    def __init__(self, array: pa.Array | pa.ChunkedArray) -> None:
        self._array = array
        if isinstance(array, pa.Array):
            self.__class__ = ArrayExporter
        else:
            self.__class__ = StreamExporter


class ArrayExporter(Exporter):
    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


class StreamExporter(Exporter):
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._array.__arrow_c_stream__(requested_schema)


def test_what_is_accepted(functions: dict[str, Function]) -> None:
    add = functions["add"]
    a, b = pa.array([1, 2, None]), pa.array([10, 20, 30])
    expected = pa.array([11, 22, None])
    assert add(a, b).equals(expected)
    assert add(Exporter(a), b).equals(expected)
    assert add(pa.record_batch([a, b], names=["a", "b"])).equals(expected)
    cut = pa.chunked_array([a[:1], a[1:]])
    assert add(cut, pa.chunked_array([b[:2], b[2:]])).equals(
        pa.chunked_array([expected[:1], expected[1:2], expected[2:]])
    )
    assert add(cut, b).combine_chunks().equals(expected)
    assert add(Exporter(cut), a.fill_null(0)).to_pylist() == [2, 4, None]
    assert add(pa.chunked_array([], pa.int64()), pa.chunked_array([], pa.int64())).equals(
        pa.chunked_array([], pa.int64())
    )
    assert add.outcomes(a, b).equals(pa.StructArray.from_arrays([expected], ["value"]))


def test_list_items_may_be_declared_nullable(of_pyarrow: dict[str, Function]) -> None:
    """Other libraries declare items nullable and name them freely; only the values count."""
    lists = pa.array([[1, 2], []], pa.list_(pa.field("element", pa.int64())))
    assert of_pyarrow["total"](lists).to_pylist() == [3, 0]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (([1],), "takes 2 arguments (a, b), but got 1"),
        (([1], [1], [1]), "takes 2 arguments (a, b), but got 3"),
        ((pa.array(["1"]), [1]), "argument 1, 'a', is string, not int64: convert it first, to pa.int64()"),
        (([1], [1, 2]), "argument 2, 'b', has 2 rows, but the first has 1"),
        ((pa.chunked_array([[1]]), pa.chunked_array([[1, 2]])), "argument 2, 'b', has 2 rows, but the first has 1"),
        ((pa.chunked_array([[True]]), pa.chunked_array([[1]])), "argument 1, 'a', is bool, not int64"),
        ((None, [1]), "argument 1, 'a', is a NoneType; pass an Arrow array: pa.array(..., pa.int64())"),
    ],
)
def test_what_is_refused(functions: dict[str, Function], arrays: tuple[Any, ...], said: str) -> None:
    given = [pa.array(array) if isinstance(array, list) else array for array in arrays]
    with pytest.raises(InvalidArgument) as caught:
        functions["add"](*given)
    assert str(caught.value).startswith("sync.add: ")
    assert said in str(caught.value)


def test_outcomes_of_chunks_are_one_array(functions: dict[str, Function]) -> None:
    cut = pa.chunked_array([[1], [2]])
    assert functions["add"].outcomes(cut, cut).field("value").to_pylist() == [2, 4]


def test_kinds(functions: dict[str, Function]) -> None:
    with pytest.raises(UnsupportedCall):
        functions["add"].start()


def failures(function: Function, rows: list[int]) -> dict[int, str]:
    with pytest.raises(RowError) as caught:
        function(pa.array(rows))
    assert function.name in str(caught.value)
    return caught.value.errors


def test_failed_rows_and_their_neighbours(of_pyarrow: dict[str, Function]) -> None:
    """F4, R2: one row's failure touches no other row."""
    errors = failures(of_pyarrow["narrow"], [127, 128, -128, -129, 2**62])
    assert list(errors) == [1, 3, 4]
    result = of_pyarrow["narrow"].outcomes(pa.array([127, 128]))
    assert {field.name: field.type for field in result.type} == {
        "value": pa.int8(),
        "outcome": pa.uint8(),
        "error": pa.utf8(),
    }
    assert result.field("value").to_pylist() == [127, None]
    assert result.field("outcome").to_pylist() == [0, 1]
    assert result.field("error").to_pylist()[0] is None


def test_row_numbers_count_over_chunks(of_pyarrow: dict[str, Function]) -> None:
    with pytest.raises(RowError) as caught:
        of_pyarrow["narrow"](pa.chunked_array([[1, 2], [3, 1000]]))
    assert list(caught.value.errors) == [3]
    assert "row 3" in str(caught.value)


def test_wrong_results(functions: dict[str, Function]) -> None:
    errors = failures(functions["word"], [0, 1, 2, 3, 4])
    assert list(errors) == [0, 1, 3, 4]
    assert "None" in errors[0]
    assert "int" in errors[1]
    assert "bytes" in errors[4]


def test_exceptions_of_all_kinds(functions: dict[str, Function]) -> None:
    """R2: also those that would end the program; KeyboardInterrupt is Ctrl-C in the main thread only."""
    with ThreadPoolExecutor() as pool:
        errors = pool.submit(failures, functions["fails"], [0, 1, 2, 3, 4, 5]).result()
    kinds = ["ValueError: no", "SystemExit: 3", "KeyboardInterrupt", "StopIteration: 1", "MemoryError", "GeneratorExit"]
    for row, kind in enumerate(kinds):
        assert kind in errors[row]
        assert "raise [ValueError" in errors[row], "the source line, from inside the plugin"


def test_reasons_of_groups_and_chains_are_in_the_text(functions: dict[str, Function]) -> None:
    errors = failures(functions["grouped"], [0, 1, 2, 3])
    lines = {row: [line for line in text.splitlines() if not line.startswith("  at ")] for row, text in errors.items()}
    assert lines[0] == [
        "ExceptionGroup: two (2 sub-exceptions)",
        "  - ValueError: first",
        "  - ExceptionGroup: inner (1 sub-exception)",
        "    - OSError: second",
        "  from KeyError: 'cause'",
    ]
    assert lines[1] == ["ValueError: again", "  from KeyError: 'cause'"]
    assert lines[2] == ["ValueError: alone"]
    assert lines[3] == ["ValueError: circle", "  from TypeError: other"]


def test_endless_recursion(functions: dict[str, Function]) -> None:
    assert "RecursionError" in failures(functions["deep"], [1])[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [("wrong_length", "1"), ("wrong_type", "string"), ("no_array", "int"), ("raises", "ValueError: not this batch")],
)
def test_vectorized_mistake_is_each_row_s_error(of_pyarrow: dict[str, Function], name: str, said: str) -> None:
    """F4: of every row of that batch."""
    errors = failures(of_pyarrow[name], [1, 2])
    assert list(errors) == [0, 1]
    assert all(said in text for text in errors.values())


def test_first_call_from_many_threads(build_plugin: BuildPlugin) -> None:
    """Two plugins, loaded and called for the first time by all threads at once."""
    sources = [SOURCE.replace("a + b", f"a + b + {n}") for n in (1, 2)]
    paths = [build_plugin(source, name=f"crowd{n}") for n, source in enumerate(sources, 1)]
    together, results = threading.Barrier(8), []

    def call(n: int) -> None:
        together.wait()
        results.append((n, load(paths[n]).functions["add"](pa.array([1]), pa.array([1])).to_pylist()))

    threads = [threading.Thread(target=call, args=(i % 2,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(0, [3])] * 4 + [(1, [4])] * 4


@pytest.mark.usefixtures("young")
def test_nothing_is_kept(functions: dict[str, Function]) -> None:
    """Every array is released: the pool holds no more than before."""
    array = pa.array(range(100_000))

    def calls() -> None:
        functions["add"](array, array)
        with pytest.raises(RowError):
            functions["fails"](pa.array([0]))
        with pytest.raises(InvalidArgument):
            functions["add"](array, array[1:])
        gc.collect()

    calls()
    before = pa.total_allocated_bytes()
    for _ in range(20):
        calls()
    assert pa.total_allocated_bytes() <= before


def test_calls_within_a_call(build_plugin: BuildPlugin) -> None:
    """A function may call another plugin."""
    inner = build_plugin(
        "from arroyo_udf_plugin import udf\n@udf\ndef one_less(x: int) -> int: return x - 1\n", name="inner"
    )
    outer = build_plugin(
        f"""
        import pyarrow as pa
        from arroyo_udf_plugin import load, udf

        @udf(native=False)
        def zero(x: int) -> int:
            one_less = load({str(inner)!r}).functions["one_less"]
            while x:
                x = one_less(pa.array([x]))[0].as_py()
            return x
        """,
        name="outer",
    )
    assert load(outer).functions["zero"](pa.array([3, 0, 7])).to_pylist() == [0, 0, 0]


def run_python(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(text), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def test_exit_while_threads_call(build_plugin: BuildPlugin) -> None:
    """R18: a Python process exits with status 0 while threads are inside the plugin."""
    done = run_python(
        """
        import contextlib, sys, threading
        import pyarrow as pa
        from arroyo_udf_plugin import InvalidState, load

        add = load(sys.argv[1]).functions["add"]
        rows, started = pa.array(range(100_000)), threading.Barrier(5)

        def work():
            add(rows, rows)
            started.wait()
            with contextlib.suppress(InvalidState):  # "the interpreter has ended"
                while True:
                    add(rows, rows)

        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        started.wait()
        print("leaving")
        """,
        build_plugin(SOURCE, name="sync"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_exit_while_rows_run(build_plugin: BuildPlugin) -> None:
    """R18: also with running runtimes, rows in flight and a blocked loop."""
    done = run_python(
        """
        import sys
        import pyarrow as pa
        from arroyo_udf_plugin import load

        functions = load(sys.argv[1]).functions
        runtimes = [functions[name].start() for name in ("waits", "spins", "blocks")]
        for runtime in runtimes:
            runtime.send(0, pa.array(range(1000)))
        runtimes[0].wait()
        print("leaving")
        """,
        build_plugin(
            """
            import asyncio, time
            from arroyo_udf_plugin import udf

            @udf
            async def waits(x: int) -> int:
                if x:
                    await asyncio.Event().wait()
                return x

            @udf
            async def spins(x: int) -> int:
                while True:
                    await asyncio.sleep(0)

            @udf
            async def blocks(x: int) -> int:
                time.sleep(0.05)  # the case itself: a call that blocks the loop at exit
                return x
            """,
            name="unfinished",
        ),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_import_is_cheap() -> None:
    """Plugin sources import the package, so it imports neither cffi nor pyarrow."""
    done = run_python(
        """
        import sys
        from arroyo_udf_plugin import build, udf
        print(sorted({"_cffi_backend", "cffi", "pyarrow"} & set(sys.modules)))
        """
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_function_may_run_an_event_loop_wherever_it_is_called(functions: dict[str, Function], loop: str) -> None:
    """F7. The caller's loop goes on afterwards, also if a row has failed."""
    function, new_loop = functions["through_asyncio"], pytest.importorskip(loop).new_event_loop

    async def call() -> None:
        running = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert function(pa.array([1, 2])).to_pylist() == [2, 3]
        with pytest.raises(RowError, match="below zero"):
            function(pa.array([1, -1]))
        assert asyncio.get_running_loop() is running
        assert asyncio.current_task() is task
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(call())
    assert function(pa.array([4])).to_pylist() == [5]
