"""Parquet and Arrow IPC: files with types, read and written by pyarrow."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet

from ..errors import InvalidArgument
from .inputs import Input, opened
from .options import Writing
from .piece import Piece

_BATCH_BYTES = 64 << 20
COMPRESSIONS = {
    "parquet": ("snappy", "zstd", "gzip", "lz4", "brotli", "none"),
    "arrow": ("none", "zstd", "lz4"),
    "arrows": ("none", "zstd", "lz4"),
}


class TypedReader:
    """schema: of the file. rows: their number; None: unknown."""

    def __init__(self, file: Input, open_: contextlib.ExitStack) -> None:
        self.rows: int | None = None
        self._batches: Callable[[list[int], int], Iterator[pa.RecordBatch]]
        if file.kind.format == "arrows":
            stream = open_.enter_context(pa.ipc.open_stream(io.BufferedReader(cast(io.RawIOBase, opened(file, open_)))))
            self.schema: pa.Schema = stream.schema
            self._batches = lambda columns, rows: (batch.select(columns) for batch in stream)
            return
        if not file.regular:
            raise InvalidArgument(
                f"{file.name}: {file.kind.format} is read from its end, so it must be a file; "
                "--in-format arrows and csv can be streams"
            )
        path = os.fsencode(cast(os.PathLike[str], file.path))  # as text, pyarrow takes UTF-8 only
        if file.kind.format == "parquet":
            source = open_.enter_context(pa.OSFile(path))
            parquet = open_.enter_context(pyarrow.parquet.ParquetFile(source))
            self.rows = parquet.metadata.num_rows
            self.schema = parquet.schema_arrow
            self._batches = lambda columns, rows: _parquet_batches(parquet, self.schema, columns, rows)
        else:
            source = open_.enter_context(pa.memory_map(path))
            ipc = open_.enter_context(pa.ipc.open_file(source))
            self.schema = ipc.schema
            numbers = range(ipc.num_record_batches)
            self._batches = lambda columns, rows: (ipc.get_batch(number).select(columns) for number in numbers)

    def pieces(self, columns: list[int], most_rows: int) -> Iterator[Piece]:
        row = 1
        for whole in self._batches(columns, most_rows):
            for offset in range(0, whole.num_rows, most_rows):
                batch = whole.slice(offset, most_rows)
                yield row, batch, {}
                row += batch.num_rows


def _parquet_batches(parquet: Any, schema: pa.Schema, columns: list[int], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of at most so many rows, and of fewer where rows are large."""
    metadata = parquet.metadata
    n_bytes = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    rows = max(1, min(rows, _BATCH_BYTES * metadata.num_rows // max(1, n_bytes)))
    if len(columns) == len(schema):
        yield from parquet.iter_batches(batch_size=rows)
        return
    names = [schema.field(index).name for index in columns]
    for batch in parquet.iter_batches(batch_size=rows, columns=names):
        yield batch.select(names)


class TypedWriter:
    """sink: a file object. Raises InvalidArgument for a compression that the format does not have."""

    def __init__(self, sink: Any, name: str, format: str, schema: pa.Schema, writing: Writing) -> None:
        chosen = writing.compression or COMPRESSIONS[format][0]
        if chosen not in COMPRESSIONS[format]:
            names = ", ".join(COMPRESSIONS[format])
            raise InvalidArgument(f"{name}: the compressions of {format} are {names}, not {chosen}")
        codec = None if chosen == "none" else chosen
        self._group_rows = writing.row_group_rows if format == "parquet" else None
        if format == "parquet":
            self._writer = pyarrow.parquet.ParquetWriter(sink, schema, compression=codec or "none")
        else:
            new = pa.ipc.new_stream if format == "arrows" else pa.ipc.new_file
            self._writer = new(sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec))

    def write(self, table: pa.Table) -> None:
        if self._group_rows is None:
            self._writer.write_table(table)
        else:
            self._writer.write_table(table, row_group_size=self._group_rows)

    def close(self) -> None:
        self._writer.close()
