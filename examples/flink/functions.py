"""An async function that waits, as for a service: examples/flink/query.sql calls it for each payment."""

import asyncio

from arroyo_udf_plugin import udf


@udf
async def risk(payment: int) -> str:
    """How a service judges a payment."""
    await asyncio.sleep(0.005)
    return ("low", "low", "low", "medium", "high")[payment * 2_654_435_761 % 2**32 % 5]
