"""arroyo-udf build: source -> plugin."""

from pathlib import Path
from typing import Any

import click

from ..build import build
from .building import shown
from .starting import starting

FILE = click.Path(path_type=Path)


def _renamed(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError("--arroyo-on-error is --on-error now")


@click.command("build", short_help="Compile a source into a plugin.")
@click.argument("source", metavar="SRC", type=FILE)
@click.option("-o", "--out", type=FILE, help="The plugin's path; default: libmine.so beside mine.py.")
@click.option("--arroyo", metavar="FUNCTION", help="Export it for the Arroyo engine too; default: the only function.")
@click.option(
    "--on-error",
    type=click.Choice(["fail", "null"]),
    default="fail",
    show_default=True,
    help="What becomes of a row that failed, in Arroyo and in other engines.",
)
@click.option("--arroyo-on-error", hidden=True, expose_value=False, callback=_renamed)
@click.option(
    "--no-python",
    is_flag=True,
    help="Make a library without Python, if all functions are native; rows that need Python fail.",
)
@click.option("--locked", is_flag=True, help="Take dependencies from the lock file beside SRC; refuse a stale one.")
@click.option("--offline", is_flag=True, help="Download nothing.")
def command(
    source: Path,
    out: Path | None,
    arroyo: str | None,
    on_error: Any,
    no_python: bool,
    locked: bool,
    offline: bool,
) -> None:
    """Compile SRC (.py, .rs or .c) into a plugin, one shared library, and print its path.

    Of a .py, also say on stderr which functions are native, which is compiled to C, and why the others are not.
    """
    with shown(), starting():
        built = build(
            source, out, arroyo=arroyo, on_error=on_error, no_python=no_python, locked=locked, offline=offline
        )
    if source.suffix == ".py":
        _tell_natives(built)
    click.echo(str(built))


def _tell_natives(plugin: Path) -> None:
    """A line for each function that could be native by its kind."""
    from .. import abi
    from ..host.native import natives_of

    # It was just built, so it needs none of a host's checks, which are slow to import.
    table = abi.ffi.dlopen(str(plugin)).arroyo_udf_plugin
    described = table.describe()
    told = natives_of(table, described.n_functions) or []
    functions = [(described.functions[number], native.reason) for number, native in enumerate(told)]
    reasons = {
        abi.text(function.name): reason or "native"
        for function, reason in functions
        if function.kind == abi.SYNC and not function.vectorized
    }
    width = max(map(len, reasons), default=0)
    for name, reason in reasons.items():
        click.echo(f"{name:<{width}}  {reason}", err=True)
