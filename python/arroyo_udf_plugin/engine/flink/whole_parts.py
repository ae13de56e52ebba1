"""Rows of a sink as part files in memory, for an engine that stores complete files.

    parts = WholeParts.of(model, schema)
    while rows.num_rows:
        rows = parts.add(rows)
        if parts.is_full:
            store(parts.take())
    if parts.rows:
        store(parts.take())

Guarantees: a part has the bytes that `PartsSink` would write of its rows, so all options of `Parts` mean the same.

Assumes: one thread at a time.
"""

from __future__ import annotations

import time
from typing import Self

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.blackhole import Blackhole
from ..connectors.described import Output
from ..connectors.kafka.sink import KafkaOutput
from ..connectors.location import location_of
from ..connectors.options import Writing
from ..connectors.parts import Parts
from ..connectors.parts_sink import PartLimits
from ..connectors.place import MemoryPlace
from ..connectors.sink import FileSink

MOST_BYTES = 64 << 20
"""Of a part, which is in memory until it is complete."""


def check_output(model: Output) -> None:
    """Raises InvalidArgument for a sink that Flink cannot have."""
    if isinstance(model, Blackhole | KafkaOutput):
        return
    if not isinstance(model, Parts):
        raise InvalidArgument(
            f"a sink of the type {model.type} cannot run on Flink, which writes folders of files and "
            "topics of Kafka: use type = \"parts\", in SQL connector = 'filesystem', or run the pipeline without Flink"
        )
    where = location_of(model.path)
    if where.path is None and not where.text.startswith("s3://"):
        raise InvalidArgument(f"{model.path}: Flink writes into a folder of all its machines or s3://BUCKET/FOLDER")
    if where.path is not None and not where.path.is_absolute():
        raise InvalidArgument(f"{model.path}: Flink's processes are in other folders: write the whole path, from / on")
    if model.part_wait is not None:
        raise InvalidArgument(
            "part_wait: on Flink, each checkpoint shows its rows: leave it out, or have fewer checkpoints"
        )


class WholeParts:
    """One part after another.

    name: for error texts. suffix: of the file's name. rows: in the part that is under way.
    """

    def __init__(self, name: str, schema: pa.Schema, writing: Writing, suffix: str, limits: PartLimits) -> None:
        self.suffix, self.rows = suffix, 0
        self._name, self._schema, self._writing, self._limits = name, schema, writing, limits
        self._begin()

    @classmethod
    def of(cls, model: Parts, schema: pa.Schema) -> Self:
        """Raises InvalidArgument for columns and options with which rows could not be written."""
        limits = PartLimits(model.part_rows, min(model.part_bytes, MOST_BYTES), model.part_seconds)
        return cls(model.path, schema, model.part_writing(), model.ending, limits)

    def _begin(self) -> None:
        self._place = MemoryPlace()
        path = f"part{self.suffix}"
        self._file = FileSink(path, self._schema, self._writing, name=self._name, place=self._place)

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Adds the first rows, as many as the part may have. Returns the others. Raises InvalidArgument."""
        if not self.rows:
            self._since = time.monotonic()
        n_rows = batch.num_rows if self._limits.rows is None else min(batch.num_rows, self._limits.rows - self.rows)
        self._file.write(batch.slice(0, n_rows))
        self.rows += n_rows
        return batch.slice(n_rows)

    @property
    def nbytes(self) -> int:
        """Of the part so far, without rows that wait for their row group."""
        return self._file.n_bytes

    @property
    def is_full(self) -> bool:
        """Whether it has as many rows or bytes as it may have, or is so old."""
        limits = self._limits
        is_old = limits.seconds is not None and self.rows > 0 and time.monotonic() - self._since >= limits.seconds
        return self.rows == limits.rows or self.nbytes >= limits.bytes or is_old

    def take(self) -> bytes:
        """The part, complete. The next one begins."""
        self._file.finish()
        data = self._place.value()
        self.rows = 0
        self._begin()
        return data
