"""An aggregate of a loaded plugin: its three steps, and a call for all rows of some columns.

    plugin.functions["mean"](values)                        pa.Scalar: all rows are one group
    mean.update(state, lists), mean.merge(...), mean.finish(state)    for engines, with a row for each group

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
    """

    state: pa.DataType

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
        self._lists = lists

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
        state, first = pa.nulls(1, self.state), 0
        for piece in pieces:
            if errors := {first + row: why for row, why in piece.refused.items() if why is not None}:
                raise self._row_error(errors)
            given = zip(self._lists, piece.arrays, strict=True)
            lists = [pa.ListArray.from_arrays([0, piece.n_rows], array, type_) for type_, array in given]
            if piece.n_rows:
                state = self.update(state, *lists)
            first += piece.n_rows
        return self.finish(state)[0]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedCall(f"{self.where}: is an aggregate, which has no value for each row; call it, or its steps")

    async def call_async(self, /, *arrays: Any, **named: Any) -> Any:
        """As a call, in another thread."""
        return await super().call_async(*arrays, **named)

    outcomes = start = _refuse

    async def start_async(self, **_: Any) -> Any:
        """Refused."""
        self._refuse()
