"""The operator against the bare runtime: the same rows to the same function, sent and drained by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import load
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.calls import Call, CallPlan
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.errors import WouldBlock
from arroyo_udf_plugin.host.runtime import Runtime
from conftest import BATCH_ROWS, Compare, note, plugin_path

BATCHES = 24
ROWS = BATCHES * BATCH_ROWS
SCHEMA = pa.schema(
    [("x", pa.int64()), ("name", pa.string()), ("price", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
)


def batches() -> list[pa.RecordBatch]:
    made = []
    for i in range(BATCHES):
        numbers = range(i * BATCH_ROWS, (i + 1) * BATCH_ROWS)
        columns = [pa.array(numbers), pa.array(map(str, numbers)), pa.array(map(float, numbers)), pa.array(numbers)]
        made.append(
            pa.RecordBatch.from_arrays([c.cast(t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)
        )
    return made


def by_hand(runtime: Runtime, given: list[pa.RecordBatch]) -> None:
    answered, first, unsent = 0, runtime.__dict__.setdefault("bench_next", 0), list(reversed(given))
    while answered < ROWS:
        try:
            while unsent:
                runtime.send_nowait(first, unsent[-1].column(0))
                first += BATCH_ROWS
                unsent.pop()
        except WouldBlock:
            pass
        runtime.wait()
        while (results := runtime.drain_results(BATCH_ROWS)) is not None:
            answered += results.num_rows
    runtime.__dict__["bench_next"] = first


def by_operator(operator: Operator, blocks: list[Block]) -> None:
    answered, unsent = 0, list(reversed(blocks))
    (runtime,) = operator.runtimes
    while answered < ROWS:
        while unsent and operator.wants_input:
            operator.push(unsent.pop())
        if not (items := operator.take()):
            runtime.wait()
        for item in items:
            assert isinstance(item, Block)
            answered += len(item)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("name", "goal"), [("at_once", 1.04), ("sleep_zero", 1.04)])
def test_operator(compare: Compare, name: str, goal: float, ordered: bool) -> None:
    function = load(plugin_path(".py")).functions[name]
    given = batches()
    columns = Columns(SCHEMA)
    blocks = list(columns.blocks(Rows("bench", i * BATCH_ROWS + 1, batch) for i, batch in enumerate(given)))
    plan = CallPlan([Call.of(function, ["x"], "y")], columns, typed=True)
    operator = Operator("bench", plan.stages, options={"ordered": ordered})
    operator.start()
    with function.start(ordered=ordered) as runtime:
        compare(
            f"{name}: operator, {'ordered' if ordered else 'unordered'}",
            lambda: by_operator(operator, blocks),
            lambda: by_hand(runtime, given),
            n=ROWS,
            unit="ns/row",
            scale=1e9,
            reference_name="bare runtime",
            goal=goal,
        )
        runtime.stop()
        while runtime.drain_results() is not None:
            pass
    operator.close()


def test_snapshot(benchmark: Any) -> None:
    """100,000 rows in flight; one column of each type, as bytes. The limit is 50 ms, without the disk."""
    function = load(plugin_path(".py")).functions["parked"]
    columns = Columns(SCHEMA)
    plan = CallPlan([Call.of(function, ["x"], "y")], columns, typed=True)
    operator = Operator("bench", plan.stages, options={"max_rows": 200_000})
    operator.start()
    n_rows = 0
    while n_rows < 100_000:
        for rows in columns.blocks(Rows("bench", 1, batch) for batch in batches()):
            operator.push(rows)
            n_rows += len(rows)
    assert operator.take() == []

    def taken() -> None:
        snapshot = operator.snapshot()
        assert snapshot is not None
        snapshot.head()

    benchmark.pedantic(taken, rounds=9, warmup_rounds=1)
    note(benchmark, "snapshot of 196,608 rows", benchmark.stats.stats.median * 1e3, "ms", None, None, 100.0)
    operator.close()
