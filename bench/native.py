"""Functions that are compiled to C (docs/native.md), and the same ones that are not."""

from arroyo_udf_plugin import udf


@udf(native=True)
def mph(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf(native=False)
def mph_python(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf(native=True)
def tail(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"


@udf(native=False)
def tail_python(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"
