"""An aggregate of a loaded plugin: its three steps, and a call for all rows of some columns.

    plugin.functions["mean"](values)             pa.Scalar: all rows are one group
    GroupState(mean).update(values)                   for engines that hold an object for each group
    mean.update(state, lists), mean.merge(state, other), mean.finish(state)    with a row for each group

AGGREGATES in arroyo_udf.h says what the steps are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..errors import AbiError, UnsupportedCall
from .function import Function

STEPS = ("update", "merge", "finish")


class Aggregate(Function):
    """One aggregate of a plugin. `arguments`, `returns` and the rest are as for functions.

    state: the Arrow type of a group's state. A null state is that of a group without rows.
    list_types: of the lists that `update` takes, for each argument.
    """

    state: pa.DataType
    list_types: list[pa.ListType]

    def take_steps(self, steps: Sequence[Function]) -> None:
        """Its steps, from the same descriptor. Raises AbiError if they do not fit."""
        if len(steps) != len(STEPS) or any(step.kind != "step" for step in steps):
            raise AbiError(f"{self.where}: an aggregate, whose `first_step` is not the number of its three steps")
        update, merge, finish = steps
        self.state = state = update.returns
        lists = [field.type for field in update.arguments][1:]
        are_lists = all(pa.types.is_list(type_) for type_ in lists)
        if (
            not are_lists
            or update.arguments.types[:1] != [state]
            or [type_.value_type for type_ in lists] != self.arguments.types
            or (merge.arguments.types, merge.returns) != ([state, state], state)
            or (finish.arguments.types, finish.returns) != ([state], self.returns)
        ):
            raise AbiError(f"{self.where}: an aggregate whose steps have other types than its own")
        self._update, self._merge, self._finish = steps
        self.list_types = lists

    def update(self, state: pa.Array | None, /, *lists: pa.ListArray) -> pa.Array:
        """The states of groups after some more rows: one row, and one list of each argument's values, for each group.

        state: before these rows; None: all groups are new. Raises RowError, whose rows are groups, if one has failed:
        its state is lost.
        """
        return self._update(pa.nulls(len(lists[0]), self.state) if state is None else state, *lists)

    def merge(self, state: pa.Array, other: pa.Array, /) -> pa.Array:
        """The states of two parts of each group. No state is null. Raises RowError as `update`."""
        return self._merge(state, other)

    def finish(self, state: pa.Array, /) -> pa.Array:
        """The value of each group. A null state is that of a group without rows. Raises RowError as `update`."""
        return self._finish(state)

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        """The value of all rows as one group, a pa.Scalar.

        arrays, named: columns, as for functions. Raises RowError if an argument of a row does not fit, or if a step has
        failed; the others as for functions.
        """
        pieces, _ = self._arguments.pieces(arrays, named)
        group, first = GroupState(self), 0
        for piece in pieces:
            if errors := {first + row: why for row, why in piece.refused.items() if why is not None}:
                raise self._row_error(errors)
            group.update(*piece.arrays)
            first += piece.n_rows
        return group.finish()

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedCall(f"{self.where}: is an aggregate, which has no value for each row; call it, or its steps")

    async def call_async(self, /, *arrays: Any, **named: Any) -> Any:
        """As a call, in another thread."""
        return await super().call_async(*arrays, **named)

    outcomes = start = _refuse

    async def start_async(self, **_: Any) -> Any:
        """Refused."""
        self._refuse()


class GroupState:
    """The state of one group of an aggregate. Not for several threads at once.

    state: an array with one row, null before the first rows.
    """

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.state = pa.nulls(1, aggregate.state)

    def update(self, /, *columns: pa.Array) -> None:
        """Adds rows: an array of the argument's type for each argument. Raises RowError if the step fails."""
        if n_rows := len(columns[0]):
            given = zip(self.aggregate.list_types, columns, strict=True)
            lists = [pa.ListArray.from_arrays([0, n_rows], column, type_) for type_, column in given]
            self.state = self.aggregate.update(self.state, *lists)

    def merge(self, states: pa.Array, /) -> None:
        """Adds other states, of which some may be null. Raises RowError if the step fails."""
        states = pa.concat_arrays([self.state, states]).drop_null()
        while len(states) > 1:  # in pairs: as many calls as the logarithm of their number
            half = len(states) // 2
            merged = self.aggregate.merge(states[:half], states[half : 2 * half])
            states = pa.concat_arrays([merged, states[2 * half :]])
        if len(states):
            self.state = states

    def finish(self) -> pa.Scalar:
        """The group's value. Raises RowError if the step fails."""
        return self.aggregate.finish(self.state)[0]
