"""How many rows a run has in hand: few at first, then as many as time and memory allow.

A slow function's first result shows at once, a fast one gets whole batches, and large results do not fill the memory.
The sizes follow what the latest rows took.
"""

from __future__ import annotations

import dataclasses

STEP_ROWS = 8192
STEP_SECONDS = 0.1  # of a step: the progress bar moves that often
STEP_BYTES = 8 << 20  # of a step's results
HELD_BYTES = 64 << 20  # of the results of all rows that a runtime holds
GROWTH = 8  # at most, from step to step


@dataclasses.dataclass
class Pace:
    """The size of the steps of a sync function. rows: of the next step."""

    rows: int = 1

    def took(self, rows: int, seconds: float, size: int) -> None:
        """Notes that a step of `rows` rows took `seconds`, with results of `size` bytes."""
        by_time = int(rows * STEP_SECONDS / seconds) if seconds > 0 else STEP_ROWS
        by_bytes = rows * STEP_BYTES // max(size, 1)
        self.rows = max(1, min(by_time, by_bytes, self.rows * GROWTH, STEP_ROWS))


class Window:
    """How many rows of an async function wait, run, or have ended and are not drained.

    at_once: rows that may run at once; so many are held, however large their results. most: rows at most.
    rows: the limit now. step: rows that are sent or drained together.
    """

    def __init__(self, at_once: int, most: int) -> None:
        self._at_once = at_once
        self._most = most
        self.rows = at_once
        self.step = min(at_once, STEP_ROWS)

    def drained(self, rows: int, size: int) -> None:
        """Notes that `rows` rows were drained, with results of `size` bytes."""
        size = max(size, 1)
        self.rows = max(self._at_once, min(rows * HELD_BYTES // size, self.rows * GROWTH, self._most))
        self.step = max(1, min(rows * STEP_BYTES // size, self.rows // 2, STEP_ROWS))
