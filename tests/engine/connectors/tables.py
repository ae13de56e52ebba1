"""Rows written to tables, for their tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sinks import SCHEMA, StageIn

from arroyo_udf_plugin.engine.connectors.interface import TransactionalSink
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.execution.store import open_store

ON_POSTGRESQL = pytest.mark.server


def written(uri: str, name: str, rows: pa.RecordBatch, **keys: Any) -> None:
    sink = Table(uri=uri, table=name, **keys).sink(rows.schema, 0, None, "pipeline", "sink")
    try:
        sink.write(rows)
        sink.finish()
    finally:
        sink.close()


def with_checkpoints(place: Path, model: Table, schema: pa.Schema = SCHEMA, history: str = "h") -> TransactionalSink:
    return model.sink(schema, 0, StageIn(open_store(str(place / "stage")), history), "pipeline", "sink")


def is_sqlite(uri: str) -> bool:
    return uri.startswith("sqlite:")
