"""The values of partition columns: rows are cut by them, and the log has them as texts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import InvalidArgument

PartitionKey = tuple[str | None, ...]


class Partitioning:
    """by: the partition columns. schema: of the rows. place: for error texts. Raises InvalidArgument."""

    def __init__(self, by: Sequence[str], schema: pa.Schema, place: str) -> None:
        self.by, self._place = tuple(by), place
        for name in by:
            if name not in schema.names:
                raise InvalidArgument(f"{place}: partition_by: there is no column {name!r}")
            type_ = schema.field(name).type
            is_ = pa.types
            if not (is_.is_string(type_) or is_.is_integer(type_) or is_.is_boolean(type_) or is_.is_date32(type_)):
                raise InvalidArgument(
                    f"{place}: partition_by: column {name!r} is {type_}: texts, whole numbers, booleans and dates "
                    "can be partition columns"
                )
        if len(set(by)) == len(schema):
            raise InvalidArgument(f"{place}: partition_by: a table needs a column that is none of these")
        self._left = [name for name in schema.names if name not in by]
        self.schema = pa.schema([schema.field(name) for name in self._left])

    def cut(self, batch: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
        """The rows of each partition, in their order, without its columns."""
        if not self.by:
            yield (), batch
            return
        table = pa.Table.from_batches([batch])
        for key in table.select(list(self.by)).group_by(list(self.by), use_threads=False).aggregate([]).to_pylist():
            mask = None
            for name, value in key.items():
                column = batch.column(name)
                own = column.is_null() if value is None else pc.fill_null(pc.equal(column, value), False)
                mask = own if mask is None else pc.and_(mask, own)
            rows = batch.filter(mask).select(self._left)
            yield tuple(self._text(name, key[name]) for name in self.by), rows

    def _text(self, name: str, value: Any) -> str | None:
        if value == "":
            raise InvalidArgument(f"{self._place}: column {name!r} is empty in a row, which Delta takes for null")
        if isinstance(value, bool):
            return str(value).lower()
        return value.isoformat() if isinstance(value, datetime.date) else None if value is None else str(value)

    def values(self, key: PartitionKey) -> dict[str, str | None]:
        return dict(zip(self.by, key, strict=True))
