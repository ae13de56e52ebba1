"""Rows of a table by their key, for batches of keys: from a cache, and what it lacks with one query.

The cache has two generations. What is asked for is in the young one, or moves there. When that has half of the size,
it becomes the old one, and the old one is forgotten: with it goes what nobody has asked for since.

Guarantees: the keys of a batch are looked up in one query, each of them once; more queries are only made to find the
key that one of them fails for. Nothing is used that is older than the age. A key without rows is remembered, too.

Assumes: one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument
from .database import WrongValue
from .lookup_table import LookupTable, OpenLookup

_ENTRY_BYTES = 250  # of Python's objects, for each key
_is = pa.types


@dataclass(frozen=True)
class Matches:
    """What a batch has found.

    of, at: for each match the place of its row in the batch, which rises, and its place in `rows`.
    failed: rows that could not be looked up, and why.
    """

    rows: pa.RecordBatch
    of: pa.Array
    at: pa.Array
    failed: dict[int, str]


@dataclass
class _Generation:
    """entries: by key the first of its rows, how many there are, and when they were read. length: of `rows`, which may
    have no columns."""

    rows: pa.RecordBatch
    length: int = 0
    entries: dict[Any, tuple[int, int, float]] = field(default_factory=dict)
    size: int = 0

    def add(self, keys: Sequence[Any], rows: pa.RecordBatch, counts: Sequence[int], times: Sequence[float]) -> None:
        """rows: of the keys, in their order."""
        for key, count, when in zip(keys, counts, times, strict=True):
            self.entries[key] = (self.length, count, when)
            self.length += count
        self.size += int(rows.nbytes) + _ENTRY_BYTES * len(keys)
        if rows.num_rows:
            columns = zip(self.rows.columns, rows.columns, strict=True)
            self.rows = pa.RecordBatch.from_arrays([pa.concat_arrays(both) for both in columns], schema=rows.schema)


class Lookups:
    """A table with its cache. size, age: of the cache, in bytes and seconds. now: a clock."""

    def __init__(self, table: LookupTable, size: int, age: float, now: Callable[[], float] = time.monotonic) -> None:
        self._table, self._size, self._age, self._now = table, size, age, now
        self._opened: OpenLookup | None = None
        self._young, self._old = self._new(), self._new()

    def _new(self) -> _Generation:
        schema = self._table.schema
        return _Generation(pa.RecordBatch.from_arrays([pa.nulls(0, type_) for type_ in schema.types], schema=schema))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def find(self, keys: Sequence[pa.Array]) -> Matches:
        """keys: in the table's `key_types`. A row with a null among them has no matches."""
        codes, distinct = _coded(keys)
        names = _names(distinct)
        failed = self._load(distinct, names)
        young = self._young
        found = [(0, 0, 0.0) if place in failed else young.entries[name] for place, name in enumerate(names)]
        matches = self._matches(codes, found, failed)
        if self._young.size * 2 > self._size:
            self._old = self._young if self._young.size <= self._size else self._new()
            self._young = self._new()
        return matches

    def _load(self, distinct: Sequence[pa.Array], names: Sequence[Any]) -> dict[int, str]:
        """Sees that the young generation has all keys. Returns the places of those that could not be looked up."""
        now = self._now()
        young, old = self._young.entries, self._old.entries
        oldest = now - self._age
        missing: list[int] = []
        moved: list[int] = []
        for place, name in enumerate(names):
            entry = young.get(name)
            if entry is not None and entry[2] > oldest:
                continue
            entry = old.get(name)
            (missing if entry is None or entry[2] <= oldest else moved).append(place)
        if moved:
            entries = [old[names[place]] for place in moved]
            at = pa.array([each for first, count, _ in entries for each in range(first, first + count)], pa.int64())
            counts = [count for _, count, _ in entries]
            rows = self._old.rows.take(at) if self._table.schema.names else self._old.rows
            self._young.add([names[place] for place in moved], rows, counts, [when for _, _, when in entries])
        failed: dict[int, str] = {}
        if missing:
            self._ask(missing, distinct, names, now, failed)
        return failed

    def _ask(
        self, places: list[int], distinct: Sequence[pa.Array], names: Sequence[Any], now: float, failed: dict[int, str]
    ) -> None:
        if self._opened is None:
            self._opened = self._table.open()
        try:
            rows, of = self._opened.rows([column.take(pa.array(places, pa.int64())) for column in distinct])
        except WrongValue as error:
            if len(places) == 1:
                failed[places[0]] = str(error)
                return
            half = len(places) // 2
            self._ask(places[:half], distinct, names, now, failed)
            self._ask(places[half:], distinct, names, now, failed)
            return
        except InvalidArgument as error:
            failed.update(dict.fromkeys(places, str(error)))
            return
        counts = [0] * len(places)
        for place in of.to_pylist():
            counts[place] += 1
        self._young.add([names[place] for place in places], rows, counts, [now] * len(places))

    def _matches(self, codes: pa.Array, found: Sequence[tuple[int, int, float]], failed: dict[int, str]) -> Matches:
        """codes: the key of each row, by its place; null: none of them can match."""
        rows = self._young.rows
        lost = {row: failed[code] for row, code in enumerate(codes.to_pylist()) if code in failed} if failed else {}
        if all(count == 1 for _, count, _ in found) and not codes.null_count:
            at = pa.array([first for first, _, _ in found], pa.int64()).take(codes)
            return Matches(rows, pa.array(range(len(codes)), pa.int64()), at, lost)
        offsets = [0]
        places: list[int] = []
        for first, count, _ in found:
            places += range(first, first + count)
            offsets.append(len(places))
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(places, pa.int64())).take(codes)
        return Matches(rows, pc.list_parent_indices(lists), pc.list_flatten(lists), lost)


def _coded(keys: Sequence[pa.Array]) -> tuple[pa.Array, Sequence[pa.Array]]:
    """Which distinct key each row has (null: a part of it is null), and the distinct keys."""
    encoded = keys[0].dictionary_encode()
    if len(keys) == 1:
        return encoded.indices, [encoded.dictionary]
    codes = encoded.indices.cast(pa.int64())
    for key in keys[1:]:
        encoded = key.dictionary_encode()
        pairs = pc.add(pc.multiply(codes, len(encoded.dictionary)), encoded.indices.cast(pa.int64()))
        encoded = pairs.dictionary_encode()
        codes = encoded.indices.cast(pa.int64())
    firsts = pc.index_in(pa.array(range(len(encoded.dictionary)), pa.int64()), value_set=codes)
    return codes, [key.take(firsts) for key in keys]


def _names(distinct: Sequence[pa.Array]) -> list[Any]:
    """Keys as Python has them in a dictionary."""
    columns = [_plain(column).to_pylist() for column in distinct]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _plain(column: pa.Array) -> pa.Array:
    """Times as numbers: nanoseconds are no times of Python."""
    if not _is.is_temporal(column.type):
        return column
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
