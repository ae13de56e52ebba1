"""Sources of a job have as many partitions as when it was created, whatever its parallelism is by now."""

from __future__ import annotations

from ..engine.pipeline.description import Pipeline


def fixed(pipeline: Pipeline) -> Pipeline:
    """The pipeline of a job. Its parallelism is the one with which the job was created."""
    sources = {
        name: one.model_copy(update={"source": one.source.partitioned(pipeline.parallelism)})
        for name, one in pipeline.sources.items()
    }
    return pipeline.model_copy(update={"source": pipeline.source.partitioned(pipeline.parallelism), "sources": sources})
