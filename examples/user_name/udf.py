"""Names of users, looked up in PostgreSQL: one query per row, over a few connections that all calls share.

USERS_DB is the database's address, "postgresql://USER@HOST/DATABASE"; its table is users(id bigint, name text).
"""

import os

import asyncpg

from arroyo_udf_plugin import udf


class Context:
    """The connections: opened before the first row, closed after the last."""

    async def init(self) -> None:
        address = os.environ.get("USERS_DB")
        if not address:
            raise LookupError("USERS_DB is not set: name the database, as in postgresql://USER@HOST/DATABASE")
        self.pool = await asyncpg.create_pool(address, min_size=1, max_size=10, reset=self.leave)

    async def leave(self, connection: asyncpg.Connection) -> None:
        """Does nothing: after a lookup there is nothing to reset, and a reset costs a query."""

    async def close(self) -> None:
        await self.pool.close()


@udf
async def user_name(context: Context, id: int) -> str:
    """The name of a user; "Unknown-7" if user 7 does not exist or has no name."""
    name = await context.pool.fetchval("SELECT name FROM users WHERE id = $1", id)
    return f"Unknown-{id}" if name is None else name
