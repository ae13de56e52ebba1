"""For exact.c and storm.c: functions with the results that those hosts expect."""

import asyncio

from arroyo_udf_plugin import udf


@udf
def seen(a: int, b: int | None, c: str) -> str:
    return f"{a} {'null' if b is None else b} {c}"


@udf
def fussy(x: int) -> str:
    if x % 5:
        raise ValueError(x)
    return "fine"


@udf
def same_bool(x: bool) -> bool:
    return x


@udf
async def plus(x: int) -> int:
    if x % 3 == 0:
        await asyncio.sleep(0)
    return x + 1
