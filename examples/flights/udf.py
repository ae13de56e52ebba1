"""Functions on flights: the same idea as udf.rs and udf.c beside this file."""

from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int) -> float:
    """Average speed, of miles and minutes. Not called where either is null: the answer is null."""
    return distance * 60.0 / air_time


@udf(vectorized=True)
def mph_vectorized(distance: pa.Int64Array, air_time: pa.Int64Array) -> Annotated[pa.Array, pa.float64()]:
    """The same for whole arrays, nulls included."""
    return pc.divide(pc.multiply(distance, 60.0), air_time)


@udf
def tail(carrier: str, tailnum: str) -> str:
    """A carrier's name for a plane."""
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"
