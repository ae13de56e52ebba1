"""Vectorised functions whose calls fail: one bad row costs itself, not its batch (F4)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, load
from arroyo_udf_plugin.abi import ERROR, VALUE

BuildPlugin = Callable[..., Path]

SOURCE = """
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf

calls = []


@udf(vectorized=True)
def plus_one(xs: pa.Int64Array) -> pa.Int64Array:
    calls.append(xs.to_pylist())
    for x in xs.to_pylist():
        if x is not None and x < 0:
            raise ValueError(f"{x} is negative")
    return pc.add(xs, 1)

@udf(vectorized=True, split=False)
def whole(xs: pa.Int64Array) -> pa.Int64Array:
    return plus_one.function(xs)

@udf(vectorized=True)
def parsed(texts: pa.StringArray) -> pa.Int64Array:
    return pc.cast(texts, pa.int64())

@udf(vectorized=True)
def by_helpers(texts: pa.StringArray) -> pa.Int64Array:
    def inner():
        return outer()
    def outer():
        return pc.cast(texts, pa.int64())
    return inner()

@udf(vectorized=True)
def shorter_if_bad(xs: pa.Int64Array) -> pa.Int64Array:
    calls.append(xs.to_pylist())
    return xs.filter(pc.greater_equal(xs, 0))

@udf(native=False)
def made_calls(forget: bool) -> int:
    made = len(calls)
    if forget:
        calls.clear()
    return made

@udf(vectorized=True)
def no_memory_for_many(xs: pa.Int64Array) -> pa.Int64Array:
    if len(xs) > 100:
        raise MemoryError
    return xs
"""
MOST_CALLS = 1 + 64


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    return load(build_plugin(SOURCE, name="vectorised_calls")).functions


@pytest.fixture
def calls(functions: Mapping[str, Function]) -> Callable[[], int]:
    """How many calls were made. The plugin counts them, because it may be in another process."""
    made_calls = functions["made_calls"]
    made_calls(pa.array([True]))
    return lambda: int(made_calls(pa.array([False]))[0].as_py())


def answered(function: Function, rows: pa.Array) -> dict[int, str]:
    """The errors by row. Every other row has its value."""
    results = pa.RecordBatch.from_struct_array(function.outcomes(rows))
    if "outcome" not in results.schema.names:
        assert results.column("value").to_pylist() == [None if x is None else x + 1 for x in rows.to_pylist()]
        return {}
    errors = {}
    for row, (x, result) in enumerate(zip(rows.to_pylist(), results.to_pylist(), strict=True)):
        if result["outcome"] == ERROR:
            assert result["value"] is None
            errors[row] = result["error"]
        else:
            assert (result["outcome"], result["value"]) == (VALUE, None if x is None else x + 1)
    return errors


def test_one_bad_value_costs_its_row(functions: Mapping[str, Function], calls: Callable[[], int]) -> None:
    rows = pa.array(range(8192)).to_pylist()
    rows[5000] = -7
    errors = answered(functions["plus_one"], pa.array(rows))
    assert list(errors) == [5000]
    assert errors[5000].startswith("vectorised_calls.plus_one, row 5000: ValueError: -7 is negative\n")
    assert 'raise ValueError(f"{x} is negative")' in errors[5000]
    assert calls() <= MOST_CALLS


@pytest.mark.parametrize("seed", range(30))
def test_few_bad_rows_are_exactly_the_errors(
    functions: Mapping[str, Function], calls: Callable[[], int], seed: int
) -> None:
    chance = random.Random(seed)
    length = chance.randint(1, 300)
    bad = set(chance.sample(range(length), min(length, chance.randint(1, 3))))
    rows = [-1 if row in bad else chance.choice([None, 0, 5]) for row in range(length)]
    array = pa.array([0, *rows, 0], pa.int64())[1:-1]  # a slice: rows count from its beginning
    assert set(answered(functions["plus_one"], array)) == bad
    assert calls() <= MOST_CALLS


@pytest.mark.parametrize("seed", range(30))
def test_with_many_bad_rows_what_is_left_are_errors(
    functions: Mapping[str, Function], calls: Callable[[], int], seed: int
) -> None:
    chance = random.Random(seed)
    length = chance.randint(1, 3000)
    share = chance.choice([0.01, 0.1, 1])
    rows = [-1 if chance.random() < share else 5 for _ in range(length)]
    errors = answered(functions["plus_one"], pa.array(rows))
    assert {row for row, x in enumerate(rows) if x < 0} <= set(errors)
    assert all(" rows" in errors[row] for row in errors if rows[row] >= 0), "their text says that they were not alone"
    assert calls() <= MOST_CALLS


def test_split_false_fails_the_whole_batch(functions: Mapping[str, Function], calls: Callable[[], int]) -> None:
    errors = answered(functions["whole"], pa.array([1, -2, 3]))
    assert list(errors) == [0, 1, 2]
    assert errors[2].startswith("vectorised_calls.whole, row 2: ValueError: -2 is negative\n")
    assert errors[2].endswith("in a call with 3 rows")
    assert calls() == 1


def test_a_result_of_the_wrong_length_is_a_mistake_for_the_whole_call(
    functions: Mapping[str, Function], calls: Callable[[], int]
) -> None:
    errors = answered(functions["shorter_if_bad"], pa.array([1, -2, 3]))
    assert [text.partition(": ")[2] for text in errors.values()] == ["returned 2 rows for 3"] * 3
    assert calls() == 1


def test_no_row_is_blamed_for_the_size_of_a_batch(functions: Mapping[str, Function]) -> None:
    assert functions["no_memory_for_many"](pa.array(range(300))).to_pylist() == [*range(300)]


@pytest.mark.parametrize("function", ["parsed", "by_helpers"])
def test_the_traceback_shows_the_author_s_line(functions: Mapping[str, Function], function: str) -> None:
    """Below it are the frames of pyarrow."""
    results = pa.RecordBatch.from_struct_array(functions[function].outcomes(pa.array(["1", "x", "3"])))
    values, errors = results.column("value").to_pylist(), results.column("error").to_pylist()
    assert values == [1, None, 3]
    assert errors[0] is errors[2] is None
    assert "Failed to parse string: 'x'" in errors[1]
    assert "return pc.cast(texts, pa.int64())" in errors[1]


def test_rows_that_cannot_be_read_keep_their_numbers(functions: Mapping[str, Function]) -> None:
    buffers = pa.array(["1", "??", "3", "x", "5"]).buffers()
    data = bytearray(buffers[2].to_pybytes())
    data[1:3] = b"\xff\xff"
    broken = pa.Array.from_buffers(pa.string(), 5, [None, buffers[1], pa.py_buffer(bytes(data))])
    results = pa.RecordBatch.from_struct_array(functions["parsed"].outcomes(broken))
    assert results.column("value").to_pylist() == [1, None, 3, None, 5]
    errors = results.column("error").to_pylist()
    assert "row 1: argument texts: " in errors[1]
    assert "row 3: pyarrow.lib.ArrowInvalid" in errors[3]
