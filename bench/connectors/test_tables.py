"""A table of PostgreSQL to a Python function to another table, against ADBC alone, which reads it, and writes it by
`adbc_ingest` (COPY), with the same function. The goal: 0.8 of its rows.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
import pytest

from arroyo_udf_plugin import build, run_pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from conftest import HERE, note

sys.path.insert(0, str(HERE.parent / "scripts"))

import postgresql

ROWS = int(os.environ.get("ROWS", "600000"))
ROUNDS = 3
EVERY = 1.0  # seconds between two checkpoints
FUNCTION = """
from arroyo_udf_plugin import udf


@udf
def shouted(text: str) -> str:
    return text.upper()
"""


def loop(address: str, target: str) -> None:
    """Batch by batch, each as soon as it is there; one transaction, so that readers see all rows or none."""
    with adbc.connect(address) as reading, adbc.connect(address) as writing:
        with reading.cursor() as cursor, writing.cursor() as to:
            cursor.execute("SELECT id, text FROM source ORDER BY id")
            mode = "create"
            for batch in cursor.fetch_record_batch():
                shout = pa.array([text.upper() for text in batch.column("text").to_pylist()], pa.string())
                rows = pa.record_batch([batch.column("id"), shout], names=["id", "shout"])
                to.adbc_ingest(target, rows, mode=mode)
                mode = "append"
        writing.commit()


def pipeline(address: str, plugin: Path, target: str, with_checkpoints: bool) -> None:
    table = {"type": "table", "uri": address}
    with tempfile.TemporaryDirectory() as state:
        checkpoints = {"place": state, "every": EVERY}
        description = {
            "name": uuid.uuid4().hex,
            "source": {**table, "table": "source", "key": ["id"]},
            "operators": [{"plugin": str(plugin), "calls": ["shout = shouted(text)"]}],
            "sinks": [{**table, "table": target, "columns": ["id", "shout"]}],
            **({"checkpoints": checkpoints} if with_checkpoints else {}),
        }
        run_pipeline(pipeline_of(description))


@pytest.mark.parametrize("with_checkpoints", [False, True])
def test_table_to_table(benchmark: Any, tmp_path: Path, with_checkpoints: bool) -> None:
    path = tmp_path / "shouted.py"
    path.write_text(FUNCTION)
    plugin = build(path)
    with postgresql.server() as address:
        with adbc.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE source AS SELECT n::bigint AS id, 'row ' || n || repeat('x', 150) AS text "
                f"FROM generate_series(1, {ROWS}) AS n"
            )
            cursor.execute("ALTER TABLE source ADD PRIMARY KEY (id)")
            cursor.execute("VACUUM ANALYZE source")

        def seconds(run: Callable[[str], None]) -> float:
            target = f"t{uuid.uuid4().hex}"
            began = time.perf_counter()
            run(target)
            took = time.perf_counter() - began
            with adbc.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT count(*), count(DISTINCT id) FROM {target}")
                assert cursor.fetchone() == (ROWS, ROWS)
                cursor.execute(f"DROP TABLE {target}")
            return took

        def both() -> list[tuple[float, float]]:
            return [
                (
                    seconds(lambda to: pipeline(address, plugin, to, with_checkpoints)),
                    seconds(lambda to: loop(address, to)),
                )
                for _ in range(ROUNDS)
            ]

        pairs = benchmark.pedantic(both, rounds=1)
    one, other = (statistics.median(times) for times in zip(*pairs, strict=True))
    what = "exactly once" if with_checkpoints else "without checkpoints"
    name = f"PostgreSQL to PostgreSQL, {what}"
    note(benchmark, name, one / ROWS * 1e9, "ns/row", "ADBC read and COPY", one / other, 1 / 0.8)
