"""The first row of each key within a time: duplicates are left out.

    rows ──► sorted by event time ──► a watermark passes them: those whose key has had no row for `ttl` ──► results

A row counts that has left: `ttl` after it, its key may have the next one. Of keys, 16 bytes are kept with the time.

Guarantees: results do not depend on batches and watermarks, if no row is late. They leave in the order of their event
times, and of their arrival where these are equal.
Assumes: a hash of 128 bits is not the same for two keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ..connectors.cells import decoded, plain_field
from ..datafusion.columns import MultiHash
from ..datafusion.query import WrongQuery
from .kept import KeptRows
from .results import Step
from .runs import SortedRuns, cuts
from .spans import before, is_time, later, nanoseconds, times_of
from .storage import Storage, StorageLimits
from .timed_rows import TimedRows

_KEY, _TIME = pa.field("__key", pa.binary(16)), pa.field("__time", pa.timestamp("ns"))
_KNOWN = pa.schema([_KEY, _TIME])
KNOWN_KEYS = "__known"
_KNOWN_ROW = pa.field(KNOWN_KEYS, pa.list_(pa.struct(list(_KNOWN))))
_BUCKETS = 8  # of what is known
_SHORTEST = 1_000_000_000  # of them


@dataclasses.dataclass(frozen=True)
class FirstRows:
    """time: the column of event times. keys: columns. ttl: nanoseconds for which a key is known."""

    time: str
    keys: tuple[str, ...]
    ttl: int

    @property
    def window(self) -> FirstRows:
        return self

    @property
    def length(self) -> int:
        return self.ttl + 1


class First:
    """schema: of the results, which are rows. kept_schema: of what `kept` gives: rows that wait, and others that have a
    list of keys that are known, with their times, and nulls for all columns.

    watermark: the latest; None: there was none yet. closed: up to where results have left.
    """

    def __init__(self, asked: FirstRows, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of the rows. Raises WrongQuery."""
        for name in (asked.time, *asked.keys):
            if len(given.get_all_field_indices(name)) != 1:
                raise WrongQuery(f"there is no column {name}, or several", name)
        if not is_time(given.field(asked.time).type):
            raise WrongQuery(f"{asked.time} is {given.field(asked.time).type}: name a column of times", asked.time)
        self._ttl, self._time = asked.ttl, asked.time
        self._keys = [given.get_field_index(name) for name in asked.keys]
        try:
            self._hash = MultiHash([plain_field(given.field(place)).type for place in self._keys])
        except InvalidArgument as error:
            raise WrongQuery(str(error).replace("multi_hash", "a key"), asked.keys[0]) from None
        self.schema = given
        self.kept_schema = pa.schema([*(field.with_nullable(True) for field in given), _KNOWN_ROW])
        self.meanings: dict[str, str] = {}
        self.watermark: int | None = None
        self.closed: int | None = None
        self._storage = Storage(limits)
        place = given.get_field_index(asked.time)
        self._rows = SortedRuns(self._storage, lambda rows: nanoseconds(rows.column(place)))
        self._known = TimedRows(self._storage, _KNOWN, 1, max(asked.ttl // _BUCKETS, _SHORTEST), asked.ttl)

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of `panes.Windows`."""
        return before(rows.column(self._time), self.watermark)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: with usable times, none of them late."""
        self._rows.add(rows)

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results up to the watermark, or all. It has passed all of them then; keys stay known."""
        if all_of_them and self._rows.last is not None:
            self.watermark = later(self.watermark, self._rows.last + 1)
        if self.watermark is None:
            return
        for until in cuts(self._rows.before(self.watermark), self.watermark):
            results = list(self._first(self._rows.take(until)))
            self._known.forget(until)
            self.closed = until
            yield results

    def _first(self, new: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Those of these rows that are the first ones."""
        if not new:
            return
        (rows,) = pa.Table.from_batches(new).combine_chunks().to_batches()
        rows = rows.take(pc.sort_indices(self._rows.times(rows)))
        times = self._rows.times(rows)
        keys = self._hash(*map(decoded, (rows.column(place) for place in self._keys)))
        encoded = keys.dictionary_encode()
        latest = self._latest(encoded.dictionary)
        chosen = []
        for place, (key, time) in enumerate(zip(encoded.indices.to_pylist(), times.to_pylist(), strict=True)):
            before = latest.get(key)
            if before is None or time >= before + self._ttl:
                latest[key] = time
                chosen.append(place)
        if chosen:
            places = pa.array(chosen, pa.int64())
            known = [keys.take(places), times_of(times.take(places), _TIME.type)]
            self._known.add(pa.RecordBatch.from_arrays(known, schema=_KNOWN))
            yield rows.take(places)

    def _latest(self, keys: pa.Array) -> dict[int, int]:
        """When those that are known had their latest row, by their places."""
        latest: dict[int, int] = {}
        known = [part.batch for part in self._known.parts()]
        if not known:
            return latest
        places = pc.index_in(pa.chunked_array([batch.column(0) for batch in known]), keys)
        are_there = places.is_valid()
        times = pa.chunked_array([self._known.at(batch) for batch in known]).filter(are_there)
        for place, time in zip(places.drop_null().to_pylist(), times.to_pylist(), strict=True):
            latest[place] = max(time, latest.get(place, time))
        return latest

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        yield from (KeptRows(part, self._form, notes) for part, notes in self._rows.parts())
        yield from (KeptRows(part, self._known_form) for part in self._known.parts())

    def _form(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [*batch.columns, pa.nulls(batch.num_rows, _KNOWN_ROW.type)]
        return pa.RecordBatch.from_arrays(columns, schema=self.kept_schema)

    def _known_form(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One row with all of them."""
        keys = pa.StructArray.from_arrays(batch.columns, fields=list(_KNOWN))
        together = pa.ListArray.from_arrays(pa.array([0, len(keys)], pa.int32()), keys)
        columns = [*(pa.nulls(1, type_) for type_ in self.schema.types), together]
        return pa.RecordBatch.from_arrays(columns, schema=self.kept_schema)

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: `closed` of the moment when they were kept."""
        width = len(self.schema)
        for one in kept:
            batch = one.rows
            is_known = batch.column(width).is_valid()
            rows, known = batch.filter(pc.invert(is_known)), batch.filter(is_known)
            if rows.num_rows:
                own = pa.RecordBatch.from_arrays(rows.columns[:width], schema=self.schema)
                self._rows.restore(own, one.n_gone, one.place_of(rows))
            if known.num_rows:
                keys = known.column(width).flatten()
                own = pa.RecordBatch.from_arrays(keys.flatten(), schema=_KNOWN)
                self._known.restore(own, None, one.place_of(known) if known.num_rows == 1 else None)
        self.watermark = self.closed = watermark

    @property
    def size(self) -> int:
        """The bytes of what is kept."""
        return self._storage.memory + self._storage.disk


def known_keys_within(rows: pa.RecordBatch, is_chosen: Callable[[pa.Array], pa.BooleanArray]) -> pa.RecordBatch:
    """Of rows that `kept` has of known keys: those with chosen hashes."""
    place = rows.schema.get_field_index(KNOWN_KEYS)
    keys = rows.column(place).flatten()
    chosen = keys.filter(is_chosen(keys.field(0)))
    if not len(chosen):
        return rows.slice(0, 0)
    together = pa.ListArray.from_arrays(pa.array([0, len(chosen)], pa.int32()), chosen)
    columns = [pa.nulls(1, type_) for type_ in rows.schema.types]
    columns[place] = together.cast(_KNOWN_ROW.type)
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
