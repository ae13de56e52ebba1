"""Limits of a worker's process: `worker.memory` and `worker.cpu_time`.

Guarantees: they hold for this process and each one that it starts; functions cannot raise them.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping


def limit(limits: Mapping[str, float | None]) -> None:
    """limits: {"memory": bytes, "cpu_time": seconds}; None: no limit."""
    memory, cpu_time = limits["memory"], limits["cpu_time"]
    if memory is not None:
        _set_limit(resource.RLIMIT_AS, math.ceil(memory), 0)
    if cpu_time is not None:
        _set_limit(resource.RLIMIT_CPU, math.ceil(cpu_time), 1)  # SIGXCPU says why, and SIGKILL comes a second later


def _set_limit(which: int, limit: int, more: int) -> None:
    _, most = resource.getrlimit(which)
    hard = limit + more if most == resource.RLIM_INFINITY else min(limit + more, most)
    resource.setrlimit(which, (min(limit, hard), hard))
