"""A table of PostgreSQL whose changes are read, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from waiting import until

from arroyo_udf_plugin.engine.connectors.changes.changes_partition import ChangesPartition
from arroyo_udf_plugin.engine.connectors.changes.postgresql_cdc import PostgresqlChanges
from arroyo_udf_plugin.engine.connectors.interface import Json, Partition
from arroyo_udf_plugin.engine.connectors.source import Rows

EVERYTHING = {key: key for key in ("op", "before", "after", "unsent", "lsn", "xid", "committed")}


async def read_beyond(partition: Partition, lsn: int) -> Json:
    """Reads until the position is behind `lsn`, and returns it. A row may come before its commit, which moves it."""
    position = partition.position()
    while position.get("lsn", lsn) <= lsn:
        assert await partition.read() is not None
        position = partition.position()
    return position


class FollowedTable:
    """address: of a server. columns: as CREATE TABLE has them. sql: runs a statement."""

    def __init__(self, address: str, columns: str = "id bigint PRIMARY KEY, name text") -> None:
        self.address, self.columns = address, columns
        self.name = f"t_{uuid.uuid4().hex[:12]}"
        self.slot = f"slot_of_{self.name}"
        self.connection = psycopg.connect(address, autocommit=True)
        self.sql(f"CREATE TABLE {self.name} ({columns})")

    def connect_again(self) -> None:
        """To a server that was killed."""
        self.connection.close()
        self.connection = psycopg.connect(self.address, autocommit=True)

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """{t}: the table."""
        cursor = self.connection.execute(statement.replace("{t}", self.name), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def insert(self, *ids: int) -> None:
        self.sql("INSERT INTO {t} (id, name) SELECT n, 'name ' || n FROM unnest(%s::bigint[]) AS n", list(ids))

    def described(self, **keys: Any) -> PostgresqlChanges:
        """All rows and changes that there are."""
        usual = {"uri": self.address, "table": self.name, "slot": self.slot, "bounded": True, "heartbeat": 0.05}
        return PostgresqlChanges(**{**usual, "metadata": {"op": "op"}, **keys})

    @property
    def partition(self) -> str:
        return f"public.{self.name}"

    def opened(self, position: Json | None = None, **keys: Any) -> ChangesPartition:
        partition = self.described(**keys).source(1).open(self.partition, position)
        assert isinstance(partition, ChangesPartition)
        return partition

    def begin(self, **keys: Any) -> Json:
        """Makes the slot. Returns a position behind all that there is."""
        rows, position = self.read(None, **{"snapshot": False, **keys})
        assert rows == []
        return {name: value for name, value in position.items() if name not in ("end", "until")}

    def read(self, position: Json | None = None, **keys: Any) -> tuple[list[dict[str, Any]], Json]:
        """The rest, and the position behind it."""
        found, partition = list[Rows](), self.opened(position, **keys)

        async def everything() -> Json:
            partition.position()  # as a checkpoint does: it keeps the slot
            while (rows := await partition.read()) is not None:
                if rows.batch.num_rows:
                    found.append(rows)
            return partition.position()

        with contextlib.closing(partition):
            end = asyncio.run(everything())
        assert not any(rows.refused for rows in found)
        return [row for rows in found for row in rows.batch.to_pylist()], end

    def slots(self) -> list[str]:
        return [slot for (slot,) in self.sql("SELECT slot_name FROM pg_replication_slots")]

    def drop_slot(self) -> None:
        """If there is one. The server notices a moment later that its reader has ended."""
        own = "FROM pg_replication_slots WHERE slot_name = %s"
        until(lambda: not self.sql(f"SELECT 1 {own} AND active", self.slot), "the reader's end")
        self.sql(f"SELECT pg_drop_replication_slot(slot_name) {own}", self.slot)

    def close(self) -> None:
        self.connect_again()
        self.drop_slot()
        self.sql(f"DROP PUBLICATION IF EXISTS {self.slot}")
        self.sql("DROP TABLE {t}")
        self.connection.close()


@contextlib.contextmanager
def maker(address: str) -> Iterator[Callable[..., FollowedTable]]:
    """Makes tables that are gone at the end of the block."""
    with contextlib.ExitStack() as stack:
        yield lambda *columns: stack.enter_context(contextlib.closing(FollowedTable(address, *columns)))


def replayed(rows: list[dict[str, Any]], before: dict[int, str] | None = None) -> dict[int, str]:
    """The table that the changes lead to. A change that does not fit what was there is an error."""
    table = dict(before or {})
    for row in rows:
        if row["op"] in "rc":
            assert row["id"] not in table, f"{row} came twice"
            table[row["id"]] = row["name"]
        elif row["op"] == "u":
            assert row["id"] in table, f"{row} came too early"
            table[row["id"]] = row["name"]
        else:
            assert row["op"] == "d"
            del table[row["id"]]
    return table
