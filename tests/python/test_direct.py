"""Vectorised functions in the interpreter of the host get its arrays as they are, and answer as through C structs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_udf_plugin import Function, RowError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_udf_plugin import udf

@udf(vectorized=True)
def same(xs: pa.Int64Array) -> pa.Int64Array:
    return xs

@udf(vectorized=True)
def text(xs: pa.StringArray) -> pa.StringArray:
    return xs

@udf(vectorized=True)
def odd(xs: pa.Int64Array) -> pa.DoubleArray:
    numbers = xs.to_pylist()
    if 0 in numbers:
        raise ValueError("zero")
    if 1 in numbers:
        return xs.filter(pc.not_equal(xs, 1))
    if 2 in numbers:
        return xs.fill_null(0).to_numpy()
    if 3 in numbers:
        return numbers
    return xs

@udf(vectorized=True, split=False)
def whole(xs: pa.Int64Array) -> pa.DoubleArray:
    return odd.function(xs)

@udf(vectorized=True)
def through_asyncio(xs: pa.Int64Array) -> pa.Int64Array:
    async def answer():
        return xs
    return asyncio.run(answer())

@udf(vectorized=True)
def interrupted(xs: pa.Int64Array) -> pa.Int64Array:
    if 7 in xs.to_pylist():
        raise KeyboardInterrupt("seven")
    if 8 in xs.to_pylist():
        raise ValueError("eight")
    return xs
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    functions = load(build_plugin(SOURCE, name="direct")).functions
    for name in ("same", "odd", "whole", "through_asyncio", "interrupted"):
        functions[name](pa.array([9, 10]))  # the first call loads the module
    functions["text"](pa.array(["a"]))
    return functions


def test_plain_arrays_are_handed_over_as_they_are(functions: Mapping[str, Function]) -> None:
    xs = pa.array([1, None, 3])
    assert functions["same"](xs) is xs
    assert functions["same"](xs[1:]).to_pylist() == [None, 3]


def test_f4_texts_are_checked_before_the_function_sees_them(functions: Mapping[str, Function]) -> None:
    offsets, data = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"a\xe9b")
    with pytest.raises(RowError, match="argument xs: row 1 is not UTF-8") as raised:
        functions["text"](pa.StringArray.from_buffers(3, offsets, data))
    assert list(raised.value.errors) == [1]


@given(st.lists(st.none() | st.integers(0, 12), max_size=12), st.sampled_from(["odd", "whole"]), st.integers(0, 2))
def test_a_direct_call_answers_as_one_through_c_structs(
    functions: Mapping[str, Function], numbers: list[int | None], name: str, start: int
) -> None:
    function, xs = functions[name], pa.array(numbers, pa.int64())[start:]
    through = pa.RecordBatch.from_struct_array(function.outcomes(xs)).to_pylist()
    errors = {row: one["error"].split(": ", 1)[1] for row, one in enumerate(through) if one.get("error")}
    if errors:
        with pytest.raises(RowError) as raised:
            function(xs)
        assert raised.value.errors == errors
    else:
        assert function(xs).to_pylist() == [one["value"] for one in through]


def test_a_function_sees_no_running_event_loop(functions: Mapping[str, Function]) -> None:
    async def inside() -> pa.Array:
        return functions["through_asyncio"](pa.array([1, 2]))

    assert asyncio.run(inside()).to_pylist() == [1, 2]


def test_r2_ctrl_c_ends_a_direct_call_in_the_main_thread_alone(functions: Mapping[str, Function]) -> None:
    function = functions["interrupted"]
    with pytest.raises(KeyboardInterrupt, match="seven"):
        function(pa.array([7]))
    with pytest.raises(RowError, match="eight"):
        function(pa.array([8]))  # nothing is left of it
    errors = []

    def elsewhere() -> None:
        try:
            function(pa.array([6, 7]))
        except RowError as error:
            errors.append(error.errors)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert list(errors[0]) == [1]
    assert errors[0][1].startswith("KeyboardInterrupt: seven\n")
