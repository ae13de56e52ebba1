"""Functions in DataFusion, by its Python package.

    register(context, "libudf.so")
    context.sql("SELECT mph(distance, air_time) FROM flights")

The host calls each function for a batch. An async one is started for each batch, and runs at its concurrency.
Aggregates are those of DataFusion, which keeps an object for each group; a group that fails ends the query. Table
functions are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import pyarrow as pa
from datafusion import Accumulator, SessionContext, udaf, udf

from ..host.aggregate import Aggregate, GroupState
from ..host.function import Function
from ..host.policy import Policy
from .opened import by_row, plugin_of, policy_of, values, volatility_of


def register(context: SessionContext, library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library. Returns their names. library: or a source. Raises LoadError, BuildError."""
    plugin = plugin_of(library)
    functions = by_row(plugin)
    for name, function in functions.items():
        call = _call(function, policy_of(plugin))
        context.register_udf(udf(call, function.arguments.types, function.returns, volatility_of(function), name=name))
    aggregates = {name: function for name, function in plugin.functions.items() if isinstance(function, Aggregate)}
    for name, aggregate in aggregates.items():
        types, state = aggregate.arguments.types, [aggregate.state]
        made = udaf(partial(_Rows, aggregate), types, aggregate.returns, state, volatility_of(aggregate), name=name)
        context.register_udaf(made)
    return [*functions, *aggregates]


class _Rows(Accumulator):
    def __init__(self, aggregate: Aggregate) -> None:
        self._group = GroupState(aggregate)

    def update(self, *columns: pa.Array) -> None:
        self._group.update(*columns)

    def merge(self, states: list[pa.Array]) -> None:
        self._group.merge(states[0])

    def state(self) -> list[pa.Scalar]:
        return [self._group.state[0]]

    def evaluate(self) -> pa.Scalar:
        return self._group.finish()


def _call(function: Function, policy: Policy) -> Callable[..., pa.Array]:
    def call(*columns: pa.Array) -> pa.Array:
        return values(function, function.outcomes(*columns), policy)

    return call
