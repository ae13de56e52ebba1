"""Micro-batches through real plugins: `@udf(batch_size=...)` (F1, F3, R4-R7). native/runtime/src/machine/tests proves
when calls start and how they are split."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import BuildError, InvalidArgument, Plugin, load

VALUE, ERROR, TIMED_OUT, CANCELLED = range(4)

SOURCE = """
import asyncio

from arroyo_udf_plugin import udf

calls = []
tries = {}

@udf(batch_size=10, max_wait="1h")
async def double(xs: list[int]) -> list[int]:
    calls.append(list(xs))
    return [2 * x for x in xs]

@udf(batch_size=1)
async def made(xs: list[int]) -> list[str]:
    taken = [str(call) for call in calls]
    calls.clear()
    return [";".join(taken)]

@udf(batch_size=4, max_wait="1ms")
async def inverse(xs: list[float], names: list[str | None]) -> list[float | ZeroDivisionError]:
    def one(x: float, name: str | None) -> float | ZeroDivisionError:
        return 1 / x if x else ZeroDivisionError(f"{name} is 0")
    return [one(x, name) for x, name in zip(xs, names, strict=True)]

@udf(batch_size=16, max_wait="1ms", allowed_in_flight=2)
async def poisoned(xs: list[int]) -> list[int]:
    calls.append(list(xs))
    await asyncio.sleep(0)
    if any(x < 0 for x in xs):
        raise ValueError(f"negative among {len(xs)}")
    return [x + 1 for x in xs]

@udf(batch_size=8, max_wait="1ms", max_attempts=3, retry_on="error", backoff=0.001)
async def second_time(xs: list[int]) -> list[int | Exception]:
    for x in xs:
        tries[x] = tries.get(x, 0) + 1
    return [x if tries[x] == 2 else ValueError("not yet") for x in xs]

@udf(batch_size=3, max_wait="1ms", timeout="10ms")
async def never(xs: list[int]) -> list[int]:
    await asyncio.Event().wait()
    return xs

@udf(batch_size=3, max_wait="1ms", timeout="10ms")
async def late(xs: list[int]) -> list[int]:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return xs

@udf(batch_size=4, max_wait="1ms")
async def short(xs: list[int]) -> list[int]:
    return [x for x in xs if x != 7]

@udf(batch_size=4, max_wait="1ms")
async def wrong(xs: list[int]) -> list[int]:
    return "abc"

class Context:
    async def init(self) -> None:
        self.factor = 3

@udf(batch_size=100, max_wait="1ms")
async def times(context: Context, xs: list[int]) -> list[int]:
    return [context.factor * x for x in xs]
"""
WITH_PYARROW = """
import dataclasses
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf

@udf(batch_size=100, max_wait="1ms")
async def arrays(xs: pa.Int64Array, ys: Annotated[pa.Array, pa.float32()]) -> pa.DoubleArray:
    return pc.add(xs.cast(pa.float64()), ys.cast(pa.float64()))

@dataclasses.dataclass
class Point:
    x: int
    y: int

@udf(batch_size=100, max_wait="1ms")
async def mirrored(points: list[Point | None], tags: list[list[str]]) -> list[Point | Exception | None]:
    return [p and Point(p.y, p.x) for p in points]
"""


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Plugin:
    return load(build_plugin(SOURCE))


@pytest.fixture(scope="module")
def of_pyarrow(build_plugin: Callable[..., Path]) -> Plugin:
    """Functions whose module needs pyarrow."""
    return load(build_plugin(WITH_PYARROW))


def results(plugin: Plugin, name: str, *columns: pa.Array, **options: Any) -> tuple[dict[str, list[Any]], Any]:
    """The results of one batch, by column, and the statistics at the end."""
    with plugin.functions[name].start(**options) as runtime:
        runtime.send(0, *columns)
        runtime.stop("drain")
        tables = []
        while (drained := runtime.drain_results()) is not None:
            tables.append(pa.Table.from_batches([drained]))
        statistics = runtime.statistics()
    return pa.concat_tables(tables).to_pydict(), statistics


def calls(plugin: Plugin) -> list[list[int]]:
    """The lists with which the functions of SOURCE were called since the last time."""
    values, _ = results(plugin, "made", pa.array([0]))
    return [eval(text) for text in values["value"][0].split(";") if text]


def test_rows_become_lists_of_at_most_batch_size(plugin: Plugin) -> None:
    calls(plugin)
    out, _ = results(plugin, "double", pa.array(range(25)))
    assert out["value"] == [2 * x for x in range(25)]
    assert out["id"] == list(range(25))
    noted = calls(plugin)
    assert [x for call in noted for x in call] == list(range(25))
    assert [len(call) for call in noted] == [10, 10, 5], "a stop starts the last ones, because no more will come"


def test_rows_of_several_sends_share_a_call(plugin: Plugin) -> None:
    calls(plugin)
    with plugin.functions["double"].start() as runtime:
        for i in range(10):
            runtime.send(i, pa.array([i]))
        runtime.wait()
        results = runtime.drain_results()
        assert results is not None
        assert len(results) == 10
    assert calls(plugin) == [list(range(10))]


def test_f3_rows_with_a_null_are_not_part_of_the_call(plugin: Plugin) -> None:
    calls(plugin)
    out, _ = results(plugin, "double", pa.array([1, None, 3]))
    assert out["value"] == [2, None, 6]
    assert out["outcome"] == [VALUE] * 3
    assert calls(plugin) == [[1, 3]]
    out, _ = results(plugin, "double", pa.array([None, None], pa.int64()))
    assert out["value"] == [None, None]
    assert calls(plugin) == []


def test_r2_an_exception_among_the_results_is_the_error_of_its_row(plugin: Plugin) -> None:
    out, _ = results(plugin, "inverse", pa.array([1.0, 0.0, 4.0]), pa.array(["one", None, "four"]))
    assert out["outcome"] == [VALUE, ERROR, VALUE]
    assert (out["value"][0], out["value"][2]) == (1.0, 0.25)
    assert "row 1: ZeroDivisionError: None is 0" in out["error"][1]


def test_r7_a_call_that_raises_is_split_until_the_rows_that_fail_are_alone(plugin: Plugin) -> None:
    calls(plugin)
    rows = [-1 if x in (3, 12) else x for x in range(16)]
    out, statistics = results(plugin, "poisoned", pa.array(rows))
    assert [x for x, outcome in enumerate(out["outcome"]) if outcome == ERROR] == [3, 12]
    assert all("negative among 1" in out["error"][x] for x in (3, 12))
    assert [v for v in out["value"] if v is not None] == [x + 1 for x in rows if x >= 0]
    assert set(out["attempts"]) == {1}, "a split is not an attempt"
    assert statistics.retries == 0
    assert len(calls(plugin)) == 15, "1 + 2 + 4 + 4 + 4: only halves with a failing row are split again"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.integers(-3, 1000), min_size=1, max_size=60),
    size=st.integers(1, 20),
    cap=st.integers(1, 4),
    ordered=st.booleans(),
)
def test_r1_r5_every_row_has_its_own_outcome_whatever_the_grouping(
    plugin: Plugin, rows: list[int], size: int, cap: int, ordered: bool
) -> None:
    options = {"batch_size": size, "allowed_in_flight": cap, "ordered": ordered}
    out, statistics = results(plugin, "poisoned", pa.array(rows), **options)
    assert sorted(out["id"]) == list(range(len(rows)))
    if ordered:
        assert out["id"] == list(range(len(rows)))
    for row, value, outcome in zip(out["id"], out["value"], out["outcome"], strict=True):
        assert (value, outcome) == ((None, ERROR) if rows[row] < 0 else (rows[row] + 1, VALUE))
    assert statistics.errors == sum(x < 0 for x in rows)


def test_r7_only_the_rows_that_failed_are_tried_again(plugin: Plugin) -> None:
    out, statistics = results(plugin, "second_time", pa.array(range(8)))
    assert out["value"] == list(range(8))
    assert out["attempts"] == [2] * 8
    assert statistics.retries == 8


def test_r6_a_timeout_is_the_outcome_of_each_row_of_the_call(plugin: Plugin) -> None:
    out, _ = results(plugin, "never", pa.array(range(7)))
    assert out["outcome"] == [TIMED_OUT] * 7


def test_r6_a_call_that_answers_too_late_is_counted(plugin: Plugin) -> None:
    out, statistics = results(plugin, "late", pa.array(range(4)))
    assert (out["outcome"], statistics.discarded) == ([TIMED_OUT] * 4, 2)


def test_a_wrong_number_of_results_is_the_error_of_the_rows_that_cause_it(plugin: Plugin) -> None:
    out, _ = results(plugin, "short", pa.array([5, 6, 7, 8]))
    assert out["outcome"] == [VALUE, VALUE, ERROR, VALUE]
    assert "returned 0 results for 1 rows" in out["error"][2]
    out, _ = results(plugin, "wrong", pa.array([5, 6]))
    assert out["outcome"] == [ERROR, ERROR]
    assert "returned str, not a list with a result for each row" in out["error"][0]


def test_arrow_arrays_instead_of_lists(of_pyarrow: Plugin) -> None:
    out, _ = results(of_pyarrow, "arrays", pa.array([1, 2, None]), pa.array([0.5, None, 1.0], pa.float32()))
    assert out["value"] == [1.5, None, None], "these see nulls, as vectorised functions do"


def test_structs_and_lists_as_items(of_pyarrow: Plugin) -> None:
    points = pa.array(
        [{"x": 1, "y": 2}, None], pa.struct([pa.field("x", pa.int64(), False), pa.field("y", pa.int64(), False)])
    )
    tags = pa.array([["a"], []], pa.list_(pa.field("item", pa.utf8(), False)))
    out, _ = results(of_pyarrow, "mirrored", points, tags)
    assert out["value"] == [{"x": 2, "y": 1}, None]


def test_a_context_goes_first(plugin: Plugin) -> None:
    out, _ = results(plugin, "times", pa.array([1, 2]))
    assert out["value"] == [3, 6]


def test_batch_size_is_for_functions_that_take_lists(build_plugin: Callable[..., Path]) -> None:
    plain = load(build_plugin("from arroyo_udf_plugin import udf\n@udf\nasync def f(x: int) -> int: return x\n"))
    with pytest.raises(InvalidArgument, match="takes rows one by one, so it has no batch_size"):
        plain.functions["f"].start(batch_size=10)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "@udf(batch_size=10)\ndef f(x: list[int]) -> list[int]: return x",
            "is sync",
        ),
        ("@udf(max_wait=1)\nasync def f(x: int) -> int: return x", "write batch_size=100, say, too"),
        ("@udf(batch_size=0)\nasync def f(x: list[int]) -> list[int]: return x", "a whole number from 1"),
        ("@udf(batch_size=9)\nasync def f(x: int) -> list[int]: return [x]", r"write `list\[int\]` or `pa.Int64Array`"),
        ("@udf(batch_size=9)\nasync def f(x: list[int]) -> int: return 1", r"write `list\[int\]` or `pa.Int64Array`"),
        ("@udf(batch_size=9, max_wait='soon')\nasync def f(x: list[int]) -> list[int]: return x", "max_wait='soon'"),
    ],
)
def test_f5_mistakes_are_refused_when_the_plugin_is_built(
    build_plugin: Callable[..., Path], source: str, text: str
) -> None:
    with pytest.raises(BuildError, match=text):
        build_plugin(f"from arroyo_udf_plugin import udf\n{source}\n")


def test_a_block_cannot_make_functions_take_micro_batches(build_plugin: Callable[..., Path]) -> None:
    block = "# /// script\n# [tool.arroyo-udf]\n# batch_size = 10\n# ///\n"
    with pytest.raises(BuildError, match="batch_size"):
        build_plugin(f"{block}from arroyo_udf_plugin import udf\n@udf\nasync def f(x: int) -> int: return x\n")


def test_times_may_be_texts() -> None:
    from arroyo_udf_plugin.author.options import Options, abi_fields, parse

    assert abi_fields({"timeout": "1.5 s", "max_wait": "2ms"}) == {
        "timeout_ns": 1_500_000_000,
        "max_wait_ns": 2_000_000,
    }
    assert Options(timeout="2m").timeout == 120.0  # type: ignore[arg-type]
    assert parse("backoff=250us") == ("backoff", 0.00025)
    assert parse("timeout=inf") == ("timeout", math.inf)
