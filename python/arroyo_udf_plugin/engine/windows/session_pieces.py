"""The pieces of open sessions: which of them are sessions that are over.

    new pieces ──► recent ──► runs, each sorted by the last times of its pieces
                     ▲          │
                     └──────────┴──► over, or the session goes on

A piece has the first and the last time of rows of its key. Finding the pieces of a key costs a look at all of them, so it
is done for many recent ones at once, when they become a run. Each older piece that belongs to one of their sessions is
told the last time that is known of it then, `until`. A watermark looks at the beginnings of runs alone: a piece whose
`until` it has not passed goes back to the recent ones, with that as its last time. The others are compared with the
recent ones, and are over if those do not go on with them.

A run goes into the next one when few of its pieces are left, or most of them have been continued.

Guarantees: what a watermark costs grows with what it passes and with the recent pieces, not with all that is open. A run
is never changed; pieces that are known to be of one session may be joined when a new run is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from .kept import KeptPart
from .numbering import Numbered, inverse, matching, numbered
from .panes import WAITING_ROWS
from .runs import Run, cuts
from .storage import Some, Storage

FIRST, LAST = pa.field("__first", pa.int64()), pa.field("__last", pa.int64())

Joining = Callable[[pa.RecordBatch, Numbered], pa.RecordBatch]
"""Makes one piece of those that are one session."""


@dataclass(frozen=True)
class Over:
    """Sessions that are over, by their ends. pieces: of all. session: of each piece: 0, 1, ... firsts, lasts: of each
    session. keys: of each session."""

    pieces: pa.RecordBatch
    session: pa.Int64Array
    firsts: pa.Int64Array
    lasts: pa.Int64Array
    keys: Sequence[pa.Array]


class _PieceRun(Run):
    """until: the last time that is known of each piece's session."""

    def __init__(self, storage: Storage, batch: pa.RecordBatch) -> None:
        super().__init__(storage, batch, _lasts)
        self.until = batch.column(LAST.name)

    def rest(self) -> pa.RecordBatch:
        """What has not left, with the last times that are known."""
        return _with_lasts(self.left, self.until.slice(self.start))

    def take_known(self, until: int) -> pa.RecordBatch:
        """As `take`, with the last times that are known."""
        start = self.start
        taken = self.take(until)
        return _with_lasts(taken, self.until.slice(start, len(taken)))

    def mark(self, mask: pa.BooleanArray, until: pa.Int64Array) -> None:
        """mask: which of those that have not left."""
        if len(until):
            known = pc.replace_with_mask(self.until.slice(self.start), mask, until)
            self.until = pa.concat_arrays([self.until.slice(0, self.start), known])

    @property
    def ends(self) -> int:
        """How many of those that have not left are the last ones known of their sessions."""
        last = self.left.column(LAST.name)
        return int(pc.sum(pc.equal(last, self.until.slice(self.start))).as_py() or 0)


class SessionPieces:
    """Of batches that begin with FIRST, LAST, and the keys. join: None: pieces stay apart."""

    def __init__(self, storage: Storage, n_keys: int, gap: int, join: Joining | None) -> None:
        self._storage, self._n_keys, self._gap, self._join = storage, n_keys, gap, join
        self._runs: list[_PieceRun] = []
        self._fresh = _Recent(storage)  # not compared with the runs
        self._moved = _Recent(storage)  # from the runs; what these have of their sessions is in their last times

    def __len__(self) -> int:
        return len(self._fresh) + len(self._moved) + sum(map(len, self._runs))

    def add(self, pieces: pa.RecordBatch) -> None:
        self._fresh.add(pieces)
        self._settle()

    @property
    def first(self) -> int | None:
        """No piece has an earlier last time."""
        recent = [recent.first for recent in (self._fresh, self._moved) if recent.first is not None]
        return min([*recent, *(run.first for run in self._runs)], default=None)

    @property
    def last(self) -> int | None:
        recent = [pc.max(_lasts(batch)).as_py() for batch in (*self._fresh.batches, *self._moved.batches)]
        return max([*recent, *(run.last for run in self._runs)], default=None)

    def cuts(self, until: int) -> Iterator[int]:
        """As `runs.cuts`."""
        return cuts(self._runs, until)

    def parts(self) -> Iterator[tuple[KeptPart, bytes | None]]:
        """Each with a 1 for each piece that has left; None: none has."""
        for run in self._runs:
            yield run.part, run.notes()
        yield from ((part, None) for part in (*self._fresh.parts, *self._moved.parts))

    # ---- What is over ----

    def take(self, until: int) -> Over | None:
        """The sessions whose last times are before this one; they are not here any more. None: there are none."""
        self._settle()
        passed = [self._passed(run, until) for run in self._runs if run.first < until]
        self._drop_empty()
        fresh = self._fresh.take(until)
        candidates = [batch for batch in (*passed, *fresh, *self._moved.take(until)) if len(batch)]
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
            self._moved.add(_with_lasts(pieces.take(numbers.order.filter(goes_on)), lasts))
        if not is_over.true_count:
            return None
        sessions = pc.indices_nonzero(is_over)
        sessions = sessions.take(pc.sort_indices(numbers.lasts.take(sessions)))
        number = pc.index_in(numbers.session.filter(piece_is_over), sessions.cast(pa.int64())).cast(pa.int64())
        starts = numbers.order.take(numbers.starts.take(sessions))
        return Over(
            pieces.take(numbers.order.filter(piece_is_over)),
            number,
            numbers.firsts.take(sessions),
            numbers.lasts.take(sessions),
            [key.take(starts) for key in self._keys(pieces)],
        )

    def _passed(self, run: _PieceRun, until: int) -> pa.RecordBatch:
        """What leaves a run, without the pieces that are known to go on."""
        taken = run.take_known(until)
        goes_on = pc.greater_equal(_lasts(taken), until)
        if not goes_on.true_count:
            return taken
        self._moved.add(taken.filter(goes_on))
        return taken.filter(pc.invert(goes_on))

    def _others(self, pieces: pa.RecordBatch, fresh: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Those that these may go on with. fresh: which of these are."""
        recent = [*self._fresh.batches, *self._moved.batches]
        others = self._of_keys(pieces, recent)
        if fresh:
            others += self._of_keys(concatenated(fresh), [run.rest() for run in self._runs])
        return others

    def _of_keys(self, pieces: pa.RecordBatch, others: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        keys = self._keys(pieces)
        found = [other.filter(matching(keys, self._keys(other), len(other))) for other in others]
        return [some for some in found if len(some)]

    # ---- Runs ----

    def _settle(self) -> None:
        """Makes a run of the recent pieces, if there are many."""
        if len(self._fresh) + len(self._moved) < WAITING_ROWS:
            return
        recent = concatenated([*self._fresh.batches, *self._moved.batches])
        keys = self._keys(recent)
        n_bounds = 2 + self._n_keys
        rests = [run.rest().select(range(n_bounds)) for run in self._runs]
        masks = [matching(keys, self._keys(rest), len(rest)) for rest in rests]
        found = [rest.filter(mask) for rest, mask in zip(rests, masks, strict=True)]
        numbers = self._numbered(concatenated([recent.select(range(n_bounds)), *found]))
        lasts = numbers.lasts.take(numbers.session).take(inverse(numbers.order))
        start = len(recent)
        for run, mask, some in zip(self._runs, masks, found, strict=True):
            run.mark(mask, lasts.slice(start, len(some)))
            start += len(some)
        pieces = [_with_lasts(recent, lasts.slice(0, len(recent))), *self._given_up()]
        self._fresh.clear()
        self._moved.clear()
        self._add_run(pieces)

    def _given_up(self) -> list[pa.RecordBatch]:
        """The rests of runs that are small, or most of which has been continued."""
        useless = {
            run
            for run in self._runs
            if 4 * len(run) < WAITING_ROWS or (self._join is not None and 4 * run.ends < len(run))
        }
        rests = [run.rest() for run in useless]
        for run in useless:
            run.clear()
        self._runs = [run for run in self._runs if run not in useless]
        return rests

    def _add_run(self, pieces: Sequence[pa.RecordBatch]) -> None:
        together = concatenated(pieces)
        if self._join is not None and len(pieces) > 1:
            together = self._join(together, self._numbered(together))
        self._runs.append(_PieceRun(self._storage, together.take(pc.sort_indices(_lasts(together)))))

    def _drop_empty(self) -> None:
        for run in self._runs:
            if not len(run):
                run.clear()
        self._runs = [run for run in self._runs if len(run)]

    # ---- Numbers ----

    def _keys(self, pieces: pa.RecordBatch) -> list[pa.Array]:
        return pieces.columns[2 : 2 + self._n_keys]

    def _numbered(self, pieces: pa.RecordBatch) -> Numbered:
        return numbered(self._keys(pieces), pieces.column(0), _lasts(pieces), self._gap)


class _Recent:
    """Pieces in any order. first: none has an earlier last time; None: there are none."""

    def __init__(self, storage: Storage) -> None:
        self._some = Some(storage)
        self.clear()

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
        self._length = 0
        self.first: int | None = None


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
