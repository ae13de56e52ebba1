"""Names of users from PostgreSQL, a hundred per query against one per query (examples/user_name): wall-clock time,
because the server does most of the work."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pyarrow as pa
import pytest

from arroyo_udf_plugin import WouldBlock, build, load
from conftest import OUT, note

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import postgresql  # noqa: E402

USERS = 50_000
ROWS = {"batched.py": 40_000, "udf.py": 4_000}
ROUNDS = 5


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    async def fill(address: str) -> None:
        connection = await asyncpg.connect(address)
        await connection.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text)")
        await connection.copy_records_to_table("users", records=[(i, f"User {i}") for i in range(USERS)])
        await connection.execute("ANALYZE users")
        await connection.close()

    with postgresql.server() as address:
        asyncio.run(fill(address))
        yield address


def seconds_a_row(source: str) -> float:
    """Seconds per row of one pass over ROWS[source] ids, in batches of 1,000, on a warm runtime."""
    ids = [i * 7919 % USERS for i in range(ROWS[source])]
    version = "{}{}".format(*sys.version_info)
    plugin = load(build(ROOT / "examples" / "user_name" / source, OUT / f"{Path(source).stem}_user_name{version}.so"))
    names: list[str] = []

    def drain(runtime: Any) -> None:
        runtime.wait()
        names.extend(runtime.drain_results()["value"].to_pylist())

    with plugin.functions["user_name"].start() as runtime:
        runtime.send(0, pa.array(ids[:1]))
        drain(runtime)
        start = time.perf_counter()
        for first in range(0, len(ids), 1000):
            while True:
                try:
                    runtime.send_nowait(first + 1, pa.array(ids[first : first + 1000]))
                    break
                except WouldBlock:
                    drain(runtime)
        while len(names) <= len(ids):
            drain(runtime)
        taken = time.perf_counter() - start
    assert names[1:] == [f"User {i}" for i in ids]
    return taken / len(ids)


def test_a_hundred_rows_in_a_query(database: str, benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERS_DB", database)
    batched: list[float] = []
    singly: list[float] = []

    def both() -> None:
        singly.append(seconds_a_row("udf.py"))
        batched.append(seconds_a_row("batched.py"))

    benchmark.pedantic(both, rounds=ROUNDS, iterations=1, warmup_rounds=1)
    ours, theirs = statistics.median(batched[1:]), statistics.median(singly[1:])
    name = "PostgreSQL lookup, 100 rows a query"
    note(benchmark, name, ours * 1e6, "us/row (clock)", "1 row a query", ours / theirs, 0.1)
