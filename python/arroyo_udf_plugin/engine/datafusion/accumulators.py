"""Aggregates of plugins as aggregates of DataFusion, which has an object for each group.

    accumulators = Accumulators(steps); accumulators.new()      update(arrays), merge(states), state(), evaluate()

DataFusion calls these objects one by one. What they are given waits until there are enough rows, and then one call of
the plugin is for all groups. So what is kept of a group is its state, however many rows it has.

Guarantees: several threads may have groups of one query. A group that fails ends the query.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...errors import RowError
from .aggregates import Steps

_WAITING_ROWS = 1 << 16


class Accumulators:
    """The groups of one aggregate in a query."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._lock = threading.Lock()
        self._rows: dict[Group, list[Sequence[pa.Array]]] = {}  # that wait, by their group
        self._states: dict[Group, list[pa.Array]] = {}  # the same of states
        self._waiting = 0
        self._changed = weakref.WeakSet[Group]()  # those whose values are not known

    def new(self) -> Group:
        """A group without rows."""
        return Group(self)

    def update(self, group: Group, arrays: Sequence[pa.Array]) -> None:
        with self._lock:
            self._rows.setdefault(group, []).append(arrays)
            self._wait(group, len(arrays[0]))

    def merge(self, group: Group, states: pa.Array) -> None:
        with self._lock:
            self._states.setdefault(group, []).append(states)
            self._wait(group, len(states))

    def state(self, group: Group) -> pa.Array:
        """One row."""
        with self._lock:
            self._take_in()
            return self._of(group)

    def value(self, group: Group) -> pa.Scalar:
        """It may come with those of other groups, as long as none of these fails."""
        with self._lock:
            self._take_in()
            if group in self._changed or group.value is None:
                groups = list({group: None} | dict.fromkeys(self._changed))
                try:
                    values = self._steps.aggregate.finish(pa.concat_arrays(list(map(self._of, groups))))
                except RowError:
                    groups, values = [group], self._steps.finish(self._of(group))
                for place, own in enumerate(groups):
                    own.value = values[place]
                    self._changed.discard(own)
            return group.value

    def _wait(self, group: Group, rows: int) -> None:
        self._changed.add(group)
        self._waiting += rows
        if self._waiting >= _WAITING_ROWS:
            self._take_in()

    def _of(self, group: Group) -> pa.Array:
        return pa.nulls(1, self._steps.aggregate.state) if group.kept is None else group.kept

    def _take_in(self) -> None:
        rows, self._rows = self._rows, {}
        states, self._states = self._states, {}
        self._waiting = 0
        if rows:
            offsets = [0]
            for arrays in rows.values():
                offsets.append(offsets[-1] + sum(len(columns[0]) for columns in arrays))
            at = pa.array(offsets, pa.int32())
            columns = [
                pa.concat_arrays([given[place] for arrays in rows.values() for given in arrays])
                for place in range(len(self._steps.aggregate.arguments))
            ]
            before = pa.concat_arrays(list(map(self._of, rows)))
            lists = [pa.ListArray.from_arrays(at, column) for column in columns]
            self._become(list(rows), self._steps.called(self._steps.aggregate.update, before, *lists))
        if states:
            parts = [[self._of(group), *given] for group, given in states.items()]
            offsets = [0]
            for own in parts:
                offsets.append(offsets[-1] + sum(map(len, own)))
            every = pa.concat_arrays([part for own in parts for part in own])
            lists_of_states = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), every)
            self._become(list(states), self._steps.merge(lists_of_states))

    def _become(self, groups: Sequence[Group], states: pa.Array) -> None:
        for place, group in enumerate(groups):
            group.kept = states.take(pa.array([place]))  # a slice would keep those of all


class Group:
    """What DataFusion asks of an accumulator. kept: its state, one row; None: without rows. value: if it is known."""

    def __init__(self, groups: Accumulators) -> None:
        self._groups = groups
        self.kept: pa.Array | None = None
        self.value: pa.Scalar | None = None

    def update(self, *arrays: pa.Array) -> None:
        self._groups.update(self, arrays)

    def merge(self, states: Sequence[pa.Array]) -> None:
        self._groups.merge(self, states[0])

    def state(self) -> list[Any]:
        return [self._groups.state(self)[0]]

    def evaluate(self) -> pa.Scalar:
        return self._groups.value(self)
