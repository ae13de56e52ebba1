"""Changes of a table of PostgreSQL, out of its log: by the source alone, and through a Python function to files,
exactly once. The goal: 20,000 a second. And the rows of a snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from arroyo_udf_plugin import build, run_pipeline
from arroyo_udf_plugin.engine.connectors.changes.postgresql_cdc import PostgresqlChanges
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from conftest import HERE, note

sys.path.insert(0, str(HERE.parent / "scripts"))

import postgresql

ROWS = int(os.environ.get("ROWS", "100000"))
CHANGES = 3 * ROWS  # each row is inserted and updated twice
IN_TRANSACTION = 100
ROUNDS = 3
EVERY = 1.0  # seconds between two checkpoints
GOAL = 20_000  # changes a second
FUNCTION = """
from arroyo_udf_plugin import udf


@udf
def shouted(name: str) -> str:
    return name.upper()
"""
TABLE = "id bigint PRIMARY KEY, name text, price numeric(10, 2), is_new boolean, at timestamptz"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql.server() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE source ({TABLE})")
        begin = described(address, snapshot=False)
        assert read(begin, keep=True) == 0  # the slot is there, before all changes
        for n in range(0, ROWS, IN_TRANSACTION):
            end = n + IN_TRANSACTION - 1
            own = f"WHERE id BETWEEN {n} AND {end}"
            connection.execute(
                "INSERT INTO source SELECT n, 'name of ' || n, n / 7, n % 2 = 0, now() "
                f"FROM generate_series({n}, {end}) AS n"
            )
            connection.execute(f"UPDATE source SET price = price + 1, is_new = false {own}")
            connection.execute(f"UPDATE source SET name = name || '!' {own}")
        yield address


def described(address: str, **keys: Any) -> PostgresqlChanges:
    metadata = {"op": "op", "lsn": "lsn"}
    usual = {"uri": address, "table": "source", "slot": "bench", "bounded": True, "metadata": metadata}
    return PostgresqlChanges(**{**usual, **keys})


def read(model: PostgresqlChanges, keep: bool = False) -> int:
    """The number of rows. keep: the slot, for later ones."""

    async def count() -> int:
        source, found = model.source(1), 0
        with contextlib.closing(source.open(*source.partitions(), None)) as partition:
            if keep:
                partition.position()
            while (rows := await partition.read()) is not None:
                found += rows.batch.num_rows
        return found

    return asyncio.run(count())


def pipeline(address: str, plugin: Path, slot: str) -> None:
    model = described(address, snapshot=False, slot=slot, publication="bench")
    with tempfile.TemporaryDirectory() as folder:
        description = {
            "name": uuid.uuid4().hex,
            "source": model.model_dump(),
            "operators": [{"plugin": str(plugin), "calls": ["shout = shouted(name)"]}],
            "sinks": [{"type": "parts", "path": f"{folder}/out", "format": "arrow"}],
            "checkpoints": {"place": f"{folder}/state", "every": EVERY},
        }
        assert run_pipeline(pipeline_of(description)).progress.rows_in == CHANGES


def measured(benchmark: Any, name: str, count: int, run: Callable[[], object]) -> None:
    def seconds() -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    took = statistics.median(benchmark.pedantic(lambda: [seconds() for _ in range(ROUNDS)], rounds=1)) / count
    note(benchmark, name, took * 1e9, "ns/row", f"{GOAL:,} rows/s", took * GOAL, 1.0)


def test_changes_alone(server: str, benchmark: Any) -> None:
    def run() -> None:
        assert read(described(server, snapshot=False), keep=True) == CHANGES

    measured(benchmark, "changes of PostgreSQL, the source alone", CHANGES, run)


def test_a_snapshot(server: str, benchmark: Any) -> None:
    def run() -> None:
        assert read(described(server, slot=f"s{uuid.uuid4().hex}")) == ROWS

    measured(benchmark, "a snapshot of PostgreSQL, the source alone", ROWS, run)


def test_changes_through_a_function(server: str, benchmark: Any, tmp_path: Path) -> None:
    path = tmp_path / "shouted.py"
    path.write_text(FUNCTION)
    plugin = build(path)

    def run() -> None:
        slot = f"s{uuid.uuid4().hex}"  # a checkpoint lets go of what is before it
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("SELECT pg_copy_logical_replication_slot('bench', %s)", [slot])
        pipeline(server, plugin, slot)

    measured(benchmark, "changes of PostgreSQL through a function, exactly once", CHANGES, run)
