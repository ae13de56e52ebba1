"""The function of query.sql; it waits, as for a service."""

import asyncio

from arroyo_udf_plugin import udf


@udf(allowed_in_flight=1000)
async def town(zip: int) -> str:
    """Where a zip code is."""
    await asyncio.sleep(0.001)
    return f"town {zip % 100}"
