"""The stage of a lookup: how much comes of one turn."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.lookup_table import lookup_table
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.lookup import LookupPlan, LookupStage
from arroyo_udf_plugin.host.policy import Policy

N_MATCHES = 20_000


def test_rows_with_very_many_matches_are_answered_a_few_at_a_turn(tmp_path: Path) -> None:
    uri = f"sqlite:{tmp_path / 'many.db'}"
    many = pa.record_batch([["a"] * N_MATCHES + ["b"], range(N_MATCHES + 1)], ["k", "v"])
    with contextlib.closing(Table(uri=uri, table="many").sink(many.schema, 0, None, "pipeline", "sink")) as sink:
        sink.write(many)
        sink.finish()
    table = lookup_table(uri, "many", {"k": pa.string()}, {"v": "v"}, {}, name="lookup")
    keys = ["b", "a", "c", *"aaaaaa", None, "b"]
    given = pa.record_batch([pa.array(keys), range(len(keys))], ["key", "id"])
    plan = LookupPlan("many", table, ("key",), None, True, 8 << 20, 60.0, Given(given.schema))
    stage = LookupStage(plan, Policy())
    with contextlib.closing(stage):
        stage.push(Columns(given.schema).block(Rows("file", 1, given, {})))
        turns = []
        while not stage.is_empty:
            waiting = stage.held_rows
            items = [item for item in stage.turn() if isinstance(item, Block)]
            assert bool(items) == (stage.held_rows < waiting)
            turns.append(items)
            if stage.is_waiting:
                asyncio.run(stage.wait_results())
    assert stage.held_bytes == 0
    assert len(turns) > 2
    assert max(sum(map(len, blocks)) for blocks in turns) < 4 * N_MATCHES
    counts = pa.concat_arrays([block.rows.column("id") for blocks in turns for block in blocks]).value_counts()
    wanted = {"a": N_MATCHES}
    assert counts.to_pylist() == [{"values": row, "counts": wanted.get(key, 1)} for row, key in enumerate(keys)]
