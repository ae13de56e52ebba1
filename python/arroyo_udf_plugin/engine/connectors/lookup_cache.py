"""Rows of a table for batches of keys: from a cache, and for keys that are not in it, with one query.

    question = lookups.ask(keys)           the query runs in another thread; without one, it is answered at once
    matches = lookups.answer(question)     waits, unless question.is_answered

The cache has two generations. An entry that is used moves to the young one. When the young generation reaches half of
the size, it becomes the old one, and the old one is forgotten, with all entries that were not used since.

Guarantees: the keys of a batch that are not in the cache are looked up in one query, each of them once (see
lookup_queries.py). No entry is used that is older than the age when a batch asks for it. A key without rows is
remembered, too.

Assumes: one thread at a time. A question is answered before the next one is asked.
"""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...host.ordinals import ordinals
from .lookup_queries import KeyedTable, LookupQueries, QueryAnswer

_PIECE_BYTES = 1 << 30  # put together; the offsets of texts end at 2 GiB
_ENTRY_BYTES = 350  # of Python's objects, for each key
_STEPS = 16  # of the age: what is old is looked for so often
_is = pa.types


@dataclass(frozen=True)
class Question:
    """The keys of a batch.

    codes: the key of each row, by its place among `names`; null: it matches nothing. names: the distinct keys, as
    Python has them. places: theirs in the cache. missing: those that are not in it, which `query` looks up; None: all
    are in it. when: it was asked.
    """

    codes: pa.Array
    names: Sequence[Any]
    places: pa.Array
    missing: Sequence[int]
    query: Future[QueryAnswer] | None
    when: float

    @property
    def is_answered(self) -> bool:
        return self.query is None or self.query.done()


@dataclass(frozen=True)
class Matches:
    """What a batch has found.

    of, at: for each match the place of its row in the batch, which rises, and its place among the rows of `pieces`.
    failed: rows that could not be looked up, and why. answered: how many rows these are, the first of the batch.
    """

    schema: pa.Schema
    pieces: Sequence[pa.RecordBatch]
    of: pa.Array
    at: pa.Array
    failed: dict[int, str]
    answered: int

    def rows(self, at: pa.Array) -> pa.RecordBatch:
        """The rows in these places; nulls for a null."""
        if not self.schema.names:
            return _nulls(self.schema, 0)
        if len(self.pieces) == 1:
            return self.pieces[0].take(at)
        nulls = pc.indices_nonzero(at.is_null())
        parts, places, start = [_nulls(self.schema, len(nulls))], [nulls], 0
        for piece in self.pieces:
            end = start + piece.num_rows
            chosen = pc.and_(pc.greater_equal(at, start), pc.less(at, end))
            parts.append(piece.take(pc.subtract(at.filter(chosen), start)))
            places.append(pc.indices_nonzero(chosen))
            start = end
        return _together(parts).take(pc.array_sort_indices(pa.concat_arrays(places)))


@dataclass
class _Generation:
    """Rows of some keys. length: of all pieces, which may have no columns.

    pieces: the rows, those of a key in one of them. A piece is put together with the one before it, unless that has
        more than twice as many rows, or both had too much text for one array. So there are few pieces, and a row is
        copied a few times in all.
    places: by key the place of its row; if it has not exactly one, ~n, for `several[n]`: the first, and how many.
    times: by key when its rows were read.
    """

    schema: pa.Schema
    pieces: list[pa.RecordBatch] = field(default_factory=list)
    length: int = 0
    places: dict[Any, int] = field(default_factory=dict)
    several: list[tuple[int, int]] = field(default_factory=list)
    times: dict[Any, float] = field(default_factory=dict)
    size: int = 0

    def add(self, keys: Sequence[Any], rows: pa.RecordBatch, counts: Sequence[int], times: Sequence[float]) -> None:
        """rows: of the keys, in their order."""
        for key, n_rows in zip(keys, counts, strict=True):
            if n_rows == 1:
                self.places[key] = self.length
            else:
                self.places[key] = ~len(self.several)
                self.several.append((self.length, n_rows))
            self.length += n_rows
        self.times.update(zip(keys, times, strict=True))
        self.size += int(rows.nbytes) + _ENTRY_BYTES * len(keys)
        if rows.num_rows:
            self.pieces.append(rows)
        while len(self.pieces) > 1 and _are_small(*self.pieces[-2:]):
            self.pieces[-2:] = [_together(self.pieces[-2:])]

    def starts(self) -> list[int]:
        """The place of the first row of each piece."""
        return [0, *itertools.accumulate(piece.num_rows for piece in self.pieces)][:-1]

    def span(self, place: int) -> tuple[int, int]:
        """The first row of a key, and how many there are. place: of the key."""
        return (place, 1) if place >= 0 else self.several[~place]

    def forget(self, until: float) -> None:
        """Forgets what was read until then."""
        for key in [key for key, when in self.times.items() if when <= until]:
            del self.times[key], self.places[key]


class Lookups:
    """A table with its cache. size, age: of the cache, in bytes and seconds. now: a clock."""

    def __init__(self, table: KeyedTable, size: int, age: float, now: Callable[[], float] = time.monotonic) -> None:
        self._queries = LookupQueries(table)
        self._schema, self._size, self._age, self._now = table.schema, size, age, now
        self._young, self._old = self._new(), self._new()
        self._looked = now()  # for what is old

    def _new(self) -> _Generation:
        return _Generation(self._schema)

    def close(self) -> None:
        self._queries.close()

    def ask(self, keys: Sequence[pa.Array]) -> Question:
        """keys: in the table's `key_types`. Raises InvalidArgument."""
        now = self._now()
        self._forget(now)
        codes, distinct = _coded(keys)
        names = _names(distinct)
        places = self._places(names)
        missing: list[int] = []
        if places.null_count:
            lacking = pc.indices_nonzero(places.is_null()).to_pylist()
            missing = [place for place in lacking if names[place] not in self._old.places]
            if len(missing) < len(lacking):
                self._move([names[place] for place in lacking if names[place] in self._old.places])
                places = self._places(names)
        query = None
        if missing:
            at = pa.array(missing, pa.int64())
            query = self._queries.ask([column.take(at) for column in distinct])
        return Question(codes, names, places, missing, query, now)

    def answer(self, question: Question, most: int | None = None) -> Matches:
        """most: matches; rows beyond are not answered, but always one row is. Raises what a query has raised."""
        places, failed = question.places, {}
        if question.query is not None:
            answer = question.query.result()
            names = [question.names[place] for place in question.missing]
            for found in answer.found:
                own = [names[key] for key in found.keys]
                self._young.add(own, found.rows, found.counts, [question.when] * len(own))
            failed = {question.missing[key]: text for key, text in answer.failed.items()}
            places = self._places(question.names)
        matches = self._matches(question.codes, places, failed, most)
        if self._young.size * 2 > self._size:
            self._old = self._young if self._young.size <= self._size else self._new()
            self._young = self._new()
        return matches

    def _forget(self, now: float) -> None:
        """Forgets what gets too old before it is looked for again."""
        step = self._age / _STEPS
        if now - self._looked >= step:
            self._looked = now
            for generation in (self._young, self._old):
                generation.forget(now - self._age + step)

    def _places(self, names: Sequence[Any]) -> pa.Array:
        """Of keys in the young generation."""
        return pa.array(list(map(self._young.places.get, names)), pa.int64())

    def _move(self, keys: Sequence[Any]) -> None:
        """Copies keys to the young generation: those of a piece together, which its text has room for."""
        old = self._old
        starts = old.starts()
        of_pieces: dict[int, list[Any]] = {}
        for key in keys:
            first, _ = old.span(old.places[key])
            of_pieces.setdefault(bisect.bisect_right(starts, first) - 1, []).append(key)
        for piece, own in of_pieces.items():
            spans = [old.span(old.places[key]) for key in own]
            if starts:
                at = [row - starts[piece] for first, n_rows in spans for row in range(first, first + n_rows)]
                rows = old.pieces[piece].take(pa.array(at, pa.int64()))
            else:
                rows = _nulls(old.schema, 0)
            self._young.add(own, rows, [n_rows for _, n_rows in spans], [old.times[key] for key in own])

    def _matches(self, codes: pa.Array, places: pa.Array, failed: dict[int, str], most: int | None) -> Matches:
        young = self._young
        lost = {row: failed[code] for row, code in enumerate(codes.to_pylist()) if code in failed} if failed else {}
        is_few = most is None or len(codes) <= most
        if is_few and not places.null_count and not codes.null_count and pc.min(places).as_py() >= 0:
            return Matches(
                young.schema,
                tuple(young.pieces),
                ordinals(len(codes), type_="int64"),
                places.take(codes),
                lost,
                len(codes),
            )
        offsets = [0]
        rows: list[int] = []
        for place in places.to_pylist():
            if place is not None:
                first, n_rows = young.span(place)
                rows += range(first, first + n_rows)
            offsets.append(len(rows))
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(rows, pa.int64()))
        answered = len(codes)
        if most is not None:
            in_all = pc.cumulative_sum(pc.fill_null(lists.value_lengths().take(codes), 0).cast(pa.int64()))
            answered = max(pc.sum(pc.less_equal(in_all, most), min_count=0).as_py(), min(1, len(codes)))
            lost = {row: text for row, text in lost.items() if row < answered}
        lists = lists.take(codes.slice(0, answered))
        return Matches(
            young.schema, tuple(young.pieces), pc.list_parent_indices(lists), pc.list_flatten(lists), lost, answered
        )


def _are_small(previous: pa.RecordBatch, next: pa.RecordBatch) -> bool:
    return bool(previous.num_rows <= 2 * next.num_rows and previous.nbytes + next.nbytes <= _PIECE_BYTES)


def _together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(chunks) for chunks in columns], schema=batches[0].schema)


def _nulls(schema: pa.Schema, length: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(length, type_) for type_ in schema.types], schema=schema)


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
