"""What every reader of a file yields."""

from __future__ import annotations

import pyarrow as pa

# The number of the first row; the rows; those that could not be read, by position: why.
Piece = tuple[int, pa.RecordBatch, dict[int, str]]
KEPT = 1000  # characters of a row that cannot be read at all: they may be nowhere else
