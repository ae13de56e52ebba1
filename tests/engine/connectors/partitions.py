"""Partitions of sources, read to their end or in pieces, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.cells import decoded
from arroyo_udf_plugin.engine.connectors.interface import Partition, Source
from arroyo_udf_plugin.engine.connectors.source import Rows

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Ends after a minute at most: a lost wake-up is a failure, not a test that hangs."""

    async def limited() -> T:
        async with asyncio.timeout(60):
            return await work()

    return asyncio.run(limited())


async def rest(partition: Partition) -> list[Rows]:
    found = []
    while (rows := await partition.read()) is not None:
        assert rows.batch.num_rows
        found.append(rows)
    return found


def read_all(source: Source, positions: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """All rows of a source's partitions, one after another."""

    async def work() -> list[Rows]:
        found = []
        for name in source.partitions():
            partition = source.open(name, (positions or {}).get(name))
            found += await rest(partition)
            partition.close()
        return found

    return values(run(work))


def values(batches: list[Rows]) -> list[dict[str, Any]]:
    """The rows, cells as plain text and times as integers, with the file, the number and what was refused."""
    found = []
    for rows in batches:
        columns = {name: _plain(rows.batch.column(name)).to_pylist() for name in rows.batch.schema.names}
        for at in range(rows.batch.num_rows):
            row = {name: column[at] for name, column in columns.items()}
            found.append({**row, "file": rows.file, "row": rows.first + at, "why": rows.refused.get(at)})
    return found


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else decoded(column)
