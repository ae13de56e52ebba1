"""The functions of a simulated pipeline. They run in the process of the test, and ask its `inflight`."""

import sys

from arroyo_udf_plugin import call_info, udf


@udf
def plus(n: int) -> int:
    return n + 1


@udf(ordered=False, allowed_in_flight=100)
async def held(n: int) -> int:
    await sys.modules["inflight"].passed("held", n, call_info().idempotency_key)
    return 10 * n


@udf
async def in_order(n: int) -> int:
    await sys.modules["inflight"].passed("in_order", n, call_info().idempotency_key)
    return -n


@udf
async def fragile(n: int) -> int:
    """Fails for each third row until it is mended."""
    if sys.modules["inflight"].is_mended:
        sys.modules["inflight"].note("fragile", n, call_info().idempotency_key)
        return 10 * n
    await sys.modules["inflight"].passed("fragile", n, call_info().idempotency_key)
    if n % 3 == 0:
        raise ValueError(f"{n} is a third one")
    return 10 * n
