"""`Constant[T]`: parameters of vectorised functions that are one value."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_udf_plugin import BuildError, Function, RowError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import datetime
import decimal
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import Constant, udf

calls = []


@udf(vectorized=True)
def matches(text: pa.StringArray, pattern: Constant[str]) -> pa.BooleanArray:
    calls.append((len(text), pattern))
    return pc.match_substring_regex(text, pattern)

@udf(vectorized=True)
def scaled(by: Constant[int | None], xs: pa.Int64Array, plus: Constant[int]) -> pa.Int64Array:
    return pc.add(pc.multiply(xs, by), plus) if by is not None else pa.array([-1] * len(xs))

@udf(native=False)
def scaled_by_row(by: int | None, x: int | None, plus: int) -> int | None:
    return -1 if by is None else None if x is None else by * x + plus

@udf(vectorized=True)
def shown(
    xs: pa.Int64Array, a: Constant[bool], b: Constant[float], c: Constant[bytes], d: Constant[datetime.date],
    e: Constant[datetime.datetime], f: Constant[datetime.time], g: Constant[datetime.timedelta],
    h: Constant[decimal.Decimal], i: Constant[Annotated[int, pa.int8()]], j: Constant[Annotated[str, pa.large_utf8()]],
) -> pa.StringArray:
    return pa.array([repr((a, b, c, d, e, f, g, h, i, j))] * len(xs))

@udf(vectorized=True)
def refuses(xs: pa.Int64Array, limit: Constant[int]) -> pa.Int64Array:
    calls.append((len(xs), limit))
    if pc.max(xs).as_py() > limit:
        raise ValueError(f"more than {limit}")
    return xs

@udf(native=False)
def taken_calls(x: int) -> str:
    shown = repr(calls)
    calls.clear()
    return shown
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    return load(build_plugin(SOURCE, name="constant_parameters")).functions


@pytest.fixture
def calls(functions: Mapping[str, Function]) -> Callable[[], Any]:
    def taken() -> Any:
        (text,) = functions["taken_calls"](pa.array([0])).to_pylist()
        return eval(text)

    taken()
    return taken


def test_the_function_gets_one_value(functions: Mapping[str, Function], calls: Callable[[], Any]) -> None:
    text = pa.array(["ab", "b", None] * 100)
    assert functions["matches"](text, "a").to_pylist() == [True, False, None] * 100
    assert functions["matches"](text, pa.array(["a"] * 300)).to_pylist() == [True, False, None] * 100
    assert calls() == [(300, "a"), (300, "a")]


def test_a_column_that_varies_is_called_for_each_run(
    functions: Mapping[str, Function], calls: Callable[[], Any]
) -> None:
    found = functions["matches"](pa.array(["ab", "b", "a", "b"]), pa.array(["a", "a", "b", "b"]))
    assert found.to_pylist() == [True, False, False, True]
    assert calls() == [(2, "a"), (2, "b")]


def test_null_is_null_without_a_call_unless_the_parameter_allows_it(
    functions: Mapping[str, Function], calls: Callable[[], Any]
) -> None:
    found = functions["matches"](pa.array(["a", "b", "c"]), pa.array([None, "b", None]))
    assert found.to_pylist() == [None, True, None]  # F3
    assert calls() == [(1, "b")]
    xs, by, plus = pa.array([1, 2, 3]), pa.array([2, None, None], pa.int64()), pa.array([1, 1, None], pa.int64())
    assert functions["scaled"](by, xs, plus).to_pylist() == [3, -1, None]


def test_no_rows_need_no_call(functions: Mapping[str, Function], calls: Callable[[], Any]) -> None:
    nothing = pa.array([], pa.utf8())
    assert functions["matches"](nothing, nothing).to_pylist() == []
    assert functions["matches"](nothing, "a").to_pylist() == []
    assert calls() == []


def test_all_types_of_one_value(functions: Mapping[str, Function]) -> None:
    day, moment = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5)
    values = (
        True,
        0.5,
        b"\x00a",
        day,
        moment,
        moment.time(),
        datetime.timedelta(days=1),
        decimal.Decimal("1.5"),
        7,
        "é",
    )
    others = tuple(value if i != 4 else moment.replace(year=1999) for i, value in enumerate(values))
    columns = [pa.array([one, one, other]) for one, other in zip(values, others, strict=True)]
    columns[7] = columns[7].cast(pa.decimal128(38, 9))
    columns[8] = columns[8].cast(pa.int8())
    found = functions["shown"](pa.array([1, 2, 3]), *columns).to_pylist()
    shown = [repr((*row[:7], decimal.Decimal("1.500000000"), *row[8:])) for row in (values, others)]
    assert found == [shown[0], shown[0], shown[1]]


def test_a_failing_row_of_one_run_costs_itself(functions: Mapping[str, Function], calls: Callable[[], Any]) -> None:
    xs, limits = pa.array([1, 9, 1, 9]), pa.array([5, 5, 10, 10])
    with pytest.raises(RowError, match=r"constant_parameters\.refuses, row 1: ValueError: more than 5") as raised:
        functions["refuses"](xs, limits)
    assert set(raised.value.errors) == {1}
    assert functions["refuses"].outcomes(xs, limits).field("value").to_pylist() == [1, None, 1, 9]


@given(
    rows=st.lists(
        st.tuples(st.none() | st.integers(-2, 2), st.none() | st.integers(-9, 9), st.none() | st.integers(0, 1)),
        min_size=1,
        max_size=30,
    )
)
def test_it_answers_as_a_function_of_rows(
    functions: Mapping[str, Function], rows: list[tuple[int | None, int | None, int | None]]
) -> None:
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    assert functions["scaled"](*columns).equals(functions["scaled_by_row"](*columns))


@pytest.mark.parametrize(
    ("parameters", "returns", "why"),
    [
        ("a: Constant[str]", "pa.Int64Array", "has only constants, which do not say how many rows there are"),
        ("a: pa.Int64Array, b: Constant[list[int]]", "pa.Int64Array", "`list[int]` cannot be a constant"),
        ("a: pa.Int64Array", "Constant[int]", "does not name one array type"),
    ],
)
def test_mistakes_are_refused(build_plugin: BuildPlugin, parameters: str, returns: str, why: str) -> None:
    source = "import pyarrow as pa\nfrom arroyo_udf_plugin import Constant, udf\n"
    with pytest.raises(BuildError) as raised:
        build_plugin(f"{source}@udf(vectorized=True)\ndef f({parameters}) -> {returns}:\n    return a\n")
    assert why in str(raised.value)


def test_elsewhere_it_is_the_type_alone(build_plugin: BuildPlugin) -> None:
    source = (
        "from arroyo_udf_plugin import Constant, udf\n@udf\ndef f(a: Constant[str], b: int) -> str:\n    return a * b\n"
    )
    f = load(build_plugin(source)).functions["f"]
    assert (f.arguments.types, f("ab", pa.array([2])).to_pylist()) == ([pa.utf8(), pa.int64()], ["abab"])
