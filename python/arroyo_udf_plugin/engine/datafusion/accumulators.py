"""Aggregates of plugins as aggregates of DataFusion, which has an object for each group.

    accumulators = Accumulators(steps); accumulators.new()      update(arrays), merge(states), state(), evaluate()

DataFusion calls these objects one by one. What they are given waits until there are enough rows, and then one call of
the plugin is for all groups. So what is kept of a group is its state, however many rows it has.

Guarantees: several threads may have groups of one query. A group that fails ends the query.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from ...errors import RowError
from .aggregates import Steps

_WAITING_ROWS = 1 << 16


class Accumulators:
    """The groups of one aggregate in a query."""

    def __init__(self, steps: Steps) -> None:
        self._steps, self._aggregate = steps, steps.aggregate
        self._lock = threading.Lock()
        self._groups = weakref.WeakSet[GroupAccumulator]()
        self._kept = pa.nulls(1, self._aggregate.state)  # states of groups, and of some that have others now
        self._rows: dict[GroupAccumulator, list[Sequence[pa.Array]]] = {}  # that wait
        self._states: dict[GroupAccumulator, list[pa.Array]] = {}  # that wait to be merged
        self._waiting = 0
        self._changed = weakref.WeakSet[GroupAccumulator]()  # those whose values are not known

    def new(self) -> GroupAccumulator:
        """A group without rows."""
        group = GroupAccumulator(self)
        with self._lock:
            self._groups.add(group)
        return group

    def update(self, group: GroupAccumulator, arrays: Sequence[pa.Array]) -> None:
        with self._lock:
            self._rows.setdefault(group, []).append(arrays)
            self._wait(group, len(arrays[0]))

    def merge(self, group: GroupAccumulator, states: pa.Array) -> None:
        with self._lock:
            self._states.setdefault(group, []).append(states)
            self._wait(group, len(states))

    def state(self, group: GroupAccumulator) -> pa.Scalar:
        with self._lock:
            self._settle(group)
            return self._kept[group.place]

    def value(self, group: GroupAccumulator) -> pa.Scalar:
        """It may be found with those of other groups, as long as none of these fails."""
        with self._lock:
            self._settle(group)
            if group in self._changed or group.value is None:
                others = (other for other in self._changed if not self._is_waiting(other))
                groups = list({group: None} | dict.fromkeys(others))
                try:
                    values = self._aggregate.finish(self._of(groups))
                except RowError:
                    groups, values = [group], self._steps.finish(self._of([group]))
                for place, own in enumerate(groups):
                    own.value = values[place]
                    self._changed.discard(own)
            return group.value

    # ---- What waits ----

    def _wait(self, group: GroupAccumulator, rows: int) -> None:
        self._changed.add(group)
        self._waiting += rows
        if self._waiting >= _WAITING_ROWS:
            self._take_in()

    def _settle(self, group: GroupAccumulator) -> None:
        """What others wait for stays: another thread may be about to add to it."""
        if self._is_waiting(group):
            self._take_in()

    def _is_waiting(self, group: GroupAccumulator) -> bool:
        return group in self._rows or group in self._states

    def _take_in(self) -> None:
        rows, self._rows = self._rows, {}
        states, self._states = self._states, {}
        self._waiting = 0
        if rows:
            at = _offsets([sum(len(columns[0]) for columns in arrays) for arrays in rows.values()])
            every = list(itertools.chain.from_iterable(rows.values()))
            columns = map(pa.concat_arrays, zip(*every, strict=True))
            lists = [pa.ListArray.from_arrays(at, column) for column in columns]
            self._become(list(rows), self._steps.called(self._aggregate.update, self._of(rows), *lists))
        if states:
            parts = [[self._of([group]), *given] for group, given in states.items()]
            every = pa.concat_arrays(list(itertools.chain.from_iterable(parts)))
            at = _offsets([sum(map(len, own)) for own in parts])
            self._become(list(states), self._steps.merge(pa.ListArray.from_arrays(at, every)))

    # ---- States ----

    def _of(self, groups: Iterable[GroupAccumulator]) -> pa.Array:
        return self._kept.take(pa.array([group.place for group in groups], pa.int64()))

    def _become(self, groups: Sequence[GroupAccumulator], states: pa.Array) -> None:
        if len(self._kept) > 2 * len(self._groups) + _WAITING_ROWS:
            kept = list(self._groups)
            self._kept = pa.concat_arrays([self._kept[:1], self._of(kept)])
            for place, group in enumerate(kept, 1):
                group.place = place
        first = len(self._kept)
        self._kept = pa.concat_arrays([self._kept, states])
        for place, group in enumerate(groups, first):
            group.place = place


class GroupAccumulator:
    """What DataFusion asks of an accumulator. place: of its state; 0: it has none. value: if it is known."""

    def __init__(self, groups: Accumulators) -> None:
        self._groups = groups
        self.place = 0
        self.value: pa.Scalar | None = None

    def update(self, *arrays: pa.Array) -> None:
        self._groups.update(self, arrays)

    def merge(self, states: Sequence[pa.Array]) -> None:
        self._groups.merge(self, states[0])

    def state(self) -> list[Any]:
        return [self._groups.state(self)]

    def evaluate(self) -> pa.Scalar:
        return self._groups.value(self)


def _offsets(lengths: Sequence[int]) -> pa.Array:
    return pa.array([0, *itertools.accumulate(lengths)], pa.int32())
