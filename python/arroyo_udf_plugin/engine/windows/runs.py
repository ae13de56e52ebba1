"""Rows sorted by a time, of which the first ones leave.

    sorted_ = SortedRuns(storage, times)         times: of a batch
    sorted_.add(batch)                           rows of any times
    sorted_.take(until)                          those before that time; they are not here any more
    for until in cuts(sorted_.before(until), until): ...

Rows wait until there are many, and are sorted then. Such a run is never written again: which row is the first one that
has not left, is noted beside it. When more than half of it has left, the others are copied, which frees its memory.

Guarantees: what adding and taking costs does not depend on how many times there are, nor on how far they are apart.
Rows of one time are taken in the order in which they have come.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from .kept import KeptPart, PartPlace
from .panes import WAITING_ROWS
from .storage import Some, Storage

Times = Callable[[pa.RecordBatch], pa.Int64Array]


class Run:
    """A batch that is sorted by its times. start: those in front of it have left."""

    def __init__(
        self, storage: Storage, batch: pa.RecordBatch, times: Times, start: int = 0, place: PartPlace | None = None
    ) -> None:
        """place: where a checkpoint has the batch."""
        self._storage, self._times = storage, times
        self._some = Some(storage)
        self._some.add(batch, place)
        self._length: int = batch.num_rows
        self.start = start
        self.first, self.last = self._at(start), self._at(self._length - 1)

    def __len__(self) -> int:
        """Of what has not left."""
        return self._length - self.start

    @property
    def batch(self) -> pa.RecordBatch:
        (batch,) = self._some.batches
        return batch

    @property
    def part(self) -> KeptPart:
        (part,) = self._some.parts
        return part

    def notes(self) -> bytes | None:
        """A 1 for each row that has left; None: none has."""
        return bytes([1]) * self.start + bytes(len(self)) if self.start else None

    @property
    def left(self) -> pa.RecordBatch:
        return self.batch.slice(self.start) if self.start else self.batch

    def _at(self, place: int) -> int:
        return int(self._times(self.batch.slice(place, 1))[0].as_py())

    def place(self, until: int) -> int:
        """Of the first row that is not before this time."""
        if until > self.last:
            return self._length
        place: int = bisect.bisect_left(range(self._length), until, self.start, key=self._at)
        return place

    def take(self, until: int) -> pa.RecordBatch:
        """What is before this time, and leaves."""
        start, self.start = self.start, self.place(until)
        batch = self.batch
        taken = batch.slice(start, self.start - start)
        if self.start < self._length:
            self.first = self._at(self.start)
        return taken

    def halved(self) -> Run:
        """Another one without what has left, if that is more than half."""
        if not len(self) or 2 * len(self) > self._length:
            return self
        rest = Run(self._storage, self.left, self._times)
        self.clear()
        return rest

    def samples(self, every: int, until: int) -> Iterator[int]:
        """Times behind which so many more rows have come, each time."""
        return (self._at(place) + 1 for place in range(self.start + every - 1, self.place(until), every))

    def clear(self) -> None:
        self._some.clear()


def cuts(runs: Iterable[Run], until: int) -> Iterator[int]:
    """Times up to that one, with not many more rows between two of them than a query needs to pay."""
    concerned = [run for run in runs if run.first < until]
    every = max(1, WAITING_ROWS // max(1, len(concerned)))
    samples = sorted(time for run in concerned for time in run.samples(every, until))
    several = max(1, WAITING_ROWS // every)
    at = None
    for time in samples[several - 1 :: several]:
        if time < until and time != at:
            yield time
            at = time
    yield until


class SortedRuns:
    """times: the times of a batch, in nanoseconds."""

    def __init__(self, storage: Storage, times: Times) -> None:
        self._storage, self.times = storage, times
        self._runs: list[Run] = []
        self._waiting = Some(storage)
        self._waiting_rows = 0
        self._waiting_first: int | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        self._waiting.add(rows)
        self._waiting_rows += rows.num_rows
        first = pc.min(self.times(rows)).as_py()
        self._waiting_first = first if self._waiting_first is None else min(first, self._waiting_first)
        if self._waiting_rows >= WAITING_ROWS:
            self._sort()

    def _sort(self) -> None:
        """What waits, and small runs before it."""
        batches = self._waiting.batches
        n_rows = self._waiting_rows
        while self._runs and len(self._runs[-1]) < min(2 * n_rows, WAITING_ROWS):
            run = self._runs.pop()
            batches.insert(0, run.left)
            n_rows += len(run)
            run.clear()
        rows = pa.Table.from_batches(batches).combine_chunks()
        times = pa.chunked_array([self.times(batch) for batch in rows.to_batches()])
        for batch in rows.take(pc.sort_indices(times)).combine_chunks().to_batches():
            self._runs.append(Run(self._storage, batch, self.times))
        self._waiting.clear()
        self._waiting_rows, self._waiting_first = 0, None

    def before(self, until: int) -> list[Run]:
        """What has rows before this time."""
        if self._waiting_first is not None and self._waiting_first < until:
            self._sort()
        return [run for run in self._runs if run.first < until]

    def take(self, until: int) -> list[pa.RecordBatch]:
        taken = [run.take(until) for run in self.before(until)]
        if taken:
            for run in self._runs:
                if not len(run):
                    run.clear()
            self._runs = [run.halved() for run in self._runs if len(run)]
        return taken

    @property
    def last(self) -> int | None:
        """The latest time of a row."""
        waiting = [pc.max(self.times(batch)).as_py() for batch in self._waiting.batches]
        return max([*waiting, *(run.last for run in self._runs)], default=None)

    def parts(self) -> Iterator[tuple[KeptPart, bytes | None]]:
        """Each with a 1 for each row that has left; None: none has."""
        for run in self._runs:
            yield run.part, run.notes()
        yield from ((part, None) for part in self._waiting.parts)

    def restore(self, rows: pa.RecordBatch, n_gone: int, place: PartPlace | None) -> None:
        """Before all others, in the order of `parts`. rows: of a part, of which so many have left. place: where a
        checkpoint has it."""
        times = self.times(rows)
        if pc.all(pc.less_equal(times[:-1], times[1:])).as_py() is not False and rows.num_rows > n_gone:
            if self._waiting_rows:  # they have come before
                self._sort()
            self._runs.append(Run(self._storage, rows, self.times, n_gone, place))
        elif rows.num_rows > n_gone:
            self.add(rows.slice(n_gone))
