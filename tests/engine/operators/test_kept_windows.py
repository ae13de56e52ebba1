"""States of windows of every version that there was: files of each stay in `kept`, so that no change makes them
unreadable."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.operators.blocks import Block, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.join_query import Joining, Within
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.spans import Hop

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])


def kept_state(name: str, version: int) -> StoredState:
    head, rows = (Path(__file__).with_name("kept") / f"{name}-{version}.{kind}" for kind in ("state", "rows"))
    parts = [rows.read_bytes()] if rows.exists() else []
    return StoredState(head.read_bytes(), [(hashlib.sha256(data).hexdigest(), data) for data in parts])


@pytest.mark.parametrize("version", [2, 3])
def test_kept_states_of_windows_go_on(version: int) -> None:
    """O3: rows 10 and 20 of key 1 in the window up to 20, row 5 of key 2 in the next one, and the watermark 2."""
    asked = Grouping("t", Hop(20, 20), keys=("k",), aggregates={"m": "median(x)"})
    operator = GroupOperator(GroupPlan("groups", asked, Given(SCHEMA)))
    operator.start([kept_state("windows", version)])
    operator.finish()
    found = [row for item in operator.take() if isinstance(item, Block) for row in item.rows.to_pylist()]
    assert [(row["k"], row["m"]) for row in found] == [(1, 15), (2, 5)]


@pytest.mark.parametrize("version", [2, 3])
def test_kept_states_of_interval_joins_go_on(version: int) -> None:
    """O3: row 10 on the left has met row 30 on the right, and row 20 has met nobody."""
    sides = Sides([SCHEMA, SCHEMA], "t")
    asked = Joining("t", "left", "a.k = b.k", {"l": "a.x", "r": "b.x"}, ("a", "b"), Within(-5, 5))
    operator = GroupOperator(GroupPlan("joined", asked, Given(sides.schema)))
    operator.start([kept_state("joined", version)])
    operator.finish()
    found = [row for item in operator.take() if isinstance(item, Block) for row in item.rows.to_pylist()]
    assert [(row["l"], row["r"]) for row in found] == [(20, None)]
