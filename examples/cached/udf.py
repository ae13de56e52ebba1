"""A slow service, asked once for each different tail number and not once for each row."""

import asyncio

from arroyo_udf_plugin import udf

PLANES = {"N": "United States", "C": "Canada", "G": "United Kingdom"}


async def ask(tailnum: str) -> str:
    """The service. It knows where planes are registered."""
    await asyncio.sleep(0.01)
    return PLANES.get(tailnum[:1], "unknown")


@udf(deterministic=True, cache=100_000, cache_ttl="1h")
async def country(tailnum: str) -> str:
    """The country of a plane. Equal tail numbers share a call, and later rows get what it returned, for an hour."""
    return await ask(tailnum)
