"""The program of a job, opened as its workers run it.

    with closing(opened_job(program, "job_1", place=".../job_1/0", ...)) as planned: ...

Guarantees: a library is loaded only if it has the bytes that were built. Sources have as many partitions as when the
job was created.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...engine.pipeline.description import Checkpoints
from ...engine.pipeline.plan import Planned, plan
from ..job_program import JobProgram
from .artifacts import fetched


def opened_job(
    program: JobProgram,
    job_id: str,
    *,
    place: str | None,
    parallelism: int,
    checkpoint_interval: float,
    retain: int | None,
    retain_for: float,
    environment: Mapping[str, str],
    libraries: str,
) -> Planned:
    """All of it as a `Task` has it. The caller closes it. Raises InvalidPipeline, LoadError, InvalidArgument."""
    copies = {name: str(fetched(name, sha256, Path(libraries))) for name, sha256 in program.artifacts.items()}
    pipeline = program.moved(copies).description().partitioned()
    update: dict[str, Any] = {"name": job_id, "parallelism": parallelism, "checkpoints": None}
    if place is not None:
        update["name"] = f"{job_id}-{Path(place).name}"
    if place is not None and all(sink.resumable for sink in pipeline.sinks):
        own = pipeline.checkpoints or Checkpoints()
        kept = {"retain": own.retain or retain, "retain_for": own.retain_for or retain_for or None}
        chosen = {"every": checkpoint_interval, **kept, "place": place.replace("${", "$${")}
        update["checkpoints"] = own.model_copy(update=chosen)
    return plan(pipeline.model_copy(update=update), {**os.environ, **program.variables, **environment})
