"""Functions that misbehave for the rows 3, 13, 23, ... and return x + 1 for all others.

Whatever they do, each row gets its outcome, other rows are not affected, and the run succeeds:

    arroyo-udf build examples/misbehaving/udf.py
    arroyo-udf run examples/misbehaving/libudf.so:exits rows.csv --args x --out out.csv \\
        --on-error null --on-timeout null
"""

import asyncio
import sys
import time

from arroyo_udf_plugin import udf


def is_bad(x: int) -> bool:
    return x % 10 == 3


@udf
def fails(x: int) -> int:
    if is_bad(x):
        raise ValueError(f"{x} is not to my taste")
    return x + 1


@udf
def exits(x: int) -> int:
    if is_bad(x):
        sys.exit(f"at {x}")
    return x + 1


@udf
def wrong_type(x: int) -> int:
    return str(x) if is_bad(x) else x + 1  # type: ignore[return-value]


@udf
def too_big(x: int) -> int:
    return 2**63 if is_bad(x) else x + 1


@udf
def recurses(x: int) -> int:
    return recurses.function(x) if is_bad(x) else x + 1


@udf
async def fails_later(x: int) -> int:
    await asyncio.sleep(0)
    if is_bad(x):
        raise ValueError(f"{x} is not to my taste")
    return x + 1


@udf(timeout=0.05)
async def never_ends(x: int) -> int:
    if is_bad(x):
        await asyncio.Event().wait()
    return x + 1


@udf(timeout=0.05)
async def blocks_the_loop(x: int) -> int:
    if is_bad(x):
        time.sleep(0.2)
    return x + 1


@udf(timeout=0.05)
async def ignores_cancellation(x: int) -> int:
    while is_bad(x):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return x + 1


@udf
async def cancels_itself(x: int) -> int:
    if is_bad(x):
        raise asyncio.CancelledError
    return x + 1


@udf
async def exits_in_a_task(x: int) -> int:
    async def leave() -> None:
        sys.exit(f"at {x}")

    if is_bad(x):
        await asyncio.gather(leave())
    return x + 1


@udf
async def stops_the_loop(x: int) -> int:
    if is_bad(x):
        asyncio.get_running_loop().stop()
    return x + 1


@udf
async def leaves_a_task_behind(x: int) -> int:
    if is_bad(x):
        asyncio.get_running_loop().create_task(asyncio.sleep(3600), name=f"left by {x}")
    return x + 1


@udf
async def leaves_an_exit_behind(x: int) -> int:
    if is_bad(x):
        asyncio.get_running_loop().call_soon(sys.exit, f"at {x}")
    return x + 1
