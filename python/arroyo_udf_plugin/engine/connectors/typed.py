"""Parquet and Arrow IPC: files with types, read and written by pyarrow."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow as pa

from ...errors import InvalidArgument
from . import object_store
from .inputs import InputFile, opened
from .interrupt import Interrupt
from .options import Writing
from .piece import Piece, TextBlock
from .schemas import bytes_of_rows, schema_without_views

_BATCH_BYTES = 16 << 20
COMPRESSIONS = {
    "parquet": ("snappy", "zstd", "gzip", "lz4", "brotli", "none"),
    "arrow": ("none", "zstd", "lz4"),
    "arrows": ("none", "zstd", "lz4"),
}


class TypedReader:
    """schema: of the file, with texts instead of views of texts. rows: their number; None: unknown."""

    def __init__(self, file: InputFile, open_: contextlib.ExitStack, interrupt: Interrupt | None) -> None:
        self.rows: int | None = None
        self._batches: Callable[[list[int], int, int], Iterator[tuple[int, pa.RecordBatch]]]
        if file.kind.format == "arrows":
            bytes_ = io.BufferedReader(cast(io.RawIOBase, opened(file, open_, interrupt)))
            stream = open_.enter_context(pa.ipc.open_stream(bytes_))
            self.schema: pa.Schema = schema_without_views(stream.schema)
            self._batches = lambda columns, rows, start: _numbered(batch.select(columns) for batch in stream)
            return
        if not file.regular:
            raise InvalidArgument(
                f"{file.name}: {file.kind.format} is read from its end, so it must be a file; "
                "--in-format arrows and csv can be streams"
            )
        is_parquet = file.kind.format == "parquet"
        if file.object is not None:
            source = open_.enter_context(pa.PythonFile(object_store.ObjectFile(file.object, interrupt), "r"))
        else:
            path = os.fsencode(cast(os.PathLike[str], file.path))  # as text, pyarrow takes UTF-8 only
            source = open_.enter_context(pa.OSFile(path) if is_parquet else pa.memory_map(path))
        if is_parquet:
            import pyarrow.parquet  # here, because it brings all file systems with it, and other formats need none

            parquet = open_.enter_context(pyarrow.parquet.ParquetFile(source))
            self.rows = parquet.metadata.num_rows
            schema = parquet.schema_arrow
            self.schema = schema_without_views(schema)
            self._batches = lambda columns, rows, start: _parquet_batches(parquet, schema, columns, rows, start)
        else:
            ipc = open_.enter_context(pa.ipc.open_file(source))
            self.schema = schema_without_views(ipc.schema)
            numbers = range(ipc.num_record_batches)
            self._batches = lambda columns, rows, start: _numbered(
                ipc.get_batch(number).select(columns) for number in numbers
            )

    def pieces(
        self, columns: list[int], most_rows: int, start: int = 1, block: TextBlock | None = None
    ) -> Iterator[Piece]:
        """Batches of these columns, each with the number of its first row; they have fewer rows if those are large.
        start: the first row to read. block: there is none."""
        for row, whole in self._batches(columns, most_rows, start):
            count = -(-whole.num_rows // _most_rows(most_rows, whole.num_rows, _bytes_of_pieces(whole)))
            n_rows = -(-whole.num_rows // max(1, count))  # of each, so that none has just a few
            for offset in range(max(0, start - row), whole.num_rows, n_rows or 1):
                yield row + offset, whole.slice(offset, n_rows), {}, None


def _bytes_of_pieces(whole: pa.RecordBatch) -> int:
    """What pieces of a batch have together, without what each of them has: dictionaries."""
    own = [place for place, type_ in enumerate(whole.schema.types) if not pa.types.is_dictionary(type_)]
    return bytes_of_rows(whole if len(own) == whole.num_columns else whole.select(own))


def _most_rows(most: int, n_rows: int, n_bytes: int) -> int:
    """How many rows a batch may have: at most `most`, and `_BATCH_BYTES` if `n_rows` rows have `n_bytes`."""
    return max(1, min(most, _BATCH_BYTES * n_rows // max(1, n_bytes)))


def _numbered(batches: Iterator[pa.RecordBatch], row: int = 1) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch with the number of its first row."""
    for batch in batches:
        yield row, batch
        row += batch.num_rows


def _parquet_batches(
    parquet: Any, schema: pa.Schema, columns: list[int], rows: int, start: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of at most so many rows, from the row group of the row `start` on."""
    metadata = parquet.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    row, first = 1, 0
    while first < len(groups) and row + groups[first].num_rows <= start:
        row += groups[first].num_rows
        first += 1
    names = [schema.field(index).name for index in columns]
    is_whole = len(columns) == len(schema)
    rows = _most_rows(rows, metadata.num_rows, _bytes_of(metadata, groups, None if is_whole else names))
    batches = parquet.iter_batches(
        batch_size=rows,
        row_groups=range(first, len(groups)),
        columns=None if is_whole else names,
    )
    yield from _numbered(batches if is_whole else (batch.select(names) for batch in batches), row)


def _bytes_of(metadata: Any, groups: list[Any], names: list[str] | None) -> int:
    """Of these columns, encoded but not compressed. None: of all."""
    if names is None:
        return sum(group.total_byte_size for group in groups)
    paths = [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)]
    leaves = [leaf for leaf, path in enumerate(paths) if any(f"{path}.".startswith(f"{name}.") for name in names)]
    return sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)


class TypedWriter:
    """sink: a file object. Raises InvalidArgument for a compression that the format does not have."""

    def __init__(self, sink: Any, name: str, format: str, schema: pa.Schema, writing: Writing) -> None:
        chosen = writing.compression or COMPRESSIONS[format][0]
        if chosen not in COMPRESSIONS[format]:
            names = ", ".join(COMPRESSIONS[format])
            raise InvalidArgument(f"{name}: the compressions of {format} are {names}, not {chosen}")
        if format == "parquet" and (
            twice := next((column for column in schema.names if schema.names.count(column) > 1), None)
        ):
            raise InvalidArgument(f"{name}: Parquet with two columns {twice!r} cannot be read; rename one")
        codec = None if chosen == "none" else chosen
        self._group_rows = writing.row_group_rows if format == "parquet" else None
        if format == "parquet":
            import pyarrow.parquet

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
