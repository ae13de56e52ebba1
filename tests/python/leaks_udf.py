"""The functions that leaks.py calls."""

import asyncio

from arroyo_udf_plugin import udf


@udf
async def mixed(x: int) -> int:
    if x % 10 == 1:
        raise ValueError(f"no {x}")
    if x % 10 == 2:
        await asyncio.Event().wait()
    return x


@udf(native=False)
def fussy(x: int, text: str) -> str:
    if x % 10 == 1:
        raise ValueError(text)
    return text


@udf
async def total(numbers: list[int]) -> int:
    return sum(numbers)


class Context:
    async def init(self) -> None:
        self.end = "!"

    async def close(self) -> None:
        del self.end


@udf
async def exclaimed(context: Context, x: str) -> str:
    return x + context.end
