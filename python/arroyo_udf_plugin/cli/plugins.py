"""arroyo-udf install, list, uninstall and verify: plugins that are found by name."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .build import FILE


@click.command("install", short_help="Install a plugin, to be found by its name.")
@click.argument("plugin", type=FILE)
@click.option("--folder", type=FILE, help="Where; default: the user's folder. $ARROYO_UDF_PLUGINS names others.")
def install(plugin: Path, folder: Path | None) -> None:
    """Install PLUGIN, or what a source (.py, .rs or .c) is built into, so that its name stands for it: load("geo").

    It replaces an installed plugin of its name.
    """
    from ..build import plugin_for
    from ..host import installed
    from ..host.library import load
    from .building import shown

    with shown():
        library = plugin_for(plugin)
    made = installed.install(load(library), folder)
    click.echo(f"{made.name}: {made.library}")


@click.command("list", short_help="List installed plugins.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_(as_json: bool) -> None:
    """List the plugins that are found by name, with their functions."""
    from ..host import installed

    known = list(installed.listed())
    plugins = [plugin for plugin in known if isinstance(plugin, installed.InstalledPlugin)]
    if as_json:
        lines = [
            {"name": plugin.name, "library": str(plugin.library), "functions": plugin.functions} for plugin in plugins
        ]
        click.echo(json.dumps(lines, indent=2))
    else:
        for plugin in plugins:
            click.echo(f"{plugin.name:<20} {plugin.language:<8} {', '.join(plugin.functions)}")
    for text in known:
        if isinstance(text, str):
            click.echo(text, err=True)


@click.command("uninstall", short_help="Remove an installed plugin.")
@click.argument("name")
def uninstall(name: str) -> None:
    """Remove the installed plugin NAME. Processes that have loaded it go on."""
    from ..host import installed

    click.echo(f"{installed.uninstall(name)} removed")


@click.command("verify", short_help="Check installed plugins.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
def verify(names: tuple[str, ...]) -> None:
    """Check that installed plugins are as they were installed, and that nobody else can change them. Exit status 1: one
    is not."""
    from ..host import installed

    problems = 0
    for plugin in map(installed.find, names) if names else installed.listed():
        problem = plugin if isinstance(plugin, str) else plugin.problem
        name = "" if isinstance(plugin, str) else f"{plugin.name}: "
        problems += problem is not None
        click.echo(name + (problem or "as it was installed"))
    if problems:
        raise SystemExit(1)
