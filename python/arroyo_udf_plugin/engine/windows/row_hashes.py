"""Which rows are equal: 128 bits for each, over some of its columns.

Guarantees: rows with equal values have equal hashes; a null is equal to a null, and 0 to -0. Assumes: those of other
rows are others.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.cells import decoded
from ..datafusion.columns import MultiHash
from ..datafusion.query import WrongQuery
from .key_groups import BYTES, key_parts


class KeyHashes:
    """Of the keys of rows, which have these columns."""

    def __init__(self, keys: Iterable[pa.Field]) -> None:
        """Raises WrongQuery for a type that is none of keys."""
        fields = list(keys)
        self._names = [key.name for key in fields]
        types = [part.type for key in fields for part in self._parts(pa.nulls(0, key.type))]
        try:
            self._hash = MultiHash(types) if types else None
        except InvalidArgument as error:
            raise WrongQuery(str(error).replace("multi_hash", "a key"), self._names[0]) from None

    def of(self, rows: pa.RecordBatch) -> list[bytes]:
        if self._hash is None:
            return [b""] * rows.num_rows
        columns = [rows.column(name) for name in self._names]
        hashes = self._hash(*(part for column in columns for part in self._parts(column)))
        start = hashes.offset * BYTES
        data = bytes(memoryview(hashes.buffers()[1])[start : start + len(hashes) * BYTES])
        return [data[at : at + BYTES] for at in range(0, len(data), BYTES)]

    def _parts(self, column: pa.Array) -> list[pa.Array]:
        return key_parts(column, has_one_nan=False)


class RowHashes(KeyHashes):
    """The same of columns of any type: what has no hash is written as a text."""

    def _parts(self, column: pa.Array) -> list[pa.Array]:
        return [_hashable(part) for part in super()._parts(decoded(column))]


def _hashable(part: pa.Array) -> pa.Array:
    type_ = part.type
    if not (pa.types.is_nested(type_) or pa.types.is_interval(type_)):
        return part
    return pa.array([None if value is None else repr(value) for value in part.to_pylist()], pa.string())
