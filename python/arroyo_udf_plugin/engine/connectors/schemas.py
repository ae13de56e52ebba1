"""Columns by name, schemas without views, and rows with a schema."""

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


def without_views(type_: pa.DataType) -> pa.DataType:
    """The same with texts and bytes instead of views of them, also in lists and structs. Few know views: pyarrow can
    neither take nor filter rows that have some."""
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_list(type_):
        return pa.list_(_field_without_views(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([_field_without_views(type_.field(i)) for i in range(type_.num_fields)])
    return type_


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(without_views(field.type))


def schema_without_views(schema: pa.Schema) -> pa.Schema:
    return pa.schema(map(_field_without_views, schema), schema.metadata)


def bytes_of_rows(rows: pa.RecordBatch) -> int:
    """In memory."""
    try:
        return int(rows.nbytes)
    except pa.ArrowTypeError:  # the first versions of pyarrow with views cannot count theirs
        return int(rows.get_total_buffer_size())


def with_schema(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with other names and metadata. Those that have them already are not made anew: a look at the schema costs
    a third of that."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    return pa.RecordBatch.from_arrays(rows.columns, schema=schema)
