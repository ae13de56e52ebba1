"""Rows and results of windows, as their tests write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.spans import Hop, Session

SCHEMA = pa.schema([("k", pa.string()), ("x", pa.int64()), ("t", pa.timestamp("ns"))])
PARTS = {"n": "count(*)", "s": "sum(x)", "a": "avg(x)", "low": "min(x) FILTER (WHERE x > 2)"}
ROWS = {"n": "count(*)", "m": "median(x)"}

Row = tuple[str | None, int | None, int]


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, type_) for column, type_ in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


def grouping(width: int = 10, slide: int | None = None, **others: Any) -> Grouping:
    values = {"keys": ("k",), "aggregates": PARTS} | others
    return Grouping("t", Hop(width, slide or width), **values)


def add(windows: Any, rows: pa.RecordBatch) -> int:
    """Those that are in time. Returns how many are late."""
    late = windows.late(rows)
    if late is None:
        windows.add(rows)
        return 0
    if late.false_count:
        windows.add(rows.filter(pc.invert(late)))
    return int(late.true_count)


def closed(windows: Any, all_of_them: bool = False) -> list[pa.RecordBatch]:
    """The results of all steps."""
    return [batch for step in windows.close(all_of_them) for batch in step]


def shown(found: Iterator[pa.RecordBatch] | Sequence[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """Each result: start and end of its window, and the values of the other columns but the time."""
    rows = []
    for one in found:
        window = one.column("window")
        bounds = [bound.cast(pa.int64()).to_pylist() for bound in window.flatten()]
        others = [one.column(name).to_pylist() for name in one.schema.names if name not in ("window", "t")]
        assert one.column("t").cast(pa.int64()).to_pylist() == [end - 1 for end in bounds[1]]
        rows += list(zip(*bounds, *others, strict=True))
    return rows


MANY = 50_000
WINDOWS_OF_MANY = [Hop(10, 10), Hop(20, 10), Session(10)]


def many(number: int) -> pa.RecordBatch:
    """Two keys, each with times from 0 to 7; a megabyte."""
    numbers = pa.array(range(number * MANY, (number + 1) * MANY), pa.int64())
    columns = [
        pa.array(["a", "b"] * (MANY // 2)),
        numbers,
        pc.bit_wise_and(pc.divide(numbers, 2), 7).cast(pa.timestamp("ns")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
