"""The rows of pieces of sessions, by the numbers of the pieces.

    numbers = rows.add(batch, lengths)       the rows of each piece lie together
    rows.take_out(numbers)                   the rows of these pieces, which are not here any more

The rows of pieces that came together are a chunk, and a piece's number says where in it its rows are. Small chunks are
put together, with the same numbers. Rows that have left are taken out of a chunk when they are half of it.

Guarantees: taking rows out costs what they are, and a bit for each chunk.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ...host.ordinals import ordinals
from .kept import KeptPart, noted
from .panes import WAITING_ROWS
from .storage import Some, Storage

_MOST_NUMBERS = 1 << 19  # of pieces in a chunk, most of which may have left
SESSION = pa.field("__session", pa.int64())


class _Chunk:
    """first: the number of the first piece. lengths: of all pieces; 0: it has left. open: how many rows have not."""

    def __init__(self, storage: Storage, first: int, rows: pa.RecordBatch, lengths: pa.Int64Array) -> None:
        self._some = Some(storage)
        self.first = first
        self._put(rows, lengths)

    def _put(self, rows: pa.RecordBatch, lengths: pa.Int64Array) -> None:
        self._some.replace([rows])
        there = pc.indices_nonzero(lengths)
        start, stop = there[0].as_py(), there[-1].as_py() + 1
        self.first += start
        self._lengths = lengths.slice(start, stop - start)
        self._ends = pc.cumulative_sum(self._lengths)
        self.open = self._total = rows.num_rows
        self._gone: list[pa.Int64Array] = []

    @property
    def until(self) -> int:
        """Behind the number of the last piece."""
        return self.first + len(self._lengths)

    @property
    def _batch(self) -> pa.RecordBatch:
        (batch,) = self._some.batches
        return batch

    @property
    def lengths(self) -> pa.Int64Array:
        """Of what has not left."""
        if not self._gone:
            return self._lengths
        is_gone = pc.is_in(ordinals(len(self._lengths), type_="int64"), pa.concat_arrays(self._gone))
        return pc.if_else(is_gone, pa.scalar(0, pa.int64()), self._lengths)

    @property
    def rows(self) -> pa.RecordBatch:
        """What has not left."""
        return self._batch.take(_places(self.lengths, self._ends)) if self._gone else self._batch

    @property
    def part(self) -> KeptPart:
        (part,) = self._some.parts
        return part

    def notes(self) -> bytes | None:
        """A 1 for each row that has left; None: none has."""
        if not self._gone:
            return None
        pieces = pa.concat_arrays(self._gone)
        gone = _places(self._lengths.take(pieces), self._ends.take(pieces))
        return noted(pc.is_in(ordinals(self._total, type_="int64"), gone))

    def take_out(self, pieces: pa.Int64Array) -> tuple[pa.Int64Array, pa.RecordBatch]:
        """pieces: their places. Also which one of these pieces each row is of."""
        lengths = self._lengths.take(pieces)
        rows = self._batch.take(_places(lengths, self._ends.take(pieces)))
        which = _repeated(ordinals(len(pieces), type_="int64"), pc.cumulative_sum(lengths))
        self._gone.append(pieces)
        self.open -= rows.num_rows
        if not self.open:
            self.clear()
        elif 2 * self.open < self._total:
            self._put(self.rows, self.lengths)
        return which, rows

    def clear(self) -> None:
        self._some.clear()


def _places(lengths: pa.Int64Array, ends: pa.Int64Array) -> pa.Int64Array:
    """Of the rows of pieces that are so long, and have their last rows before these places."""
    is_there = pc.greater(lengths, 0)
    lengths, ends = lengths.filter(is_there), ends.filter(is_there)
    until = pc.cumulative_sum(lengths)
    moved = _repeated(pc.subtract(ends, until), until)
    return pc.add(moved, ordinals(len(moved), type_="int64"))


def _repeated(values: pa.Int64Array, until: pa.Int64Array) -> pa.Int64Array:
    """Each of them up to a place."""
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(until, values))


class SessionRows:
    """open: how many there are."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._chunks: list[_Chunk] = []
        self._next = 0

    def add(self, rows: pa.RecordBatch, lengths: pa.Int64Array) -> pa.Int64Array:
        """lengths: how many rows each piece has, one after the other. Returns the numbers of the pieces."""
        first, self._next = self._next, self._next + len(lengths)
        numbers = ordinals(len(lengths), first, "int64")
        batches, all_lengths = [rows], [lengths]
        n_rows = rows.num_rows
        while self._chunks and self._chunks[-1].open < min(2 * n_rows, WAITING_ROWS):
            if self._next - self._chunks[-1].first > _MOST_NUMBERS:
                break
            chunk = self._chunks.pop()
            all_lengths[:0] = [chunk.lengths, pa.repeat(pa.scalar(0, pa.int64()), first - chunk.until)]
            batches.insert(0, chunk.rows)
            first = chunk.first
            n_rows += chunk.open
            chunk.clear()
        (together,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        self._chunks.append(_Chunk(self._storage, first, together, pa.concat_arrays(all_lengths)))
        return numbers

    @property
    def open(self) -> int:
        return sum(chunk.open for chunk in self._chunks)

    def parts(self) -> Iterator[tuple[KeptPart, bytes | None]]:
        """Each with a 1 for each row that has left."""
        return ((chunk.part, chunk.notes()) for chunk in self._chunks)

    def take_out(self, numbers: pa.Int64Array) -> Iterator[tuple[pa.Int64Array, pa.RecordBatch]]:
        """Also which one of these pieces each row is of."""
        order = pc.sort_indices(numbers)
        numbers = numbers.take(order)
        start = 0
        for chunk in self._chunks:
            stop = bisect.bisect_left(range(len(numbers)), chunk.until, start, key=lambda n: numbers[n].as_py())
            if start < stop:
                which, rows = chunk.take_out(pc.subtract(numbers.slice(start, stop - start), chunk.first))
                yield order.slice(start, stop - start).take(which), rows
            start = stop
        self._chunks = [chunk for chunk in self._chunks if chunk.open]
