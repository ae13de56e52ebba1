"""What a controller counts, from its start.

Its loop counts; a request reads, in another thread: so a sum may be one behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from ..states import Event, State
from ..task import Report
from .families import Buckets, Families

_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds of checkpoints."""


class Meters:
    def __init__(self) -> None:
        self._transitions: Counter[tuple[Event, State]] = Counter()
        self._database_failures = 0
        self._epochs: dict[str, int] = {}
        self._checkpoints = [0] * (len(_BOUNDS) + 1)
        self._checkpoint_seconds = 0.0
        self._checkpoint_bytes = 0

    def moved(self, event: Event, state: State) -> None:
        self._transitions[event, state] += 1

    def database_failed(self) -> None:
        self._database_failures += 1

    def note(self, reports: Iterable[Report]) -> None:
        """Counts checkpoints. A report tells the latest: of several between two reports, one is counted."""
        for report in reports:
            taken = report.checkpoint
            if taken is not None and taken["epoch"] != self._epochs.get(report.job_id):
                self._epochs[report.job_id] = taken["epoch"]
                self._checkpoints[bisect_left(_BOUNDS, taken["seconds"])] += 1
                self._checkpoint_seconds += taken["seconds"]
                self._checkpoint_bytes += taken.get("bytes") or 0

    def forget(self, job_id: str) -> None:
        self._epochs.pop(job_id, None)

    def tell(self, families: Families) -> None:
        transitions = dict(self._transitions)
        for (event, state), count in transitions.items():
            families.add("arroyo_udf_controller_transitions_total", count, event=event, state=state)
        lost = sum(count for (_, state), count in transitions.items() if state is State.RECOVERING)
        families.add("arroyo_udf_controller_recoveries_total", lost)
        families.add("arroyo_udf_controller_database_failures_total", self._database_failures)
        checkpoints = Buckets(_BOUNDS, self._checkpoints, self._checkpoint_seconds)
        families.add_buckets("arroyo_udf_controller_checkpoint_seconds", checkpoints)
        families.add("arroyo_udf_controller_checkpoint_bytes_total", self._checkpoint_bytes)
