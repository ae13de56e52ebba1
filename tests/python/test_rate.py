"""A budget of rate through real plugins (R22). native/runtime/src/machine/tests proves the rules.

Here the clock is moved. Each function has a name of its own, because a budget is shared by name and outlives runtimes.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import advance, drained, until

from arroyo_udf_plugin import BuildError, InvalidArgument, Options, Plugin, Runtime, load
from arroyo_udf_plugin.author.options import abi_fields, parse

SOURCE = """
# /// script
# [tool.arroyo-udf]
# rate = "2/h"
# ///
from arroyo_udf_plugin import udf

@udf
async def of_the_block(x: int) -> int:
    return x

@udf(rate="1/h")
async def alone(x: int) -> int:
    return x

@udf(rate="1/h")
async def sliced(x: int) -> int:
    return x

@udf(rate="1/h", ordered=False, max_attempts=2, retry_on="error", backoff=0.001)
async def failing(x: int) -> int:
    raise ValueError("no")

@udf(rate="1/h", blocking=True)
def blocking(x: int) -> int:
    return x

@udf(rate="1/h")
async def isolated(x: int) -> int:
    return x

@udf(rate="1000000/s", ordered=False)
async def fast(x: int) -> int:
    return x
"""

HOUR = 3700  # seconds: an hour, and what a budget loses


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Plugin:
    return load(build_plugin(SOURCE, name="paced"))


def ended(runtime: Runtime) -> int:
    counts = runtime.statistics()
    return counts.values + counts.errors + counts.timed_out


@pytest.mark.parametrize("name", ["alone", "blocking"])
def test_r22_a_call_waits_until_the_budget_allows_it(plugin: Plugin, name: str) -> None:
    with plugin.functions[name].start(timeout=1e6) as runtime:
        runtime.send(0, pa.array([5, 6, 7]))
        for done in range(1, 4):
            assert drained(runtime, 1)["value"].to_pylist() == [4 + done]
            waited = min(done, 2)
            until(lambda: runtime.statistics().paced == waited, "the next call to wait")  # noqa: B023 (called in this turn)
            assert ended(runtime) == done
            advance(HOUR)


def test_r22_runtimes_of_one_name_share_a_budget_also_after_a_stop(plugin: Plugin) -> None:
    with plugin.functions["sliced"].start() as first, plugin.functions["sliced"].start() as second:
        first.send(0, pa.array([1]))
        drained(first, 1)
        second.send(0, pa.array([2]))
        until(lambda: second.statistics().paced == 1, "its call to wait")
        assert ended(second) == 0
        advance(HOUR)
        assert drained(second, 1)["value"].to_pylist() == [2]
    with plugin.functions["sliced"].start() as third:
        third.send(0, pa.array([3]))
        until(lambda: third.statistics().paced == 1, "its call to wait")
        advance(HOUR)
        assert drained(third, 1)["value"].to_pylist() == [3]


def test_r22_another_rate_is_another_budget(plugin: Plugin) -> None:
    with plugin.functions["alone"].start(rate="7/d", timeout=1e6) as runtime:
        runtime.send(0, pa.array([1]))
        drained(runtime, 1)
        assert runtime.statistics().paced == 0


def test_r22_retries_count_and_a_row_deadline_runs_on(plugin: Plugin) -> None:
    with plugin.functions["failing"].start(deadline=2 * HOUR) as runtime:
        runtime.send(0, pa.array([1, 2]))
        until(lambda: runtime.statistics().paced == 1, "a call to wait")
        advance(HOUR)  # one more call, of either row
        until(lambda: runtime.statistics().paced == 2, "a call to wait")
        advance(HOUR)  # the deadline
        rows = drained(runtime, 2).to_pylist()
    assert sum(row["attempts"] for row in rows) == 2
    assert "row deadline" in rows[-1]["error"]


def test_r22_workers_of_one_function_share_a_budget(build_plugin: Callable[..., Path]) -> None:
    file = build_plugin(SOURCE, name="paced")
    with load(file, isolation="process", workers=2) as plugin, plugin.functions["isolated"].start() as runtime:
        runtime.send(0, pa.array([1, 2]))
        assert drained(runtime, 1)["value"].to_pylist() == [1]
        until(lambda: runtime.statistics().paced == 1, "the next call to wait")
        advance(HOUR)
        assert drained(runtime, 1)["value"].to_pylist() == [2]


def test_r22_a_rate_that_is_no_limit_costs_no_row(plugin: Plugin) -> None:
    with plugin.functions["fast"].start() as runtime:
        runtime.send(0, pa.array(range(10_000)))
        assert sorted(drained(runtime, 10_000)["value"].to_pylist()) == list(range(10_000))


def test_a_rate_is_chosen_in_the_block_the_decorator_and_at_start(plugin: Plugin) -> None:
    def chosen(name: str) -> str | None:
        options = plugin.functions[name].options
        assert isinstance(options, Options)
        return options.rate

    assert (chosen("of_the_block"), chosen("alone"), Options().rate) == ("2/h", "1/h", None)
    assert parse("rate=500/s") == ("rate", "500/s")
    assert abi_fields({"rate": "100 / 15min"}) == {"rate": 100, "rate_seconds": 900}


@pytest.mark.parametrize("rate", ["500", "0/s", "5/ms", "5/0s", "-1/s", "1.5/s", "5/year", 500, None])
def test_a_wrong_rate_is_refused(plugin: Plugin, build_plugin: Callable[..., Path], rate: object) -> None:
    with pytest.raises(InvalidArgument, match="write a text such as '500/s', '30/min' or '100/15min'"):
        plugin.functions["alone"].start(rate=rate)  # type: ignore[arg-type]
    source = f"from arroyo_udf_plugin import udf\n@udf(rate={rate!r})\nasync def f(x: int) -> int:\n    return x\n"
    with pytest.raises(BuildError, match="has rate="):
        build_plugin(source, name="wrong")
