"""`arroyo-udf run` and `replay`: functions over files.

    FilesSource ──► operator (calls, and the policy for rows that fail) ──► FileSink

passes.py    the pipeline of one operator that the engine runs, and its summary
notes.py     what a run notes for a replay
replay.py    dead letters through the same functions, into the run's output

Guarantees: every input row is answered once and counted in the `Summary`. Rows leave in input order, unless a function
is unordered. Files appear only if the whole run succeeds: the dead letters, then the row numbers (OUT.rows), then the
output, so that no output ever lacks what belongs to it.
A row has one number everywhere: the one it has in its file, counted from 1 (`connectors.source.Rows`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ...host.policy import Action, Policy
from ..connectors.cells import argument
from ..connectors.file_source import FilesSource
from ..connectors.location import location_of
from ..connectors.options import Reading, Writing
from ..connectors.place import kind_of_output
from ..connectors.sink import FileSink
from ..connectors.source import FileSource
from ..operators.blocks import Columns
from ..operators.calls import Call, CallPlan, check_options
from .notes import Note, RowNumbers, beside, is_ours
from .passes import Pass, Progress, Summary, names_of, open_letters

__all__ = ["Call", "Summary", "run"]


def run(
    calls: Sequence[Call],
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    reading: Reading = Reading(),  # noqa: B008 (frozen)
    writing: Writing = Writing(),  # noqa: B008
    on_error: Action = "fail",
    on_timeout: Action = "fail",
    dead_letter: Path | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    plugin: str = "",
    where: Mapping[str, Any] = MappingProxyType({}),
    progress: Progress | None = None,
) -> Summary:
    """Calls functions for each row of `inputs`; writes the rows with the results as last columns to `output`.

    on_error, on_timeout: the `Policy`. dead_letter: the file for rows with the policy "dead_letter". It can be the
        input of another run, as it is.
    options: of all async functions, see `Function.start`. plugin, where: for a replay of the dead letters, see `Note`.
    progress: see `Pass`.
    Raises InvalidArgument for files, columns, types or options that do not fit, RowError if a row fails whose policy
    is "fail".
    """
    calls = list(calls)
    check_options(calls, options)
    policy = Policy(error=on_error, timeout=on_timeout)
    if policy.has_dead_letters and dead_letter is None:
        raise InvalidArgument("the policy dead_letter needs a file: name one with --dead-letter")
    if dead_letter is not None and not policy.has_dead_letters:
        raise InvalidArgument(
            f"no policy sends rows to {dead_letter}: add --on-error dead_letter or --on-timeout dead_letter"
        )
    kind = kind_of_output(os.fspath(output), writing.format)
    target = None if os.fspath(output) == "-" else location_of(os.fspath(output)).path
    if dead_letter is not None and target is not None and dead_letter.resolve() == target.resolve():
        raise InvalidArgument(f"{output}: the output and the dead letters need two files")

    start = time.perf_counter()
    summary = Summary(names_of(calls), ", ".join(os.fspath(path) for path in inputs), os.fspath(output))
    with contextlib.ExitStack() as files:
        reading = dataclasses.replace(reading, refuses=reading.refuses or on_error != "fail")
        source = files.enter_context(
            contextlib.closing(FilesSource([os.fspath(path) for path in inputs], reading, None))
        )
        columns, inputs_read = Columns(source.schema, source.files.index), source.files
        _check_arguments(inputs_read, calls)
        summary.types = {name: str(type_) for name, type_ in inputs_read.inferred.items()}
        plan = CallPlan(calls, columns, typed=kind.format not in ("csv", "tsv"))
        # Left in the reverse order: first the dead letters appear, last the output.
        sink = files.enter_context(FileSink(output, plan.schema, writing, inputs_read.given))
        letters = numbers = None
        if dead_letter is not None:
            if len(set(inputs_read.names)) < len(inputs_read.names):
                raise InvalidArgument("an input is given twice, and dead letters of its rows could not be told apart")
            note = Note(
                secrets.token_hex(16),
                inputs_read.names,
                plugin,
                tuple((call.function.name, call.columns, call.name) for call in calls),
                dict(options),
                on_error,
                on_timeout,
                dataclasses.asdict(writing),
                dict(where),
            )
            if target is not None and (target.is_file() or not target.exists()) and not columns.are_letters:
                numbers = files.enter_context(RowNumbers(target, note))
            letters = files.enter_context(
                open_letters(dead_letter, columns, note, () if writing.force else inputs_read.files)
            )

        def write(rows: pa.RecordBatch, origin: pa.RecordBatch) -> None:
            sink.write(rows)
            if numbers is not None:
                numbers.write(origin)

        with _of_commands(inputs_read.input_files[0].kind.format):
            Pass(source, columns, plan, policy, options, letters, write).run(summary, progress)
        sink.finish()  # before the dead letters appear, and those of an earlier output go
        if numbers is None and target is not None and is_ours(beside(target)):
            beside(target).unlink()  # the numbers of an earlier output's rows
    summary.statistics = summary.calls[0].statistics if len(calls) == 1 else None
    summary.seconds = time.perf_counter() - start
    summary.rows_per_s = summary.rows / summary.seconds
    return summary


_CONVERT = re.compile(r"convert it first, to pa\.\w+(\(.*?\))?")


@contextlib.contextmanager
def _of_commands(format: str) -> Iterator[None]:
    """An error that says what to call in Python says what the command line has."""
    try:
        yield
    except InvalidArgument as error:
        instead = "cast it in a query, with arroyo-udf sql"
        if format not in ("parquet", "arrow", "arrows"):
            instead = "give it another type, with --types"
        if (text := _CONVERT.sub(instead, str(error))) == str(error):
            raise
        raise InvalidArgument(text) from error


def _check_arguments(source: FileSource, calls: Sequence[Call]) -> None:
    """Raises InvalidArgument for a column of newline JSON that got another type by the first lines than is taken."""
    if source.input_files[0].kind.format != "jsonl":
        return
    for call in calls:
        for name, wanted in zip(call.columns, call.function.arguments, strict=True):
            if not isinstance(name, str) or name not in source.schema.names:
                continue
            given = source.schema.field(name).type
            try:
                argument(pa.nulls(0, given), wanted)
            except InvalidArgument:
                raise InvalidArgument(
                    f"{source.names[0]}: column {name!r} is {given} by the first lines, and {call.function.name} takes "
                    f"{wanted.type}: add --types '{name}={wanted.type}'"
                ) from None
