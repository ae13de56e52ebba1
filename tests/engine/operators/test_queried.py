"""A step of a query with rows that fail ends in time, and no row is lost or comes twice."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.datafusion.query import Select
from arroyo_udf_plugin.engine.operators import queried
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.queried import QueryPlan
from arroyo_udf_plugin.engine.operators.stages import Dead
from arroyo_udf_plugin.host.policy import Policy

SCHEMA = pa.schema([("n", pa.int64()), ("m", pa.int64())])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(-2, 2), st.none() | st.integers(0, 1)), min_size=1, max_size=40), st.booleans())
def test_a_step_that_takes_long_is_cut(rows: list[tuple[int, int | None]], is_required: bool) -> None:
    select = Select({"n": "n", "m": "m", "q": "12 / n"}, "n <> 2", required=("m",) if is_required else ())
    plan = QueryPlan("divided", select, Given(SCHEMA))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)], schema=SCHEMA
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queried, "STEP_SECONDS", -1.0)
        operator = Operator("divided", [plan], Policy("dead_letter"))
        operator.start()
        operator.push(Columns(SCHEMA).block(Rows("a", 1, batch, {})))
        found, dead, n_turns = [], [], 0
        while not operator.is_drained:
            n_turns += 1
            for item in operator.take():
                if isinstance(item, Dead):
                    dead += item.rows.origin["row"].to_pylist()
                elif isinstance(item, Block):
                    found += [*zip(item.origin["row"].to_pylist(), item.rows["q"].to_pylist(), strict=True)]
    failing = [at for at, (n, m) in enumerate(rows, 1) if n == 0 or (is_required and m is None)]
    assert sorted(dead) == failing
    assert found == [(at, int(12 / n)) for at, (n, _) in enumerate(rows, 1) if at not in failing and n != 2]
    if not is_required:  # further steps may be small, as the pace wants
        assert n_turns >= len(failing) + (len(rows) not in failing)
    (stage,) = operator.stages
    assert (stage.counts.rows, stage.counts.errors) == (len(rows), len(failing))
