"""arroyo-udf run: functions over files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..author.options import parse
from ..engine.connectors.options import Reading, Writing
from ..engine.pipeline.calls import WrittenCall
from . import preview
from .building import shown
from .calls import call_written, calls_of, columns_written, only_function, split
from .crashes import named
from .files import input_options, output_options
from .isolation import where_options
from .pipelines import either
from .pipelines import run as run_pipeline
from .starting import starting
from .telling import counted, duration, failed, values

if TYPE_CHECKING:
    from ..engine.file_run.passes import Summary
    from ..host.library import Plugin

POLICIES = click.Choice(["fail", "null", "drop", "dead_letter"])
FILE = click.Path(path_type=Path)
CALL = click.option(
    "--call",
    "written",
    multiple=True,
    metavar="CALL",
    help="'NAME = FUNCTION(COLUMN, ...)', also with constants: 3, 'text', true, null; several, one after another.",
)
OPTION = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of async functions, such as timeout=2.5, or of one, FUNCTION.timeout=2.5; overrides the author's.",
)
VALIDATE = click.option(
    "--validate/--no-validate", default=True, show_default=True, help="Check every value that the plugin returns."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")


@click.command("run", cls=either(run_pipeline), short_help="Call functions over files, or run a pipeline.")
@click.argument("plugin", metavar="PLUGIN[:FUNCTION]")
@input_options
@output_options
@click.option("--args", "columns", help="The argument columns, separated by commas; default: the parameters' names.")
@click.option("--name", help="The result column's name; default: the function's.")
@CALL
@click.option("--on-error", type=POLICIES, default="fail", show_default=True, help="What happens to a failed row.")
@click.option("--on-timeout", type=POLICIES, default="fail", show_default=True, help="What happens to a timed-out row.")
@click.option("--dead-letter", type=FILE, help="The file for rows with the policy dead_letter: .parquet or Arrow.")
@OPTION
@where_options
@VALIDATE
@JSON
def command(
    plugin: str,
    inputs: tuple[str, ...],
    reading: Reading,
    target: str | None,
    writing: Writing,
    columns: str | None,
    name: str | None,
    written: tuple[str, ...],
    on_error: Any,
    on_timeout: Any,
    dead_letter: Path | None,
    options: tuple[str, ...],
    where: dict[str, Any],
    validate: bool,
    as_json: bool,
) -> None:
    """Call a function for each row of INPUT and write the rows with the result as last column.

    Or run a pipeline: `arroyo-udf run PIPELINE.toml`; --help after the file shows the options that it has.

    PLUGIN may be a source (.py, .rs or .c), too: it is built if it is new or has changed. What functions print goes to
    standard error.

    Without --out, the first ten rows are shown with their results, or as many as --limit says, and nothing is written.

    File endings choose the formats: CSV, newline JSON, Parquet or Arrow IPC. The output appears only when it is
    complete. --call "speed = mph(miles, minutes)", which may be repeated, calls several functions in one pass; each
    may take the results of those before it.

    The dead-letter file has the failed rows with all their columns and their errors. `arroyo-udf replay` runs them
    again and adds them to the output; it is also a normal INPUT.
    """
    with starting():
        from ..engine.file_run import run

    path, function = split(plugin)
    if written and (function is not None or columns is not None or name is not None):
        raise click.UsageError("--call names function, columns and result: leave out :FUNCTION, --args and --name")
    calls = [call_written(text) for text in written]
    if target is None:
        preview.check(writing, on_error, on_timeout, dead_letter)
    with load(path, validate, where) as loaded:
        if not calls:
            function = only_function(loaded, path) if function is None else function
            calls = [WrittenCall(function, None if columns is None else columns_written(columns, "--args"), name)]
        made = calls_of(loaded, path, calls)
        names = [call.function.where for call in made]
        with named(names), Bar() as bar, contextlib.redirect_stdout(sys.stderr):
            start = functools.partial(
                run,
                made,
                inputs,
                on_error=on_error,
                on_timeout=on_timeout,
                dead_letter=dead_letter,
                options=chosen(options),
                plugin=str(path.absolute()),
                where=where,
                progress=bar.show,
            )
            if target is not None:
                summary = start(target, reading=reading, writing=writing)
            else:
                with preview.written(writing) as (file, as_lines):
                    summary = start(file, reading=preview.first_rows(reading), writing=as_lines)
                    rows = preview.read(file)
    if target is not None:
        report(
            summary, f"{summary.output}: {counted(summary.written, 'row')} written of {summary.rows:,} read", as_json
        )
        return
    summary.output = "-"
    if as_json:
        click.echo(json.dumps(_described(summary) | {"preview": rows}))
        return
    click.echo(preview.table(rows, [call.name for call in made]))
    report(summary, preview.caption(summary.rows, reading.limit), as_json)
    click.echo("nothing was written; to write all rows, add --out FILE", err=True)


def report(summary: Summary, first: str, as_json: bool) -> None:
    """Prints the summary, on stderr if the rows went to stdout. first: how the text begins."""
    to_stderr = summary.output == "-"
    for warning in summary.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(_described(summary)), err=to_stderr)
        return
    click.echo(
        f"{first}; {values(summary.values, summary.nulls)}, {counted(summary.errors, 'error')}, "
        f"{summary.timed_out:,} timed out; {summary.nulled:,} nulled, {summary.dropped:,} dropped, "
        f"{counted(summary.dead_letters, 'dead letter')}; "
        f"{summary.seconds:.2f} s, {summary.rows_per_s:,.0f} rows/s",
        err=to_stderr,
    )
    if summary.types:
        types = ", ".join(f"{name}={type_}" for name, type_ in summary.types.items())
        click.echo(f"types by the first rows: {types}", err=to_stderr)
    for counts in summary.calls:
        for line in failed(counts.failures):
            click.echo(line, err=to_stderr)
        if counts.statistics is not None:
            name = "" if len(summary.calls) == 1 else f"{counts.function}: "
            click.echo(f"{name}calls: {_calls(counts.statistics)}", err=to_stderr)


def _calls(statistics: Any) -> str:
    names = ("retries", "stuck", "blocked", "left_behind", "discarded")
    counted = {name.replace("_", " "): getattr(statistics, name) for name in names}
    text = ", ".join(f"{count:,} {name}" for name, count in counted.items())
    if statistics.cache_misses:
        spared = f"{statistics.cache_hits + statistics.cache_shared:,} rows needed no call of their own"
        text += f"; {statistics.cache_misses:,} different arguments, {spared}, {statistics.cache_entries:,} values kept"
    latency = statistics.latency
    if latency.rows:
        durations = (duration(latency.p50), duration(latency.p99), duration(latency.max))
        text += "; a row took {} (p50), {} (p99), {} at most".format(*durations)
    return text


def _described(summary: Summary) -> dict[str, Any]:
    """The summary for JSON. Latencies have their percentiles, in seconds."""
    described = dataclasses.asdict(summary)
    for statistics, into in [(summary.statistics, described)] + [
        (counts.statistics, into) for counts, into in zip(summary.calls, described["calls"], strict=True)
    ]:
        if statistics is not None:
            names = ("rows", "p50", "p90", "p99", "max")
            into["statistics"]["latency"] = {name: getattr(statistics.latency, name) for name in names}
    return described


def chosen(options: tuple[str, ...]) -> dict[str, Any]:
    """The options of --option, those of one function under its name. Raises UsageError."""
    parsed: dict[str, Any] = {}
    for option in options:
        function, dot, rest = option.partition(".")
        is_own = bool(dot) and "=" not in function
        try:
            name, value = parse(rest if is_own else option)
        except ValueError as error:
            raise click.UsageError(f"--option {error}") from None
        into = parsed.setdefault(function, {}) if is_own else parsed
        if not isinstance(into, dict) or (not is_own and isinstance(parsed.get(name), dict)):
            both = function if is_own else name
            raise click.UsageError(f"--option {option}: {both} is an option and a function; leave one out")
        into[name] = value
    return parsed


def load(path: Path, validate: bool, where: Mapping[str, Any]) -> Plugin:
    """path: a plugin, or a source, which is built if it is new or has changed. where: see `where_options`."""
    with starting():
        from ..build import plugin_for
        from ..host.library import load as load_plugin

    with shown():
        path = plugin_for(path)
    return load_plugin(path, validate=validate, **where)


class Bar:
    """A progress bar on stderr, if that is a terminal: rate, errors and running calls."""

    def __enter__(self) -> Bar:
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(unit=" rows", unit_scale=True, file=sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, summary: Summary, total: int | None) -> None:
        if self._bar is None:
            return
        self._bar.total = total
        running = [counts.statistics.running for counts in summary.calls if counts.statistics is not None]
        shown = {"running": sum(running)} if running else {}
        self._bar.set_postfix(shown, errors=summary.errors + summary.timed_out, refresh=False)
        self._bar.update(summary.rows - self._bar.n)
