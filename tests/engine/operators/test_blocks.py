"""A block's rows know where they come from, also where their origins are made late."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors.options import BATCH_ROWS, TYPED_BATCH_ROWS
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns

SCHEMA = pa.schema([("n", pa.int64())])
Steps = Sequence[tuple[str, float, float]]


def block_of(first: int, length: int, refused: dict[int, str] | None = None) -> Block:
    batch = pa.RecordBatch.from_arrays([pa.array(range(first, first + length), pa.int64())], schema=SCHEMA)
    return Columns(SCHEMA).block(Rows("a.parquet", first, batch, refused or {}))


def shown(block: Block) -> list[dict[str, object]]:
    return block.origin.to_pylist()


def origin(row: int, unread: str | None = None) -> dict[str, object]:
    return {"file": "a.parquet", "row": row, "unread": unread, "key": None}


@pytest.mark.parametrize("length", [0, 1, BATCH_ROWS, BATCH_ROWS + 1, TYPED_BATCH_ROWS])
@pytest.mark.parametrize("first", [1, 2**40])
def test_origins_of_a_batch(first: int, length: int) -> None:
    assert shown(block_of(first, length)) == [origin(row) for row in range(first, first + length)]


@given(
    st.integers(0, 3 * BATCH_ROWS),
    st.lists(st.tuples(st.sampled_from(["slice", "take", "of"]), st.floats(0, 1), st.floats(0, 1)), max_size=4),
    st.booleans(),
)
def test_each_row_keeps_its_origin(length: int, steps: Steps, is_refused: bool) -> None:
    """Each row has the number of its origin. Where a row could not be read, the origins are made at once."""
    refused = {length // 2: "why"} if is_refused and length else {}
    block = block_of(1, length, refused)
    for kind, start, stop in steps:
        at, end = sorted((int(start * len(block)), int(stop * len(block))))
        if kind == "slice":
            block = block.slice(at, end - at)
        elif kind == "take":
            block = block.take(pa.array(range(at, end, 3), pa.int64()))
        else:
            rows = pa.array(range(at, end, 7), pa.int64())
            block = block.with_rows(block.rows.take(rows), rows)
    numbers = block.rows.column("n").to_pylist()
    texts = {row + 1: why for row, why in refused.items()}
    assert shown(block) == [origin(number, texts.get(number)) for number in numbers]
    assert block.unread() == {at: texts[number] for at, number in enumerate(numbers) if number in texts}


def test_a_slice_beyond_the_end() -> None:
    assert shown(block_of(1, 5).slice(3, 10)) == [origin(4), origin(5)]
