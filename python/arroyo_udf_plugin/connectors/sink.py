"""Batches to one output, which appears only when it is complete.

    with FileSink("out.parquet", schema, inputs=source.files) as sink:
        sink.write(batch)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from .options import Writing


class FileSink:
    """One output file, in place when the `with` block ends without an exception, and not there otherwise.

    path: "-" is standard output, which gets each batch as it is written; so does a FIFO or device.
    schema: of the batches. Columns of `cells.CellType` are written to CSV as they stood in their file, and to other
        formats as text.
    inputs: files that the output must not be, unless `writing.force`.
    Raises InvalidArgument if the output cannot be written, or its format cannot hold a column's type.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        writing: Writing = Writing(),
        inputs: Sequence[Path] = (),
    ) -> None:
        raise NotImplementedError

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds a batch of any size."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError
