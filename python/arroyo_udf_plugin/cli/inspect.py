"""arroyo-udf inspect: describe a plugin, or list the functions of installed packages, without running any of them."""

import dataclasses
import json
import math
import textwrap
from pathlib import Path
from typing import Any

import click

from ..plugin import origin


@click.command("inspect", short_help="Describe a plugin and its functions.")
@click.argument("plugin", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(plugin: Path | None, as_json: bool) -> None:
    """Describe PLUGIN, or what a source (.py, .rs or .c) is built into, and its functions. Runs no function, and starts
    no interpreter for a plugin.

    Without PLUGIN: the functions of installed packages, which queries call without --udf.
    """
    from ..build import plugin_for
    from ..host.library import load
    from .building import shown

    if plugin is None:
        _list(as_json)
        return
    with shown():
        built = plugin_for(plugin)
    loaded = load(built)
    description = {**_description(loaded), "source": origin.read(loaded.path), "engines": _engines(loaded)}
    if as_json:
        click.echo(json.dumps(description, indent=2))
        return
    about = ("name", "language", "source", "abi_version", "toolkit_version", "hash")
    click.echo("\n".join(f"{key:<16} {description[key]}" for key in about if description[key] is not None))
    if description["engines"]:
        click.echo(f"{'engines':<16} {', '.join(description['engines'])}")
    for function in description["functions"]:
        if function["kind"].startswith("kind "):  # of a later toolkit
            click.echo(f"\n{function['name']}\n    {function['kind']}, which this host cannot call")
            continue
        arguments = ", ".join(f"{argument['name']}: {_type(argument)}" for argument in function["arguments"])
        click.echo(f"\n{function['name']}({arguments}) -> {_type(function['returns'])}")
        words = [function["kind"]] + ["vectorized"] * function["vectorized"]
        words += ["native"] * (function["native"] is True)
        words += [function["volatility"]] if function["volatility"] else []
        words += [f"timeout={function['timeout']}"] if function["timeout"] is not None else []
        options = function["options"] or {}
        words += [_word(key, options[key]) for key in function["chosen"]]
        click.echo("    " + ", ".join(words))
        defaults = ", ".join(f"{key}={value}" for key, value in options.items() if key not in function["chosen"])
        if defaults:
            click.echo(f"    by default: {defaults}")
        if function["not_native"] and function["kind"] == "sync" and not function["vectorized"]:
            click.echo(f"    {function['not_native']}")
        if function["documentation"]:
            click.echo(textwrap.indent(function["documentation"], "    "))


def _engines(plugin: Any) -> list[str]:
    """Those that load the library by entry points of their own."""
    symbols = {
        "Arroyo": ("__run", "__start"),
        "DuckDB": (f"lib{plugin.name}_init_c_api",),
        "Polars": ("_polars_plugin_get_version",),
        "Daft": ("daft_module_magic",),
        "SQLite": ("sqlite3_extension_init",),
    }
    return [engine for engine, names in symbols.items() if any(map(plugin.exports, names))]


def _list(as_json: bool) -> None:
    """Name, package and entry point of each, and why a query cannot call it, if that is known without a build."""
    from ..engine.planner.installed import GROUP, installed

    functions = [
        {"name": function.name, "package": function.package, "entry_point": function.value, "problem": function.problem}
        for several in installed().values()
        for function in several
    ]
    if as_json:
        click.echo(json.dumps(functions, indent=2))
    elif not functions:
        click.echo(f"no installed package has functions: entry points of the group {GROUP}", err=True)
    else:
        widths = [max(len(function[key] or "") for function in functions) for key in ("name", "package", "entry_point")]
        for function in functions:
            cells = [f"{function[key]:{width}}" for key, width in zip(function, widths, strict=False)]
            click.echo("  ".join([*cells, function["problem"] or ""]).rstrip())


def _word(name: str, value: Any) -> str:
    """An option that the author has chosen."""
    if name == "deterministic" and value:
        return name
    return f"cache {value:,}" if name == "cache" else f"{name}={value}"


def _type(described: dict[str, Any]) -> str:
    return str(described["type"]) + (" or null" if described["nullable"] else "")


def _options(options: Any) -> dict[str, Any] | None:
    """The author's choices and the defaults. None means no timeout or deadline, because JSON has no infinity. Options
    without a value are left out."""
    if options is None:
        return None
    known = {name: value for name, value in dataclasses.asdict(options).items() if value is not None or name == "seed"}
    return {name: None if value == math.inf else value for name, value in known.items()}


def _description(plugin: Any) -> dict[str, Any]:
    functions = []
    for function in plugin.functions.values():
        arguments = [
            {"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in function.arguments
        ]
        functions.append(
            {
                "name": function.name,
                "kind": function.kind,
                "vectorized": function.vectorized,
                "native": function.native,
                "not_native": function.not_native,
                "volatility": function.volatility,
                "documentation": function.documentation or None,
                "arguments": arguments,
                "returns": {"type": str(function.returns), "nullable": function.returns_nullable},
                "options": _options(function.options),
                "chosen": list(function.chosen),
                "timeout": function.timeout,
            }
        )
    about = ("name", "language", "abi_version", "toolkit_version", "hash")
    return {key: getattr(plugin, key) for key in about} | {"functions": functions}
