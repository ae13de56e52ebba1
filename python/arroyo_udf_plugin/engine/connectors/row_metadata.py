"""Columns of what is known about a file's rows besides their own columns.

    filename     string; the file, as errors and dead letters name it, such as data/a.csv or s3://bucket/a.csv
    row          int64; the row's number in its file, counted from 1; of CSV without the header; of text, the line

Guarantees: both are the same in each run over the same files, also after a resume.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import pyarrow as pa

from ...errors import InvalidArgument
from .options import TYPED_BATCH_ROWS
from .source import Rows, row_numbers


@functools.lru_cache(maxsize=8)  # slices read a few files at a time
def _repeated(file: str) -> pa.StringArray:
    return pa.repeat(pa.scalar(file, pa.string()), TYPED_BATCH_ROWS)


_VALUES: Mapping[str, tuple[pa.DataType, Callable[[Rows], pa.Array]]] = {
    "filename": (pa.string(), lambda rows: _repeated(rows.file).slice(0, rows.batch.num_rows)),
    "row": (pa.int64(), lambda rows: row_numbers(rows.first, rows.batch.num_rows, "int64")),
}
KEYS = tuple(_VALUES)


class RowMetadata:
    """asked: a key for the name of each column. read: the schema of the rows without them.

    schema: of the rows with them. Raises InvalidArgument for an unknown key, and a column that is there already.
    """

    def __init__(self, asked: Mapping[str, str], read: pa.Schema) -> None:
        for name, key in asked.items():
            if key not in _VALUES:
                raise InvalidArgument(f"metadata: files have no {key!r}: write {' or '.join(KEYS)}")
            if name in read.names:
                raise InvalidArgument(f"metadata: there is a column {name!r} already: choose another name")
        self._values = [_VALUES[key] for key in asked.values()]
        fields = [pa.field(name, type_) for name, (type_, _) in zip(asked, self._values, strict=True)]
        self.schema = pa.schema([*read, *fields], read.metadata)

    def added(self, rows: Rows) -> Rows:
        """rows: of one file, at most `TYPED_BATCH_ROWS`."""
        if not self._values:
            return rows
        columns = [*rows.batch.columns, *(value(rows) for _, value in self._values)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return dataclasses.replace(rows, batch=batch)
