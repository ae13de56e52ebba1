"""arroyo-udf build: source -> plugin."""

from pathlib import Path
from typing import Any

import click

from ..build import build
from .building import shown

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
    with shown():
        built = build(
            source, out, arroyo=arroyo, on_error=on_error, no_python=no_python, locked=locked, offline=offline
        )
    if source.suffix == ".py":
        _tell_natives(built)
    click.echo(str(built))


def _tell_natives(plugin: Path) -> None:
    """A line for each function that could be native by its kind."""
    from ..host.library import load  # slow to import

    functions = [one for one in load(plugin).functions.values() if one.kind == "sync" and not one.vectorized]
    width = max((len(function.name) for function in functions), default=0)
    for function in functions:
        click.echo(f"{function.name:<{width}}  {function.not_native or 'native'}", err=True)
