"""What windows keep, as checkpoints see it: parts that do not change, so that each is written once.

    part = KeptPart(batch)                       in a `Some`, or made for one checkpoint
    KeptRows(part, form)                         what `kept` of windows gives; form: how the part is written
    part.place = PartPlace(sha256, 3)            as soon as a checkpoint that has it is committed
    KeptRows(KeptPart(rows, place))              what `restore` of windows takes: rows as they were written

Windows that take a restored part as a whole keep its place with it, so the next checkpoint does not write it again.

Guarantees: to give what is kept copies no rows. `form` runs when the part is written, in another thread.
Assumes: the batch of a part may be replaced by an equal one, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class PartPlace:
    """Where checkpoints have a part. file: the SHA-256 of the file, as copies have other names. number: of the batch in
    it."""

    file: str
    number: int


class KeptPart:
    """batch: its rows. place: None: no committed checkpoint has it."""

    __slots__ = ("batch", "place")

    def __init__(self, batch: pa.RecordBatch, place: PartPlace | None = None) -> None:
        self.batch, self.place = batch, place


def noted(mask: pa.BooleanArray) -> bytes:
    """Notes: 1 where it is true."""
    numbers = mask.cast(pa.uint8())
    return bytes(memoryview(numbers.buffers()[1])[numbers.offset : numbers.offset + len(numbers)])


def _unchanged(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


@dataclass(frozen=True)
class KeptRows:
    """A part as it is written. form: makes `kept_schema` of its batch. notes: for each row a byte, 0 or 1, which may
    change later; None: there are none."""

    part: KeptPart
    form: Callable[[pa.RecordBatch], pa.RecordBatch] = _unchanged
    notes: bytes | None = None

    @property
    def num_rows(self) -> int:
        return int(self.part.batch.num_rows)

    @property
    def rows(self) -> pa.RecordBatch:
        """In `kept_schema`."""
        return self.form(self.part.batch)

    @property
    def left(self) -> pa.RecordBatch:
        """Without the rows whose note is 1, if notes say which of them are gone."""
        return self.rows if self.notes is None else self.rows.filter(pc.invert(self.noted))

    @property
    def noted(self) -> pa.BooleanArray:
        """Whether each row's note is 1. There are notes."""
        assert self.notes is not None
        return pa.Array.from_buffers(pa.uint8(), self.num_rows, [None, pa.py_buffer(self.notes)]).cast(pa.bool_())

    @property
    def n_gone(self) -> int:
        """How many have gone, if these are the first ones."""
        return 0 if self.notes is None else self.notes.count(1)

    def chosen(self, mask: pa.BooleanArray) -> KeptRows:
        """Some of the rows, which are written anew."""
        notes = None if self.notes is None else noted(self.noted.filter(mask))
        return KeptRows(KeptPart(self.rows.filter(mask)), notes=notes)

    def place_of(self, rows: pa.RecordBatch) -> PartPlace | None:
        """The place, if these are all of its rows."""
        return self.part.place if rows.num_rows == self.num_rows else None
