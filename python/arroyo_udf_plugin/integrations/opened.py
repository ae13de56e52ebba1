"""The library that a user names, and what holds for its functions in engines that call them through the host."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from ..author.udf import Volatility
from ..build import duckdb_file, plugin_for
from ..build.engines import NULLS_FAILED_ROWS
from ..errors import LoadError
from ..host.answers import schema_of
from ..host.function import Function
from ..host.library import Plugin, load
from ..host.plain_structs import plain
from ..host.policy import Policy


def library_of(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a library, or of that of a source, which is built if it has changed.

    Raises LoadError if there is none, BuildError.
    """
    library = plugin_for(Path(path)).absolute()
    if not library.is_file():
        raise LoadError(f"{library}: there is no such library: build one with `arroyo-udf build`")
    return library


def plugin_of(path: str | os.PathLike[str]) -> Plugin:
    """It describes its functions; none is called. Raises what `library_of` and `load` raise."""
    return load(library_of(path))


def for_duckdb(plugin: Plugin) -> Path:
    """The name under which DuckDB loads it, which `build` has made beside it. Raises LoadError."""
    link = duckdb_file.link_of(Path(plugin.path), plugin.name)
    if not link.exists():
        raise LoadError(
            f"{link} is missing, the name by which DuckDB finds the functions of {plugin.path}: build the library "
            "again, or link this name to it"
        )
    return link


def policy_of(plugin: Plugin) -> Policy:
    """What becomes of rows that failed, as the library was built."""
    return Policy("null", "null") if plugin.exports(NULLS_FAILED_ROWS) else Policy()


def values(function: Function, outcomes: pa.StructArray, policy: Policy) -> pa.Array:
    """The values of rows with these outcomes (see `Function.outcomes`). Raises RowError, if the policy says so."""
    return plain(policy.apply(outcomes, function).results.column("value"))


def volatility_of(function: Function) -> Volatility:
    """As the author has stated it. Async functions, and those of which nothing is said, are volatile."""
    return "volatile" if function.kind == "async" else function.volatility or "volatile"


def by_row(plugin: Plugin) -> dict[str, Function]:
    """Its functions that give one value for each row, by name; without aggregates and table functions."""
    return {name: function for name, function in plugin.functions.items() if function.kind in ("sync", "async")}


class Batches:
    """A function that one thread calls batch by batch. An async one is started once, for all batches.

    Raises what `Function.start` raises.
    """

    def __init__(self, plugin: Plugin, name: str) -> None:
        self.function = plugin.functions[name]
        self.policy = policy_of(plugin)
        self._runtime = self.function.start() if self.function.kind == "async" else None
        self._next_id = 0

    def call(self, columns: Sequence[pa.Array]) -> pa.Array:
        """The values of a batch, in the order of its rows. Raises what `values` raises."""
        return values(self.function, self._outcomes(columns), self.policy)

    def _outcomes(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        if self._runtime is None:
            return self.function.outcomes(*columns)
        answers = self._runtime.map([tuple(columns)], first_id=self._next_id, stop=False)
        self._next_id += len(columns[0])
        results = pa.Table.from_batches([batch for _, batch in answers], schema_of(self.function.returns))
        return results.sort_by("id").drop_columns("id").to_struct_array().combine_chunks()
