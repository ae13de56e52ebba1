"""The latest results of keys, and how they change.

    updated = UpdatedKeys(UpdatingRows(...), schema)
    updated.add(rows)
    for step in updated.close(): ...        a change of each key whose result is another one than before

Of each key, what its aggregates are made of is kept (partials.py), and when it had its latest row. A key that changes
gets a new row, and its old one is noted as gone; when more rows have gone than are there, the others are written anew.
So a checkpoint writes only what is new.

    op   before   after
    c    null     a row    the key is new, or passes HAVING for the first time
    u    a row    a row    another result than before
    d    a row    null     it no longer passes HAVING, has had no row for `ttl`, or all of its rows have gone

Guarantees: the changes of a key follow from each other: what is before one of them is what was after the one before it.
A result that stays the same makes no change. After a `d` of a key that is forgotten, its next row begins anew.
Assumes: a hash of 128 bits is not the same for two keys. For each key, an entry of about 150 bytes is in memory; what
is kept of it may be in files. Time is that of the machine's clock; if that goes back, keys are known for longer.
"""

from __future__ import annotations

import bisect
import collections
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import decoded, plain_field
from ..datafusion.query import WrongQuery
from .grouping import GroupingPlan
from .kept import KeptRows
from .keyed_rows import one_batch
from .result_changes import ResultChanges, SelectedResults
from .results import Step
from .row_hashes import KeyHashes
from .storage import Storage, StorageLimits
from .timed_rows import Bucket
from .updating_rows import UpdatingRows

_AT = pa.field("__at", pa.timestamp("ns"))
_MOST_GONE = 16_384


class UpdatedKeys:
    """schema: of the changes. kept_schema: of what `kept` gives. meanings: see `GroupingPlan`. watermark, closed: it
    has none."""

    def __init__(
        self,
        asked: UpdatingRows,
        given: pa.Schema,
        limits: StorageLimits = StorageLimits(),  # noqa: B008 (frozen)
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """given: of the rows. Raises WrongQuery."""
        self._given = pa.schema([plain_field(field) for field in given])
        self._plan = GroupingPlan(asked, self._given, [])
        for name in self._plan.in_rows:
            raise WrongQuery(
                "this aggregate would need all rows of a key for ever: write count, sum, min, max, avg, bool_and, "
                "bool_or, or an aggregate of a plugin, without DISTINCT and ORDER BY",
                name,
            )
        if _AT.name in asked.keys:
            raise WrongQuery(f"a column has the name {_AT.name}, which updates need: rename it", _AT.name)
        self._needed = [self._given.get_field_index(name) for name in self._plan.needed]
        self._hashed = KeyHashes(self._plan.kept.field(name) for name in asked.keys)
        self._results = SelectedResults(asked.selects, self._plan.schema)
        self._changes = ResultChanges(self._results.schema, asked.as_rows)
        self.schema = self._changes.schema
        self.kept_schema = pa.schema([*self._plan.kept, _AT])
        self.meanings = self._plan.meanings
        self.watermark: int | None = None
        self.closed: int | None = None
        self._ttl, self._clock, self._latest = asked.ttl, clock, 0
        self._storage = Storage(limits)
        self._waiting: list[pa.RecordBatch] = []
        self._begin()

    def _begin(self) -> None:
        self._rows = Bucket(self._storage)
        self._places: dict[bytes, int] = {}  # the row of each key
        self._runs: collections.deque[tuple[int, int, int]] = (
            collections.deque()
        )  # rows of one time, the earliest first

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> None:
        """As of `panes.Windows`: none is."""

    def add(self, rows: pa.RecordBatch) -> None:
        """They count with the next `close`."""
        columns = [decoded(rows.column(place)) for place in self._needed]
        self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=self._plan.fed))

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The changes since the latest one, in one step."""
        self._latest = now = max(self._latest, self._clock())
        waiting, self._waiting = self._waiting, []
        changes = list(self._forgotten(now))
        if waiting:
            changes += self._changed(waiting, now)
        self._clear_up()
        if changes:
            yield changes

    def _forgotten(self, now: int) -> Iterator[pa.RecordBatch]:
        """Of keys that have had no row for too long."""
        places: list[int] = []
        while self._ttl is not None and self._runs and self._runs[0][0] + self._ttl <= now:
            _, first, end = self._runs.popleft()
            notes = self._rows.notes(first, end - first)
            places += [first + place for place, is_gone in enumerate(notes) if not is_gone]
        if not places:
            return
        rows = self._at(sorted(places))
        gone = self._hashed.of(rows)
        for key in gone:
            self._rows.note(self._places.pop(key))
        results, own = self._results.of(self._answers(rows, gone))
        yield from self._changes.of(results, results, [(place, None) for place in own.values()])

    def _changed(self, waiting: Sequence[pa.RecordBatch], now: int) -> Iterator[pa.RecordBatch]:
        parts = list(map(self._kept, self._plan.parts.of_one(waiting)))
        keys = [key for batch in parts for key in self._hashed.of(batch)]
        known = sorted(self._places[key] for key in keys if key in self._places)
        before = self._at(known)
        after = parts
        if known:
            merged = self._plan.merged.of_one([batch.select(self._plan.kept.names) for batch in (*parts, before)])
            after = list(map(self._kept, merged))
        new = self._without_empty(one_batch([self._timed(batch, now) for batch in after], self.kept_schema))
        new_keys, old_keys = self._hashed.of(new), self._hashed.of(before)
        for key in old_keys:
            self._rows.note(self._places.pop(key))
        self._keep(new, new_keys, now)
        old_results, old_places = self._results.of(self._answers(before, old_keys))
        new_results, new_places = self._results.of(self._answers(new, new_keys))
        old = {key: old_places.get(place) for place, key in enumerate(old_keys)}
        pairs = [(old.pop(key, None), new_places.get(place)) for place, key in enumerate(new_keys)]
        yield from self._changes.of(old_results, new_results, [*pairs, *((place, None) for place in old.values())])

    def _without_empty(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Without keys all rows of which have gone."""
        count = self._plan.count
        return rows if count is None else rows.filter(pc.greater(rows.column(count), 0))

    def _keep(self, rows: pa.RecordBatch, keys: Sequence[bytes], now: int) -> None:
        first = len(self._rows)
        if not rows.num_rows:
            return
        self._rows.add(rows, bytes(rows.num_rows))
        if self._ttl is not None:
            self._runs.append((now, first, first + rows.num_rows))
        self._places.update(zip(keys, itertools.count(first), strict=False))

    def _answers(self, rows: pa.RecordBatch, keys: Sequence[bytes]) -> pa.RecordBatch:
        """Keys and aggregates, in the order of these rows. keys: theirs."""
        kept = rows.select(self._plan.kept.names)
        answers = one_batch(self._plan.result.of_one([kept]) if kept.num_rows else [], self._plan.schema)
        own = self._hashed.of(answers)
        if own == keys:
            return answers
        places = {key: place for place, key in enumerate(own)}
        return answers.take(pa.array([places[key] for key in keys], pa.int64()))

    # ---- What is kept ----

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(batch.columns, schema=self._plan.kept)

    def _timed(self, batch: pa.RecordBatch, now: int) -> pa.RecordBatch:
        at = pa.repeat(pa.scalar(now, _AT.type), batch.num_rows)
        return pa.RecordBatch.from_arrays([*batch.columns, at], schema=self.kept_schema)

    def _at(self, places: Sequence[int]) -> pa.RecordBatch:
        """places: rising."""
        taken, start = [], 0
        for first, part in self._rows.parts() if places else ():
            end = bisect.bisect_left(places, first + part.batch.num_rows, start)
            if end > start:
                own = pa.array([place - first for place in places[start:end]], pa.int64())
                taken.append(part.batch.take(own))
            start = end
        return one_batch(taken, self.kept_schema)

    def _clear_up(self) -> None:
        """Writes anew what is there, if most of it has gone."""
        if len(self._rows) <= 2 * len(self._places) + _MOST_GONE:
            return
        rows = self._rows
        kept = [KeptRows(part, notes=rows.notes(first, part.batch.num_rows)).left for first, part in rows.parts()]
        self._begin()
        for batch in kept:
            self._take_up(batch, bytes(batch.num_rows))
        self._sort_runs()
        rows.some.clear()

    def _take_up(self, rows: pa.RecordBatch, notes: bytes, one: KeptRows | None = None) -> None:
        """one: what a checkpoint had of them."""
        first = len(self._rows)
        if not rows.num_rows:
            return
        self._rows.add(rows, notes, None if one is None else one.place_of(rows))
        for place, key in enumerate(self._hashed.of(rows)):
            if not notes[place]:
                self._places[key] = first + place
        runs = pc.run_end_encode(rows.column(_AT.name).cast(pa.int64()))
        start = 0
        for end, at in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            self._runs.append((at, first + start, first + end))
            self._latest, start = max(self._latest, at), end

    def _sort_runs(self) -> None:
        self._runs = collections.deque(sorted(self._runs))

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        """No rows wait: their changes have left, or they are kept before they come here."""
        assert not self._waiting
        for first, part in self._rows.parts():
            yield KeptRows(part, notes=self._rows.notes(first, part.batch.num_rows))

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows."""
        for one in kept:
            notes = one.notes
            if notes is None or notes.count(1) * 2 > one.num_rows:
                rows = one.left
                self._take_up(rows, bytes(rows.num_rows), one)
            else:
                self._take_up(one.rows, notes, one)
        self._sort_runs()

    @property
    def size(self) -> int:
        """The bytes of what is kept."""
        return self._storage.memory + self._storage.disk
