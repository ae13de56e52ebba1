"""Lines as rows of one column, `value`: any text, or the JSON values of newline JSON that is not taken apart.

A line is a row, an empty one, too. A line that is not UTF-8, or no JSON where that is wanted, is a refused row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .blocks import Blocks
from .cells import decoded
from .piece import KEPT, Piece, TextBlock
from .text_values import end_to_end

COLUMN = "value"
SCHEMA = pa.schema([(COLUMN, pa.string())])


class TextReader:
    """read, seek: the file's bytes, see `Blocks`. name: for error texts. wrong: what is wrong with a line; None:
    nothing."""

    rows = None
    schema = SCHEMA

    def __init__(
        self,
        read: Callable[[int], bytes],
        name: str,
        wrong: Callable[[bytes], str | None],
        seek: Callable[[int], object] | None = None,
    ) -> None:
        self._blocks, self._wrong = Blocks(read, b"", name, seek), wrong

    def pieces(
        self, columns: list[int], most_rows: int, start: int = 1, block: TextBlock | None = None
    ) -> Iterator[Piece]:
        """Batches, each with the number of its first line. start: the first line to read. block: it is in this one, or
        behind it."""
        number = 1
        if block is not None:
            self._blocks.go_to(block.byte)
            number = block.row
        while text := self._blocks.next():
            block = self._blocks.place(number)
            lines = text.removesuffix(b"\n").split(b"\n")
            for first in range(max(start - number, 0), len(lines), most_rows):
                rows, refused = self._rows(lines[first : first + most_rows])
                yield number + first, pa.record_batch([rows] * len(columns), [COLUMN] * len(columns)), refused, block
            number += len(lines)

    def _rows(self, lines: list[bytes]) -> tuple[pa.Array, dict[int, str]]:
        wrong = {at: text for at, line in enumerate(lines) if (text := self._wrong(line)) is not None}
        refused = {
            at: f"the line {text}: {lines[at][: 4 * KEPT].decode(errors='replace')[:KEPT]!r}"
            for at, text in wrong.items()
        }
        kept = [None if at in refused else line for at, line in enumerate(lines)]
        return pa.array(kept, pa.binary()).cast(pa.string()), refused


def no_text(line: bytes) -> str | None:
    """What is wrong with a line of text."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None


class TextWriter:
    """Lines of the only column. write: takes bytes. null: the line of a null.

    Line ends within a text would end its line: `one_line` makes one of it. Raises InvalidArgument for other columns.
    """

    def __init__(
        self, write: Callable[[Any], object], name: str, schema: pa.Schema, null: str, one_line: bool = False
    ) -> None:
        self._write, self._null, self._one_line = write, null, one_line
        types = [pa.string() if _is_text(field.type) else field.type for field in schema]
        if types != [pa.string()]:
            columns = ", ".join(f"{field.name} {field.type}" for field in schema)
            raise InvalidArgument(f"{name}: lines of text have one column of texts, not {columns}")

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            texts = decoded(batch.column(0)).cast(pa.large_string()).fill_null(self._null)
            if self._one_line:
                texts = pc.replace_substring_regex(texts, "[\r\n]+", " ")
            ended = pc.binary_join_element_wise(
                texts, pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())
            )
            self._write(end_to_end(ended))

    def close(self) -> None:
        """Nothing is held back."""


def _is_text(type_: pa.DataType) -> bool:
    storage = type_.storage_type if isinstance(type_, pa.ExtensionType) else type_
    return bool(pa.types.is_string(storage) or pa.types.is_large_string(storage))
