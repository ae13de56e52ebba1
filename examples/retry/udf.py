# /// script
# [tool.arroyo-udf]
# allowed_in_flight = 1000
# ///
"""A service that is not always there: a row gets up to five calls, with growing pauses between them."""

import asyncio
import random

from arroyo_udf_plugin import udf


async def ask(item: str) -> float:
    """Stands for the service: every other answer is that it is busy."""
    await asyncio.sleep(0)
    if random.random() < 0.5:
        raise ConnectionError("busy")
    return float(len(item))


@udf(ordered=False, timeout=2.5, max_attempts=5, retry_on=("timeout", "error"), backoff=0.01)
async def price(item: str) -> float:
    """What an item costs. A row that was refused five times is an error."""
    return await ask(item)
