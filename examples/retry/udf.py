# /// script
# [tool.arroyo-udf]
# allowed_in_flight = 1000
# ///
"""An unreliable service: each row gets up to five calls, with growing pauses between them."""

import asyncio
import random

from arroyo_udf_plugin import udf


async def ask(item: str) -> float:
    """The service: half of its answers are "busy"."""
    await asyncio.sleep(0)
    if random.random() < 0.5:
        raise ConnectionError("busy")
    return float(len(item))


@udf(ordered=False, timeout=2.5, max_attempts=5, retry_on=("timeout", "error"), backoff=0.01)
async def price(item: str) -> float:
    """The price of an item. After five failed calls the row is an error."""
    return await ask(item)
