"""What every reader of a file yields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa


class TextBlock(NamedTuple):
    """Where reading a text file can begin. row: the number of the first row from there. byte: where it begins."""

    row: int
    byte: int


# The number of the first row; the rows; those that could not be read, by position: why; the block that they are in;
# None: it is the first one, or the file cannot be read from a byte on.
Piece = tuple[int, pa.RecordBatch, dict[int, str], TextBlock | None]
KEPT = 1000  # characters of a row that cannot be read at all: they may be nowhere else


def cut(
    number: int, rows: pa.RecordBatch, refused: Mapping[int, str], block: TextBlock | None, most: int, start: int
) -> Iterator[Piece]:
    """Rows as pieces of at most so many. number: of the first row. start: the first that is wanted."""
    for offset in range(max(0, start - number), rows.num_rows, most):
        own = {at - offset: why for at, why in refused.items() if 0 <= at - offset < most}
        yield number + offset, rows.slice(offset, most), own, block
