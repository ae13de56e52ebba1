"""arroyo-udf sql: one query over files, without tables that somebody declares."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from . import preview
from .building import shown
from .crashes import named
from .telling import counted

_FORMATS = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".tsv": "csv"}


@click.command("sql", short_help="Run a query over files, and show its rows.")
@click.option("-c", "--command", "query", required=True, metavar="QUERY", help="The query: SELECT ...")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--udf", "udfs", multiple=True, metavar="FILE", help="A plugin or source whose functions it calls.")
@click.option("--rows", "most", type=click.IntRange(min=0), default=100, show_default=True, help="How many are shown.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows, each as a JSON object.")
def command(query: str, files: tuple[Path, ...], udfs: tuple[str, ...], most: int, as_json: bool) -> None:
    """Run a query over FILEs, and show its rows as a table.

    Each file is a table with the name of the file up to its first dot: flights.csv is flights. A folder has the files
    in it. Columns of text get types if all of the first rows have them. The query may call functions of --udf anywhere.
    """
    from ..engine.connectors.single import File
    from ..engine.execution.embedded import run_planned
    from ..engine.pipeline.plan import plan
    from ..engine.planner.script import Script

    with shown():  # tables stand behind the query: so its lines and columns are the user's own
        script = Script("query", f"{query}\n;\n{_tables(files)}", udfs)
    if script.explain or len(script.pipeline.sinks) > 1 or script.pipeline.sinks[0].type != "stdout":
        raise click.UsageError("this command shows the rows of one SELECT: for anything else, write a file for `run`")
    with tempfile.TemporaryDirectory(prefix="arroyo-udf-") as folder:
        path = Path(folder) / "rows.jsonl"
        (sink,) = script.pipeline.sinks
        pipeline = script.pipeline.model_copy(update={"sinks": (File(path=str(path), after=sink.after),)})
        with script.located():
            planned = plan(pipeline)
        functions = planned.functions
        with contextlib.closing(planned), named(functions), contextlib.redirect_stdout(sys.stderr), script.located():
            run_planned(planned)
        if as_json:
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    click.echo(line, nl=False)
            return
        with path.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in itertools.islice(lines, most)]
            n_rows = len(rows) + sum(1 for _ in lines)
    click.echo(preview.table(rows, []))
    if n_rows > most:
        click.echo(f"the first {counted(most, 'row')} of {n_rows:,}: --rows shows more", err=True)


def _tables(files: Sequence[Path]) -> str:
    """The tables of files, as statements."""
    names = [os.path.abspath(file).rpartition("/")[2].split(".")[0] for file in files]
    for name, file in zip(names, files, strict=True):
        if not name:
            raise click.UsageError(f"{file} has no name before its first dot: rename it")
        if names.count(name) > 1:
            raise click.UsageError(f"several files would be the table {name}: rename {file}")
    return "".join(_table(name, file) for name, file in zip(names, files, strict=True))


def _table(name: str, file: Path) -> str:
    inner = sorted(file.iterdir())[:1] if file.is_dir() else [file]
    endings = "".join(inner[0].suffixes) if inner else ""
    format_ = next((known for ending, known in _FORMATS.items() if ending in endings), None)
    options = {"connector": "filesystem", "type": "source", "path": str(file), "infer_types": "true"}
    if format_ is not None:
        options["format"] = format_
    if ".tsv" in endings:
        options["csv.delimiter"] = "\t"
    written = ", ".join(f"'{key}' = {_text(value)}" for key, value in options.items())
    return f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}" WITH ({written});\n'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
