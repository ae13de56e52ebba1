"""Which functions a command calls, on which columns: PLUGIN:FUNCTION with --args and --name, or --call for several.

    --call "mph(miles, minutes)"      --call 'speed = mph("miles, as flown", minutes)'      --call mph

Columns are separated by commas; a name with a comma or a quote is in double quotes, and "" in these is
one quote. Without columns, they are those named like the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from ..host.function import Function
    from ..host.library import Plugin
    from ..operator.calls import Call

_QUOTED = r'"((?:[^"]|"")*)"'
_COLUMN = re.compile(rf'\s*(?:{_QUOTED}|([^",]+?))\s*(?:,|$)')
_CALL = re.compile(rf'\s*(?:(?:{_QUOTED}|([^"=(]+?))\s*=\s*)?([^\W\d]\w*)\s*(?:\((.*)\)\s*)?', re.DOTALL)


class Written(NamedTuple):
    """A call as the user writes it. name, columns: None: as the function and its parameters are named."""

    function: str
    columns: tuple[str, ...] | None
    name: str | None


def call_written(text: str) -> Written:
    """Reads a --call. Raises UsageError."""
    found = _CALL.fullmatch(text)
    if found is None:
        raise click.UsageError(
            f"--call {text!r}: write FUNCTION, FUNCTION(COLUMN, ...) or NAME = FUNCTION(COLUMN, ...)"
        )
    quoted, plain, function, columns = found.groups()
    name = plain if quoted is None else quoted.replace('""', '"')
    return Written(function, None if columns is None else columns_written(columns, "--call"), name)


def columns_written(text: str, option: str) -> tuple[str, ...]:
    """Reads columns' names, separated by commas. Raises UsageError."""
    names: list[str] = []
    start = 0
    while text.strip() and (not names or start < len(text) or text[start - 1] == ","):
        found = _COLUMN.match(text, start)
        if found is None:
            raise click.UsageError(
                f"{option} {text!r}: separate columns by commas; a name with a comma or a quote is in double quotes"
            )
        quoted, plain = found.groups()
        names.append(plain if quoted is None else quoted.replace('""', '"'))
        start = found.end()
    return tuple(names)


def split(plugin: str) -> tuple[Path, str | None]:
    """PLUGIN[:FUNCTION] as path and name."""
    path, colon, name = plugin.rpartition(":")
    return (Path(path), name) if colon and not Path(plugin).exists() else (Path(plugin), None)


def calls_of(plugin: Plugin, given: Path, written: Sequence[Written]) -> list[Call]:
    """The calls of a plugin's functions. given: as the user has named the plugin."""
    from ..operator.calls import Call

    return [Call.of(_function(plugin, given, one.function), one.columns, one.name) for one in written]


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
