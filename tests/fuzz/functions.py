"""What the fuzzer calls in Python: functions that answer what they got. Their names say what (plugin_host.py)."""

from typing import Annotated, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf


class Pair(TypedDict):
    a: int
    b: str | None


@udf
def same_bool(x: bool) -> bool:
    return x


@udf
def same_int(x: int) -> int:
    return x


@udf
def same_int32(x: Annotated[int, pa.int32()]) -> Annotated[int, pa.int32()]:
    return x


@udf
def same_float(x: float) -> float:
    return x


@udf
def same_str(x: str) -> str:
    return x


@udf
def same_large(x: Annotated[str, pa.large_utf8()]) -> Annotated[str, pa.large_utf8()]:
    return x


@udf
def same_bytes(x: bytes) -> bytes:
    return x


@udf
def same_optional(x: str | None) -> str | None:
    return x


@udf
def same_texts(x: list[str | None]) -> list[str | None]:
    return x


@udf
def same_nested(x: list[list[int | None] | None]) -> list[list[int | None] | None]:
    return x


@udf
def pair(x: Pair) -> str:
    return f"{x['a']} {x['b']}"


@udf
def last(a: int, b: str | None, c: list[str | None], d: str) -> str:
    return d


@udf(vectorized=True)
def whole_str(x: pa.StringArray) -> pa.StringArray:
    pc.utf8_upper(x)
    pc.utf8_reverse(x)
    return x


@udf(vectorized=True)
def whole_ints(x: pa.Int64Array) -> pa.Int64Array:
    pc.sum(x)
    x.drop_null()
    return pc.add(x, 0)


@udf(vectorized=True)
def whole_texts(x: Annotated[pa.ListArray, pa.list_(pa.utf8())]) -> Annotated[pa.ListArray, pa.list_(pa.utf8())]:
    pc.list_value_length(x)
    pc.utf8_upper(x.flatten())
    return x.take(pa.array(range(len(x))))  # without items that belong to no row, whatever they are


@udf
async def async_same_int(x: int) -> int:
    return x


@udf
async def async_same_str(x: str) -> str:
    return x


@udf
async def async_same_texts(x: list[str | None]) -> list[str | None]:
    return x


@udf(batch_size=7)
async def async_batched_texts(x: list[list[str | None]]) -> list[list[str | None]]:
    return x


@udf(blocking=True)
def async_same_optional(x: str | None) -> str | None:
    return x
