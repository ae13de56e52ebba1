"""What calls and sends accept as columns (host/arguments.py), and what becomes of rows that do not fit."""

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from arroyo_udf_plugin import ArroyoUdfError, BuildError, Function, InvalidArgument, Policy, RowError, errors, load

SOURCE = '''
import asyncio
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
from arroyo_udf_plugin import udf

@udf(native=False)
def minus(a: int, b: int | None) -> int:
    """The difference; b counts as 0 if it is null."""
    return a - (b or 0)

@udf(native=False)
def tiny(x: Annotated[int, pa.int8()], y: float | None) -> int:
    if x == 7:
        raise ValueError("seven")
    return x

@udf(native=False)
def shout(text: str) -> str:
    return text.upper()

@dataclass
class Point:
    x: int
    y: int

@udf(native=False)
def sums(point: Point, items: list[int]) -> int:
    return point.x - point.y + sum(items)

@udf(vectorized=True)
def doubled(x: pa.Int64Array) -> pa.Int64Array:
    return pa.array([None if v is None else 2 * v for v in x.to_pylist()], pa.int64())

@udf
async def half(x: Annotated[int, pa.int8()]) -> float:
    """Half of it."""
    if x == 7:
        raise ValueError("seven")
    await asyncio.sleep(0)
    return x / 2

@udf(native=False)
def huge(x: Annotated[int, pa.uint64()]) -> str:
    return str(x)
'''


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="door")).functions


class Once:
    """A stream of another library, which can be read once."""

    def __init__(self, array: pa.ChunkedArray) -> None:
        self._array: pa.ChunkedArray | None = array

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        array, self._array = self._array, None
        assert array is not None, "read twice"
        return array.__arrow_c_stream__(requested_schema)


class Frame(Once):
    """A table of another library."""

    columns = ("b", "a", "more")


def test_tables_bind_by_the_names_of_their_columns(functions: Any) -> None:
    table = pa.table({"b": [1, 2], "more": ["x", "y"], "a": [10, 20]})
    assert functions["minus"](table).to_pylist() == [9, 18]
    assert functions["minus"](table.to_batches()[0]).to_pylist() == [9, 18]
    assert functions["minus"].outcomes(table).field("value").to_pylist() == [9, 18]
    with functions["half"].start() as runtime:
        runtime.send(0, pa.table({"more": [0], "x": [3]}))
        runtime.stop()
        assert runtime.drain_results()["value"].to_pylist() == [1.5]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["x", "b"], "takes a, b, and the table has no column 'a' among x, b; rename its columns"),
        (["a", "a"], "the table has 2 columns 'a' among a, a"),
    ],
)
def test_tables_without_the_arguments_are_refused(functions: Any, names: list[str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        functions["minus"](pa.table([[1], [2]], names=names))


def test_arguments_by_keyword(functions: Any) -> None:
    minus = functions["minus"]
    assert minus(b=pa.array([1]), a=pa.array([5])).to_pylist() == [4]
    assert minus(pa.array([5]), b=pa.array([1])).to_pylist() == [4]
    for call, said in (
        (lambda: minus([1], a=[2]), "gets 'a' twice"),
        (lambda: minus([1], c=[2]), "has no argument 'c'; its arguments are a, b"),
        (lambda: minus(b=[1]), r"takes 2 arguments \(a, b\), but got 1 \(b by name\)"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            call()  # type: ignore[no-untyped-call]


def test_columns_of_other_kinds(functions: Any) -> None:
    minus, expected = functions["minus"], [9, 18]
    for column in ([10, 20], (10, 20), range(10, 30, 10), np.array([10, 20]), np.array([10.0, 20.0], "f4")):
        assert minus(column, pa.array([1, 2])).to_pylist() == expected
    assert minus(Once(pa.chunked_array([[10], [20]])), [1, 2]).to_pylist() == expected
    assert functions["shout"](np.array(["a", "b"])).to_pylist() == ["A", "B"]
    assert functions["sums"]([{"y": 1, "x": 3}], [[1, 2]]).to_pylist() == [5]


def test_a_list_may_have_integers_of_64_bits(functions: Any) -> None:
    huge = functions["huge"]
    assert huge([2**63, None, 2**64 - 1, 1]).to_pylist() == [str(2**63), None, str(2**64 - 1), "1"]
    outcomes = huge.outcomes([2**63, 2.5])
    assert outcomes.field("value").to_pylist() == [str(2**63), None]
    assert outcomes.field("error").to_pylist() == [None, "door.huge, row 1: argument 'x': 2.5 does not fit uint64"]
    assert huge.outcomes([2**63, -1, 2**64]).field("outcome").to_pylist() == [0, 1, 1]


def test_a_stream_is_read_once(functions: Any) -> None:
    """Its second export would be empty, or fail."""
    column = pa.chunked_array([[10], [20]])
    table = pa.table({"b": [1], "a": [10], "more": [0]})
    assert functions["minus"](Frame(table)).to_pylist() == [9]
    with functions["half"].start() as runtime:
        runtime.send(0, Once(column))
        runtime.send_nowait(2, Once(column))
        runtime.send(
            4, pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), [pa.record_batch({"x": [1]})])
        )
        runtime.stop()
        results = iter(runtime.drain_results, None)
        assert [value for batch in results for value in batch["value"].to_pylist()] == [5.0, 10.0, 5.0, 10.0, 0.5]


def test_a_table_that_cannot_be_read_is_named(functions: Any) -> None:
    """A stream of numbers is no table."""
    with pytest.raises(InvalidArgument, match="the table cannot be read: "):
        functions["minus"](Frame(pa.chunked_array([[1]])))


def test_scalars_count_for_every_row(functions: Any) -> None:
    minus = functions["minus"]
    assert minus([10, 20], 1).to_pylist() == [9, 19]
    assert minus(a=10, b=pa.array([1, 2])).to_pylist() == [9, 8]
    assert minus(pa.scalar(10), np.int8(4)).to_pylist() == [6]
    assert functions["tiny"]([1, 2], 0.1).to_pylist() == [1, 2]
    with pytest.raises(InvalidArgument, match=r"argument 2, 'b', 2\.5 does not fit int64"):
        minus([10, 20], 2.5)
    with pytest.raises(
        InvalidArgument, match=r"'a', is a NoneType; pass an Arrow array: pa\.array\(\.\.\., pa\.int64\(\)\)"
    ):
        minus(None, [1])


class LazyFrame:
    """As that of polars."""

    def collect_schema(self) -> None: ...

    @property
    def columns(self) -> list[str]:
        raise AssertionError("polars warns that this is slow")


def test_a_lazy_frame_has_no_rows(functions: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"a LazyFrame has no rows yet; pass what its \.collect\(\) returns"):
        functions["tiny"](LazyFrame())


def test_text_of_polars_and_of_large_arrays(functions: Any) -> None:
    for type_ in (pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        assert functions["shout"](pa.array(["a", None, "bc"], type_)).to_pylist() == ["A", None, "BC"]


def test_rows_that_do_not_fit_are_errors_and_the_others_are_called(functions: Any) -> None:
    tiny = functions["tiny"]
    column = pa.chunked_array([[1, 300], [7, None, -1000, 5]])
    outcomes = tiny.outcomes(column, 1.0)
    assert outcomes.field("value").to_pylist() == [1, None, None, None, None, 5]
    assert outcomes.field("outcome").to_pylist() == [0, 1, 1, 0, 1, 0]
    texts = outcomes.field("error").to_pylist()
    assert texts[1] == "door.tiny, row 1: argument 'x': 300 does not fit int8"
    assert texts[2].startswith("door.tiny, row 2: ValueError: seven"), "numbered as the caller's rows"
    with pytest.raises(RowError) as caught:
        tiny(column.combine_chunks(), 1.0)
    assert list(caught.value.errors) == [1, 2, 4]
    assert caught.value.errors[4] == "argument 'x': -1000 does not fit int8"
    with pytest.raises(RowError, match=r"row 3: argument 'x': 300 does not fit int8 \(and 2 more, see") as caught:
        tiny(pa.chunked_array([[1, 2], [3, 300], [], [7, 8, -1000]]), 1.0)
    assert list(caught.value.errors) == [3, 4, 6], "of all chunks"
    assert tiny.outcomes(pa.array([300]), 1.0).field("outcome").to_pylist() == [1]


def test_many_rows_that_do_not_fit_are_errors_in_their_places(functions: Any) -> None:
    """In chunks, and cut for `map`."""
    n_rows = 20_000
    numbers = [row % 100 if row % 3 == 0 else 300 for row in range(n_rows)]
    expected = [None if number in (7, 300) else number for number in numbers]
    column = pa.chunked_array([numbers[start : start + 3000] for start in range(0, n_rows, 3000)])
    with pytest.raises(RowError) as caught:
        functions["tiny"](column, 1.0)
    assert list(caught.value.errors) == [row for row, value in enumerate(expected) if value is None]
    assert functions["tiny"].outcomes(column, 1.0).field("value").to_pylist() == expected
    with functions["half"].start() as runtime:
        results = [result for _, part in runtime.map([column]) for result in part.to_pylist()]
    assert [result["id"] for result in results] == list(range(n_rows))
    assert [result["value"] for result in results] == [None if x is None else x / 2 for x in expected]


def test_nulls_inside_are_errors_also_if_the_types_are_equal(functions: Any) -> None:
    points = pa.array([{"x": 1, "y": 1}, {"x": 1, "y": None}], functions["sums"].arguments.types[0])
    items = pa.array([[1], [2]], functions["sums"].arguments.types[1])
    assert functions["sums"].outcomes(points, items).field("outcome").to_pylist() == [0, 1]


def test_a_policy_sees_rows_that_do_not_fit(functions: Any) -> None:
    tiny = functions["tiny"]
    decided = Policy(error="null").apply(tiny.outcomes([1, 300], 1.0), tiny)
    assert (decided.results["value"].to_pylist(), decided.nulled) == ([1, None], 1)


def test_a_send_with_a_row_that_does_not_fit_sends_nothing(functions: Any) -> None:
    """R1: an accepted row is answered by the plugin, and this one cannot get there."""
    with functions["half"].start() as runtime:
        with pytest.raises(
            InvalidArgument, match=r"door\.half, row 11: argument 'x': 300 does not fit int8 \(and 1 more"
        ):
            runtime.send(10, pa.chunked_array([[1, 300], [400]]))
        assert runtime.statistics().accepted == 0


# ---- What functions and exceptions show ------------------------------------------------------------------------------


def test_functions_look_as_their_author_wrote_them(functions: Any) -> None:
    minus: Function = functions["minus"]
    assert (minus.__name__, minus.__doc__) == ("minus", "The difference; b counts as 0 if it is null.")
    assert str(inspect.signature(minus)) == "(a: int, b: int | None) -> int"
    assert str(inspect.signature(functions["sums"])) == "(point: dict[str, typing.Any], items: list[int]) -> int"
    assert inspect.signature(functions["doubled"]).return_annotation is pa.Int64Array
    assert functions["shout"].__doc__ is None


def test_a_wrong_name_says_what_there_is(functions: Any) -> None:
    with pytest.raises(KeyError, match="'door' has no function 'speed'; it has minus, tiny, shout"):
        functions["speed"]


@pytest.mark.parametrize("kind", [kind for kind in vars(errors).values() if isinstance(kind, type)], ids=str)
def test_exceptions_can_be_pickled(kind: type[Any]) -> None:
    if not issubclass(kind, ArroyoUdfError):
        return
    if kind is RowError:
        error: Any = RowError("two failed", {3: "a", 5: "b"})
    elif kind is BuildError:
        error = BuildError("no", "udf.py", 7)
    elif kind is errors.Unreachable:
        error = errors.Unreachable("no", "a store")
    else:
        error = kind("no", 17, True)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (kind, str(error), vars(error))
