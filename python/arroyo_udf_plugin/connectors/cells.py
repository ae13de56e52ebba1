"""Cells of text files: the Arrow type of a column of them, and how they are parsed.

A cell keeps its text, until a function or the user asks for a value: "01234" stays "01234". So a column of a text file
has `CellType`, an extension type over text that knows its file's dialect, and so which cells are null. `parse` makes
values of such a column; `decoded` makes plain text; a `FileSink` for CSV writes the cells as they were.
"""

from __future__ import annotations

import dataclasses
import json

import pyarrow as pa

from ..host.casting import Cast
from .options import NULL_VALUES


@dataclasses.dataclass(frozen=True)
class Dialect:
    """Of a CSV file. quote: "" means that there are no quotes."""

    delimiter: str = ","
    quote: str = '"'
    null_values: tuple[str, ...] = NULL_VALUES


class CellType(pa.ExtensionType):  # type: ignore[misc]
    """Text cells. dialect: the cells are as in such a CSV file, quotes and null texts included; None: plain text."""

    def __init__(self, dialect: Dialect | None) -> None:
        self.dialect = dialect
        super().__init__(pa.string(), "arroyo_udf.cell")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self.dialect and dataclasses.astuple(self.dialect)).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> CellType:
        found = json.loads(serialized)
        return cls(found and Dialect(found[0], found[1], tuple(found[2])))


def decoded(column: pa.Array) -> pa.Array:
    """Cells as plain text and nulls; any other column as it is."""
    raise NotImplementedError


def argument(column: pa.Array, wanted: pa.Field) -> Cast:
    """A source's column as a function's argument: cells are parsed, other types cast (host/casting.py).

    Raises InvalidArgument if the types cannot fit.
    """
    raise NotImplementedError


def parse(column: pa.Array, wanted: pa.Field) -> Cast:
    """Cells (or plain text) as values. A cell that does not parse is null in the result, and in `refused`."""
    raise NotImplementedError
