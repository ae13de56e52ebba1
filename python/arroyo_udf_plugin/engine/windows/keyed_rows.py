"""Rows by their key, any number of each, which come and go.

    rows = KeyedRows(storage, schema, ["id"])
    rows.add(batch)
    rows.remove(batch)                      a row that is equal to each of these
    rows.at(rows.places(keys))              those of some keys, in the order in which they came
    rows.clear_up()                         now and then

A row that has gone is noted as such; when more rows have gone than are there, the others are written anew. So a
checkpoint writes only what is new.

Guarantees: rows of one key keep their order, also through checkpoints. Assumes: about 200 bytes for each row are in
memory; the row itself may be in files.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .kept import KeptRows
from .key_groups import BYTES
from .row_hashes import KeyHashes, RowHashes
from .storage import Storage
from .timed_rows import Bucket

MOST_GONE = 16_384


class KeyedRows:
    """schema: of the rows. keys: the columns of their key; none: all rows have the same. values: the columns in which
    equal rows are equal; None: all."""

    def __init__(
        self, storage: Storage, schema: pa.Schema, keys: Sequence[str], values: Sequence[str] | None = None
    ) -> None:
        """Raises WrongQuery for a type that is none of keys."""
        self.schema, self._storage = schema, storage
        self._key_hashes = KeyHashes(schema.field(name) for name in keys)
        self._row_hashes = RowHashes(schema if values is None else map(schema.field, values))
        self._begin()

    def _begin(self) -> None:
        self._rows = Bucket(self._storage)
        self._hashes = bytearray()  # of each row
        self._places: dict[bytes, int | list[int]] = {}  # of the rows of each key, rising
        self._n_there = 0

    def __len__(self) -> int:
        """How many places there are."""
        return len(self._rows)

    # ---- What is there ----

    def keys_of(self, rows: pa.RecordBatch) -> list[bytes]:
        return self._key_hashes.of(rows)

    def hashes_of(self, rows: pa.RecordBatch) -> list[bytes]:
        """Which of them are equal."""
        return self._row_hashes.of(rows)

    def places_of(self, key: bytes) -> Sequence[int]:
        places = self._places.get(key, ())
        return (places,) if isinstance(places, int) else places

    def places(self, keys: Iterable[bytes]) -> list[int]:
        """Of the rows of these keys, rising."""
        return sorted(place for key in dict.fromkeys(keys) for place in self.places_of(key))

    def at(self, places: Sequence[int]) -> pa.RecordBatch:
        """The rows in these places, which rise."""
        taken, start = [], 0
        for first, part in self._rows.parts() if places else ():
            end = bisect.bisect_left(places, first + part.batch.num_rows, start)
            if end > start:
                own = pa.array([place - first for place in places[start:end]], pa.int64())
                taken.append(part.batch.take(own))
            start = end
        return one_batch(taken, self.schema)

    def is_there(self, place: int) -> bool:
        return self._rows.notes(place, 1) == b"\0"

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All rows, also those that have gone, with the place of the first of each batch."""
        return ((first, part.batch) for first, part in self._rows.parts())

    # ---- Changes ----

    def add(self, rows: pa.RecordBatch, one: KeptRows | None = None, notes: bytes | None = None) -> int:
        """The place of the first one. one: what a checkpoint had of them. notes: 1 for those that have gone."""
        first = len(self._rows)
        if not rows.num_rows:
            return first
        notes = bytes(rows.num_rows) if notes is None else notes
        self._rows.add(rows, notes, None if one is None else one.place_of(rows))
        self._hashes += b"".join(self.hashes_of(rows))
        for place, key in enumerate(self.keys_of(rows)):
            if not notes[place]:
                self._put(key, first + place)
        return first

    def _put(self, key: bytes, place: int) -> None:
        self._n_there += 1
        known = self._places.get(key)
        if known is None:
            self._places[key] = place
        elif isinstance(known, int):
            self._places[key] = [known, place]
        else:
            known.append(place)

    def remove(self, rows: pa.RecordBatch) -> None:
        """Of several equal rows, the first goes. One that is not there is passed over."""
        for key, hash_ in zip(self.keys_of(rows), self.hashes_of(rows), strict=True):
            for place in self.places_of(key):
                if self._hashes[place * BYTES : (place + 1) * BYTES] == hash_:
                    self.drop(key, place)
                    break

    def drop(self, key: bytes, place: int) -> None:
        """place: of a row that is there."""
        known = self._places[key]
        self._rows.note(place)
        self._n_there -= 1
        if isinstance(known, int):
            del self._places[key]
            return
        known.remove(place)
        if len(known) == 1:
            self._places[key] = known[0]

    def clear_up(self) -> bool:
        """Writes anew what is there, if most of it has gone. Whether places are others now."""
        if len(self._rows) <= 2 * self._n_there + MOST_GONE:
            return False
        rows = self._rows
        left = [part.left for part in self.kept()]
        self._begin()
        for batch in left:
            self.add(batch)
        rows.some.clear()
        return True

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        for first, part in self._rows.parts():
            yield KeptRows(part, notes=self._rows.notes(first, part.batch.num_rows))

    def restore(self, one: KeptRows, rows: pa.RecordBatch | None = None) -> None:
        """Before all rows. rows: instead of its own."""
        rows = one.rows if rows is None else rows
        if one.n_gone * 2 > one.num_rows:
            self.add(rows.filter(pc.invert(one.noted)), one)
        else:
            self.add(rows, one, one.notes)


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All of them."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    columns = [column.chunk(0) if column.num_chunks else pa.nulls(0, column.type) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
