"""What vectorised functions return: other libraries' arrays are taken, and broken ones cost the rows at fault (F4)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, load
from arroyo_udf_plugin.abi import ERROR

BuildPlugin = Callable[..., Path]

SOURCE = """
from typing import Annotated
import struct
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_udf_plugin import udf

def texts_of(offsets, data, valid=None):
    packed = pa.py_buffer(struct.pack(f"{len(offsets)}i", *offsets))
    return pa.StringArray.from_buffers(len(offsets) - 1, packed, pa.py_buffer(data), valid and pa.py_buffer(valid))

TEXTS = {
    "wild": lambda: texts_of([0, 4, 2, 5], b"abcde"),
    "beyond": lambda: texts_of([0, 4, 900, 5], b"abcde"),
    "latin": lambda: texts_of([0, 1, 2, 3], b"a\\xe9b"),
    "null": lambda: texts_of([0, 1, 2, 3], b"a\\xe9b", b"\\x05"),
    "large": lambda: pa.array(["a", None, "b"], pa.large_string()),
    "view": lambda: pa.array(["a", None, "b"], pa.string_view()),
    "broken_large": lambda: pa.LargeStringArray.from_buffers(
        3, pa.py_buffer(struct.pack("4q", 0, 1, 2, 3)), pa.py_buffer(b"a\\xe9b")
    ),
    "dictionary": lambda: pa.array(["a", None, "b"]).dictionary_encode(),
    "chunked": lambda: pa.chunked_array([["a"], [None, "b"]]),
    "nothing": lambda: pa.nulls(3),
    "list": lambda: ["a", None, "b"],
    "number": lambda: pa.array([1, 2, 3]),
    "matrix": lambda: __import__("numpy").zeros((3, 2)),
    "scalar": lambda: pa.scalar("a"),
    "table": lambda: pa.table({"a": ["x", "y", "z"]}),
    "angry": lambda: Angry(),
}

class Angry:
    def __arrow_array__(self, type=None):
        raise RuntimeError("not now")

@udf(vectorized=True)
def text(which: pa.StringArray) -> pa.StringArray:
    return TEXTS[which[0].as_py()]()

@udf(vectorized=True)
def items(which: pa.StringArray) -> Annotated[pa.ListArray, pa.list_(pa.string())]:
    name = which[0].as_py()
    if name == "lists":
        return pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "c"]))
    if name == "wild lists":
        offsets = pa.py_buffer(struct.pack("4i", 0, 3, 1, 3))
        children = [pa.array(["a", "b", "c"])]
        return pa.ListArray.from_buffers(pa.list_(pa.string()), 3, [None, offsets], children=children)
    return pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), TEXTS[name]())

@udf(vectorized=True)
def price(which: pa.StringArray) -> Annotated[pa.Decimal128Array, pa.decimal128(5, 2)]:
    numbers = pa.py_buffer(b"".join(n.to_bytes(16, "little", signed=True) for n in (99999, -100000, 10**30)))
    return pa.Array.from_buffers(pa.decimal128(5, 2), 3, [None, numbers])

@udf(vectorized=True)
def doubled(numbers: pa.DoubleArray) -> pa.DoubleArray:
    import numpy as np
    return np.asarray(numbers) * 2

@udf(vectorized=True)
def narrow(numbers: pa.Int64Array) -> Annotated[pa.Int32Array, pa.int32()]:
    return numbers

@udf(vectorized=True)
def by_pandas(numbers: pa.DoubleArray) -> pa.DoubleArray:
    return numbers.to_pandas() + 1

@udf(vectorized=True)
def some_raise(texts: pa.StringArray) -> pa.StringArray:
    if "bad" in texts.to_pylist():
        raise ValueError("bad")
    return texts_of(range(len(texts) + 1), b"\\xff" * len(texts))

@udf(native=False)
def listed(which: str) -> list[str]:
    return TEXTS[which]()
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    return load(build_plugin(SOURCE, name="vectorized_results")).functions


def outcomes(function: Function, column: list[Any] | pa.Array) -> tuple[list[Any], dict[int, str]]:
    """The values, and the errors by row. Every value can be read, whatever the function has returned."""
    results = pa.RecordBatch.from_struct_array(function.outcomes(pa.array(column)))
    results.validate(full=True)
    rows = results.to_pylist()
    wrong = {row: one["error"] for row, one in enumerate(rows) if one.get("outcome") == ERROR}
    assert all(rows[row]["value"] is None for row in wrong)
    return [one["value"] for one in rows], wrong


@pytest.mark.parametrize(
    ("which", "values", "wrong"),
    [
        ("wild", ["abcd", None, "cde"], {1: "decreases"}),
        ("beyond", ["abcd", None, None], {1: "beyond the last", 2: "decreases"}),
        ("latin", ["a", None, "b"], {1: "not UTF-8"}),
        ("null", ["a", None, "b"], {}),
        ("broken_large", [None, None, None], {0: "pyarrow cannot read", 1: "UTF8", 2: "LargeStringArray"}),
    ],
)
def test_f4_a_broken_text_is_the_error_of_its_row(
    functions: Mapping[str, Function], which: str, values: list[str | None], wrong: dict[int, str]
) -> None:
    found, errors = outcomes(functions["text"], [which] * 3)
    assert found == values
    assert list(errors) == list(wrong)
    for row, part in wrong.items():
        assert errors[row].startswith(f"vectorized_results.text, row {row}: returned ")
        assert part in errors[row]


@pytest.mark.parametrize(
    ("which", "values", "wrong"),
    [
        ("lists", [["a"], ["b"], ["c"]], []),
        ("wild lists", [["a", "b", "c"], None, ["b", "c"]], [1]),
        ("wild", [["abcd"], None, ["cde"]], [1]),
        ("latin", [["a"], None, ["b"]], [1]),
    ],
)
def test_f4_what_is_broken_below_a_row_is_its_error_too(
    functions: Mapping[str, Function], which: str, values: list[Any], wrong: list[int]
) -> None:
    found, errors = outcomes(functions["items"], [which] * 3)
    assert found == values
    assert list(errors) == wrong


def test_f4_a_decimal_beyond_its_precision_is_the_error_of_its_row(functions: Mapping[str, Function]) -> None:
    found, errors = outcomes(functions["price"], [""] * 3)
    assert [None if value is None else str(value) for value in found] == ["999.99", None, None]
    assert list(errors) == [1, 2]
    assert "more than 5 digits" in errors[1]


def test_f4_broken_values_beside_a_call_that_raises(functions: Mapping[str, Function]) -> None:
    found, errors = outcomes(functions["some_raise"], ["a", "bad", "c", "d"])
    assert found == [None] * 4
    assert [("ValueError: bad" in errors[row], "not UTF-8" in errors[row]) for row in range(4)] == [
        (False, True),
        (True, False),
        (False, True),
        (False, True),
    ]


@pytest.mark.parametrize("which", ["large", "view", "dictionary", "chunked"])
def test_an_array_of_another_type_is_cast_if_nothing_is_lost(functions: Mapping[str, Function], which: str) -> None:
    assert outcomes(functions["text"], [which] * 3) == (["a", None, "b"], {})


def test_an_array_of_nulls_fits_each_type(functions: Mapping[str, Function]) -> None:
    assert outcomes(functions["text"], ["nothing"] * 3) == ([None] * 3, {})


@pytest.mark.parametrize(
    ("which", "text"),
    [
        ("list", "returned list, not an array of string: return pa.array(..., pa.string())"),
        ("matrix", "returned ndarray, not an array of string: return pa.array(..., pa.string())"),
        ("scalar", "returned StringScalar, not an array of string: return pa.array(..., pa.string())"),
        ("table", "returned Table, not an array of string: return pa.array(..., pa.string())"),
        ("number", "returned an array of int64, not string; cast it, to pa.string()"),
        ("angry", "returned Angry, which pyarrow cannot read: not now"),
    ],
)
def test_f4_what_is_no_array_is_an_error_that_says_what_to_return(
    functions: Mapping[str, Function], which: str, text: str
) -> None:
    _, errors = outcomes(functions["text"], [which] * 3)
    assert errors == {row: f"vectorized_results.text, row {row}: {text}" for row in range(3)}


def test_an_array_of_numpy_is_taken(functions: Mapping[str, Function]) -> None:
    assert functions["doubled"](pa.array([1.5, 2.5])).to_pylist() == [3.0, 5.0]


def test_f4_a_number_that_does_not_fit_is_the_error_of_its_row(functions: Mapping[str, Function]) -> None:
    found, errors = outcomes(functions["narrow"], [1, 2**40, None, 3])
    assert found == [1, None, None, 3]
    assert list(errors) == [1]


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_a_column_of_pandas_is_taken(functions: Mapping[str, Function]) -> None:
    assert functions["by_pandas"](pa.array([1.5, None])).to_pylist() == [2.5, None]


def test_f4_a_broken_array_as_the_value_of_a_row_is_its_error(functions: Mapping[str, Function]) -> None:
    """Of a function called row by row, whose lists pyarrow converts."""
    found, errors = outcomes(functions["listed"], ["chunked", "latin", "list"])
    assert list(errors) == [1]
    assert found[0] == found[2] == ["a", None, "b"]
