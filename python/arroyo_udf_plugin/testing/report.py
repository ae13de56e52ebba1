"""What simulations have tried."""

from __future__ import annotations

import collections
import dataclasses
from collections import Counter


@dataclasses.dataclass
class Report:
    """schedules: how often a pipeline was taken from its beginning to its end. faults: by kind. points: crashes, by
    caller and operation."""

    schedules: int = 0
    faults: Counter[str] = dataclasses.field(default_factory=collections.Counter)
    points: Counter[tuple[str, str]] = dataclasses.field(default_factory=collections.Counter)

    def text(self) -> str:
        """For people."""
        lines = [f"{self.schedules} schedules, {sum(self.faults.values())} faults"]
        lines += [f"{count:8} {kind}" for kind, count in sorted(self.faults.items())]
        lines += ["crashes by file and line:"]
        lines += [f"{count:8} {caller} {operation}" for (caller, operation), count in sorted(self.points.items())]
        return "\n".join(lines)
