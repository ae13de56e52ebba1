"""Functions of all types, for all engines."""

import asyncio
import datetime
import decimal
from typing import Annotated

import pyarrow as pa

from arroyo_udf_plugin import udf


@udf(volatility="immutable")
def mph(distance: int, air_time: int) -> float:
    """Miles per hour."""
    if air_time == 0:
        raise ValueError("no time")
    return distance * 60.0 / air_time


@udf
def shout(text: str) -> str:
    return text + "!"


@udf
def or_zero(value: int | None) -> int:
    return value or 0


@udf
def same_bool(value: bool) -> bool:
    return value


@udf
def same_int8(value: Annotated[int, pa.int8()]) -> Annotated[int, pa.int8()]:
    return value


@udf
def same_int16(value: Annotated[int, pa.int16()]) -> Annotated[int, pa.int16()]:
    return value


@udf
def same_int32(value: Annotated[int, pa.int32()]) -> Annotated[int, pa.int32()]:
    return value


@udf
def same_int64(value: int) -> int:
    return value


@udf
def same_uint8(value: Annotated[int, pa.uint8()]) -> Annotated[int, pa.uint8()]:
    return value


@udf
def same_uint16(value: Annotated[int, pa.uint16()]) -> Annotated[int, pa.uint16()]:
    return value


@udf
def same_uint32(value: Annotated[int, pa.uint32()]) -> Annotated[int, pa.uint32()]:
    return value


@udf
def same_uint64(value: Annotated[int, pa.uint64()]) -> Annotated[int, pa.uint64()]:
    return value


@udf
def same_float32(value: Annotated[float, pa.float32()]) -> Annotated[float, pa.float32()]:
    return value


@udf
def same_float64(value: float) -> float:
    return value


@udf
def same_binary(value: bytes) -> bytes:
    return value


@udf
def same_date(value: datetime.date) -> datetime.date:
    return value


@udf
def same_time(value: datetime.time) -> datetime.time:
    return value


@udf
def same_timestamp(
    value: Annotated[datetime.datetime, pa.timestamp("us")],
) -> Annotated[datetime.datetime, pa.timestamp("us")]:
    return value


@udf
def same_decimal(
    value: Annotated[decimal.Decimal, pa.decimal128(20, 3)],
) -> Annotated[decimal.Decimal, pa.decimal128(20, 3)]:
    return value


@udf
def same_small_decimal(
    value: Annotated[decimal.Decimal, pa.decimal128(7, 2)],
) -> Annotated[decimal.Decimal, pa.decimal128(7, 2)]:
    return value


@udf
def largest(n: int) -> Annotated[int, pa.uint64()]:
    return 2**64 - n


@udf
def total(values: list[int | None]) -> int:
    return sum(value or 0 for value in values)


@udf
def joined(values: list[str | None]) -> str:
    return " ".join(value or "" for value in values)


@udf(allowed_in_flight=500)
async def later(n: int) -> int:
    await asyncio.sleep(n % 7 / 1000)
    if n == 13:
        raise ValueError("thirteen")
    return n + 1


@udf(timeout=0.05, max_attempts=1)
async def late(n: int) -> int:
    if n == 13:
        await asyncio.sleep(60)
    return n + 1
