"""The functions of references.py as a plugin: the subjects of the measurements.

BENCH_LOOP=asyncio in the environment disables uvloop in the process that loads the plugin.
"""

import asyncio
import os
import sys
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf

if os.environ.get("BENCH_LOOP") == "asyncio":
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # "not installed"; the loop is made at the first start


@udf(native=False)
def mph(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf(native=False)
def tail(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"


@udf(vectorized=True)
def mph_vectorized(
    distance: Annotated[pa.Array, pa.int64()], air_time: Annotated[pa.Array, pa.int64()]
) -> Annotated[pa.Array, pa.float64()]:
    return pc.divide(pc.multiply(pc.cast(distance, pa.float64()), 60.0), pc.cast(air_time, pa.float64()))


@udf
async def at_once(x: int) -> int:
    return x + 1


@udf
async def sleep_zero(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1


@udf
async def sleep_ms(x: int) -> int:
    await asyncio.sleep(0.001)
    return x + 1


@udf(native=False)
def plus_one(x: int) -> int:
    return x + 1


@udf
async def parked(x: int) -> int:
    """Waits until it is cancelled."""
    await asyncio.get_running_loop().create_future()
    return x


@udf
async def spin(x: int) -> int:
    """Keeps the event loop turning until it is cancelled."""
    while True:
        await asyncio.sleep(0)


@udf
async def loop_name(x: int) -> str:
    """The module of the running event loop."""
    return type(asyncio.get_running_loop()).__module__
