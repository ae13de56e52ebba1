"""The functions of a simulated pipeline. They run in the process of the test, and ask its `gates`."""

import sys

from arroyo_udf_plugin import call_info, udf


@udf
def plus(n: int) -> int:
    return n + 1


@udf(ordered=False, allowed_in_flight=100)
async def held(n: int) -> int:
    await sys.modules["gates"].passed(n, call_info().idempotency_key)
    return 10 * n


@udf
async def in_order(n: int) -> int:
    await sys.modules["gates"].passed(n)
    return -n
