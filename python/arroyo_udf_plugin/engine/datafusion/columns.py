"""Functions of SQL that DataFusion lacks, in native code, over columns.

Guarantees: an answer for each row. A hash depends on the values and their types, and is the same in each process and in
Arroyo. Functions of JSON are in `connectors.json_values`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...abi import address, ffi
from ...errors import InvalidArgument
from ..connectors.schemas import without_views


class MultiHash:
    """128 bits of XXH3 over the values of a row."""

    returns = pa.binary(16)

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        """Raises InvalidArgument for types that are not supported."""
        self.types = list(map(without_views, types))
        try:
            self(*(pa.nulls(0, type_) for type_ in self.types))
        except ValueError as error:
            raise InvalidArgument(f"multi_hash does not take {error}: write its values") from None

    def __call__(self, *columns: pa.Array) -> pa.Array:
        """columns: of `types`, of one length."""
        from ..._native import multi_hash

        if len(set(map(len, columns))) > 1:
            raise InvalidArgument("multi_hash takes columns of one length")
        arrays = ffi.new("struct ArrowArray[]", len(columns) + 1)
        schemas = ffi.new("struct ArrowSchema[]", len(columns))
        for place, column in enumerate(columns):
            column._export_to_c(address(arrays + place), address(schemas + place))
        answers = address(arrays + len(columns))
        multi_hash(address(arrays), address(schemas), len(columns), answers)
        return pa.Array._import_from_c(answers, self.returns)
