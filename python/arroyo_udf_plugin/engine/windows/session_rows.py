"""The rows of open sessions, each with the number of its session.

Sessions that turn out to be one get one number. Rows are not written again for that: it is noted that their number
means another one. Nor are they for each session that leaves: only when half of a batch has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from .storage import Some, Storage

SESSION = pa.field("__session", pa.int64())
Chosen = tuple[pa.Int64Array, pa.RecordBatch]
"""Rows of sessions that were asked for, and for each the place of its session among these."""


@dataclass
class _Chunk:
    """rows: each with its number first. total: of them. open: how many of them have not left."""

    rows: Some
    total: int
    open: int


class SessionRows:
    """schema: of the rows."""

    def __init__(self, schema: pa.Schema, storage: Storage) -> None:
        self._schema, self._storage = pa.schema([SESSION, *schema]), storage
        self._chunks: list[_Chunk] = []
        self._next = 0
        self._was = self._is = pa.array([], SESSION.type)  # numbers that mean another one, and that one

    def add(self, session: pa.Int64Array, columns: Sequence[pa.Array], n_sessions: int) -> pa.Int64Array:
        """session: of each row, from 0 on. Returns their numbers."""
        numbers = pc.add(session, self._next)
        chunk = _Chunk(Some(self._storage), len(session), len(session))
        chunk.rows.add(pa.RecordBatch.from_arrays([numbers, *columns], schema=self._schema))
        self._chunks.append(chunk)
        sessions = pa.array(range(self._next, self._next + n_sessions), SESSION.type)
        self._next += n_sessions
        return sessions

    def join(self, was: pa.Int64Array, is_: pa.Int64Array) -> None:
        """From now on these numbers mean those."""
        self._is = _translated(self._is, was, is_)
        differs = pc.not_equal(was, is_)
        self._was = pa.concat_arrays([self._was, was.filter(differs)])
        self._is = pa.concat_arrays([self._is, is_.filter(differs)])

    @property
    def open(self) -> int:
        """How many there are."""
        return sum(chunk.open for chunk in self._chunks)

    def asked(self, sessions: pa.Int64Array) -> tuple[list[pa.RecordBatch], Callable[[pa.RecordBatch], Chosen]]:
        """What may have rows of these sessions, and what chooses these rows from it: whatever happens here meanwhile,
        those of now."""
        batches = [rows for chunk in self._chunks for rows in chunk.rows.batches]
        return batches, partial(_chosen, *self._numbers_of(sessions))

    def take_out(self, sessions: pa.Int64Array, left: pa.Int64Array) -> list[Chosen]:
        """The rows of these sessions, which are not here any more. left: all sessions that are."""
        chunks = list(self._chunks_of(sessions))
        is_open = pc.is_in(self._is, left)
        self._was, self._is = self._was.filter(is_open), self._is.filter(is_open)
        for chunk, _, taken in chunks:
            chunk.open -= taken.num_rows
        known = pa.concat_arrays([left, self._was])
        for chunk in self._chunks:
            if 2 * chunk.open < chunk.total:
                open_ = [rows.filter(pc.is_in(rows.column(0), known)) for rows in chunk.rows.batches if chunk.open]
                chunk.rows.replace(open_)
                chunk.total = chunk.open
        self._chunks = [chunk for chunk in self._chunks if chunk.open]
        return [(places, rows) for _, places, rows in chunks]

    def _chunks_of(self, sessions: pa.Int64Array) -> Iterator[tuple[_Chunk, pa.Int64Array, pa.RecordBatch]]:
        numbers = self._numbers_of(sessions)
        for chunk in self._chunks:
            for rows in chunk.rows.batches:
                places, chosen = _chosen(*numbers, rows)
                if chosen.num_rows:
                    yield chunk, places, chosen

    def _numbers_of(self, sessions: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array]:
        """Their numbers, and for each the place of its session among these."""
        is_alias = pc.is_in(self._is, sessions)
        known = pa.concat_arrays([sessions, self._was.filter(is_alias)])
        return known, pc.index_in(pa.concat_arrays([sessions, self._is.filter(is_alias)]), sessions).cast(pa.int64())


def _chosen(known: pa.Int64Array, places: pa.Int64Array, rows: pa.RecordBatch) -> Chosen:
    at = pc.index_in(rows.column(0), known)
    return places.take(at.drop_null()), rows.filter(at.is_valid()).remove_column(0)


def _translated(numbers: pa.Int64Array, was: pa.Int64Array, is_: pa.Int64Array) -> pa.Int64Array:
    return pc.coalesce(is_.take(pc.index_in(numbers, was)), numbers)
