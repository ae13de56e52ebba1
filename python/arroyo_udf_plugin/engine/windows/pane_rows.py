"""Rows of several panes in one batch: the number of each row's pane in front.

with_panes(batch, 7); without_panes(batch)       one number for all rows, or one for each
for pane, rows in by_pane(batch, panes): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

PANE = pa.field("__pane", pa.int64())
_SMALL_ROWS = 1024


def by_pane(batch: pa.RecordBatch, panes: pa.Int64Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each pane, which come in their order."""
    bounds = pc.min_max(panes)
    if bounds["min"] == bounds["max"]:
        yield bounds["min"].as_py(), batch
        return
    order = pc.sort_indices(panes)
    runs = pc.run_end_encode(panes.take(order), pa.int64())
    start = 0
    for pane, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield pane, batch.take(order.slice(start, stop - start))
        start = stop


def together(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """The same rows. Many small batches are one: for a query, each costs as much as many rows."""
    if len(batches) < 2 or sum(batch.num_rows for batch in batches) > _SMALL_ROWS * len(batches):
        return batches
    combined: Sequence[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return combined


def with_panes(batch: pa.RecordBatch, panes: int | pa.Int64Array) -> pa.RecordBatch:
    """panes: that of all rows, or one for each."""
    if isinstance(panes, int):
        panes = pa.repeat(pa.scalar(panes, PANE.type), batch.num_rows)
    return pa.RecordBatch.from_arrays([panes, *batch.columns], schema=with_pane(batch.schema))


def without_panes(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Int64Array]:
    return batch.remove_column(0), batch.column(0)


def with_pane(schema: pa.Schema) -> pa.Schema:
    return pa.schema([PANE, *schema])
