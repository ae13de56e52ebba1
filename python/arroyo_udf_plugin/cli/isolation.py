"""The options of commands that call functions: where these run.

@where_options
def command(where, ...):
    load(path, **where)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from ..author.options import bytes_of


def _workers(_context: click.Context, _option: click.Parameter, text: str | None) -> int | str | None:
    try:
        return text if text in (None, "auto") else int(text)
    except ValueError:
        raise click.BadParameter(f'{text!r}: write a number, or "auto" for one per core') from None


def _bytes(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else bytes_of(text)
    except ValueError:
        wanted = "write a number of bytes, or one with a unit, such as 512MiB"
        raise click.BadParameter(f"{text!r}: {wanted}") from None


_OPTIONS = [
    click.option(
        "--isolation",
        type=click.Choice(["thread", "subinterpreter", "process"]),
        help="Where functions run; default: thread. A crash of a process costs the row in hand.",
    ),
    click.option(
        "--workers",
        callback=_workers,
        metavar="NUMBER|auto",
        help="How many interpreters or processes; default: 1; auto: one per core.",
    ),
    click.option("--memory-limit", callback=_bytes, metavar="SIZE", help="Of each worker process, such as 512MiB."),
    click.option("--cpu-limit", type=click.IntRange(min=1), metavar="SECONDS", help="Of each worker process."),
]


def where_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options. The command gets `where`: those that were given, as arguments of `load`."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        given = {name: options.pop(name) for name in ("isolation", "workers", "memory_limit", "cpu_limit")}
        return command(where={name: value for name, value in given.items() if value is not None}, **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
