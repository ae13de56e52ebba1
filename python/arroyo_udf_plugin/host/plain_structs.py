"""Structs as arrow-rs and DataFusion read them rightly.

arrow-rs counts the offset of a struct twice that lies in the slice of another one: it panics, or takes other rows
(apache/arrow-rs#7595). DataFusion takes the field of a struct without asking whether the struct is null
(apache/datafusion#25120). A *plain* struct begins at offset 0, and its fields are null where it is. Values are made
plain, without a copy, before an engine in Rust gets them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def _holds_struct(type_: pa.DataType) -> bool:
    if not pa.types.is_nested(type_):
        return False
    return pa.types.is_struct(type_) or any(_holds_struct(type_.field(i).type) for i in range(type_.num_fields))


def plain(array: pa.Array) -> pa.Array:
    """The same values; all structs in them are plain."""
    type_ = array.type
    if not _holds_struct(type_):
        return array
    if pa.types.is_struct(type_):
        fields = [array.field(i) for i in range(type_.num_fields)]
        made = [plain(field) for field in (array.flatten() if array.null_count else fields)]
        if array.offset == 0 and not array.null_count and _are_same(made, fields):
            return array
        return pa.StructArray.from_arrays(made, fields=list(type_), mask=array.is_null())
    if pa.types.is_fixed_size_list(type_):
        items = array.values.slice(array.offset * type_.list_size, len(array) * type_.list_size)
        if array.offset == 0 and _are_same([plain(items)], [items]):
            return array
        return pa.FixedSizeListArray.from_arrays(plain(items), type=type_, mask=array.is_null())
    if pa.types.is_map(type_):
        keys, items = array.keys, array.items
        made = [plain(keys), plain(items)]
        if _are_same(made, [keys, items]):
            return array
        return pa.MapArray.from_arrays(_offsets(array), *made, type=type_)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        items = array.values
        made = [plain(items)]
        return array if _are_same(made, [items]) else type(array).from_arrays(_offsets(array), *made, type=type_)
    return array  # such as a union: neither engine takes it apart


def has_structs(schema: pa.Schema) -> bool:
    """Whether `plain_batch` may do something."""
    return any(map(_holds_struct, schema.types))


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`plain` of all columns."""
    if not has_structs(batch.schema):
        return batch
    return pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], schema=batch.schema)


def _are_same(made: list[pa.Array], given: list[pa.Array]) -> bool:
    return all(one is other for one, other in zip(made, given, strict=True))


def _offsets(array: pa.Array) -> pa.Array:
    """Of the rows of a list, null where a row is."""
    valid = pa.concat_arrays([array.is_valid(), pa.array([True])])
    return pc.if_else(valid, array.offsets, None)
