"""R21: rows with equal arguments share a call, and values are kept for later rows.

native/runtime/src/machine/tests/shared.rs proves it in random schedules; here are the functions, options and texts that
users see."""

import json
import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import advance, answers, drained, rest, until

from arroyo_udf_plugin import BuildError, Function, InvalidArgument, Runtime, load

SOURCE = """
import asyncio
import json
from typing import TypedDict
from arroyo_udf_plugin import udf

calls: list[str] = []
gates: dict[str, asyncio.Event] = {}

def gate(key: str) -> asyncio.Event:
    return gates.setdefault(key, asyncio.Event())

@udf
async def taken(x: int) -> str:
    '''The arguments of the calls since the last time, as JSON.'''
    told = json.dumps(calls)
    calls.clear()
    return told

@udf
async def opens(key: str) -> int:
    gate(key).set()
    return 0

@udf(deterministic=True, cache=100_000, allowed_in_flight=2, timeout=1000.0)
async def asks(key: str) -> str:
    calls.append(key)
    if key.startswith("gate"):
        await gate(key).wait()
    if key == "never":
        await asyncio.Event().wait()
    if key.startswith("bad"):
        raise ValueError("no answer")
    return key + "!"

@udf(deterministic=True)
async def of_a_batch(key: str) -> str:
    calls.append(key)
    return key + "!"

@udf(deterministic=True, cache=10, batch_size=100)
async def together(keys: list[str]) -> list[str]:
    calls.append(" ".join(keys))
    return [key + "!" for key in keys]

@udf(blocking=True, deterministic=True, cache=10)
def blocks(key: str) -> str:
    calls.append(key)
    return key + "!"

class Place(TypedDict):
    name: str
    at: list[float]

@udf(deterministic=True, cache=5, allowed_in_flight=3)
async def described(a: int | None, b: float, c: str | None, d: bytes, e: Place | None) -> str:
    await asyncio.sleep(0)
    return repr((a, b, c, d, e))

@udf
async def described_by_each(a: int | None, b: float, c: str | None, d: bytes, e: Place | None) -> str:
    return repr((a, b, c, d, e))

@udf(deterministic=True, cache=1000)
async def numbered(x: float) -> int:
    calls.append("")
    return len(calls)
"""

ERROR, TIMED_OUT, CANCELLED = 1, 2, 3


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="shares")).functions


@pytest.fixture(autouse=True)
def _forget(functions: dict[str, Function]) -> None:
    calls(functions)


def calls(functions: dict[str, Function]) -> list[str]:
    """The calls since the last time."""
    found: list[str] = json.loads(answers(functions["taken"], [0])["value"][0].as_py())
    return found


def results(runtime: Runtime, first_id: int, keys: list[str]) -> pa.Table:
    runtime.send(first_id, pa.array(keys))
    return drained(runtime, len(keys))


@pytest.mark.parametrize("name", ["asks", "blocks"])
def test_equal_arguments_are_one_call_in_all_batches(functions: dict[str, Function], name: str) -> None:
    with functions[name].start() as runtime:
        keys = ["a", "b", "a", "a"]
        found = results(runtime, 0, keys)
        assert found["value"].to_pylist() == ["a!", "b!", "a!", "a!"]
        assert found["attempts"].to_pylist() == [1, 1, 0, 0], "a row counts the calls that were made for it"
        assert results(runtime, 4, ["b", "c"])["value"].to_pylist() == ["b!", "c!"]
        counts = runtime.statistics()
    assert sorted(calls(functions)) == ["a", "b", "c"]
    assert (counts.cache_misses, counts.cache_hits + counts.cache_shared, counts.cache_entries) == (3, 3, 3)
    assert (counts.values, counts.waiting) == (6, 0)
    assert counts.cache_bytes >= 3 * 200


def test_rows_that_come_while_a_call_is_made_wait_for_it(functions: dict[str, Function]) -> None:
    with functions["asks"].start(ordered=False) as runtime:
        runtime.send(0, pa.array(["gate 1", "gate 1"]))
        until(lambda: runtime.statistics().waiting == 1, "the call")
        runtime.send(2, pa.array(["gate 1", "x"]))
        assert drained(runtime, 1)["value"].to_pylist() == ["x!"]
        assert runtime.statistics().waiting == 2
        answers(functions["opens"], ["gate 1"])
        assert drained(runtime, 3)["value"].to_pylist() == ["gate 1!"] * 3
    assert calls(functions) == ["gate 1", "x"]


def test_a_kept_value_does_not_wait_for_a_free_slot(functions: dict[str, Function]) -> None:
    with functions["asks"].start(ordered=False) as runtime:
        results(runtime, 0, ["a"])
        runtime.send(1, pa.array(["gate 2", "gate 3", "gate 4", "a"]))
        assert drained(runtime, 1)["id"].to_pylist() == [4]
        for key in ("gate 2", "gate 3", "gate 4"):
            answers(functions["opens"], [key])
        assert len(drained(runtime, 3)) == 3


def test_an_error_is_that_of_each_row_and_is_not_kept(functions: dict[str, Function]) -> None:
    with functions["asks"].start() as runtime:
        found = results(runtime, 0, ["bad", "bad"])
        assert found["outcome"].to_pylist() == [ERROR, ERROR]
        for row, text in enumerate(found["error"].to_pylist()):
            assert re.match(rf"shares\.asks, row {row}: .*ValueError: no answer", text, re.S)
        assert results(runtime, 2, ["bad"])["attempts"].to_pylist() == [1]
    assert calls(functions) == ["bad", "bad"]


def test_an_error_is_kept_if_the_start_says_so(functions: dict[str, Function]) -> None:
    with functions["asks"].start(cache_errors=True) as runtime:
        results(runtime, 0, ["bad"])
        assert "row 1: " in results(runtime, 1, ["bad"])["error"][0].as_py()
    assert calls(functions) == ["bad"]


def test_r6_a_timeout_is_that_of_each_row_that_waited_for_it(functions: dict[str, Function]) -> None:
    with functions["asks"].start() as runtime:
        runtime.send(0, pa.array(["never", "never"]))
        until(lambda: calls(functions) == ["never"], "the call's beginning")
        advance(1000)
        assert drained(runtime, 2)["error"].to_pylist() == [
            "shares.asks, row 0: timed out (timeout 1000 s) in attempt 1",
            "shares.asks, row 1: timed out (timeout 1000 s) in the call of a row with equal arguments",
        ]


def test_a_call_goes_on_without_the_row_that_began_it(functions: dict[str, Function]) -> None:
    with functions["asks"].start(ordered=False) as runtime:
        runtime.send(0, pa.array(["gate 5", "gate 5"]))
        until(lambda: calls(functions) == ["gate 5"], "the call")
        runtime.cancel(0, 1)
        assert drained(runtime, 1)["outcome"].to_pylist() == [CANCELLED]
        answers(functions["opens"], ["gate 5"])
        found = drained(runtime, 1)
        assert (found["id"].to_pylist(), found["value"].to_pylist()) == ([1], ["gate 5!"])
    assert calls(functions) == []


def test_a_value_is_kept_for_its_time(functions: dict[str, Function]) -> None:
    with functions["asks"].start(cache_ttl="100s", timeout=math.inf) as runtime:
        results(runtime, 0, ["a"])
        results(runtime, 1, ["a"])
        advance(100)
        assert results(runtime, 2, ["a"])["attempts"].to_pylist() == [1]
    assert calls(functions) == ["a", "a"]


def test_what_is_kept_is_bounded_in_number_and_bytes(functions: dict[str, Function]) -> None:
    keys = [f"key {i}" for i in range(1000)]
    with functions["asks"].start(cache=10) as runtime:
        results(runtime, 0, keys)
        counts = runtime.statistics()
        assert (counts.cache_entries, counts.cache_evictions) == (10, 990)
    with functions["asks"].start(cache_bytes=5000) as runtime:
        results(runtime, 0, keys)
        counts = runtime.statistics()
        assert 5000 - 250 < counts.cache_bytes <= 5000


def test_without_a_cache_rows_of_a_batch_share_calls_and_nothing_is_kept(functions: dict[str, Function]) -> None:
    with functions["of_a_batch"].start() as runtime:
        assert results(runtime, 0, ["a", "a", "a"])["value"].to_pylist() == ["a!"] * 3
        assert calls(functions) == ["a"]
        assert results(runtime, 3, ["a"])["value"].to_pylist() == ["a!"]
        assert runtime.statistics().cache_entries == 0
    assert calls(functions) == ["a"]


def test_a_micro_batch_has_no_equal_rows(functions: dict[str, Function]) -> None:
    found = answers(functions["together"], ["a", "b", "a", "c", "b"])
    assert found["value"].to_pylist() == ["a!", "b!", "a!", "c!", "b!"]
    assert calls(functions) == ["a b c"]


def test_each_entry_of_a_dictionary_is_one_call(functions: dict[str, Function]) -> None:
    with functions["asks"].start() as runtime:
        runtime.send(0, pa.array(["a", "b", "a", "b"]).dictionary_encode())
        assert drained(runtime, 4)["value"].to_pylist() == ["a!", "b!", "a!", "b!"]
    assert sorted(calls(functions)) == ["a", "b"]


def test_a_start_may_ask_for_it_or_do_without(functions: dict[str, Function]) -> None:
    answers(functions["asks"], ["a", "a"], deterministic=False)
    assert calls(functions) == ["a", "a"]
    assert answers(functions["numbered"], [1.0, 1.0, 2.0], ordered=True)["value"].to_pylist() == [1, 1, 2]


def test_arguments_are_equal_only_bit_by_bit(functions: dict[str, Function]) -> None:
    another_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
    values = [0.0, -0.0, math.nan, another_nan, 0.0, -0.0, math.nan, another_nan]
    assert answers(functions["numbered"], values)["value"].to_pylist() == [1, 2, 3, 4, 1, 2, 3, 4]


ROWS = st.tuples(
    st.sampled_from([None, 0, 1, -1]),
    st.sampled_from([0.0, -0.0, 1.5, math.nan]),
    st.sampled_from([None, "", "a", "ab", "b"]),
    st.sampled_from([b"", b"a", b"\0", b"ba"]),
    st.sampled_from([None, {"name": "", "at": []}, {"name": "", "at": [0.0]}, {"name": "a", "at": []}]),
)


@given(st.lists(ROWS, min_size=1, max_size=40), st.integers(1, 5))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_are_those_of_a_call_for_each_row(functions: dict[str, Function], rows: list[Any], pieces: int) -> None:
    types = functions["described"].arguments.types
    columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    with functions["described"].start() as runtime:
        for piece in range(pieces):
            runtime.send(piece * len(rows), *columns)
        runtime.stop()
        found = rest(runtime)
        counts = runtime.statistics()
    each = functions["described_by_each"].start()
    with each:
        each.send(0, *columns)
        each.stop()
        assert found["value"].to_pylist() == rest(each)["value"].to_pylist() * pieces
    assert counts.cache_misses >= len({repr(row) for row in rows})
    assert counts.cache_entries <= 5


@pytest.mark.parametrize(
    ("decorator", "text"),
    [
        ("@udf(cache=10)", "function 'f' has cache=10, and a cache is for functions that return the same"),
        ("@udf(deterministic=False, cache=10)", "write deterministic=True, too"),
        ("@udf(deterministic=True, cache_ttl='1m')", "has cache_ttl='1m', but no cache; write how many"),
        ("@udf(deterministic=True, cache=0)", "has cache=0; write a whole number from 1"),
        ("@udf(deterministic=True, volatility='stable')", "deterministic=True and volatility='stable'; leave one out"),
    ],
)
def test_f5_a_cache_that_cannot_be_right_is_refused(
    build_plugin: Callable[..., Path], decorator: str, text: str
) -> None:
    source = f"from arroyo_udf_plugin import udf\n{decorator}\nasync def f(x: int) -> int:\n    return x\n"
    with pytest.raises(BuildError, match=re.escape(text)) as refused:
        build_plugin(source)
    assert ":2: " in str(refused.value)


def test_the_head_block_may_choose_it_for_all_functions(build_plugin: Callable[..., Path]) -> None:
    block = "# /// script\n# [tool.arroyo-udf]\n# {}cache = 10\n# ///\n"
    source = block + "from arroyo_udf_plugin import udf\n@udf\nasync def f(x: int) -> int:\n    return x\n"
    function = load(build_plugin(source.format("deterministic = true\n# "), name="headed")).functions["f"]
    assert function.chosen == {"deterministic": True, "cache": 10}
    with pytest.raises(BuildError, match="has cache=10, and a cache is for functions"):
        build_plugin(source.format(""))


def test_a_start_with_a_wrong_cache_is_refused(functions: dict[str, Function]) -> None:
    with pytest.raises(InvalidArgument, match=r"shares\.taken: has a cache, but may return other values for the same"):
        functions["taken"].start(cache=10)
    with pytest.raises(InvalidArgument, match=r"shares\.of_a_batch: has cache_bytes, cache_ttl or cache_errors"):
        functions["of_a_batch"].start(cache_ttl=1.0)
