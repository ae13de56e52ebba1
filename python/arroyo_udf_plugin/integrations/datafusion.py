"""Functions in DataFusion, by its Python package.

    register(context, "libudf.so")
    context.sql("SELECT mph(distance, air_time) FROM flights")

The host calls each function for a batch. An async one is started for each batch, and runs at its concurrency.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, udf

from ..host.function import Function
from .opened import plugin_of


def register(context: SessionContext, library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library. Returns their names. library: or a source. Raises LoadError, BuildError."""
    plugin = plugin_of(library)
    for name, function in plugin.functions.items():
        types = [field.type for field in function.arguments]
        how = "volatile" if function.kind == "async" else function.volatility or "volatile"
        context.register_udf(udf(_call(function), types, function.returns, how, name=name))
    return list(plugin.functions)


def _call(function: Function) -> Any:
    def call(*columns: pa.Array) -> pa.Array:
        found = function(*columns)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    return call
