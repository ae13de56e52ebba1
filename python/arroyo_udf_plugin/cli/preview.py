"""`arroyo-udf run` without --out: the first rows with their results, as a table on standard output.

    with written(writing) as (file, as_json):
        run(calls, inputs, file, reading=first_rows(reading), writing=as_json)
        print(table(read(file), results=["speed"]))

Rows are written as newline JSON and read again: what is shown is what `--out rows.jsonl` would have, and bytes in
hex.

Guarantees: nothing is written but a temporary file. Control characters of values do not reach the terminal.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..engine.connectors.options import Reading, Writing
from ..errors import ArroyoUdfError, printable

ROWS = 10
_CELL = 40
_BETWEEN = "  "
_LEFT_OUT = "…"


def first_rows(reading: Reading) -> Reading:
    """As it is read for a preview: `ROWS`, or as many as --limit says."""
    return dataclasses.replace(reading, limit=ROWS if reading.limit is None else reading.limit)


def check(writing: Writing, on_error: str, on_timeout: str, dead_letter: Path | None) -> None:
    """Raises UsageError for options that a preview cannot follow."""
    about_files = {
        "--out-format": writing.format is not None,
        "--compression": writing.compression is not None,
        "--force": writing.force,
        "--dead-letter": dead_letter is not None,
        "the policy dead_letter": "dead_letter" in (on_error, on_timeout),
    }
    if wrong := [name for name, is_given in about_files.items() if is_given]:
        raise click.UsageError(f"without --out, rows are only shown: add --out FILE, or leave out {', '.join(wrong)}")


@contextmanager
def written(writing: Writing) -> Iterator[tuple[Path, Writing]]:
    """A temporary file for the rows, and how they are written."""
    with tempfile.TemporaryDirectory(prefix="arroyo-udf-") as folder:
        file = Path(folder) / "rows.jsonl"
        try:
            yield file, dataclasses.replace(writing, format="jsonl", delimiter=None, quote='"', shown=True)
        except ArroyoUdfError as error:  # nobody knows this file
            error.args = tuple(arg.replace(f"{file}: ", "") if isinstance(arg, str) else arg for arg in error.args)
            raise


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def caption(rows: int, limit: int | None) -> str:
    """Which rows they are. limit: as --limit says."""
    if rows < (ROWS if limit is None else limit):
        return f"all rows ({rows:,})"
    return "the first row" if rows == 1 else f"the first {rows:,} rows"


def table(rows: Sequence[dict[str, Any]], results: Collection[str]) -> str:
    """results: the names of columns that, at the end, are shown whatever the terminal's width is."""
    if not rows:
        return "no rows"
    names = list(rows[0])
    columns = [[_cut(name), *(_text(row[name]) for row in rows)] for name in names]
    are_numbers = [all(_is_number(row[name]) for row in rows) for name in names]
    widths = [max(map(len, column)) for column in columns]
    at_end = sum(1 for _ in itertools.takewhile(lambda name: name in results, reversed(names)))
    shown = _fitting(widths, at_end, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    lines = (
        _BETWEEN.join(
            _LEFT_OUT
            if place is None
            else f"{columns[place][line]:{'>' if are_numbers[place] else '<'}{widths[place]}}"
            for place in shown
        )
        for line in range(len(rows) + 1)
    )
    return "\n".join(line.rstrip() for line in lines)


def _fitting(widths: Sequence[int], results: int, most: int | None) -> list[int | None]:
    """The places of the columns that fit. None: some are left out there."""
    every: list[int | None] = list(range(len(widths)))
    behind = len(widths) - results
    for kept in range(behind, -1, -1):
        places = every if kept == behind else [*every[:kept], None, *every[behind:]]
        width = sum(len(_LEFT_OUT) if place is None else widths[place] for place in places)
        if most is None or width + len(_BETWEEN) * (len(places) - 1) <= most:
            return places
    return places


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    text = printable(text[: _CELL + 1])
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}{_LEFT_OUT}"
