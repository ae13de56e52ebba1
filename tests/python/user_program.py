"""A user's program, as `mypy --strict` sees it: nothing needs a cast or an ignore. test_user_types.py checks that."""

from typing import assert_type

import pyarrow as pa

from arroyo_udf_plugin import Function, Plugin, Policy, RowError, Runtime, load, udf


@udf(native=False)
def add(a: int, b: int) -> int:
    return a + b


@udf(ordered=False, timeout="2ms", retry_on=("timeout", "error"), allowed_in_flight=10)
async def half(number: int) -> float:
    return number / 2


@udf(vectorized=True, volatility="immutable")
def same(x: pa.Int64Array) -> pa.Int64Array:
    return x


@udf(blocking=True, timeout=2.5)
def size(path: str) -> int:
    return len(path)


assert_type(add(1, 2), int)


def run(path: str) -> dict[int, str]:
    plugin: Plugin = load(path)
    function: Function = plugin.functions["half"]
    if function.kind == "sync" and function.volatility == "stable":
        return {}
    with function.start(timeout=2.5, ordered=False, retry_on="error") as runtime:
        assert_type(runtime, Runtime)
        for rows, results in runtime.map(pa.table({"number": [1]})):
            Policy(error="null").apply(results, function)
            print(len(rows))
        runtime.stop("cancel")
    try:
        function([1, 2])
    except RowError as error:
        return error.errors
    return {}


async def run_async(function: Function) -> None:
    async with await function.start_async(max_rows=10) as runtime:
        await runtime.send_async(0, [1], timeout=1.0)
        async for rows, results in runtime.amap([[1]], first_id=1):
            print(rows, results)
    print(await function.call_async([1]))
