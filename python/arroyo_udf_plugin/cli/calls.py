"""Which functions a command calls, on which columns: PLUGIN:FUNCTION with --args and --name, or --call for several.

--call "mph(miles, minutes)"      --call 'speed = mph("miles, as flown", minutes)'      --call mph
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..engine.pipeline import calls
from ..engine.pipeline.calls import WrittenCall

if TYPE_CHECKING:
    from ..engine.operators.calls import Call
    from ..host.function import Function
    from ..host.library import Plugin


def call_written(text: str) -> WrittenCall:
    """Reads a --call. Raises UsageError."""
    try:
        return calls.call_written(text)
    except ValueError as error:
        raise click.UsageError(f"--call {text!r}: {error}") from None


def columns_written(text: str, option: str) -> tuple[str, ...]:
    """Reads columns' names, separated by commas. Raises UsageError."""
    try:
        return calls.columns_written(text)
    except ValueError as error:
        raise click.UsageError(f"{option} {text!r}: {error}") from None


def split(plugin: str) -> tuple[Path, str | None]:
    """PLUGIN[:FUNCTION] as path and name."""
    path, colon, name = plugin.rpartition(":")
    return (Path(path), name) if colon and not Path(plugin).exists() else (Path(plugin), None)


def calls_of(plugin: Plugin, given: Path, written: Sequence[WrittenCall]) -> list[Call]:
    """The calls of a plugin's functions. given: as the user has named the plugin."""
    from ..engine.operators.calls import Call

    return [Call.of(_function(plugin, given, call.function), call.columns, call.name) for call in written]


def only_function(plugin: Plugin, given: Path) -> str:
    """The name of the plugin's function, if it has one only."""
    names = list(plugin.functions)
    if not names:
        raise click.ClickException(f"{given} has no functions")
    if len(names) > 1:
        raise click.ClickException(
            f"{given} has several functions ({', '.join(names)}): name one as {given}:{names[0]}, "
            "or several with --call"
        )
    return names[0]


def _function(plugin: Plugin, given: Path, name: str) -> Function:
    try:
        return plugin.functions[name]
    except KeyError:
        raise click.ClickException(f"{given} has no function {name!r}; it has {', '.join(plugin.functions)}") from None
