"""Checkpoints of windows that keep rows: how long a slice stands still, and what is written after a change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from arroyo_udf_plugin.engine.execution.staged_state import StagedState
from arroyo_udf_plugin.engine.execution.store import LocalStore
from arroyo_udf_plugin.engine.operators.blocks import ORIGIN, Block, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.state import OperatorSnapshot
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.spans import Hop
from arroyo_udf_plugin.engine.windows.storage import StorageLimits
from conftest import Compare, note

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
ROWS, SIZE = 131_072, 500 << 20  # of a batch; of all rows, in bytes
KEPT_WIDTH = 16  # bytes of a row that a median needs: its key and its value


def filled(size: int) -> GroupOperator:
    """Windows of an hour that keep so many bytes of rows."""
    hour = 3_600_000_000_000
    grouping = Grouping("t", Hop(hour, hour), keys=("k",), aggregates={"m": "median(x)"})
    operator = GroupOperator(GroupPlan("groups", grouping, Given(SCHEMA), limits=StorageLimits(memory=4 << 30)))
    operator.start()
    for start in range(0, size // KEPT_WIDTH, ROWS):
        push(operator, start)
    return operator


def push(operator: GroupOperator, start: int) -> None:
    numbers = pa.array(range(start, start + ROWS), pa.int64())
    rows = pa.RecordBatch.from_arrays([numbers.cast(SCHEMA.types[0]), numbers, numbers], schema=SCHEMA)
    operator.push(
        Block(rows, pa.RecordBatch.from_arrays([pa.nulls(ROWS, type_) for type_ in ORIGIN.types], schema=ORIGIN))
    )
    while operator.is_ready:
        operator.take()


def snapshot(operator: GroupOperator) -> OperatorSnapshot:
    taken = operator.snapshot()
    assert taken is not None
    return taken


def written_by_pyarrow(operator: GroupOperator, folder: Path) -> Callable[[], None]:
    """Writes the rows of its windows to a file."""
    batches = [one.rows for one in snapshot(operator).parts]

    def write() -> None:
        with pa.OSFile(str(folder / "rows.arrow"), "wb") as file, pa.ipc.new_stream(file, batches[0].schema) as stream:
            for batch in batches:
                stream.write_batch(batch)

    return write


def test_standstill(compare: Compare, tmp_path: Path) -> None:
    operator = filled(SIZE)
    compare(
        "state: a slice is sealed with 500 MiB of rows in windows",
        lambda: snapshot(operator),
        written_by_pyarrow(operator, tmp_path),
        n=1,
        unit="ms",
        scale=1e3,
        reference_name="the rows written by pyarrow",
        goal=0.05,
    )


def test_written_after_a_change(benchmark: Any, tmp_path: Path) -> None:
    store, operator = LocalStore(tmp_path), filled(SIZE)
    first = StagedState("groups", snapshot(operator), (), "1", "1-rows")
    first.store(store)
    first.committed()
    for start in range(0, SIZE // KEPT_WIDTH // 100, ROWS):
        push(operator, start)
    second = StagedState("groups", snapshot(operator), first.file.parts, "2", "2-rows")
    benchmark.pedantic(lambda: second.store(store), rounds=1)
    ratio = second.written / first.written
    note(benchmark, "state: bytes written after 1 % more rows", second.written / 1e6, "MB", "all rows", ratio, 0.03)


def test_written_beside(compare: Compare, tmp_path: Path) -> None:
    """All that becomes of a checkpoint beside the slice, once, with its checksum and on its disk."""
    store, operator = LocalStore(tmp_path), filled(SIZE // 5)
    compare(
        "state: 100 MiB of rows written for a checkpoint",
        lambda: StagedState("groups", snapshot(operator), (), "1", "1-rows").store(store),
        written_by_pyarrow(operator, tmp_path),
        n=1,
        unit="ms",
        scale=1e3,
        reference_name="the rows written by pyarrow",
    )
