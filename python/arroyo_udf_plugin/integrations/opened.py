"""The library that a user names."""

from __future__ import annotations

import os
from pathlib import Path

from ..build import duckdb_file, plugin_for
from ..errors import LoadError
from ..host.library import Plugin, load


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
