"""Columns by name, and rows with a schema."""

from __future__ import annotations

import pyarrow as pa

from ...errors import InvalidArgument


def index_of(schema: pa.Schema, name: str, where: str = "") -> int:
    """The position of a column. Raises InvalidArgument, with the columns there are, for none or several."""
    indices = schema.get_all_field_indices(name)
    if len(indices) == 1:
        return int(indices[0])
    trouble = f"there are {len(indices)} columns" if indices else "there is no column"
    raise InvalidArgument(f"{where}{trouble} {name!r}; the columns are {', '.join(schema.names)}")


def with_schema(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with other names and metadata. Those that have them already are not made anew: a look at the schema costs
    a third of that."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    return pa.RecordBatch.from_arrays(rows.columns, schema=schema)
