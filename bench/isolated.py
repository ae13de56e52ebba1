"""The functions that test_isolation.py measures. Imports nothing that a subinterpreter lacks."""

from arroyo_udf_plugin import udf


@udf(native=False)
def busy(x: int) -> int:
    """Computes for more than a microsecond."""
    for step in range(40):
        x = (x * 31 + step) & 0xFFFF
    return x


@udf(native=False)
def plus_one(x: int) -> int:
    return x + 1


@udf
async def at_once(x: int) -> int:
    """Computes for some microseconds, and never waits.

    The host takes half a microsecond of each row itself, on the core of one of two workers. So a function that did
    nothing would show the host and not the workers.
    """
    for step in range(100):
        x = (x * 31 + step) & 0xFFFF
    return x
