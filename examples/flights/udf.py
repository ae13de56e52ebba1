"""Functions on flights; udf.rs and udf.c have the same ones in Rust and C."""

import os
from typing import Annotated

import aiosqlite
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int) -> float:
    """Average speed in mph, from miles and minutes. Not called if either is null: the result is null."""
    return distance * 60.0 / air_time


@udf(vectorized=True)
def mph_vectorized(distance: pa.Int64Array, air_time: pa.Int64Array) -> Annotated[pa.Array, pa.float64()]:
    """The same for whole arrays, with their nulls."""
    return pc.divide(pc.multiply(distance, 60.0), air_time)


@udf
def tail(carrier: str, tailnum: str) -> str:
    """A carrier's name for a plane."""
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"


class Context:
    """Shared by all calls of `plane`: opened before the first, closed after the last."""

    async def init(self) -> None:
        path = os.environ.get("FLIGHTS_DB", "")
        if not os.path.isfile(path):
            raise FileNotFoundError(f"FLIGHTS_DB={path!r}: set it to the SQLite file with the table planes")
        self.database = await aiosqlite.connect(path)

    async def close(self) -> None:
        await self.database.close()


@udf
async def plane(context: Context, tailnum: str) -> str:
    """Manufacturer and model of a plane, looked up in a database."""
    query = "SELECT manufacturer || ' ' || model FROM planes WHERE tailnum = ?"
    rows = list(await context.database.execute_fetchall(query, (tailnum,)))
    return str(rows[0][0]) if rows else "unknown"
