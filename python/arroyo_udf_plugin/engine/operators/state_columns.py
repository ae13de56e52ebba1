"""The columns of states: what each is, so that a stage that is given others, or in another order, can read them.

Cells are their text; the reader knows which columns have them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.cells import CellType, plain_field
from .blocks import Given
from .keys import KEY

OWN = ("$id", "$file", "$row", "$unread", KEY)
"""Columns of ours, beside those of the rows."""


@dataclasses.dataclass(frozen=True)
class _Chosen:
    """Some columns of a stream."""

    schema: pa.Schema
    stream: Any
    places: Sequence[int]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.stream:
            columns = [batch.column(place) for place in self.places]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def chosen(stream: Any, were: Sequence[str] | None, are: Sequence[str], wanted: pa.Schema) -> Any:
    """The columns that are wanted, by what they are, whatever others there are. were, are: what they were, and are now.
    The stream itself if one is missing."""
    if were is None or (stream.schema.equals(wanted) and list(were) == list(are)):
        return stream
    fields = list(stream.schema)
    places = {what: place for place, what in enumerate(were)}
    if len(fields) != len(were):
        raise ValueError("it does not say what its columns are")
    if any(what not in places or fields[places[what]].type != wanted.field(at).type for at, what in enumerate(are)):
        named = [field.with_name(what) for field, what in zip(fields, were, strict=True)]
        return _Chosen(pa.schema(named), stream, range(len(fields)))
    return _Chosen(wanted, stream, [places[what] for what in are])


def refused(was: pa.Schema, wanted: pa.Schema, are: Sequence[str], whose: str) -> InvalidArgument:
    """The error for rows with other columns. whose: they are."""
    return InvalidArgument(
        f"{whose} had rows with the columns {_columns(was)}, and now gets {_columns(wanted, are)}: go on "
        "with the same columns, or begin anew in another place"
    )


def is_same(one: pa.Schema, other: pa.Schema) -> bool:
    return bool(one.remove_metadata() == other.remove_metadata())


def meanings(names: Sequence[str], given: Given) -> list[str]:
    """What columns are."""
    return [given.meanings.get(name, name) for name in names]


def plain_fields(fields: Iterable[pa.Field]) -> list[pa.Field]:
    return list(map(plain_field, fields))


def plain_column(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column.type, CellType) else column


def celled(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, column) if isinstance(type_, CellType) else column


def _columns(schema: pa.Schema, are: Sequence[str] | None = None) -> str:
    pairs = zip(schema, are or schema.names, strict=True)
    return ", ".join(f"{what} {field.type}" for field, what in pairs if field.name not in OWN)
