"""arroyo-udf run: a function over a file."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import click

from ..author.options import parse
from .crashes import named

POLICIES = click.Choice(["fail", "null", "drop", "dead_letter"])
FILE = click.Path(path_type=Path)


@click.command("run")
@click.argument("plugin", metavar="PLUGIN[:FUNCTION]")
@click.argument("source", metavar="INPUT", type=FILE)
@click.option("--args", "columns", required=True, help="The argument columns' names, separated by commas.")
@click.option("--out", "target", required=True, type=FILE, help="The output: .csv .parquet .arrow .feather .arrows.")
@click.option("--name", help="The result column's name; default: the function's.")
@click.option("--on-error", type=POLICIES, default="fail", show_default=True, help="What happens to a failed row.")
@click.option("--on-timeout", type=POLICIES, default="fail", show_default=True, help="What happens to a timed-out row.")
@click.option("--dead-letter", type=FILE, help="The file for rows with the policy dead_letter: .parquet or Arrow.")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="Such as timeout=2.5; overrides the author's."
)
@click.option(
    "--validate/--no-validate", default=True, show_default=True, help="Check every value that the plugin returns."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(
    plugin: str,
    source: Path,
    columns: str,
    target: Path,
    name: str | None,
    on_error: Any,
    on_timeout: Any,
    dead_letter: Path | None,
    options: tuple[str, ...],
    validate: bool,
    as_json: bool,
) -> None:
    """Call a function for each row of INPUT and write the rows with the result as last column.

    File endings choose the formats: CSV, Parquet or Arrow IPC. The output appears only when it is complete.
    The dead-letter file has the failed rows' arguments and errors; use it as INPUT to run them again.
    """
    from ..runner import run

    function = _function(plugin, validate)
    with named([function.where]), _Bar() as bar:
        summary = run(
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
    """The summary for JSON. The latency has its percentiles, in seconds."""
    described = dataclasses.asdict(summary)
    if summary.statistics is not None:
        names = ("rows", "p50", "p90", "p99", "max")
        described["statistics"]["latency"] = {name: getattr(summary.statistics.latency, name) for name in names}
    return described


def _chosen(options: tuple[str, ...]) -> dict[str, Any]:
    try:
        return dict(parse(option) for option in options)
    except ValueError as error:
        raise click.UsageError(f"--option {error}") from None


def _function(plugin: str, validate: bool) -> Any:
    """The function that PLUGIN[:FUNCTION] names."""
    from ..host.library import load

    path, colon, name = plugin, "", ""
    if not Path(plugin).exists():
        path, colon, name = plugin.rpartition(":")
        path = path if colon else plugin
    functions = load(Path(path), validate=validate).functions
    names = ", ".join(functions)
    if colon:
        if name not in functions:
            raise click.ClickException(f"{path} has no function {name!r}; it has {names}")
        return functions[name]
    if not functions:
        raise click.ClickException(f"{path} has no functions")
    if len(functions) != 1:
        raise click.ClickException(f"{path} has several functions ({names}): name one as {path}:FUNCTION")
    return next(iter(functions.values()))


class _Bar:
    """A progress bar on stderr, if that is a terminal: rate, errors and running calls."""

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
