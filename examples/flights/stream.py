"""Async functions of the pipeline in pipeline.toml; they wait, as for a service."""

import asyncio

from arroyo_udf_plugin import udf


@udf(ordered=False, allowed_in_flight=1000)
async def route(origin: str, dest: str) -> str:
    """Where a flight goes. Some answers take longer than others, and are overtaken."""
    await asyncio.sleep(0.002 if dest < "B" else 0)
    return f"{origin} to {dest}"


@udf(allowed_in_flight=1000)
async def plane(carrier: str, tailnum: str) -> str:
    """A carrier's name for a plane, in the order of the rows."""
    await asyncio.sleep(0)
    return f"{carrier}-{tailnum}"
