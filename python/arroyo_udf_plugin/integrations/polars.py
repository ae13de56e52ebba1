"""Functions as expressions of Polars.

    udf = functions("libudf.so")
    frame.with_columns(mph=udf.mph("distance", "air_time"))

Polars calls the library itself, chunk by chunk, in its own threads, also in the streaming engine.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars
from polars.plugins import register_plugin_function

from ..errors import InvalidArgument
from .opened import by_row, plugin_of


def functions(library: str | os.PathLike[str]) -> Any:
    """Each function of a library under its name: it takes expressions, names of columns, or constants of the other
    arguments' types (a text is a column: write pl.lit for a constant), by place or by name, and returns an expression.

    library: or a source. Raises LoadError, BuildError.
    """
    plugin = plugin_of(library)
    return SimpleNamespace(
        **{
            name: partial(_expression, Path(plugin.path), name, function.arguments.names)
            for name, function in by_row(plugin).items()
        }
    )


def _expression(library: Path, name: str, names: list[str], /, *arguments: Any, **named: Any) -> polars.Expr:
    left = names[len(arguments) :]
    if len(arguments) > len(names) or set(left) != set(named):
        got = ", ".join([f"{len(arguments)} by place", *named])
        raise InvalidArgument(f"{name} takes the arguments {', '.join(names)}, and got {got}")
    columns = [*arguments, *(named[argument] for argument in left)]
    return register_plugin_function(plugin_path=library, function_name=name, args=columns, is_elementwise=True)
