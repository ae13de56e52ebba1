"""One or more inputs as a stream of rows.

    with FileSource(["flights.csv"]) as source:
        for rows in source:                  rows.file, rows.first, rows.batch, rows.refused
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import pyarrow as pa

from .options import Reading

BATCH_ROWS = 8192  # a batch stays in the processor's cache while it is converted


@dataclasses.dataclass(frozen=True)
class Rows:
    """Consecutive rows of one file.

    file: its name; "-": standard input.
    first: the number of the batch's first row in its file, counted from 1. CSV: without the header; newline JSON: the
        line.
    batch: at most `BATCH_ROWS` rows, in the source's schema.
    refused: rows that could not be read (their cells are null), by position in the batch: the error's text.
    """

    file: str
    first: int
    batch: pa.RecordBatch
    refused: Mapping[int, str] = MappingProxyType({})


class FileSource:
    """Inputs, opened and checked: they exist, have one format, and the same columns.

    inputs: files, folders, patterns (`data/*.csv`), or "-", standard input. Several are read in the order given;
        those of a folder or pattern by name.
    schema: of all batches. Cells of a text file have the type `cells.CellType`, unless `reading.types` names another.
    rows: the number of rows; None: unknown. files: the files' paths, without standard input.
    Raises InvalidArgument, also while iterating.
    """

    def __init__(self, inputs: Sequence[str | os.PathLike[str]], reading: Reading = Reading()) -> None:
        self.schema: pa.Schema
        self.rows: int | None
        self.files: list[Path]
        raise NotImplementedError

    def __iter__(self) -> Iterator[Rows]:
        raise NotImplementedError

    def index(self, name: str) -> int:
        """The position of a column. Raises InvalidArgument, with the columns there are, for none or several."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
