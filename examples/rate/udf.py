"""A service that allows so many calls a second: all calls and retries together keep to it."""

import asyncio

from arroyo_udf_plugin import udf


async def ask(text: str) -> float:
    """The service."""
    await asyncio.sleep(0)
    return len(text) / 100


@udf(rate="500/s", ordered=False, max_attempts=3, retry_on="error")
async def score(text: str) -> float:
    """The service's answer. It allows 500 calls a second; calls and retries together start at most that often."""
    return await ask(text)
