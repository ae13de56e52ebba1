"""Rows as a Delta table has them: its types, and which of its columns they are.

Guarantees: a value is written as it is, or the column is refused: numbers do not overflow, times lose no digits.
"""

from __future__ import annotations

import re

import pyarrow as pa

from ....errors import InvalidArgument
from ..cells import CellType, decoded

_UNNAMEABLE = re.compile(r"[ ,;{}()\n\t=]")
_AS = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_PLAIN = {
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.bool_(), pa.string(), pa.binary(), pa.date32()),
}
_WIDER = (pa.int8(), pa.int16(), pa.int32(), pa.int64()), (pa.float32(), pa.float64())


class _NoType(Exception):
    """A type that no Delta table has."""


class DeltaColumns:
    """given: the columns of the rows. place: for error texts. table: the columns that there are; None: no table is.

    schema: of what is written. Raises InvalidArgument for columns that cannot be written, by name.
    """

    def __init__(self, given: pa.Schema, place: str, table: pa.Schema | None) -> None:
        self._place = place
        fields = [pa.field(field.name, self._type(field)) for field in given]
        if table is not None:
            fields = [self._in_table(field, table) for field in fields]
            for field in table:
                if not field.nullable and field.name not in given.names:
                    raise InvalidArgument(
                        f"{place}: column {field.name!r} of the table must have values: write it, too"
                    )
        self.schema = pa.schema(fields)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows as they are written. Raises InvalidArgument."""
        columns = []
        for column, field in zip(batch.columns, self.schema, strict=True):
            try:
                values = decoded(column).cast(field.type)
            except pa.ArrowException as error:
                raise InvalidArgument(f"{self._place}: column {field.name!r}: {error}") from None
            if not field.nullable and values.null_count:
                raise InvalidArgument(f"{self._place}: column {field.name!r} is null in a row, and may not be")
            columns.append(values)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _type(self, field: pa.Field) -> pa.DataType:
        if _UNNAMEABLE.search(field.name):
            raise InvalidArgument(
                f"{self._place}: column {field.name!r}: names of columns have no spaces and none of ,;{{}}()= there: "
                "give it another name (AS)"
            )
        try:
            return _delta_type(field.type)
        except _NoType as error:
            raise InvalidArgument(
                f"{self._place}: column {field.name!r}: Delta tables have no {error}: cast it to another type"
            ) from None

    def _in_table(self, field: pa.Field, table: pa.Schema) -> pa.Field:
        """The column as the table has it."""
        at = table.get_field_index(field.name)
        if at < 0:
            raise InvalidArgument(
                f"{self._place}: the table has no column {field.name!r}; its columns are {', '.join(table.names)}: "
                "leave it out (columns), or add it to the table"
            )
        there = table.field(at)
        try:
            wanted = _delta_type(there.type)
        except _NoType as error:
            raise InvalidArgument(f"{self._place}: column {there.name!r} of the table has the type {error}") from None
        if field.type != wanted and not _widens(field.type, wanted):
            raise InvalidArgument(
                f"{self._place}: column {field.name!r} is {field.type}, and that of the table is {wanted}: cast it"
            )
        return pa.field(field.name, wanted, there.nullable)


def _widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_decimal(given) and pa.types.is_decimal(wanted):
        return bool(given.scale == wanted.scale and given.precision <= wanted.precision)
    return any(given in kind and wanted in kind and kind.index(given) < kind.index(wanted) for kind in _WIDER)


def _delta_type(type_: pa.DataType) -> pa.DataType:
    """Raises _NoType."""
    is_ = pa.types
    if isinstance(type_, CellType):
        return pa.string()
    if is_.is_dictionary(type_):
        return _delta_type(type_.value_type)
    type_ = _AS.get(type_, type_)
    if type_ in _PLAIN or is_.is_decimal128(type_):
        return type_
    if is_.is_timestamp(type_):
        return pa.timestamp("us", None if type_.tz is None else "UTC")
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return pa.list_(_delta_type(type_.value_type))
    if is_.is_struct(type_):
        return pa.struct([pa.field(field.name, _delta_type(field.type)) for field in type_])
    if is_.is_map(type_):
        return pa.map_(_delta_type(type_.key_type), _delta_type(type_.item_type))
    raise _NoType(str(type_))
