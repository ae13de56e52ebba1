"""The fields of a table from a sample: the columns of its source, and of text cells what the first rows look like.
And the first rows themselves.

Text is taken for a number, a truth value or a time if all cells of the sample are one and lose nothing by it, as for
`--types auto` (engine/connectors/inferred.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...engine.connectors.cells import JSON_VALUE, CellType, argument
from ...engine.connectors.inferred import type_of
from ...engine.connectors.interface import Source
from ...errors import InvalidArgument
from .readable import readable

Field = Mapping[str, Any]
"""As the API has it: name, type and its parameters."""

_OF_TEXTS: Mapping[pa.DataType, Field] = {  # all others are told as text
    pa.int64(): {"type": "int64"},
    pa.float64(): {"type": "float64"},
    pa.bool_(): {"type": "bool"},
    pa.timestamp("us", "UTC"): {"type": "timestamp", "unit": "microsecond"},
}
_VALUES = {field["type"]: type_ for type_, field in _OF_TEXTS.items()}
_UNITS = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_SIMPLE = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_unsigned_integer, "uint32"),
    (pa.types.is_integer, "int32"),
    (pa.types.is_floating, "float32"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_binary, "bytes"),
)
_PATIENCE = 5.0
"""Seconds for rows of a source that waits."""
_MOST_REFUSED = 10
_WIDE = {pa.int64(): "int64", pa.uint64(): "uint64", pa.float64(): "float64"}


def sampled(source: Source) -> list[Field]:
    """Raises InvalidArgument for a column that no field can be."""
    cells = any(isinstance(column.type, CellType) for column in source.schema)
    rows = asyncio.run(_first(source)) if cells else None
    return [
        _of_cells(name, None if rows is None else rows.column(name))
        if isinstance(column.type, CellType)
        else field_of(name, column.type)
        for name, column in zip(source.schema.names, source.schema, strict=True)
    ]


def first_rows(source: Source, fields: Sequence[Field], most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """At most so many rows, of those that come within a few seconds; and why others cannot be read. fields: as
    `sampled` has told them."""
    batches, refused = asyncio.run(_rows(source, most))
    return [row for batch in batches for row in readable(_as_told(batch, fields))], refused[:_MOST_REFUSED]


def _as_told(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """With values in place of cells of CSV, where fields have them."""
    columns = [
        argument(column, pa.field(field["name"], _VALUES[field["type"]])).array
        if isinstance(column.type, CellType) and column.type.dialect is not None and field["type"] in _VALUES
        else column
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


async def _rows(source: Source, most: int) -> tuple[list[pa.RecordBatch], list[str]]:
    batches: list[pa.RecordBatch] = []
    refused: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            for name in source.partitions():
                with contextlib.closing(source.open(name, None)) as partition:
                    while most > 0 and (rows := await partition.read()) is not None:
                        first = rows.first_rows(most)
                        refused += first.refused.values()
                        good = [at for at in range(first.batch.num_rows) if at not in first.refused]
                        batches.append(first.batch.take(good))
                        most -= first.batch.num_rows
    return batches, refused


async def _first(source: Source) -> pa.RecordBatch | None:
    """Some rows; None: there are none yet."""
    for name in source.partitions()[:1]:
        partition = source.open(name, None)
        try:
            rows = await partition.read()
        finally:
            partition.close()
        return None if rows is None else rows.batch
    return None


def _of_cells(name: str, column: pa.Array | None) -> Field:
    if column is None or column.null_count == len(column):
        return {"name": name, "type": "string"}
    if column.type.dialect is None:  # of JSON, in which a number has a column of its own
        is_json = any(cell.startswith(JSON_VALUE) for cell in column.storage.drop_null().to_pylist())
        return {"name": name, "type": "json" if is_json else "string"}
    type_ = type_of(column)
    return {"name": name, **_OF_TEXTS.get(type_, {"type": "string"})}


def field_of(name: str, type_: pa.DataType) -> Field:
    """Raises InvalidArgument."""
    if pa.types.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return {"name": name, "type": "decimal128", "precision": type_.precision, "scale": type_.scale}
    if pa.types.is_timestamp(type_):
        return {"name": name, "type": "timestamp", "unit": _UNITS[type_.unit]}
    if pa.types.is_struct(type_) and type_.num_fields:
        return {"name": name, "type": "struct", "fields": [field_of(field.name, field.type) for field in type_]}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return {"name": name, "type": "list", "items": field_of("item", type_.value_type)}
    if isinstance(type_, CellType):
        return {"name": name, "type": "string"}
    for fits, type_name in _SIMPLE:
        if fits(type_):
            return {"name": name, "type": _WIDE.get(type_, type_name)}
    raise InvalidArgument(f"column {name} is {type_}, which no field can be: create the table in the query instead")
