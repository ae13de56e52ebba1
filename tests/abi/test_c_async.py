"""Async functions written in C with arroyo_udf_async.h: completion from foreign threads, once, twice, late and never;
cancellation, Contexts, types, call information (R1, R2, R4, R5, R6, R8, R10, R12, R13, F3, F4)."""

import ctypes
import os
import struct
import subprocess
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from symbols import exported

from arroyo_udf_plugin import BuildError, InvalidArgument, UnsupportedCall, UserCodeError, build, load
from arroyo_udf_plugin._cdef import ffi
from arroyo_udf_plugin.build import c
from arroyo_udf_plugin.build.cache import Resolution

HERE = Path(__file__).parent
CALLED, CANCELLED, OPENED, CLOSED = range(4)
OUTCOMES = ("value", "error", "timed_out", "cancelled")


class Functions:
    """The plugin of async_functions.c, with its sync functions as methods."""

    def __init__(self, path: Path) -> None:
        self.all = load(path).functions

    def start(self, name: str, **options: Any) -> Any:
        return self.all[name].start(**options)

    def count(self, what: int, at_least: int = 0) -> int:
        """The number of events since the process began; waits until there are `at_least` that many."""
        count: int = self.all["count_of"](pa.array([what]), pa.array([at_least]))[0].as_py()
        return count

    def complete(self, x: int, how: str = "value") -> bool:
        """Completes the latest call for x, in this thread; whether that counts."""
        counts: bool = self.all["complete"](pa.array([x]), pa.array([how]))[0].as_py()
        return counts


@pytest.fixture(scope="module")
def functions(built: Callable[[str], Path]) -> Functions:
    return Functions(built("async_functions.c"))


@pytest.fixture
def called(functions: Functions) -> Callable[[int], None]:
    """Waits until this many calls have been made since the test began."""
    before = functions.count(CALLED)

    def wait(calls: int) -> None:
        functions.count(CALLED, before + calls)

    return wait


def drained(runtime: Any, rows: int) -> list[tuple[int, str, Any]]:
    """The next `rows` results: id, outcome, value or text."""
    found: list[tuple[int, str, Any]] = []
    while len(found) < rows:
        assert runtime.wait(60)
        batch = runtime.drain_results()
        for row in batch.to_pylist() if batch is not None else []:
            outcome = OUTCOMES[row["outcome"]]
            found.append((row["id"], outcome, row["value"] if outcome == "value" else row["error"]))
    assert len(found) == rows
    return found


def until(runtime: Any, holds: Callable[[Any], bool]) -> None:
    """Waits for a state of an ordered runtime whose first row has not ended, so that there are no results."""
    while not holds(runtime.statistics()):
        assert not runtime.wait(0.01)


def test_r21_rows_with_equal_arguments_are_one_call(functions: Functions, called: Any) -> None:
    with functions.start("open_call", deterministic=True, cache=10) as runtime:
        runtime.send(0, pa.array([5, 5]))
        called(1)
        assert functions.complete(5)
        assert drained(runtime, 2) == [(0, "value", 6), (1, "value", 6)]
        runtime.send(2, pa.array([5]))
        assert drained(runtime, 1) == [(2, "value", 6)]


def test_calls_are_completed_in_any_order_and_come_out_in_theirs(functions: Functions, called: Any) -> None:
    """R5, F3: row 2 is null, so the function is not called."""
    with functions.start("open_call") as runtime:
        runtime.send(10, pa.array([0, 1, None, 3]))
        called(3)
        assert functions.complete(3)
        assert functions.complete(1)
        assert runtime.drain_results() is None
        assert functions.complete(0)
        assert drained(runtime, 4) == [(10, "value", 1), (11, "value", 2), (12, "value", None), (13, "value", 4)]
        assert runtime.statistics().discarded == 0


@pytest.mark.parametrize(
    ("function", "how", "text"),
    [
        ("open_call", "error", "5 is refused é"),
        ("open_call", "null", "open_call, row 7: the function answered null, and its result is not declared nullable"),
        ("open_call", "float", "open_call, row 7: completed with float64, and its result is declared int64"),
        ("open_call", "cancelled", "completed as cancelled, but it was not cancelled"),
        ("open_text", "value", "open_text, row 7: completed with int64, and its result is declared utf8"),
        ("open_text", "utf8", "open_text, row 7: the result is not valid UTF-8"),
    ],
)
def test_completions_that_are_errors(functions: Functions, called: Any, function: str, how: str, text: str) -> None:
    """R2, F4"""
    with functions.start(function) as runtime:
        runtime.send(7, *([pa.array(["abc"])] if function == "open_text" else []), pa.array([5]))
        called(1)
        functions.complete(5, how)
        [(row, outcome, error)] = drained(runtime, 1)
        assert (row, outcome) == (7, "error")
        assert error.endswith(text)


def test_texts_among_the_arguments_live_until_the_call_is_completed(functions: Functions, called: Any) -> None:
    with functions.start("open_text") as runtime:
        runtime.send(0, pa.array(["abc", "déf"]).slice(1), pa.array([0]))
        called(1)
        assert functions.complete(0, "text")
        assert drained(runtime, 1) == [(0, "value", "dé")]


def test_the_first_completion_counts_and_others_are_counted(functions: Functions, called: Any) -> None:
    with functions.start("open_call") as runtime:
        runtime.send(0, pa.array([0]))
        called(1)
        assert functions.complete(0)
        assert not functions.complete(0)
        assert not functions.complete(0, "error")
        assert drained(runtime, 1) == [(0, "value", 1)]
        assert runtime.statistics().discarded == 2


def test_completing_an_unknown_token_has_no_effect(functions: Functions) -> None:
    assert not functions.complete(0, "- neither of two")


def test_a_call_that_timed_out_keeps_its_slot_until_it_is_completed(functions: Functions, called: Any) -> None:
    """R4, R6: a late completion is discarded."""
    cancelled = functions.count(CANCELLED)
    with functions.start("open_call", timeout=0.01, allowed_in_flight=1, max_stuck=9) as runtime:
        runtime.send(0, pa.array([0]))
        assert [row[:2] for row in drained(runtime, 1)] == [(0, "timed_out")]
        functions.count(CANCELLED, cancelled + 1)
        assert runtime.statistics().running == 1
        called(1)
        assert not functions.complete(0)
        assert runtime.statistics().running == 0
        assert runtime.statistics().discarded == 1


def test_a_call_completed_as_cancelled_is_not_counted_as_discarded(functions: Functions, called: Any) -> None:
    cancelled = functions.count(CANCELLED)
    with functions.start("open_call") as runtime:
        runtime.send(0, pa.array([0, 1]))
        called(2)
        runtime.cancel(0)
        functions.count(CANCELLED, cancelled + 1)
        functions.complete(0, "cancelled")
        assert functions.complete(1)
        assert [row[:2] for row in drained(runtime, 2)] == [(0, "cancelled"), (1, "value")]
        assert runtime.statistics().discarded == 0


def test_completions_of_a_stuck_call_have_no_effect(functions: Functions, called: Any) -> None:
    """R8, R13: after stop, after release, and while another runtime of the function runs."""
    runtime = functions.start("open_text")
    runtime.send(0, pa.array(["abc"]), pa.array([2]))
    called(1)
    assert not runtime.stop("cancel", 0)
    assert [row[:2] for row in drained(runtime, 1)] == [(0, "cancelled")]
    assert not functions.complete(2, "text")
    assert not functions.complete(2, "text")
    assert runtime.statistics().discarded == 2
    runtime.release()
    with functions.start("open_text") as other:
        other.send(0, pa.array(["abc"]), pa.array([3]))
        called(2)
        assert not functions.complete(2, "text")
        assert functions.complete(3, "text")
        assert drained(other, 1) == [(0, "value", "abc")]
        assert other.statistics().discarded == 0


def test_a_context_is_not_closed_under_an_open_call(functions: Functions, called: Any) -> None:
    """R13: neither at the stop, nor when the call is completed after the release."""
    closed = functions.count(CLOSED)
    runtime = functions.start("open_with_context")
    runtime.send(0, pa.array([4]))
    called(1)
    assert not runtime.stop("cancel", 0)
    assert not functions.complete(4)
    assert not runtime.stop("cancel", 0)
    runtime.release()
    assert functions.count(CLOSED) == closed


def test_too_many_stuck_calls_end_the_runtime(functions: Functions, called: Any) -> None:
    """R8: their author completes these calls later."""
    closed = functions.count(CLOSED)
    with functions.start("open_with_context", timeout=0.01, max_stuck=2) as runtime:
        runtime.send(0, pa.array([5, 6]))
        called(2)
        assert [row[:2] for row in drained(runtime, 2)] == [(0, "timed_out"), (1, "timed_out")]
        assert runtime.wait(60)
        with pytest.raises(UserCodeError, match="2 calls ignore their cancellation"):
            runtime.send(2, pa.array([7]))
        assert not functions.complete(5)
        assert not runtime.stop()
        assert not functions.complete(6)
        assert runtime.statistics().discarded == 2
    assert functions.count(CLOSED) == closed


class Text:
    """Memory of a host, and whether the plugin has released it."""

    def __init__(self, text: bytes) -> None:
        self._memory = ctypes.create_string_buffer(text)

    def as_array(self) -> pa.Array:
        length = len(self._memory.raw) - 1
        data = pa.foreign_buffer(ctypes.addressof(self._memory), length, base=self)
        return pa.Array.from_buffers(pa.utf8(), 1, [None, pa.py_buffer(struct.pack("<2i", 0, length)), data])


def test_the_arguments_of_a_stuck_call_stay_when_it_has_ended_the_runtime(functions: Functions, called: Any) -> None:
    """R8, R13: its author may read them until the call is completed."""
    text = Text(b"abc")
    released = weakref.ref(text)
    runtime = functions.start("open_text", timeout=0.01, max_stuck=1)
    runtime.send(0, text.as_array(), pa.array([11]))
    del text
    called(1)
    assert [row[:2] for row in drained(runtime, 1)] == [(0, "timed_out")]
    assert runtime.wait(60)
    assert not runtime.stop()
    runtime.release()
    with functions.start("open_call") as other:
        for _ in range(1000):  # calls that may release arrays, while the function's thread might end
            assert other.drain_results() is None
            os.sched_yield()
        assert released() is not None
        assert not functions.complete(11, "text")
        patience = time.monotonic() + 60
        while released() is not None:  # until its thread has ended
            assert other.drain_results() is None
            assert time.monotonic() < patience


def test_a_healthy_call_is_cancelled_when_another_is_stuck(functions: Functions, called: Any) -> None:
    """R8: too many stuck calls end the runtime, and with it all other calls."""
    cancelled = functions.count(CANCELLED)
    with functions.start("open_call", max_stuck=1, timeout=float("inf")) as runtime:
        runtime.send(0, pa.array([12, 13]))
        called(2)
        runtime.cancel(0)
        functions.count(CANCELLED, cancelled + 2)
        [first, second] = drained(runtime, 2)
        assert (first[:2], second) == (
            (0, "cancelled"),
            (1, "error", "async_functions.open_call, row 1: 1 calls ignore their cancellation (max_stuck)"),
        )
        assert not functions.complete(12)
        assert not functions.complete(13, "cancelled")
        assert not runtime.stop()


def test_the_context_is_opened_once_and_closed_once(functions: Functions) -> None:
    """R12"""
    opened, closed = functions.count(OPENED), functions.count(CLOSED)
    with functions.start("shares") as runtime:
        assert (functions.count(OPENED), functions.count(CLOSED)) == (opened + 1, closed)
        runtime.send(0, pa.array([1, 2]))
        assert drained(runtime, 2) == [(0, "value", 41), (1, "value", 42)]
        assert runtime.stop()
        assert (functions.count(OPENED), functions.count(CLOSED)) == (opened + 1, closed + 1)


def test_a_context_that_fails(functions: Functions) -> None:
    closed = functions.count(CLOSED)
    with pytest.raises(UserCodeError, match=r"never_opens: start failed: init failed: no server here"):
        functions.start("never_opens")
    assert functions.count(CLOSED) == closed
    with functions.start("never_closes") as runtime:
        with pytest.raises(UserCodeError, match="never_closes: close failed: one is left open"):
            runtime.stop()
        runtime.release()


def test_call_information(functions: Functions) -> None:
    """R10: the same for each attempt of a row, except the attempt's number."""
    with functions.start("knows", timeout=3600.0, lineage=bytes(range(10, 26))) as runtime:
        runtime.send(70, pa.array([0, 1, 9]))
        rest = "deadline soon, lineage 0a...19"
        assert drained(runtime, 3) == [
            (70, "value", f"row 70, attempt 1, {rest}"),
            (71, "value", f"row 71, attempt 2, {rest}"),
            (72, "error", f"async_functions.knows, row 72: row 72, attempt 3, {rest}"),
        ]
    with functions.start("knows", timeout=float("inf")) as runtime:
        runtime.send(0, pa.array([0]))
        assert ", deadline none, " in drained(runtime, 1)[0][2]


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("int8", [-128, 127]),
        ("uint16", [0, 2**16 - 1]),
        ("uint64", [0, 2**64 - 1]),
        ("float32", [1.5, float("-inf")]),
        ("float64", [0.1, float("inf")]),
        ("bool", [False, True]),
        ("utf8", ["", "zażółć 🛫"]),
    ],
)
def test_types_and_nulls(functions: Functions, word: str, values: list[Any]) -> None:
    """F2, F3: y is nullable and x is not; the batches have offsets."""
    kind = {"bool": pa.bool_()}.get(word) or pa.type_for_alias(word)
    x = pa.array([values[0], *values, values[1], None, values[1]], kind).slice(1)
    y = pa.array([values[0], *values, None, values[1], values[1]], kind).slice(1)
    with functions.start(f"same_{word}") as runtime:
        runtime.send(0, x, y)
        assert [value for _, _, value in drained(runtime, 5)] == [*values, None, None, values[1]]


def test_a_text_that_is_not_utf8_is_the_error_of_its_row(functions: Functions) -> None:
    """F4"""
    broken = pa.Array.from_buffers(
        pa.utf8(), 2, [None, pa.array([0, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"\xc3(ok")]
    )
    with functions.start("same_utf8") as runtime:
        runtime.send(0, broken, pa.array(["ok", "ok"]))
        [(_, outcome, text), ok] = drained(runtime, 2)
        assert outcome == "error"
        assert "same_utf8, row 0: argument x: the text is not UTF-8" in text
        assert ok == (1, "value", "ok")


def test_each_kind_refuses_the_other_s_calls(
    functions: Functions, open_plugin: Any, built: Callable[[str], Path]
) -> None:
    with pytest.raises(UnsupportedCall, match="call run for a sync function"):
        functions.all["complete"].start()
    raw = open_plugin(built("async_functions.c"))
    status, text = raw.call("run", raw.numbers["open_call"], *[ffi.NULL] * 4)
    assert (status, "start an async function" in text) == (21, True)
    status, text = raw.call("start", 99, *[ffi.NULL] * 2)
    assert (status, "no function number 99" in text) == (16, True)


def test_rows_come_one_by_one(c_plugin: Any) -> None:
    function = load(c_plugin(GOOD.replace("allowed_in_flight = 7", "batch_size = 7"))).functions["f"]
    with pytest.raises(InvalidArgument, match=r"takes rows one by one; leave .options.batch_size out"):
        function.start()


def test_the_author_s_options_are_in_the_descriptor(functions: Functions) -> None:
    assert functions.all["knows"].options.max_attempts == 3
    assert functions.all["open_call"].options.timeout == 10.0


def test_the_example_with_a_thread_of_its_own(tmp_path: Path, examples: Path) -> None:
    """An empty pipe blocks its thread. A request that waits meanwhile leaves the queue when it is cancelled."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "three").write_text("1\n2\n3\n")
    function = load(build(examples / "own_thread" / "udf.c", tmp_path / "udf.so")).functions["lines"]
    with function.start() as runtime:
        runtime.send(0, pa.array([str(tmp_path / name) for name in ("pipe", "three", "three", "none", ".", "\0")]))
        until(runtime, lambda now: now.held == 1)  # the last call, which fails at once
        runtime.cancel(1)
        until(runtime, lambda now: now.running == 4)  # before, the thread could take the request from the queue
        with (tmp_path / "pipe").open("w") as pipe:
            pipe.write("one\n")
        found = drained(runtime, 6)
        assert [row[1] for row in found] == ["value", "cancelled", "value", "error", "error", "error"]
        assert (found[0][2], found[2][2]) == (1, 3)
        assert found[3][2].endswith("none: No such file or directory")
        assert found[4][2].endswith(": Is a directory")
        assert found[5][2] == "udf.lines, row 5: the path contains a zero"
        assert runtime.stop()
        assert runtime.statistics().discarded == 0


# ---- Building -------------------------------------------------------------------------------------------------------

GOOD = """#include "arroyo_udf_async.h"
static void f(const arroyo_udf_call* call, int64_t x) {
  arroyo_udf_complete_int64(call->token, x);
}
ARROYO_UDF_ASYNC_FUNCTION(f, (.options.allowed_in_flight = 7), int64, (int64, x));
ARROYO_UDF_PLUGIN(f);
"""


@pytest.fixture
def without_cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with nothing but a C compiler and its tools."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cc", "as", "ld"):
        found = subprocess.run(["sh", "-c", f"command -v {tool}"], capture_output=True, text=True, check=True).stdout
        (tools / tool).symlink_to(found.strip())
    monkeypatch.setenv("PATH", str(tools))


def test_a_missing_cargo_is_named(tmp_path: Path, without_cargo: None) -> None:
    source = tmp_path / "udf.c"
    source.write_text(GOOD)
    with pytest.raises(BuildError, match=r"there is no cargo.*install Rust from https://rustup.rs"):
        build(source)


def test_sync_functions_need_no_cargo(tmp_path: Path, without_cargo: None) -> None:
    source = tmp_path / "udf.c"
    source.write_text(
        f"/* {tmp_path} */\n" + '#include "arroyo_udf_plugin.h"\n'
        "static const char* f(int64_t x, int64_t* out) { return *out = x, NULL; }\n"
        "ARROYO_UDF_FUNCTION(f, int64, (int64, x));\nARROYO_UDF_PLUGIN(f);\n"
    )
    assert load(build(source)).functions["f"](pa.array([3])).to_pylist() == [3]


def test_a_library_depends_on_the_runtime_only_where_it_is_linked(tmp_path: Path) -> None:
    source = tmp_path / "udf.c"
    source.write_text(GOOD)
    assert any("rustc" in line for line in c.inputs(source, Resolution()))
    source.write_text(GOOD.replace("arroyo_udf_async.h", "arroyo_udf_plugin.h").split("static", 1)[0])
    assert not any("rustc" in line for line in c.inputs(source, Resolution()))


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "hint"),
    [
        ("int64_t x)", "int32_t x)", 5, "conflicting types", "an async function has `const arroyo_udf_call*` first"),
        ("(.options", "(.option", 5, "arroyo_udf_async", "arroyo_udf_async init, cancel, close and options"),
        ("_complete_int64", "_complete_int65", 3, "implicit declaration", "hint: "),
        ("ARROYO_UDF_PLUGIN(f);", "", None, "arroyo_udf_plugin", "end it with ARROYO_UDF_PLUGIN(function, ...);"),
    ],
)
def test_mistakes_are_refused_with_line_and_hint(
    tmp_path: Path, old: str, new: str, line: int | None, said: str, hint: str
) -> None:
    """F5"""
    source = tmp_path / "udf.c"
    assert GOOD.count(old) == 1
    source.write_text(GOOD.replace(old, new))
    with pytest.raises(BuildError) as caught:
        build(source)
    assert caught.value.line == line
    assert said in str(caught.value)
    assert hint in str(caught.value)


def test_one_symbol_is_shown_and_no_folder_of_this_machine(tmp_path: Path, c_plugin: Any) -> None:
    library = c_plugin(GOOD)
    assert exported(library) == {"arroyo_udf_plugin"}
    for folder in {Path.home(), HERE.parents[1]} - {Path("/")}:
        assert str(folder).encode() not in library.read_bytes()
