"""arroyo-udf replay: dead letters through the functions of their run, into its output."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..engine.pipeline.calls import WrittenCall
from .calls import call_written, calls_of, split
from .crashes import named
from .isolation import where_options
from .pipelines import either
from .pipelines import replay as replay_pipeline
from .run import CALL, FILE, JSON, OPTION, POLICIES, VALIDATE, Bar, chosen, load, report
from .telling import counted


@click.command("replay", cls=either(replay_pipeline), short_help="Run dead letters again.")
@click.argument("failed", metavar="FAILED", type=FILE)
@click.option("--into", "output", required=True, type=FILE, metavar="OUT", help="The output of their run.")
@click.option(
    "--plugin", metavar="PLUGIN", help="Another plugin than that of the run, with functions of the same names."
)
@CALL
@click.option("--on-error", type=POLICIES, help="What happens to a failed row; default: as in the run.")
@click.option("--on-timeout", type=POLICIES, help="What happens to a timed-out row; default: as in the run.")
@OPTION
@where_options
@VALIDATE
@JSON
def command(
    failed: Path,
    output: Path,
    plugin: str | None,
    written: tuple[str, ...],
    on_error: Any,
    on_timeout: Any,
    options: tuple[str, ...],
    where: dict[str, Any],
    validate: bool,
    as_json: bool,
) -> None:
    """Run the dead letters FAILED again, and add the rows that succeed to OUT, in their places.

    Or those of a pipeline: `arroyo-udf replay PIPELINE.toml`; --help after the file shows the options that it has.

    Plugin, functions, columns, options, policies and isolation are those of the run, unless given here. Rows that fail
    again are FAILED's next version, with the file and row number that they had first.
    """
    from ..engine.file_run.replay import note_of_run, replay

    note = note_of_run(output)
    calls = [call_written(text) for text in written] or [WrittenCall(*call) for call in note.calls]
    path, function = split(note.plugin if plugin is None else plugin)
    if function is not None:
        raise click.UsageError(f"--plugin {plugin}: name the file alone; --call names functions")
    where = where if "isolation" in where else {**note.where, **where}
    with load(path, validate, where) as loaded:
        made = calls_of(loaded, path, calls)
        is_async = any(call.function.kind == "async" for call in made)
        note = dataclasses.replace(
            note,
            plugin=str(path.absolute()),
            calls=tuple((call.function.name, call.columns, call.name) for call in made),
            options=_overridden(note.options if is_async else {}, chosen(options)),
            on_error=on_error or note.on_error,
            on_timeout=on_timeout or note.on_timeout,
            where=where,
        )
        names = [call.function.where for call in made]
        with named(names), Bar() as bar, contextlib.redirect_stdout(sys.stderr):
            summary = replay(failed, output, made, note, bar.show)
    there = f", {summary.already_there:,} were there already" if summary.already_there else ""
    report(
        summary,
        f"{output}: {counted(summary.added, 'row')} added of {counted(summary.rows, 'dead letter')}{there}",
        as_json,
    )


def _overridden(noted: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the run, and those given now; of each function, too."""
    for name in sorted(noted.keys() & given.keys()):
        if isinstance(noted[name], dict) != isinstance(given[name], dict):
            kinds = ("a function", "an option") if isinstance(given[name], dict) else ("an option", "a function")
            raise click.UsageError(f"--option {name}: it is {kinds[0]} here and {kinds[1]} of the run; leave it out")
    own = {name: {**noted.get(name, {}), **value} for name, value in given.items() if isinstance(value, dict)}
    return {**noted, **given, **own}
