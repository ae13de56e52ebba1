"""What a slice keeps of its own rows before it goes to the slices that have their keys.

    local = LocalParts.of(grouping, schema)      None: rows go as they come
    rest = local.add(rows)                       what goes as it is
    local.must_leave(watermark); local.take()    the others, as windows keep them: parts, or rows

So most of the work is done where the rows are. Few parts are sent in place of many rows; if aggregates have no parts,
rows go together in large batches.

Guarantees: nothing of it is late where it comes. A row that may be late, or has no usable time, is sent as it is, and
the others leave before the watermark that may close their windows.
Assumes: a watermark that was told holds: no source is told to be idle and comes back.
"""

from __future__ import annotations

from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from .grouping import Grouping
from .key_groups import Asked
from .panes import WAITING_ROWS, WindowPanes
from .spans import WindowSteps, before, later, unusable

_MOST_BYTES = 32 << 20
_PAUSE = 16  # times as many rows as wait: while there are nearly as many keys as rows, parts are not worth it


class LocalParts:
    """told: the watermark that others have been told."""

    def __init__(self, panes: WindowPanes, time: int, window: WindowSteps) -> None:
        """time: the position of the column of event times."""
        self._panes, self._time, self._window = panes, time, window
        self._told: int | None = None
        self._rows = self._paused = 0

    @classmethod
    def of(cls, asked: Asked, schema: pa.Schema) -> Self | None:
        """schema: of the rows."""
        if not isinstance(asked, Grouping) or not isinstance(asked.window, WindowSteps) or not asked.keys:
            return None
        panes = WindowPanes(asked, schema)
        return None if asked.by_row else cls(panes, schema.get_field_index(asked.time), asked.window)

    def add(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """Which of these rows go as they are; None: none of them."""
        times = rows.column(self._time)
        if self._paused > 0 or unusable(times, self._window) is not None:
            self._paused -= rows.num_rows
            return pa.repeat(True, rows.num_rows)
        mask = before(times, None if self._told is None else self._window.pane(self._told))
        if mask is not None:
            rows = rows.filter(pc.invert(mask))
        if rows.num_rows:
            self._rows += rows.num_rows
            self._panes.add(rows)
        return mask

    @property
    def is_full(self) -> bool:
        return self._rows >= WAITING_ROWS or self._panes.size >= _MOST_BYTES

    def must_leave(self, watermark: int | None) -> bool:
        """Whether a window with some of the rows may be over. None: others do not wait for this slice."""
        first = self._panes.first
        return first is not None and (watermark is None or first < self._window.pane(watermark))

    def tell(self, watermark: int | None) -> None:
        """Others are told it, or had been told it before a restart."""
        self._told = later(self._told, watermark)

    def take(self) -> list[pa.RecordBatch]:
        """All parts."""
        parts = self._panes.take()
        n_rows, self._rows = self._rows, 0
        if self._panes.are_parts and 2 * sum(batch.num_rows for batch in parts) > n_rows:
            self._paused = _PAUSE * WAITING_ROWS
        return parts
