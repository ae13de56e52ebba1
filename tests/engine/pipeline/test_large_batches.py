"""Batches of Parquet have many rows: each row that fails is told by its own number, and costs no other row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.options import BATCH_ROWS, TYPED_BATCH_ROWS
from arroyo_udf_plugin.engine.connectors.single import File
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Functions, Pipeline

N_ROWS = 2 * TYPED_BATCH_ROWS + 5
FAILING = [1, *range(BATCH_ROWS, N_ROWS, BATCH_ROWS), N_ROWS]  # their numbers
FUNCTIONS = f"""
    import asyncio
    from typing import Annotated
    import pyarrow as pa
    import pyarrow.compute as pc
    from arroyo_udf_plugin import udf

    FAILING = {FAILING!r}
    Numbers = Annotated[pa.Array, pa.int64()]

    @udf
    def one(x: int) -> int:
        if x in FAILING:
            raise ValueError("no")
        return -x

    @udf(ordered=True, allowed_in_flight=1000)
    async def waiting(x: int) -> int:
        await asyncio.sleep(0)
        return one(x)

    @udf(vectorized=True)
    def all_of(x: Numbers) -> Numbers:
        if pc.any(pc.is_in(x, value_set=pa.array(FAILING))).as_py():
            raise ValueError("no")
        return pc.negate(x)
"""


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="numbers")


@pytest.mark.parametrize("function", ["one", "waiting", "all_of"])
def test_rows_that_fail_in_large_batches(tmp_path: Path, plugin: Path, function: str) -> None:
    """A vectorized function that raises is called 64 times more for a batch at most, so its batches are small."""
    rows, out, dead = (tmp_path / f"{name}.parquet" for name in ("rows", "out", "dead"))
    pq.write_table(pa.table({"x": pa.array(range(1, N_ROWS + 1), pa.int64())}), rows)
    run_pipeline(
        Pipeline(
            name="numbers",
            source=Files(paths=(str(rows),)),
            operators=(Functions(plugin=str(plugin), calls=(f"y = {function}(x)",), on_error="dead_letter"),),
            sinks=(File(path=str(out)),),
            dead_letters=File(path=str(dead)),
        )
    )
    letters = pq.read_table(dead).to_pylist()
    assert [(letter["x"], letter["failed_file"], letter["failed_row"]) for letter in letters] == [
        (number, str(rows), number) for number in FAILING
    ]
    found = pq.read_table(out)
    assert found["x"].to_pylist() == [number for number in range(1, N_ROWS + 1) if number not in FAILING]
    assert found["y"].to_pylist() == [-number for number in found["x"].to_pylist()]
