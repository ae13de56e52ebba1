"""The command line: arroyo-udf new | build | inspect | run.

Exit status: 0 done; 1 the toolkit's error, with its text on stderr (a failed row, source, file or plugin); 2 usage.
Results are on stdout, progress and errors on stderr.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import click

from ._errors import ArroyoUdfError

TEMPLATES = Path(__file__).parent / "build" / "templates" / "new"
SUFFIXES = {"python": ".py", "rust": ".rs", "c": ".c"}
POLICIES = click.Choice(["fail", "null", "drop", "dead_letter"])
FILE = click.Path(path_type=Path)


class _Group(click.Group):
    """Turns the toolkit's exceptions into a text on stderr and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ArroyoUdfError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
@click.version_option(package_name="arroyo_udf_plugin")
def main() -> None:
    """UDFs in Python, Rust or C, as one shared library each."""


@main.command()
@click.argument("name")
@click.option("--lang", type=click.Choice(list(SUFFIXES)), required=True, help="The language to write in.")
def new(name: str, lang: str) -> None:
    """Make the folder NAME with a function to begin with, some rows, and a README with the next two commands."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise click.ClickException(f"{name!r} is no name for a plugin: use a-z, 0-9 and _, a letter first")
    folder, suffix = Path(name), SUFFIXES[lang]
    try:
        folder.mkdir()
    except FileExistsError:
        raise click.ClickException(f"{folder} exists already: choose another name, or remove it first") from None
    (folder / f"{name}{suffix}").write_text((TEMPLATES / f"udf{suffix}").read_text())
    (folder / "rows.csv").write_text((TEMPLATES / "rows.csv").read_text())
    readme = (TEMPLATES / "README.md").read_text()
    (folder / "README.md").write_text(readme.replace("NAME", name).replace("SUFFIX", suffix))
    click.echo(f"{folder / (name + suffix)} is yours to edit; {folder / 'README.md'} says how to build and run it")


@main.command()
@click.argument("source", metavar="SRC", type=FILE)
@click.option("-o", "--out", type=FILE, help="The plugin's path; default: beside the source, ending in .so.")
@click.option("--arroyo", metavar="FUNCTION", help="Export it for the Arroyo engine too; default: the only function.")
@click.option(
    "--arroyo-on-error",
    type=click.Choice(["fail", "null"]),
    default="fail",
    show_default=True,
    help="What becomes of a failed row there.",
)
@click.option("--locked", is_flag=True, help="Dependencies as the lock beside SRC says; refuse if it does not fit.")
@click.option("--offline", is_flag=True, help="Download nothing.")
def build(
    source: Path, out: Path | None, arroyo: str | None, arroyo_on_error: Any, locked: bool, offline: bool
) -> None:
    """Compile SRC (.py, .rs or .c) into a plugin, one shared library, and print its path."""
    from .build import build as build_plugin

    built = build_plugin(source, out, arroyo=arroyo, arroyo_on_error=arroyo_on_error, locked=locked, offline=offline)
    click.echo(str(built))


@main.command()
@click.argument("plugin", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect(plugin: Path, as_json: bool) -> None:
    """Say what PLUGIN contains. Runs none of its functions and starts no interpreter in it."""
    from .host import load

    description = _description(load(plugin))
    if as_json:
        click.echo(json.dumps(description, indent=2))
        return
    about = ("name", "language", "abi_version", "toolkit_version", "hash")
    click.echo("\n".join(f"{key:<16} {description[key]}" for key in about))
    for function in description["functions"]:
        arguments = ", ".join(f"{argument['name']}: {_type(argument)}" for argument in function["arguments"])
        click.echo(f"\n{function['name']}({arguments}) -> {_type(function['returns'])}")
        words = [function["kind"]] + ["vectorized"] * function["vectorized"]
        options = function["options"] or {}
        words += [f"{key}={options[key]}" for key in function["chosen"]]
        click.echo("    " + ", ".join(words))
        defaults = ", ".join(f"{key}={value}" for key, value in options.items() if key not in function["chosen"])
        if defaults:
            click.echo(f"    by default: {defaults}")


def _type(described: dict[str, Any]) -> str:
    return str(described["type"]) + (" or null" if described["nullable"] else "")


def _options(options: Any) -> dict[str, Any] | None:
    """The author's choices and the defaults; None stands for no timeout or deadline, because JSON has no infinity. What
    has no default is left out."""
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
                "arguments": arguments,
                "returns": {"type": str(function.returns), "nullable": function.returns_nullable},
                "options": _options(function.options),
                "chosen": list(function.chosen),
            }
        )
    about = ("name", "language", "abi_version", "toolkit_version", "hash")
    return {key: getattr(plugin, key) for key in about} | {"functions": functions}


@main.command()
@click.argument("plugin", metavar="PLUGIN[:FUNCTION]")
@click.argument("source", metavar="INPUT", type=FILE)
@click.option("--args", "columns", required=True, help="The argument columns' names, separated by commas.")
@click.option("--out", "target", required=True, type=FILE, help="The output: .csv .parquet .arrow .feather .arrows.")
@click.option("--name", help="The result column's name; default: the function's.")
@click.option("--on-error", type=POLICIES, default="fail", show_default=True, help="What becomes of a failed row.")
@click.option("--on-timeout", type=POLICIES, default="fail", show_default=True, help="What of a row that timed out.")
@click.option("--dead-letter", type=FILE, help="The file for rows with the policy dead_letter: .parquet or Arrow.")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="As timeout=2.5; wins over the author's."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def run(
    plugin: str,
    source: Path,
    columns: str,
    target: Path,
    name: str | None,
    on_error: Any,
    on_timeout: Any,
    dead_letter: Path | None,
    options: tuple[str, ...],
    as_json: bool,
) -> None:
    """Call a function for each row of INPUT and write the rows with the result as last column.

    INPUT and output are CSV, Parquet or Arrow IPC, by their file endings. The output appears when it is complete.
    The file of the dead letters has their arguments and what went wrong; as INPUT it runs them again.
    """
    from .runner import run as run_function

    function = _function(plugin)
    with _Bar() as bar:
        summary = run_function(
            function,
            source,
            target,
            columns.split(","),
            name=name,
            on_error=on_error,
            on_timeout=on_timeout,
            dead_letter=dead_letter,
            options=_chosen(options),
            progress=bar.show,
        )
    if as_json:
        click.echo(json.dumps(_summary(summary)))
        return
    written = summary.rows - summary.dropped - summary.dead_letters
    click.echo(
        f"{summary.output}: {written:,} rows written of {summary.rows:,} read; "
        f"{summary.values:,} values, {summary.errors:,} errors, {summary.timed_out:,} timed out; "
        f"{summary.nulled:,} nulled, {summary.dropped:,} dropped, {summary.dead_letters:,} dead letters; "
        f"{summary.seconds:.2f} s, {summary.rows_per_s:,.0f} rows/s"
    )
    if summary.statistics is not None:
        click.echo(f"calls: {_calls(summary.statistics)}")


def _calls(statistics: Any) -> str:
    names = ("retries", "stuck", "blocked", "left_behind", "discarded")
    counted = {name.replace("_", " "): getattr(statistics, name) for name in names}
    text = ", ".join(f"{count:,} {name}" for name, count in counted.items())
    latency = statistics.latency
    if latency.rows:
        text += f"; a row took {_time(latency.p50)} (p50), {_time(latency.p99)} (p99), {_time(latency.max)} at most"
    return text


def _time(seconds: float) -> str:
    unit, size = next((pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("us", 1e-6))
    number = seconds / size
    return f"{number:.3g} {unit}" if number < 100 else f"{number:.0f} {unit}"


def _summary(summary: Any) -> dict[str, Any]:
    """As JSON has it: of the latency its percentiles, in seconds."""
    described = dataclasses.asdict(summary)
    if summary.statistics is not None:
        names = ("rows", "p50", "p90", "p99", "max")
        described["statistics"]["latency"] = {name: getattr(summary.statistics.latency, name) for name in names}
    return described


def _chosen(options: tuple[str, ...]) -> dict[str, Any]:
    from .options import parse

    try:
        return dict(parse(option) for option in options)
    except ValueError as error:
        raise click.UsageError(f"--option {error}") from None


def _function(plugin: str) -> Any:
    """The function that PLUGIN[:FUNCTION] names."""
    from .host import load

    path, colon, name = plugin, "", ""
    if not Path(plugin).exists():
        path, colon, name = plugin.rpartition(":")
        path = path if colon else plugin
    functions = load(Path(path)).functions
    names = ", ".join(functions)
    if colon:
        if name not in functions:
            raise click.ClickException(f"{path} has no function {name!r}; it has {names}")
        return functions[name]
    if len(functions) != 1:
        raise click.ClickException(f"{path} has several functions: name one as {path}:FUNCTION, of {names}")
    return next(iter(functions.values()))


class _Bar:
    """A progress bar on stderr, where that is a terminal: rate, errors, and calls that run."""

    def __enter__(self) -> _Bar:
        from tqdm import tqdm

        self._bar = tqdm(unit=" rows", unit_scale=True, disable=None, file=sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def show(self, summary: Any, total: int | None) -> None:
        if self._bar.disable:
            return
        self._bar.total = total
        running = {} if summary.statistics is None else {"running": summary.statistics.running}
        self._bar.set_postfix(running, errors=summary.errors + summary.timed_out, refresh=False)
        self._bar.update(summary.rows - self._bar.n)


if __name__ == "__main__":
    main()
