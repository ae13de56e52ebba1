"""Memory that a host shares with its workers: what earlier batches have left there, and what functions keep."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Plugin, load

PYTHON = """
import pyarrow as pa

from arroyo_udf_plugin import udf

kept = []


@udf
def words(items: list[str], count: int) -> str:
    return f"{items} {count}"


@udf
def pairs(items: list[list[int]], count: int) -> str:
    return f"{items} {count}"


@udf(vectorized=True)
def first_ever(a: pa.Int64Array) -> pa.Int64Array:
    kept.append(a)
    return pa.array([kept[0][0].as_py()] * len(a), pa.int64())
"""


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(PYTHON, name="remembers")


@pytest.fixture(scope="module")
def plugin(file: Path) -> Iterator[Plugin]:
    with load(file, isolation="process") as plugin:
        yield plugin


@pytest.mark.parametrize("rows", [0, 1, 8, 100])
@pytest.mark.parametrize(
    ("function", "item", "items"),
    [("words", ["a word"] * 20, pa.list_(pa.string())), ("pairs", [[1, 2, 3]] * 20, pa.list_(pa.list_(pa.int64())))],
)
def test_lists_without_items_are_those_of_their_own_batch(
    plugin: Plugin, function: str, item: list[object], items: pa.DataType, rows: int
) -> None:
    call = plugin.functions[function]
    numbers = pa.array(range(rows), pa.int64())
    call(pa.array([item] * 300, items), pa.array(range(300), pa.int64()))
    assert call(pa.array([[]] * rows, items), numbers).to_pylist() == [f"[] {number}" for number in range(rows)]


def test_a_vectorized_function_may_keep_its_arrays(plugin: Plugin) -> None:
    for number, rows in enumerate((10, 1_000, 1_000_000)):
        answer = plugin.functions["first_ever"](pa.array([number] * rows, pa.int64()))
        assert answer.equals(pa.array([0] * rows, pa.int64()))
