"""The functions of references.py as a plugin: what is measured."""

import asyncio
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf
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
