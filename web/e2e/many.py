"""Adds pipelines that have stopped to the database of a cluster: many.py DATA COUNT. A list of them is looked at."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.program import opened


def main(data: Path, count: int) -> None:
    settings = configured(None, {"data": str(data)}, {}).settings
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(opened(settings))
        with database.begin() as session:
            for number in range(count):
                made = pipelines.create(
                    session,
                    name=f"number {number:04d}",
                    query="",
                    program=JobProgram({}, {}),
                    graph={},
                    checkpoint_interval_micros=10_000_000,
                    tags={"team": f"team {number % 7}"},
                )
                made.status.state, made.job.stop, made.job.fulfilled = "Stopped", "checkpoint", made.job.revision


main(Path(sys.argv[1]), int(sys.argv[2]))
