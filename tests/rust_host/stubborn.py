"""A call that its timeout does not end at once."""

import asyncio
import contextlib

from arroyo_udf_plugin import udf


@udf
async def stubborn(n: int) -> int:
    """Ignores its cancellation for a while that is longer than the second after which a call counts as stuck."""
    for _ in range(2):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1.5)
    return n
