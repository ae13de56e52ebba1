from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from arroyo_udf_plugin import Function, load

FUNCTIONS = """
import asyncio
import random

from arroyo_udf_plugin import udf


@udf
def doubled(n: int) -> int:
    return 2 * n


@udf
def even(n: int) -> int:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n


@udf
def through_asyncio(n: int) -> int:
    async def answer() -> int:
        await asyncio.sleep(0)
        return n + 1
    return asyncio.run(answer())


@udf
async def late(n: int) -> int:
    await asyncio.sleep(0)
    return 10 * n


@udf(ordered=False, allowed_in_flight=50)
async def shuffled(n: int) -> int:
    await asyncio.sleep(random.random() / 1000)
    return -n


@udf
async def never(n: int) -> int:
    await asyncio.get_running_loop().create_future()
    return n


@udf(ordered=False, allowed_in_flight=20)
async def multiples_of_ten(n: int) -> int:
    if n % 10:
        await asyncio.get_running_loop().create_future()
    return n
"""


@pytest.fixture(scope="session")
def functions(build_plugin: Callable[..., Path]) -> dict[str, Function]:
    return dict(load(build_plugin(FUNCTIONS, name="story")).functions)
