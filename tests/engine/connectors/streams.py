"""Whole files through a source or a sink, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.cells import decoded
from arroyo_udf_plugin.engine.connectors.options import BATCH_ROWS, Reading, Writing
from arroyo_udf_plugin.engine.connectors.sink import FileSink
from arroyo_udf_plugin.engine.connectors.source import FileSource, Rows

Path_ = str | os.PathLike[str]


def rows_of(*inputs: Path_, reading: Reading | None = None) -> list[Rows]:
    with FileSource(inputs, reading) as source:
        return list(source)


def read(*inputs: Path_, reading: Reading | None = None) -> pa.Table:
    """All rows, cells as plain text."""
    with FileSource(inputs, reading) as source:
        names = source.schema.names
        columns: list[list[pa.Array]] = [[] for _ in names]
        types = [decoded(pa.nulls(0, field.type)).type for field in source.schema]
        for rows in source:
            for column, array in zip(columns, rows.batch.columns, strict=True):
                column.append(decoded(array))
    arrays = [pa.chunked_array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def write(path: Path, table: pa.Table, writing: Writing | None = None) -> Path:
    with FileSink(path, table.schema, writing) as sink:
        for batch in table.to_batches(BATCH_ROWS):
            sink.write(batch)
    return path


def copy(
    source: Path_ | Iterable[Path_], target: Path, reading: Reading | None = None, writing: Writing | None = None
) -> Path:
    inputs = [source] if isinstance(source, str | os.PathLike) else list(source)
    with FileSource(inputs, reading) as rows, FileSink(target, rows.schema, writing, rows.files) as sink:
        for each in rows:
            assert not each.refused
            sink.write(each.batch)
    return target
