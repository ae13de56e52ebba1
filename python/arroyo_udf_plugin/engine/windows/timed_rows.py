"""Rows that are kept by their event time, and taken by it.

    rows = TimedRows(storage, schema, time, width, after)
    rows.add(batch); rows.between(first, until)      those of these times, whatever came when
    rows.note(times, places)                         remembers something of some rows
    rows.forget(watermark)                           those whose time, and `after` it, the watermark has passed

They are in buckets, each of which has the rows of some time, so that what is over goes as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...host.ordinals import ordinals
from .kept import KeptPart, PartPlace
from .pane_rows import by_pane
from .panes import WAITING_ROWS
from .spans import Hop, nanoseconds
from .storage import Some, Storage

AT, ROW = pa.field("$at", pa.int64()), pa.field("$row", pa.int64())
"""Of rows that are taken: the event time in nanoseconds, and which one of its bucket it is."""


class Bucket:
    """Rows of some time. noted: for each whether it was."""

    def __init__(self, storage: Storage) -> None:
        self.some = Some(storage)
        self._noted = bytearray()

    def __len__(self) -> int:
        return len(self._noted)

    def add(self, rows: pa.RecordBatch, noted: bytes, place: PartPlace | None = None) -> None:
        """noted: 0 or 1 for each row."""
        self.some.add(rows, place)
        self._noted += noted

    def note(self, row: int) -> None:
        self._noted[row] = 1

    def notes(self, first: int, n_rows: int) -> bytes:
        """Of these rows, as they are now."""
        return bytes(self._noted[first : first + n_rows])

    def noted(self, first: int, n_rows: int) -> pa.BooleanArray:
        """Of these rows."""
        data = pa.py_buffer(self.notes(first, n_rows))
        return pa.Array.from_buffers(pa.uint8(), n_rows, [None, data]).cast(pa.bool_())

    def parts(self) -> Iterator[tuple[int, KeptPart]]:
        """Each with the number of its first row."""
        first = 0
        for part in self.some.parts:
            yield first, part
            first += part.batch.num_rows


class TimedRows:
    """schema: of what is taken: the rows', AT and ROW. after: how long after its time a row is needed."""

    def __init__(self, storage: Storage, schema: pa.Schema, time: int, width: int, after: int) -> None:
        """time: the position of the column of event times. width: of a bucket, in nanoseconds."""
        self._storage, self._time, self.after = storage, time, after
        self._hop = Hop(width, width)
        self.schema = pa.schema([*schema, AT, ROW])
        self._buckets: dict[int, Bucket] = {}

    def at(self, rows: pa.RecordBatch) -> pa.Int64Array:
        """The event times."""
        return nanoseconds(rows.column(self._time))

    def add(self, rows: pa.RecordBatch, is_noted: bool = False) -> None:
        for start, part in by_pane(rows, self._starts(rows)):
            self._bucket(start).add(part, bytes([is_noted]) * part.num_rows)

    def restore(self, rows: pa.RecordBatch, noted: pa.UInt8Array | None, place: PartPlace | None) -> None:
        """As `add`. noted: 0 or 1 for each row; None: none of them was. place: where a checkpoint has them."""
        starts = pc.min_max(self._starts(rows))
        if starts["min"] == starts["max"]:
            notes = bytes(rows.num_rows)
            if noted is not None:
                notes = bytes(memoryview(noted.buffers()[1])[noted.offset : noted.offset + len(noted)])
            self._bucket(starts["min"].as_py()).add(rows, notes, place)
            return
        for is_noted in (False, True):
            mask = pa.repeat(not is_noted, rows.num_rows) if noted is None else pc.equal(noted, int(is_noted))
            if (some := rows.filter(mask)).num_rows:
                self.add(some, is_noted)

    def _starts(self, rows: pa.RecordBatch) -> pa.Int64Array:
        """Of the buckets of these rows."""
        times = self.at(rows)
        return self._hop.panes(times, self._hop.pane(pc.min(times).as_py()))

    def _bucket(self, start: int) -> Bucket:
        if start not in self._buckets:
            self._buckets[start] = Bucket(self._storage)
        return self._buckets[start]

    def between(self, first: int | None, until: int, without_noted: bool = False) -> list[pa.RecordBatch]:
        """The rows of these times, without the end. first: None: from the beginning."""
        batches = []
        for start, bucket in sorted(self._buckets.items()):
            end = start + self._hop.width
            if start >= until or (first is not None and end <= first):
                continue
            is_inside = end <= until and (first is None or start >= first)
            for number, part in bucket.parts():
                batch = part.batch
                at = self.at(batch)
                place = ordinals(batch.num_rows, number).cast(pa.int64())
                rows = pa.RecordBatch.from_arrays([*batch.columns, at, place], schema=self.schema)
                if not is_inside:
                    mask = pc.less(at, until)
                    rows = rows.filter(mask if first is None else pc.and_(mask, pc.greater_equal(at, first)))
                if without_noted and rows.num_rows:
                    noted = bucket.noted(number, batch.num_rows)
                    rows = rows.filter(pc.invert(noted.take(pc.subtract(rows.column(ROW.name), number))))
                if rows.num_rows:
                    batches.append(rows)
        return batches

    def note(self, times: pa.Int64Array, rows: pa.Int64Array) -> None:
        """times, rows: of those that were taken."""
        for time, row in zip(times.to_pylist(), rows.to_pylist(), strict=True):
            self._buckets[self._hop.pane(time)].note(row)

    def forget(self, watermark: int | None = None) -> None:
        """The buckets all rows of which are not needed any more. None: all."""
        reach = self._hop.width + self.after
        for start in [begin for begin in self._buckets if watermark is None or begin + reach <= watermark]:
            self._buckets.pop(start).some.clear()

    def kept(self) -> Iterator[tuple[KeptPart, bytes]]:
        """All rows, with whether they were noted."""
        for _, bucket in sorted(self._buckets.items()):
            for first, part in bucket.parts():
                yield part, bucket.notes(first, part.batch.num_rows)

    def parts(self) -> Iterator[KeptPart]:
        return (part for _, bucket in sorted(self._buckets.items()) for part in bucket.some.parts)

    @property
    def ends(self) -> dict[int, int]:
        """Where buckets end, and how many rows each has."""
        return {start + self._hop.width: len(bucket) for start, bucket in self._buckets.items()}

    @property
    def last(self) -> int | None:
        """The latest time of a row."""
        if not self._buckets:
            return None
        return max(int(pc.max(self.at(batch)).as_py()) for batch in self._buckets[max(self._buckets)].some.batches)


def steps(kept: Sequence[TimedRows], done: int | None, watermark: int) -> Iterator[int]:
    """Up to the watermark, with not many more new rows between two steps than a query needs to pay. done: rows before
    are not new; None: all are."""
    counts: dict[int, int] = {}
    for rows in kept:
        for end, n_rows in rows.ends.items():
            counts[end] = counts.get(end, 0) + n_rows
    waiting = 0
    for end in sorted(counts):
        if done is None or end > done:
            waiting += counts[end]
        if waiting >= WAITING_ROWS and end < watermark:
            yield end
            waiting = 0
    yield watermark
