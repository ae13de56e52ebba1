"""Aggregates of plugins as functions of DataFusion over lists, each called for many groups at once.

    mean(x) FILTER (WHERE ok)       "mean of"(array_agg(x) FILTER (WHERE ok))
    corr(DISTINCT x, y)             "corr of"(array_agg(DISTINCT named_struct('0', x, '1', y)))

For parts of the rows there are the steps: "mean update"(x) and "mean merge"(state) are such calls, too, whose results
are states; "mean finish"(state) has the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import ArroyoUdfError
from ...host.aggregate import Aggregate


class Steps:
    """The steps of an aggregate over lists. item: the type of what `array_agg` makes of a row's arguments. failed: what
    has ended the query."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        types = aggregate.arguments.types
        self.item = types[0] if len(types) == 1 else pa.struct([(str(n), type_) for n, type_ in enumerate(types)])
        self.failed: ArroyoUdfError | None = None

    def update(self, lists: pa.ListArray) -> pa.Array:
        """The state of each list's rows; null for a null list, which has none."""
        given = lists.drop_null()
        if not len(given):
            return pa.nulls(len(lists), self.aggregate.state)
        items = given.flatten()
        offsets = _offsets(given)
        columns = [items] if len(self.aggregate.arguments) == 1 else items.flatten()
        states = self.called(
            self.aggregate.update, None, *(pa.ListArray.from_arrays(offsets, column) for column in columns)
        )
        return states if len(given) == len(lists) else states.take(_places(lists))

    def merge(self, lists: pa.ListArray) -> pa.Array:
        """The state of each list's states; null if there are none. Neighbours are merged first, so that there are few
        calls, each for all groups."""
        states, runs = lists.flatten(), list[list[int]]()
        valid = states.is_valid().to_pylist()
        first = 0
        for length in lists.value_lengths().to_pylist():
            runs.append([place for place in range(first, first + (length or 0)) if valid[place]])
            first += length or 0
        while any(len(run) > 1 for run in runs):
            lefts = [place for run in runs for place in run[: len(run) // 2 * 2 : 2]]
            rights = [place for run in runs for place in run[1::2]]
            merged = iter(range(len(states), len(states) + len(lefts)))
            two = (states.take(pa.array(places, pa.int64())) for places in (lefts, rights))
            states = pa.concat_arrays([states, self.called(self.aggregate.merge, *two)])
            runs = [[*(next(merged) for _ in run[1::2]), *run[len(run) // 2 * 2 :]] for run in runs]
        return states.take(pa.array([run[0] if run else None for run in runs], pa.int64()))

    def finish(self, states: pa.Array) -> pa.Array:
        """The value of each state."""
        return self.called(self.aggregate.finish, states)

    def value(self, lists: pa.ListArray) -> pa.Array:
        """The value of each list's rows."""
        return self.finish(self.update(lists))

    def called(self, step: Callable[..., pa.Array], *arguments: Any) -> pa.Array:
        """Raises what a step raises, and remembers it, because DataFusion has only its text."""
        try:
            return step(*arguments)
        except ArroyoUdfError as error:
            self.failed = self.failed or error
            raise


@dataclass(frozen=True)
class ListFunction:
    """A function of DataFusion. is_of_list: `array_agg` makes its argument. types, returns: as DataFusion has them."""

    steps: Steps
    call: Callable[[Any], pa.Array]
    types: Sequence[pa.DataType]
    returns: pa.DataType
    is_of_list: bool = True

    def __call__(self, array: pa.Array) -> pa.Array:
        return self.call(array)

    @property
    def volatility(self) -> str:
        return self.steps.aggregate.volatility or "volatile"


def update_name(name: str) -> str:
    return f"{name} update"


def merge_name(name: str) -> str:
    return f"{name} merge"


def finish_name(name: str) -> str:
    return f"{name} finish"


def list_functions(aggregates: Mapping[str, Aggregate]) -> dict[str, ListFunction]:
    """Of aggregates and their steps, by the names that texts have for them. aggregates: by name, in lower case."""
    functions = {}
    for name, aggregate in aggregates.items():
        steps, state = Steps(aggregate), aggregate.state
        items, returns = [pa.list_(steps.item)], aggregate.returns
        functions[name] = ListFunction(steps, steps.value, items, returns)
        functions[update_name(name)] = ListFunction(steps, steps.update, items, state)
        functions[merge_name(name)] = ListFunction(steps, steps.merge, [pa.list_(state)], state)
        functions[finish_name(name)] = ListFunction(steps, steps.finish, [state], returns, is_of_list=False)
    return functions


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Of lists without nulls, in what `flatten` gives."""
    offsets = [0]
    for length in lists.value_lengths().to_pylist():
        offsets.append(offsets[-1] + length)
    return pa.array(offsets, pa.int32())


def _places(lists: pa.ListArray) -> pa.Array:
    """Of each list among those that are not null."""
    places = iter(range(len(lists)))
    return pa.array([next(places) if valid else None for valid in lists.is_valid().to_pylist()], pa.int64())
