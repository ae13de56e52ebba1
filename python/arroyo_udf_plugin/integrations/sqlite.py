"""Functions in SQLite.

    register(connection, "libudf.so")
    connection.execute("SELECT mph(distance, air_time) FROM flights")

SQLite calls the library itself, row by row. A connection is one of the modules sqlite3 and apsw, or has their methods.
"""

from __future__ import annotations

import os
from typing import Any

from ..errors import InvalidArgument
from .opened import plugin_of

_NO_EXTENSIONS = (
    "the SQLite of this Python loads no extensions: use apsw (pip install apsw), or a Python that was built with "
    "--enable-loadable-sqlite-extensions"
)


def register(connection: Any, library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library, for this connection. Returns their names.

    library: or a source. Raises LoadError, BuildError; InvalidArgument if SQLite does not load it.
    """
    plugin = plugin_of(library)
    allow = getattr(connection, "enable_load_extension", None) or getattr(connection, "enableloadextension", None)
    load = getattr(connection, "load_extension", None) or getattr(connection, "loadextension", None)
    if allow is None or load is None:
        raise InvalidArgument(_NO_EXTENSIONS)
    allow(True)
    try:
        load(plugin.path)
    except Exception as error:
        raise InvalidArgument(f"SQLite does not load {plugin.path}: {error}") from error
    finally:
        allow(False)
    return list(plugin.functions)
