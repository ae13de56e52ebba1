"""Functions in DuckDB, from version 1.3 on.

    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    register(connection, "libudf.so")
    connection.sql("SELECT mph(distance, air_time) FROM flights")

DuckDB calls the library itself, with its own vectors, in its own threads. It may compute a function once for constants,
or leave out a call, if the author has said that its volatility is immutable or stable.
"""

from __future__ import annotations

import os

import duckdb

from ..errors import InvalidArgument
from .opened import for_duckdb, plugin_of


def register(connection: duckdb.DuckDBPyConnection, library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library, for all connections to this database. Returns their names.

    library: or a source. Raises LoadError, BuildError; InvalidArgument for a database that does not allow it.
    """
    plugin = plugin_of(library)
    link = str(for_duckdb(plugin)).replace("'", "''")
    try:
        connection.execute(f"LOAD '{link}'")
    except duckdb.Error as error:
        if "allow_unsigned_extensions" in str(error):
            raise InvalidArgument(
                "this database loads no unsigned extensions: open it with "
                'duckdb.connect(..., config={"allow_unsigned_extensions": True})'
            ) from None
        raise InvalidArgument(f"DuckDB {duckdb.__version__} does not load {plugin.path}: {error}") from error
    return list(plugin.functions)
