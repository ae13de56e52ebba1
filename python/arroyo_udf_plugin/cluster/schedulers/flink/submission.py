"""A generation of a job as a Flink job: its id, its arguments, its configuration.

    flink_id("job_1", 3)                                 32 hexadecimal digits
    submission(task, settings, newest_of(task.place))    what `FlinkApi.run` sends

Guarantees: the id follows from the job and the generation, so whoever knows these finds the Flink job. Arguments have
no secrets, because Flink logs them: values of `${NAME}` come from the environment of Flink's processes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ...configuration import FlinkSettings
from ...task import Task
from .snapshots import StoredSnapshot, folder_of

_DRIVER = "org.apache.flink.client.python.PythonDriver"
_VERSION = 1
_ATTEMPTS = 10
"""Flink's own restarts in a row: after the death of a TaskManager, it needs two or three."""


def flink_id(job_id: str, generation: int) -> str:
    return hashlib.sha256(f"{job_id}\0{generation}".encode()).hexdigest()[:32]


def submission(task: Task, settings: FlinkSettings, newest: StoredSnapshot | None) -> dict[str, Any]:
    """newest: what it goes on from."""
    folder = None if task.place is None else folder_of(task.place, task.generation)
    job = {
        "version": _VERSION,
        "pipeline": {**task.program.pipeline, "name": task.job_id},
        "slices": task.slices,
        "checkpoint_interval": None if folder is None else task.checkpoint_interval,
        "place": folder,
        "positions": None if newest is not None or task.restore is None else task.restore["positions"],
    }
    asked = {
        "entryClass": _DRIVER,
        "programArgsList": ["-py", str(settings.runner), "--job", json.dumps(job)],
        "parallelism": task.parallelism,
        "jobId": flink_id(task.job_id, task.generation),
        "flinkConfiguration": _configuration(task, folder),
    }
    if newest is not None:
        asked |= {"savepointPath": newest.url, "claimMode": "CLAIM"}  # Flink removes it when it has a newer one
    return asked


def savepoints_of(task: Task) -> str:
    """Where a stop writes its savepoint, as a URL."""
    assert task.place is not None
    return f"{folder_of(task.place, task.generation)}/savepoints"


def _configuration(task: Task, folder: str | None) -> dict[str, str]:
    chosen = {
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "500 ms",
        "restart-strategy.exponential-delay.max-backoff": "10 s",
        "restart-strategy.exponential-delay.reset-backoff-threshold": "2 min",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff": str(_ATTEMPTS),
        # Few records in a bundle: a checkpoint waits for the whole one.
        "python.fn-execution.bundle.size": "16",
        "python.fn-execution.bundle.time": "100",
    }
    if folder is not None:
        chosen |= {
            "execution.checkpointing.interval": f"{round(task.checkpoint_interval * 1000)} ms",
            "execution.checkpointing.dir": folder,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
    return chosen
