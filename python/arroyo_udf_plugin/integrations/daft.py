"""Functions in Daft, whose native extensions are experimental.

    register("libudf.so")
    daft.sql("SELECT mph(distance, air_time) FROM flights")

Daft calls the library itself, in its own threads.
"""

from __future__ import annotations

import os

import daft

from .opened import by_row, plugin_of


def register(library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library, in the current session. Returns their names.

    library: or a source. Raises LoadError, BuildError.
    """
    plugin = plugin_of(library)
    daft.load_extension(plugin.path)
    return list(by_row(plugin))
