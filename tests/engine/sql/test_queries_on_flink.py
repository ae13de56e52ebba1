"""The queries once more, cut into stages for Apache Flink, without Flink: see local_flink.py. What is tested on Flink
itself is in tests/flink."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from local_flink import LocalFlink, arguments
from sql_world import pipeline_of, shown
from test_queries import ANSWERED, UDFS

from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.pipeline import Pipeline
from arroyo_udf_plugin.engine.pipeline.plan import plan

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]


def written_absolutely(pipeline: Pipeline) -> Pipeline:
    """Flink's processes are in other folders."""
    source = _absolute(pipeline.source)
    others = {name: one.model_copy(update={"source": _absolute(one.source)}) for name, one in pipeline.sources.items()}
    sinks = [sink.model_copy(update={"path": str(Path(sink.path).absolute())}) for sink in pipeline.sinks]
    return pipeline.model_copy(update={"source": source, "sources": others, "sinks": tuple(sinks)})


def _absolute(source: Any) -> Any:
    return source.model_copy(update={"paths": tuple(str(Path(path).absolute()) for path in source.paths)})


def results_on(flink: LocalFlink, pipeline: Pipeline, restarts: int) -> dict[str, list[str]]:
    rows = flink.run(restarts)
    with contextlib.closing(plan(pipeline)) as planned:
        outputs = [(model, name, schema) for key, model, name, schema in planned.outputs() if key[0] == "sinks"]
    return {
        f"{Path(model.path).name} ({', '.join(schema.names)})": _shown(pa.Table.from_batches(rows[name], schema))
        for model, name, schema in outputs
        if isinstance(model, Parts)
    }


def _shown(table: pa.Table) -> list[str]:
    """Files are named from this folder, as the results have them."""
    return sorted(row.replace(f"{Path.cwd()}/", "") for row in shown(table))


@pytest.mark.parametrize("name", ANSWERED)
def test_the_result_on_flink(name: str) -> None:
    pipeline = written_absolutely(pipeline_of(ANSWERED[name].text, UDFS))
    assert results_on(LocalFlink(arguments(pipeline, 3)), pipeline, restarts=2) == ANSWERED[name].results
