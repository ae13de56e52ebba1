"""For starved.c: a function of each kind, which returns its argument plus one."""

import asyncio

from arroyo_udf_plugin import udf


@udf
def now(x: int) -> int:
    return x + 1


@udf
async def soon(x: int) -> int:
    if x % 2:
        await asyncio.sleep(0)
    return x + 1


@udf(blocking=True)
def aside(x: int) -> int:
    return x + 1
