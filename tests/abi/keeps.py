"""For releases.c: functions that keep their input arrays, and functions that drop what others have kept."""

import asyncio
import builtins
import gc

import pyarrow as pa

from arroyo_udf_plugin import udf

gc.disable()  # so that nothing is collected before `collect` is called
builtins.__dict__.setdefault("arroyo_udf_kept", [])
kept: list[object] = builtins.__dict__["arroyo_udf_kept"]  # shared by all plugins of the process


@udf
async def plus(x: int) -> int:
    if x % 3 == 0:
        await asyncio.sleep(0)
    return x + 1


@udf(vectorized=True)
def keep(x: pa.Int64Array) -> pa.Int64Array:
    kept.append(x)
    return x


@udf(vectorized=True)
def keep_in_a_circle(x: pa.Int64Array) -> pa.Int64Array:
    try:
        raise ValueError("kept by its own frame")
    except ValueError as error:
        kept_here = error  # noqa: F841
    return x


@udf(vectorized=True)
def keep_what_it_raises(x: pa.Int64Array) -> pa.Int64Array:
    try:
        raise ValueError("kept by its own frame")
    except ValueError as error:
        kept_here = error  # noqa: F841
        raise


@udf
def drop(x: int) -> int:
    kept.clear()
    return x


@udf
def collect(x: int) -> int:
    return gc.collect()
