"""arroyo-udf run PIPELINE.toml or QUERY.sql, replay, check and schema: pipelines.

`run` and `replay` have two forms, one for plugins (run.py, replay.py) and this one; the ending of their first argument
tells them apart.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from .building import shown
from .crashes import named
from .starting import starting
from .stopping import Stopped, drainable
from .telling import counted, duration, failed, text_of, values
from .view import view

if TYPE_CHECKING:
    from ..engine.execution.progress import PipelineSummary
    from ..engine.execution.restoring import Restoring
    from ..engine.execution.stopping import StopRequest
    from ..engine.pipeline.description import Pipeline
    from ..engine.pipeline.document import Document
    from ..engine.pipeline.plan import Planned
    from ..engine.pipeline.replayed import ReplayCounts
    from ..engine.planner.script import Script

_ENDINGS = (".toml", ".json", ".sql")

_FILE = click.argument("file", metavar="PIPELINE.toml|QUERY.sql")
_CHECKPOINTS = click.option("--checkpoints", metavar="DIR|URL", help="Where checkpoints are kept.")
_UDFS = click.option(
    "--udf", "udfs", multiple=True, metavar="FILE", help="Of a query: a plugin or source whose functions it calls."
)


def _checkpoint(context: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    """The number of a checkpoint, or the name of a savepoint."""
    if value is None or not value.isdecimal():
        return value
    if not int(value):
        raise click.BadParameter("0 is no checkpoint: they begin with 1", context, parameter)
    return int(value)


_RESTORE = click.option(
    "--restore",
    callback=_checkpoint,
    metavar="NUMBER|NAME",
    help="Go back to this checkpoint, or savepoint, and on from there.",
)
_PARALLELISM = click.option("--parallelism", type=click.IntRange(1, 1024), help="How many slices run side by side.")
_RETAIN = click.option(
    "--retain", type=click.IntRange(1), metavar="N", help="How many checkpoints are kept; default: 3."
)
_STOP_TIMEOUT = click.option(
    "--stop-timeout",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="Seconds for the rows in flight and the last checkpoint after Ctrl-C or SIGTERM.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")


def is_pipeline(argument: str) -> bool:
    """Whether the first argument of `run` is a pipeline, not a plugin."""
    return argument.endswith(_ENDINGS)


def either(pipelines: click.Command) -> type[click.Command]:
    """The class of a command that is `pipelines` if its first argument is a pipeline."""

    class Either(click.Command):
        def make_context(
            self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
        ) -> click.Context:
            if is_pipeline(self._first_argument(args)):
                return pipelines.make_context(info_name, args, parent, **extra)
            return super().make_context(info_name, args, parent, **extra)

        def _first_argument(self, args: Sequence[str]) -> str:
            """The first word that is neither an option nor an option's value; "" if there is none."""
            options = {name: option for option in (*self.params, *pipelines.params) for name in option.opts}
            words = iter(args)
            for word in words:
                option = options.get(word)
                if isinstance(option, click.Option) and not option.is_flag:
                    next(words, "")
                elif not word.startswith("-") or word == "-":
                    return word
            return ""

    return Either


@click.command("run")
@_FILE
@_CHECKPOINTS
@click.option("--resume", is_flag=True, help="Go on from the latest checkpoint: there must be one.")
@click.option("--fresh", is_flag=True, help="Begin: there must be no checkpoint.")
@_RESTORE
@click.option(
    "--accept-doubles",
    "doubles",
    multiple=True,
    metavar="SINK",
    help="Go back although this output will have rows twice; may be repeated.",
)
@_RETAIN
@_PARALLELISM
@_UDFS
@_STOP_TIMEOUT
@click.option("--allow-changed-plugin", is_flag=True, help="Resume although a plugin is another one now.")
@click.option("--explain", is_flag=True, help="Only show the chain with its columns.")
@_JSON
def run(
    file: str,
    checkpoints: str | None,
    resume: bool,
    fresh: bool,
    restore: int | str | None,
    doubles: tuple[str, ...],
    retain: int | None,
    parallelism: int | None,
    udfs: tuple[str, ...],
    stop_timeout: float,
    allow_changed_plugin: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Run a pipeline: a source, functions, and sinks, described in a TOML or JSON file, or as a query in SQL.

    With checkpoints, a run goes on from the latest one, and begins if there is none and no output has rows of this
    pipeline. Ctrl-C or SIGTERM lets the rows in flight end, takes a last checkpoint and ends with status 0. A second
    signal ends at once. Without checkpoints the first one does, and no output appears.

    --restore says first what becomes of the rows of later checkpoints, which are given up. `check --restore` only says
    it.
    """
    if fresh and (resume or restore is not None):
        raise click.UsageError("--resume and --restore go on, and --fresh begins: leave out one of them")
    if doubles and restore is None:
        raise click.UsageError("--accept-doubles belongs to --restore: nothing else doubles rows")
    with starting():
        from ..engine.execution.embedded import restore_planned, run_planned
        from ..engine.execution.stopping import StopRequest
        from ..engine.pipeline.explain import explained

    document = _read(file, udfs)
    pipeline = _chosen(document.pipeline, checkpoints, parallelism, retain)
    again = _again("run", file, udfs, checkpoints) if pipeline.has_checkpoints else None
    # Until it has gone back, another run is not the same.
    with _to_be_repeated(again if restore is None else None), _planned(document, pipeline) as planned:
        if explain or document.explain:
            click.echo(explained(planned))
            return
        if restore is not None:
            with document.located(), _files_told():
                restore_planned(
                    planned, restore, doubles=doubles, allow_changed_plugin=allow_changed_plugin, tell=_tell_restoring
                )
        stop = StopRequest(stop_timeout)
        functions = planned.functions
        with named(functions), contextlib.redirect_stdout(sys.stderr), view(planned.name) as shows, document.located():

            def start() -> PipelineSummary:
                with _files_told():
                    return run_planned(
                        planned,
                        resume=True if resume or restore is not None else False if fresh else None,
                        allow_changed_plugin=allow_changed_plugin,
                        stop=stop,
                        progress=shows.show,
                        progress_every=shows.every,
                    )

            summary = start() if again is None else _drained(start, stop, again)
    _report(summary, as_json, err=any(sink.on_standard_output() is not None for sink in pipeline.sinks))
    if summary.ended == "resumable":
        click.echo(f"stopped; go on with: {again} --resume", err=True)


@click.command("replay")
@_FILE
@_CHECKPOINTS
@click.option(
    "--row",
    "rows",
    multiple=True,
    metavar="FILE:NUMBER",
    help="Only this row, or FILE:FIRST-LAST, as failed_file and failed_row have them; several, one after another.",
)
@click.option("--again", is_flag=True, help="Also rows, of --row, that were replayed before.")
@_RETAIN
@_PARALLELISM
@_UDFS
@_STOP_TIMEOUT
@_JSON
def replay(
    file: str,
    checkpoints: str | None,
    rows: tuple[str, ...],
    again: bool,
    retain: int | None,
    parallelism: int | None,
    udfs: tuple[str, ...],
    stop_timeout: float,
    as_json: bool,
) -> None:
    """Run the dead letters of a pipeline again, and add what comes of them to its sinks.

    It goes on from the pipeline's checkpoints, which say what was replayed: a row comes once. Rows that fail again are
    new dead letters, for the next replay. Plugins may have changed. A run of the same pipeline must have ended.
    """
    from ..engine.execution.embedded import replay_planned
    from ..engine.execution.stopping import StopRequest
    from ..engine.pipeline.replayed import Choice

    choice = Choice.of(rows, again)
    document = _read(file, udfs)
    pipeline = _chosen(document.pipeline, checkpoints, parallelism, retain)
    repeated = _again("replay", file, udfs, checkpoints, *(word for row in rows for word in ("--row", row)))
    with _to_be_repeated(repeated), _planned(document, pipeline) as planned:
        stop = StopRequest(stop_timeout)
        results: list[ReplayCounts] = []
        functions = planned.functions
        with named(functions), contextlib.redirect_stdout(sys.stderr), view(planned.name) as shows, document.located():

            def start() -> PipelineSummary:
                with _files_told():
                    summary, counts = replay_planned(
                        planned, choice, stop=stop, progress=shows.show, progress_every=shows.every
                    )
                results.append(counts)
                return summary

            summary = _drained(start, stop, repeated)
    _report(summary, as_json, err=False, replayed=results[-1])


@click.command("check", short_help="Check a pipeline without running it.")
@_FILE
@_CHECKPOINTS
@_RESTORE
@_PARALLELISM
@_UDFS
def check(
    file: str, checkpoints: str | None, restore: int | str | None, parallelism: int | None, udfs: tuple[str, ...]
) -> None:
    """Check a pipeline without running it: keys, variables, plugins, columns, types, sinks.

    Plugins are built, and sources and sinks are looked at. No function is called, and nothing is written.
    With --restore: whether it can go on from that checkpoint, and what becomes of the rows of later ones.
    """
    document = _read(file, udfs)
    with _planned(document, _chosen(document.pipeline, checkpoints, parallelism, None)) as planned:
        with document.located():
            planned.check_free()
            if restore is not None:
                from ..engine.execution.embedded import look_at_restore

                _tell_restoring(look_at_restore(planned, restore), err=False)
        click.echo(f"{file}: the pipeline {planned.name} can be run")


@click.command("schema", short_help="Print the JSON schema of pipelines.")
def schema() -> None:
    """Print the JSON schema of pipelines, for editors and programs."""
    from ..engine.pipeline.description import schema as schema_of_pipelines

    click.echo(json.dumps(schema_of_pipelines(), indent=2))


def _read(file: str, udfs: tuple[str, ...]) -> Document | Script:
    if file.endswith(".sql"):
        with starting():
            from ..engine.planner.script import Script

        with shown(), starting():  # it imports DataFusion
            return Script.read(file, udfs)
    if udfs:
        raise click.UsageError("--udf is for queries (.sql): an operator of a description names its plugin")
    with starting():
        from ..engine.pipeline.document import Document

    return Document.read(file)


@click.group("checkpoints", short_help="Show the checkpoints in a place.")
def checkpoints() -> None:
    """The checkpoints of pipelines."""


@checkpoints.command("ls")
@click.argument("place", metavar="DIR|URL")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each.")
def list_checkpoints(place: str, as_json: bool) -> None:
    """List the checkpoints that are kept in a place, the oldest first. All that they have is read, and checked.

    `run --restore NUMBER` goes back to one of them.
    """
    from ..engine.execution.restoring import checkpoints_in
    from ..engine.execution.store import open_store

    for checkpoint in checkpoints_in(open_store(place)):
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(checkpoint)))
        else:
            click.echo(
                f"{checkpoint.epoch}  {checkpoint.time or '-'}  "
                f"{checkpoint.problem or f'{checkpoint.state_bytes:,} bytes of state'}"
            )


def _tell_restoring(restoring: Restoring, err: bool = True) -> None:
    for line in restoring.lines():
        click.echo(line, err=err)


def _chosen(pipeline: Pipeline, place: str | None, parallelism: int | None, retain: int | None) -> Pipeline:
    """The pipeline with what the command line chooses."""
    from ..engine.pipeline.description import Checkpoints

    chosen: dict[str, Any] = {}
    if parallelism is not None:
        chosen["parallelism"] = parallelism
    update = {name: value for name, value in (("place", place), ("retain", retain)) if value is not None}
    if update:
        chosen["checkpoints"] = (pipeline.checkpoints or Checkpoints()).model_copy(update=update)
    return pipeline.model_copy(update=chosen)


@contextlib.contextmanager
def _planned(document: Document | Script, pipeline: Pipeline) -> Iterator[Planned]:
    with starting():
        from ..engine.pipeline.plan import plan

    with shown(), document.located():
        planned = plan(pipeline)
    with contextlib.closing(planned):
        yield planned


@contextlib.contextmanager
def _files_told() -> Iterator[None]:
    """A disk that is full or gone is nobody's bug: a text, not a traceback."""
    try:
        yield
    except BrokenPipeError:  # whoever reads standard output has enough: click ends the command
        raise
    except OSError as error:
        raise click.ClickException(text_of(error)) from error


def _drained(start: Callable[[], PipelineSummary], stop: StopRequest, go_on: str) -> PipelineSummary:
    """Runs the engine. The first signal asks it to stop; if it fails then, the exit status is the signal's."""

    def asked() -> None:
        # At once, whatever the view does with the stream.
        os.write(2, b"arroyo-udf: waits for the rows in flight and a checkpoint; a second signal ends it at once\n")
        stop.request()

    with drainable(asked) as came:
        try:
            summary = start()
            if summary.ended != "cut off":
                return summary
        except Exception as error:
            if not came:
                raise
            click.echo(f"Error: {text_of(error)}", err=True)
    click.echo(f"stopped without a last checkpoint; go on from the latest one with: {go_on}", err=True)
    raise SystemExit(128 + came[0])


def _again(command: str, file: str, udfs: tuple[str, ...], checkpoints: str | None, *options: str) -> str:
    """The command that goes on, or begins if nothing has begun."""
    place = [] if checkpoints is None else ["--checkpoints", checkpoints]
    functions = [word for udf in udfs for word in ("--udf", udf)]
    return shlex.join(["arroyo-udf", command, file, *functions, *place, *options])


@contextlib.contextmanager
def _to_be_repeated(command: str | None) -> Iterator[None]:
    """A signal that ends the block at once says how to go on. command: None: nothing can go on."""
    try:
        yield
    except Stopped:
        if command is not None:
            click.echo(f"go on with: {command}", err=True)
        raise


def _left_out(counts: ReplayCounts) -> Iterator[str]:
    if counts.replayed_before:
        yield f"{counted(counts.replayed_before, 'row')} had been replayed before: --row and --again replay them again"
    if counts.unread:
        yield f"{counted(counts.unread, 'dead letter')} of rows that could not be read: these have lost values"
    if counts.late:
        yield f"{counted(counts.late, 'dead letter')} of late rows: their windows are over"
    if counts.of_windows:
        yield f"{counted(counts.of_windows, 'dead letter')} of windows: their results come from many rows"


def _report(summary: PipelineSummary, as_json: bool, err: bool, replayed: ReplayCounts | None = None) -> None:
    """err: to standard error, because rows have gone to standard output. replayed: of a replay."""
    progress = summary.progress
    if as_json:
        document = dataclasses.asdict(summary)
        if replayed is not None:
            document["replay"] = dataclasses.asdict(replayed)
        if document["progress"]["checkpoint"] is not None:
            del document["progress"]["checkpoint"]["statistics"]  # of its parts: for the engine around pipelines
        click.echo(json.dumps(document.pop("progress") | document), err=err)
        return
    counts = {
        name: sum(getattr(operator.counts, name) for operator in progress.operators)
        for name in ("values", "nulls", "errors", "timed_out", "nulled", "dropped", "dead_letters", "late")
    }
    counts["dropped"] += progress.dropped  # rows that could not be read
    counts["dead_letters"] += progress.dead_letters
    late = f", {counts['late']:,} late" if counts["late"] else ""  # most pipelines have no windows
    click.echo(
        f"{summary.pipeline}: {counted(progress.rows_in, 'row')} read, {progress.rows_out:,} written; "
        f"{values(counts['values'], counts['nulls'])}, {counted(counts['errors'], 'error')}, "
        f"{counts['timed_out']:,} timed out, {counts['nulled']:,} nulled, {counts['dropped']:,} dropped, "
        f"{counted(counts['dead_letters'], 'dead letter')}{late}; "
        f"{progress.seconds:.2f} s, {summary.rows_per_s:,.0f} rows/s",
        err=err,
    )
    for line in _left_out(replayed) if replayed is not None else ():
        click.echo(line, err=err)
    for line in failed(progress.failures):
        click.echo(line, err=err)
    for operator in progress.operators:
        p50, p99 = operator.latency.p50, operator.latency.p99
        if p50 is not None and p99 is not None:
            click.echo(f"{operator.name}: a row took {duration(p50)} (p50), {duration(p99)} (p99)", err=err)
        for line in failed(operator.failures, f"{operator.name}: "):
            click.echo(line, err=err)
    for text in summary.close_errors:
        click.echo(f"Warning: all rows have ended, but then close failed: {text}", err=True)
