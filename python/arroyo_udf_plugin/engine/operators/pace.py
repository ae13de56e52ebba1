"""How many rows a step of a sync function or a query has: few at first, then as many as time and memory allow.

A slow function's first result shows at once, a fast one gets whole batches, and large results do not fill the memory.
The sizes follow what the latest rows took. (`host.answers.Window` does this for async functions.)
"""

from __future__ import annotations

import dataclasses

from ..connectors.options import TYPED_BATCH_ROWS

MOST_STEP_ROWS = TYPED_BATCH_ROWS  # so a step may be a whole batch
STEP_SECONDS = 0.1  # of a step: the progress bar moves that often
STEP_BYTES = 8 << 20  # of a step's results
GROWTH = 8  # at most, from step to step


@dataclasses.dataclass
class Pace:
    """The size of the steps of a sync function. rows: of the next step."""

    rows: int = 1

    def observe(self, rows: int, seconds: float, size: int) -> None:
        """Notes that a step of `rows` rows took `seconds`, with results of `size` bytes."""
        by_time = int(rows * STEP_SECONDS / seconds) if seconds > 0 else MOST_STEP_ROWS
        by_bytes = rows * STEP_BYTES // max(size, 1)
        self.rows = max(1, min(by_time, by_bytes, self.rows * GROWTH, MOST_STEP_ROWS))
