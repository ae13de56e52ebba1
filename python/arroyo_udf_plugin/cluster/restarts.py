"""Whether a lost job is started again, and when."""

from __future__ import annotations

import random

from .configuration import PipelineSettings
from .database.models import Job


def is_exhausted(limits: PipelineSettings, job: Job, restarts: int) -> bool:
    """restarts: so far, in a row. A preview is tried once."""
    allowed = 0 if job.ttl_micros is not None else limits.allowed_restarts
    return 0 <= allowed <= restarts


def backoff(limits: PipelineSettings, restarts: int) -> float:
    """Seconds before restart number `restarts`: half of them fixed, half random. None before the first."""
    if restarts <= 1:
        return 0.0
    whole = min(limits.max_backoff, limits.initial_backoff * 2.0 ** min(restarts - 2, 30))
    return whole / 2 + random.random() * whole / 2
