"""The bytes of a text file as blocks of whole records: lines, where a line end within quotes is part of a cell.

A block ends with the last record that has arrived, so that a stream's line does not wait for the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...errors import InvalidArgument
from .object_store import changed
from .piece import TextBlock

BLOCK_BYTES = 4 << 20
RECORD_BYTES = 256 << 20  # more is a quote that nobody closes
BOM = b"\xef\xbb\xbf"


class Blocks:
    """Blocks of whole records; the last may lack its line end.

    read: returns bytes that have arrived, at most as many as asked for, or none at the end. quote: b"" is none.
    seek: goes on with another byte of the file; None: it cannot.
    Assumes that quotes are in pairs. Where a lonely one stands within an unquoted cell, a block may end within a
    record: see `ends_within_a_cell`.
    """

    def __init__(
        self, read: Callable[[int], bytes], quote: bytes, name: str, seek: Callable[[int], object] | None = None
    ) -> None:
        self._read, self._quote, self._name, self._seek = read, quote, name, seek
        self._rest = b""
        self._start = self._end = 0  # of the last block, in the file

    def next(self) -> bytes:
        """Nothing at the end."""
        while data := more(self._read, len(self._rest)):
            self._rest += data
            end = record_end(self._rest, self._quote)
            if end:
                return self._taken(end)
            if len(self._rest) > RECORD_BYTES:
                raise too_long(self._name)
        return self._taken(len(self._rest))

    def _taken(self, end: int) -> bytes:
        block, self._rest = self._rest[:end], self._rest[end:]
        self._start, self._end = self._end, self._end + end
        return block

    def place(self, row: int) -> TextBlock | None:
        """Where the last block is. row: the number of its first row. The first block is read anyway."""
        return None if self._seek is None or not self._start else TextBlock(row, self._start)

    def go_to(self, byte: int) -> None:
        """The next block begins there. Raises InvalidArgument if no record can."""
        assert self._seek is not None
        self._seek(byte - 1)
        if self._read(1) != b"\n":
            raise changed(self._name)
        self._rest, self._end = b"", byte


class WithoutComments:
    """Bytes without the lines that begin with a mark, except within quotes. read, name: see `Blocks`."""

    def __init__(self, read: Callable[[int], bytes], name: str, mark: bytes, delimiter: bytes, quote: bytes) -> None:
        self._read, self._name = read, name
        self._mark, self._delimiter, self._quote = mark, delimiter, quote
        self._rest, self._quoted, self._begun = b"", False, False

    def read(self, size: int) -> bytes:
        """Whole lines, of any number of bytes."""
        while data := more(self._read, len(self._rest)):
            *lines, self._rest = (self._rest + data).split(b"\n")
            if kept := b"".join(line + b"\n" for line in lines if self._is_kept(line)):
                return kept
            if len(self._rest) > RECORD_BYTES:
                raise too_long(self._name)
        last, self._rest = self._rest, b""
        return last if self._is_kept(last) else b""

    def _is_kept(self, line: bytes) -> bool:
        if not self._begun:
            self._begun, line = True, line.removeprefix(BOM)
        if not self._quoted and line.startswith(self._mark):
            return False
        if self._quote and self._quote in line:
            opening = self._quote if self._quoted else b""
            self._quoted = ends_within_a_cell(opening + line, self._delimiter, self._quote)
        return True


def too_long(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"{name}: a row is longer than {RECORD_BYTES >> 20} MiB; is a quote not closed? "
        "(--quote '' reads quotes as text)"
    )


def more(read: Callable[[int], bytes], held: int) -> bytes:
    """What has arrived; at least as much as is held of a long record, which is not searched again for each piece."""
    least = held if held > BLOCK_BYTES else 0
    data = read(BLOCK_BYTES)
    if len(data) >= least:
        return data
    pieces, size = [data], len(data)
    while size < least and (data := read(BLOCK_BYTES)):
        pieces.append(data)
        size += len(data)
    return b"".join(pieces)


def record_end(data: bytes, quote: bytes) -> int:
    """Where the last record of `data` ends, behind its line end; 0: no record ends in it."""
    end = data.rfind(b"\n")
    if not quote:
        return end + 1
    odd = data.count(quote, 0, end + 1) % 2
    while end >= 0:
        if not odd:
            return end + 1
        opening = data.rfind(quote, 0, end)
        earlier = data.rfind(b"\n", 0, opening)
        odd = (odd + data.count(quote, earlier + 1, end + 1)) % 2
        end = earlier
    return 0


def ends_within_a_cell(data: bytes, delimiter: bytes, quote: bytes) -> bool:
    """Whether the last cell of whole records has a quote that is not closed. Only a quote that begins a cell counts."""
    begin, mark = re.escape(delimiter), re.escape(quote)
    cell = re.compile(b"(?:(?<=[\\r\\n%b])|\\A)%b[^%b]*(?:%b%b[^%b]*)*(%b?)" % (begin, *[mark] * 6))
    closing = b'"'
    for match in cell.finditer(data):
        closing = match[1]
    return not closing
