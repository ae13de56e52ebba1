"""The function `plane` of examples/flights/udf.py alone: a cluster takes one function in each definition."""

import os

import aiosqlite

from arroyo_udf_plugin import udf


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
