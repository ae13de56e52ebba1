"""The options of commands that read and write files: which, in what format, and how.

    @input_options
    @output_options
    def command(inputs, reading, target, writing, ...):
        FileSource(inputs, reading), FileSink(target, schema, writing)

Each option has one name in all commands.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from typing import Any

import click

from ..engine.connectors.options import FORMATS, NULL_VALUES, ROW_GROUP_ROWS, Reading, Writing, split_types
from .calls import columns_written

_INPUT = [
    click.argument("inputs", metavar="INPUT...", nargs=-1, required=True),
    click.option("--in-format", type=click.Choice(FORMATS), help="The input's format; default: by its ending."),
    click.option(
        "--types",
        multiple=True,
        metavar="NAME=TYPE,...",
        help="Types of text columns, such as zip=str,day=date; auto: by the first rows.",
    ),
    click.option("--schema", metavar="FILE", help="A Parquet or Arrow file whose columns' types to take."),
    click.option(
        "--null-values", metavar="TEXT,...", help="Unquoted CSV cells that are null; default: NA and the empty cell."
    ),
    click.option("--delimiter", metavar="CHAR", help="Between CSV cells; default: comma, in .tsv a tab."),
    click.option("--quote", metavar="CHAR", default='"', help="Around CSV cells; '' for none."),
    click.option("--no-header", is_flag=True, help="The CSV file has no names; its columns are f0, f1, ..."),
    click.option(
        "--decimal-mark", type=click.Choice([".", ","]), default=".", help="In numbers of CSV, as in 1234,5; default: ."
    ),
    click.option(
        "--date-format",
        "date_formats",
        multiple=True,
        metavar="FORMAT",
        help="Of dates and timestamps in CSV, such as %d.%m.%Y; besides ISO 8601.",
    ),
    click.option("--comment", metavar="CHAR", help="CSV lines that begin with it are no rows."),
    click.option("--limit", type=click.IntRange(min=0), metavar="ROWS", help="Stop after so many rows."),
]
_OUTPUT = [
    click.option(
        "--out",
        "target",
        metavar="FILE",
        help="The output; - is standard output. Without it, the first rows are shown.",
    ),
    click.option("--out-format", type=click.Choice(FORMATS), help="The output's format; default: by its ending."),
    click.option("--out-delimiter", metavar="CHAR", help="Between cells of a CSV output; default: as in the input."),
    click.option("--select", metavar="NAME,...", help="The output's columns, in this order; default: all."),
    click.option(
        "--compression", metavar="NAME", help="Of Parquet and Arrow, such as zstd. (.gz and .zst compress text.)"
    ),
    click.option(
        "--row-group-rows", type=click.IntRange(min=1), default=ROW_GROUP_ROWS, help="Rows of a Parquet row group."
    ),
    click.option("--force", is_flag=True, help="Replace the output even if it is an input."),
]


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds INPUT... and the options that describe it. The command gets `inputs` and `reading`, a `Reading`."""

    @functools.wraps(command)
    def wrapped(
        *,
        in_format: str | None,
        types: tuple[str, ...],
        schema: str | None,
        null_values: str | None,
        delimiter: str | None,
        quote: str,
        no_header: bool,
        decimal_mark: str,
        date_formats: tuple[str, ...],
        comment: str | None,
        limit: int | None,
        **others: Any,
    ) -> Any:
        chosen, is_auto = _types(types)
        reading = Reading(
            format=in_format,
            types=chosen,
            schema=schema,
            null_values=NULL_VALUES if null_values is None else _null_values(null_values),
            delimiter=_mark(delimiter),
            quote=quote,
            header=not no_header,
            decimal_mark=decimal_mark,
            date_formats=date_formats,
            comment=comment,
            infer_types=is_auto,
            limit=limit,
        )
        return command(reading=reading, **others)

    return _with(_INPUT, wrapped)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --out and the options that describe it. The command gets `target` and `writing`, a `Writing`.

    Belongs below `input_options`: a CSV output has the input's dialect.
    """

    @functools.wraps(command)
    def wrapped(
        *,
        reading: Reading,
        out_format: str | None,
        out_delimiter: str | None,
        select: str | None,
        compression: str | None,
        row_group_rows: int,
        force: bool,
        **others: Any,
    ) -> Any:
        writing = Writing(
            format=out_format,
            compression=compression,
            row_group_rows=row_group_rows,
            columns=None if select is None else columns_written(select, "--select") or ("",),
            force=force,
            null_values=reading.null_values,
            delimiter=reading.delimiter if out_delimiter is None else _mark(out_delimiter),
            quote=reading.quote,
            header=reading.header,
            decimal_mark=reading.decimal_mark,
        )
        return command(reading=reading, writing=writing, **others)

    return _with(_OUTPUT, wrapped)


def _with(options: list[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def _null_values(given: str) -> tuple[str, ...]:
    """Texts between commas; one with a comma has double quotes. "" is one empty text."""
    try:
        return tuple(next(csv.reader([given]))) or ("",)
    except csv.Error as error:
        raise click.UsageError(f"--null-values {given!r}: {error}") from error


def _mark(delimiter: str | None) -> str | None:
    return "\t" if delimiter == r"\t" else delimiter


def _types(given: tuple[str, ...]) -> tuple[dict[str, str], bool]:
    """The types by name, and whether `auto` is among them, for the other columns."""
    types, is_auto = {}, False
    for pair in (pair for option in given for pair in split_types(option)):
        if pair.strip() == "auto":
            is_auto = True
            continue
        name, equals, type_ = pair.rpartition("=")
        if not equals or not name or not type_:
            raise click.UsageError(f"--types {pair!r}: write NAME=TYPE, such as zip=str")
        types[name.strip()] = type_.strip()
    return types, is_auto
