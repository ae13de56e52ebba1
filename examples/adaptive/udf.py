"""A service that refuses calls when it has too many: the host finds out how many it can take."""

import asyncio

from arroyo_udf_plugin import udf

running = 0


async def ask(text: str) -> int:
    """The service: it works on eight calls at once, and refuses what is beyond sixteen."""
    global running
    if running >= 16:
        raise ConnectionError("busy")
    running += 1
    try:
        await asyncio.sleep(0.001 * max(1, running / 8))
        return len(text)
    finally:
        running -= 1


@udf(allowed_in_flight="auto", ordered=False, max_attempts=5, retry_on=("timeout", "error"), backoff="10ms")
async def words(text: str) -> int:
    """The service's answer. The limit of calls follows what it can take."""
    return await ask(text)
