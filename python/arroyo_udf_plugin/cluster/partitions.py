"""Sources of a job have as many partitions as when it was created, whatever its parallelism is by now."""

from __future__ import annotations

from ..engine.connectors.impulse import Impulse
from ..engine.pipeline.description import Pipeline, SourceModel


def fixed(pipeline: Pipeline) -> Pipeline:
    """The pipeline of a job. Its parallelism is the one with which the job was created."""
    sources = {
        name: one.model_copy(update={"source": _fixed(one.source, pipeline.parallelism)})
        for name, one in pipeline.sources.items()
    }
    return pipeline.model_copy(update={"source": _fixed(pipeline.source, pipeline.parallelism), "sources": sources})


def _fixed(source: SourceModel, number: int) -> SourceModel:
    if isinstance(source, Impulse) and source.partitions is None:
        return source.model_copy(update={"partitions": number})
    return source
