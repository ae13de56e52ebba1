"""Functions in DataFusion, by its Python package.

    register(context, "libudf.so")
    context.sql("SELECT mph(distance, air_time) FROM flights")

The host calls each function for a batch. An async one is started for each batch, and runs at its concurrency.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa
from datafusion import SessionContext, udf

from ..host.function import Function
from ..host.policy import Policy
from .opened import plugin_of, policy_of, values, volatility_of


def register(context: SessionContext, library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library. Returns their names. library: or a source. Raises LoadError, BuildError."""
    plugin = plugin_of(library)
    for name, function in plugin.functions.items():
        types = [field.type for field in function.arguments]
        call = _call(function, policy_of(plugin))
        context.register_udf(udf(call, types, function.returns, volatility_of(function), name=name))
    return list(plugin.functions)


def _call(function: Function, policy: Policy) -> Callable[..., pa.Array]:
    def call(*columns: pa.Array) -> pa.Array:
        return values(function, function.outcomes(*columns), policy)

    return call
