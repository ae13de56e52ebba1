"""A limit that adapts, through a real plugin (R23). native/runtime/src/machine/tests proves what it does to speed."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from waiting import drained

from arroyo_udf_plugin import BuildError, InvalidArgument, Options, Plugin, load
from arroyo_udf_plugin.author.options import abi_fields, parse

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

running = 0

@udf(allowed_in_flight="auto:40", ordered=False)
async def most(x: int) -> int:
    global running
    running += 1
    try:
        await asyncio.sleep(0)
        return running
    finally:
        running -= 1

@udf(allowed_in_flight="auto:40", ordered=False, max_attempts=2, retry_on="error", backoff=1e-6)
async def refuses(x: int) -> int:
    await asyncio.sleep(0)
    raise ConnectionError("busy")

@udf(allowed_in_flight="auto:40", ordered=False)
async def wrong(x: int) -> int:
    await asyncio.sleep(0)
    raise ValueError("a bad row")

@udf(allowed_in_flight="auto", blocking=True)
def blocking(x: int) -> int:
    return x
"""


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Plugin:
    return load(build_plugin(SOURCE, name="adaptive"))


def test_r23_calls_keep_to_the_largest_limit(plugin: Plugin) -> None:
    with plugin.functions["most"].start() as runtime:
        runtime.send(0, pa.array(range(5_000)))
        at_once = drained(runtime, 5_000)["value"].to_pylist()
        counts = runtime.statistics()
    assert 1 < max(at_once) <= 40
    assert (counts.limit_most, counts.overloads) == (40, 0)
    assert 1 <= counts.limit <= 40


def test_r23_errors_that_are_retried_lower_the_limit(plugin: Plugin) -> None:
    with plugin.functions["refuses"].start() as runtime:
        runtime.send(0, pa.array(range(2_000)))
        drained(runtime, 2_000)
        counts = runtime.statistics()
    assert counts.overloads > 5
    assert counts.limit < 16


def test_r23_other_errors_are_answers(plugin: Plugin) -> None:
    with plugin.functions["wrong"].start() as runtime:
        runtime.send(0, pa.array(range(2_000)))
        drained(runtime, 2_000)
        assert runtime.statistics().overloads == 0


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_r23_a_number_at_the_start_replaces_a_limit_that_adapts(
    build_plugin: Callable[..., Path], isolation: Literal["thread", "process"]
) -> None:
    with load(build_plugin(SOURCE, name="adaptive"), isolation=isolation) as plugin:
        blocking = plugin.functions["blocking"]
        for runtime, limits in ((blocking.start(), (16, 1000)), (blocking.start(allowed_in_flight=3), (3, 3))):
            with runtime:
                runtime.send(0, pa.array([1, 2]))
                assert drained(runtime, 2)["value"].to_pylist() == [1, 2]
                counts = runtime.statistics()
            assert (counts.limit, counts.limit_most) == limits


def test_a_limit_that_adapts_is_chosen_by_name(plugin: Plugin) -> None:
    options = plugin.functions["most"].options
    assert isinstance(options, Options)
    assert (options.allowed_in_flight, options.most_in_flight, options.max_stuck) == ("auto:40", 40, 40)
    assert parse("allowed_in_flight=auto") == ("allowed_in_flight", "auto")
    assert parse("allowed_in_flight=7") == ("allowed_in_flight", 7)
    assert abi_fields({"allowed_in_flight": "auto"}) == {"allowed_in_flight": 0, "adaptive": 1}
    assert Options(allowed_in_flight="auto").most_in_flight == 1000


@pytest.mark.parametrize("limit", ["automatic", "auto:0", "auto:", "7", 0, True])
def test_a_wrong_limit_is_refused(plugin: Plugin, build_plugin: Callable[..., Path], limit: object) -> None:
    with pytest.raises(InvalidArgument, match="write a whole number from 1 to 4294967295, 'auto', or 'auto:500'"):
        plugin.functions["most"].start(allowed_in_flight=limit)  # type: ignore[arg-type]
    source = (
        "from arroyo_udf_plugin import udf\n"
        f"@udf(allowed_in_flight={limit!r})\nasync def f(x: int) -> int:\n    return x\n"
    )
    with pytest.raises(BuildError, match="has allowed_in_flight="):
        build_plugin(source, name="wrong")
