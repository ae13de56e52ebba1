"""The pieces of open sessions: which of them are sessions that are over.

    new pieces ──► recent ──► runs, each sorted by the last times of its pieces
                     ▲          │
                     └──────────┴──► over, or continued by recent ones

A piece has the first and the last time of rows of its key. To find the pieces of a key, all have to be looked at. So it
is done for many recent ones at once, when they become a run: all pieces with their keys go into it, and those of one
session get the last time of the session. The pieces of a session are then in one run, and leave it together. A
watermark looks only at the beginnings of runs, and compares what it finds there with the recent pieces. What these
continue becomes recent again, with the last time that is known now.

Guarantees: what a watermark costs grows with what it passes and with the recent pieces, not with all that is open. The
batch of a run is never changed: which of its pieces are not in it any more, is noted beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from .kept import KeptPart, noted
from .numbering import Numbered, matching, numbered
from .panes import WAITING_ROWS
from .runs import Run, cuts
from .storage import Some, Storage

FIRST, LAST = pa.field("__first", pa.int64()), pa.field("__last", pa.int64())

Joining = Callable[[pa.RecordBatch, Numbered], pa.RecordBatch]
"""Makes one piece of those that are one session."""


@dataclass(frozen=True)
class OverSessions:
    """Sessions that are over, by their ends. pieces: of all. session: of each piece: 0, 1, ... firsts, lasts: of each
    session. keys: of each session."""

    pieces: pa.RecordBatch
    session: pa.Int64Array
    firsts: pa.Int64Array
    lasts: pa.Int64Array
    keys: Sequence[pa.Array]


class _PieceRun(Run):
    """gone: which pieces are in another run now; None: none of them."""

    def __init__(self, storage: Storage, batch: pa.RecordBatch) -> None:
        super().__init__(storage, batch, _lasts)
        self.gone: pa.BooleanArray | None = None

    @property
    def rest(self) -> pa.RecordBatch:
        """What has not left."""
        return self._without_gone(self.left, self.start)

    def passed(self, until: int) -> pa.RecordBatch:
        """What has its last time before this one, and leaves."""
        start = self.start
        return self._without_gone(self.take(until), start)

    def _without_gone(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        return batch if self.gone is None else batch.filter(pc.invert(self.gone.slice(start, len(batch))))

    def those(self, mask: pa.BooleanArray, are_taken: bool) -> pa.RecordBatch:
        """Of what `left` gives, without what is gone. are_taken: they leave."""
        if self.gone is not None:
            mask = pc.and_not(mask, self.gone.slice(self.start))
        if are_taken and mask.true_count:
            gone = pa.concat_arrays([pa.repeat(pa.scalar(False), self.start), mask])
            self.gone = gone if self.gone is None else pc.or_(self.gone, gone)
        return self.left.filter(mask)

    def notes(self) -> bytes | None:
        """Also of those that are gone."""
        if self.gone is None:
            return super().notes()
        return bytes([1]) * self.start + noted(self.gone.slice(self.start))

    def halved(self) -> _PieceRun:
        """Another one of what has not left, if that is less than half."""
        if 2 * self.n_rest > len(self):
            return self
        run = _PieceRun(self._storage, self.rest)
        self.clear()
        return run

    @property
    def n_rest(self) -> int:
        return len(self) - (0 if self.gone is None else self.gone.slice(self.start).true_count)


class SessionPieces:
    """Of batches that begin with FIRST, LAST, and the keys. join: None: pieces stay apart."""

    def __init__(self, storage: Storage, n_keys: int, gap: int, join: Joining | None) -> None:
        self._storage, self._n_keys, self._gap, self._join = storage, n_keys, gap, join
        self._runs: list[_PieceRun] = []
        self._fresh = _Recent(storage)  # not compared with the runs
        self._continued = _Recent(storage)  # from the runs, by fresh ones; others that are, too

    def add(self, pieces: pa.RecordBatch) -> None:
        self._fresh.add(pieces)
        self._settle()

    @property
    def first(self) -> int | None:
        """No piece has an earlier last time."""
        recent = [recent.first for recent in (self._fresh, self._continued) if recent.first is not None]
        return min([*recent, *(run.first for run in self._runs)], default=None)

    @property
    def last(self) -> int | None:
        recent = [pc.max(_lasts(batch)).as_py() for batch in (*self._fresh.batches, *self._continued.batches)]
        return max([*recent, *(run.last for run in self._runs)], default=None)

    def cuts(self, until: int) -> Iterator[int]:
        """As `runs.cuts`."""
        return cuts(self._runs, until)

    def parts(self) -> Iterator[tuple[KeptPart, bytes | None]]:
        """Each with a 1 for each piece that has left; None: none has."""
        for run in self._runs:
            yield run.part, run.notes()
        yield from ((part, None) for part in (*self._fresh.parts, *self._continued.parts))

    # ---- What is over ----

    def take(self, until: int) -> OverSessions | None:
        """The sessions whose last times are before this one; they are not here any more. None: there are none."""
        self._settle()
        passed = [run.passed(until) for run in self._runs if run.first < until]
        self._drop([run for run in self._runs if not run.n_rest])
        fresh = self._fresh.take(until)
        candidates = [batch for batch in (*passed, *fresh, *self._continued.take(until)) if len(batch)]
        if not candidates:
            return None
        pieces = concatenated(candidates)
        n_candidates = len(pieces)
        pieces = concatenated([pieces, *self._others(pieces, fresh)])
        numbers = self._numbered(pieces)
        is_over = pc.less(numbers.lasts, until)
        piece_is_over = is_over.take(numbers.session)
        goes_on = pc.and_not(pc.less(numbers.order, n_candidates), piece_is_over)
        if goes_on.true_count:
            lasts = numbers.lasts.take(numbers.session.filter(goes_on))
            self._continued.add(_with_lasts(pieces.take(numbers.order.filter(goes_on)), lasts))
        if not is_over.true_count:
            return None
        sessions = pc.indices_nonzero(is_over)
        sessions = sessions.take(pc.sort_indices(numbers.lasts.take(sessions)))
        number = pc.index_in(numbers.session.filter(piece_is_over), sessions.cast(pa.int64())).cast(pa.int64())
        starts = numbers.order.take(numbers.starts.take(sessions))
        return OverSessions(
            pieces.take(numbers.order.filter(piece_is_over)),
            number,
            numbers.firsts.take(sessions),
            numbers.lasts.take(sessions),
            [key.take(starts) for key in self._keys(pieces)],
        )

    def _others(self, pieces: pa.RecordBatch, fresh: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Those that these may go on with. fresh: which of these are."""
        recent = [*self._fresh.batches, *self._continued.batches]
        masks = self._masks(pieces, recent)
        others = [batch.filter(mask) for batch, mask in zip(recent, masks, strict=True)]
        if fresh:
            others += self._of_runs(concatenated(fresh))
        return [some for some in others if len(some)]

    def _of_runs(self, pieces: pa.RecordBatch, are_taken: bool = False) -> list[pa.RecordBatch]:
        """Those with their keys. are_taken: they leave."""
        masks = self._masks(pieces, [run.left for run in self._runs])
        return [run.those(mask, are_taken) for run, mask in zip(self._runs, masks, strict=True)]

    def _masks(self, pieces: pa.RecordBatch, others: Sequence[pa.RecordBatch]) -> Iterator[pa.BooleanArray]:
        """Which of the others have keys of these pieces."""
        if not others:
            return
        if self._n_keys:
            mask = matching(self._keys(pieces), [self._keys(other) for other in others])
        else:
            mask = pa.repeat(pa.scalar(True), sum(map(len, others)))
        start = 0
        for other in others:
            yield mask.slice(start, len(other))
            start += len(other)

    # ---- Runs ----

    def _settle(self) -> None:
        """Makes a run of the recent pieces, if there are many."""
        if len(self._fresh) + len(self._continued) < WAITING_ROWS:
            return
        recent = concatenated([*self._fresh.batches, *self._continued.batches])
        found = self._of_runs(recent, are_taken=True)
        small = [run for run in self._runs if 4 * run.n_rest < WAITING_ROWS]
        pieces = concatenated([recent, *found, *(run.rest for run in small)])
        self._drop(small)
        self._runs = [run.halved() for run in self._runs]
        self._fresh.clear()
        self._continued.clear()
        numbers = self._numbered(pieces)
        if self._join is not None and len(pieces) > 2 * len(numbers.starts):
            pieces = self._join(pieces, numbers)
            order = pc.sort_indices(numbers.lasts)
            lasts = numbers.lasts.take(order)
        else:
            lasts = numbers.lasts.take(numbers.session)
            by_last = pc.sort_indices(lasts)
            lasts, order = lasts.take(by_last), numbers.order.take(by_last)
        self._runs.append(_PieceRun(self._storage, _with_lasts(pieces.take(order), lasts)))

    def _drop(self, runs: Sequence[_PieceRun]) -> None:
        for run in runs:
            run.clear()
            self._runs.remove(run)

    # ---- Numbers ----

    def _keys(self, pieces: pa.RecordBatch) -> Sequence[pa.Array]:
        return [pieces.column(place) for place in range(2, 2 + self._n_keys)]

    def _numbered(self, pieces: pa.RecordBatch) -> Numbered:
        return numbered(self._keys(pieces), pieces.column(0), _lasts(pieces), self._gap)


class _Recent:
    """Pieces in any order. first: none has an earlier last time; None: there are none."""

    def __init__(self, storage: Storage) -> None:
        self._some = Some(storage)
        self._length = 0
        self.first: int | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def batches(self) -> list[pa.RecordBatch]:
        return self._some.batches

    @property
    def parts(self) -> list[KeptPart]:
        return self._some.parts

    def add(self, pieces: pa.RecordBatch) -> None:
        self._some.add(pieces)
        self._length += len(pieces)
        first = pc.min(_lasts(pieces)).as_py()
        self.first = first if self.first is None else min(first, self.first)

    def take(self, until: int) -> list[pa.RecordBatch]:
        """Those whose last times are before this one."""
        if self.first is None or self.first >= until:
            return []
        masks = [pc.less(_lasts(batch), until) for batch in self.batches]
        pairs = list(zip(self.batches, masks, strict=True))
        self.clear()
        for batch, mask in pairs:
            if mask.false_count:
                self.add(batch.filter(pc.invert(mask)) if mask.true_count else batch)
        return [batch.filter(mask) for batch, mask in pairs if mask.true_count]

    def clear(self) -> None:
        self._some.clear()
        self._length, self.first = 0, None


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """At least one, as one. Raises ArrowInvalid if its texts are more than 2 GiB."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(column) for column in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def _lasts(pieces: pa.RecordBatch) -> pa.Int64Array:
    return pieces.column(1)


def _with_lasts(pieces: pa.RecordBatch, lasts: pa.Int64Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pieces.column(0), lasts, *pieces.columns[2:]], schema=pieces.schema)
