"""`arroyo-udf replay`: dead letters through the same functions, into the output of their run.

Rows that succeed now join the output, each in its place; rows that fail again are the dead letters of the next replay,
with the file and number that they had first.

A replay replaces three files, and a crash may come between any two of them. Their order makes that harmless:

1. OUT.rows, which marks the rows that this replay adds. If OUT is not replaced then, it has fewer rows than OUT.rows,
   by just the marked ones: the next replay leaves them aside.
2. OUT. If the dead letters are not replaced then, they still have rows that OUT has already: the next replay leaves
   them aside.
3. The dead letters. So they lose no row before OUT has it.

Guarantees: OUT's rows keep their order. An added row comes before the first row with a greater number: in an ordered
run, that is its place. If anything fails, no file changes.
Assumes that nobody else writes these files meanwhile. The added rows are in memory together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.policy import Policy
from ..connectors.file_source import FilesSource
from ..connectors.formats import kind_of
from ..connectors.inputs import input_files, opened
from ..connectors.options import Reading
from ..connectors.sink import FileSink
from ..connectors.source import FileSource
from ..operators.blocks import ORIGIN, Block, Columns
from ..operators.calls import Call, CallPlan, check_options
from .notes import Note, Order, RowNumbers, beside, is_ours, row_numbers
from .passes import Admit, Pass, Progress, Summary, names_of, open_letters


@dataclasses.dataclass
class Replayed(Summary):
    """Counts of a replay: a run's, whose rows are the dead letters.

    added: rows that joined the output. already_there: dead letters that an interrupted replay had added.
    """

    added: int = 0
    already_there: int = 0


def note_of_run(output: Path) -> Note:
    """How the run of an output was made, from OUT.rows. Raises InvalidArgument without it."""
    numbers = beside(output)
    if output.is_dir():
        raise InvalidArgument(
            f"{output} is a folder, and a run's output is a file. To replay the dead letters of a pipeline, name the "
            "pipeline: arroyo-udf replay PIPELINE.toml"
        )
    if not output.is_file():
        raise InvalidArgument(f"{output}: there is no such file")
    if not is_ours(numbers):
        raise InvalidArgument(
            f"{numbers} is missing: a run with dead letters writes it beside its output, if its input has none, and "
            "only such an output can take in rows. Make the dead letters the input of a run with an output of its own "
            "instead"
        )
    with row_numbers(output) as source:
        note = Note.of(source.schema)
    assert note is not None
    return note


def replay(
    letters: Path,
    output: Path,
    calls: Sequence[Call],
    note: Note,
    progress: Progress | None = None,
) -> Replayed:
    """Runs dead letters again and adds the rows that succeed to the output of their run.

    letters: replaced by the letters of rows that fail again. note: of the run; its options and policy apply, and become
    those of the next replay.
    Raises InvalidArgument for files that do not belong together, and as `run` does.
    """
    start = time.perf_counter()
    check_options(calls, note.options)
    policy = Policy(error=note.on_error, timeout=note.on_timeout)
    summary = Replayed(names_of(calls), str(letters), str(output))
    order = Order(note.inputs)
    with contextlib.closing(FilesSource([os.fspath(letters)], Reading(), None)) as source:
        columns = Columns(source.schema, source.files.index)
        if not columns.are_letters:
            raise InvalidArgument(f"{letters} has no dead letters: it lacks their columns failed_row, failed_file, ...")
        theirs = Note.of(columns.schema)
        if theirs is not None and theirs.run != note.run:
            raise InvalidArgument(f"{letters} and {output} are of different runs")
        interrupted = _was_interrupted(output, note)
        there = _already_there(letters, output, interrupted, order)
        typed = kind_of(str(output), note.how_written().format, "--out-format").format not in ("csv", "tsv")
        plan = CallPlan(calls, columns, typed, columns.own)
        # Left in the reverse order: the dead letters are replaced last.
        with open_letters(letters, columns, note) as failing, tempfile.TemporaryDirectory() as folder:
            # Written and read again in the output's format, so that its columns are those of the output.
            added = Path(folder) / output.name
            origins: list[pa.RecordBatch] = []
            with FileSink(added, plan.schema, note.how_written()) as sink:

                def write(rows: pa.RecordBatch, origin: pa.RecordBatch) -> None:
                    sink.write(rows)
                    origins.append(origin)
                    summary.added += rows.num_rows

                fresh = _without(there, order, summary)
                Pass(source, columns, plan, policy, note.options, failing, write, fresh).run(summary, progress)
            if summary.added or interrupted:
                _merge(output, added, origins, note, order, interrupted)
    summary.seconds = time.perf_counter() - start
    summary.rows_per_s = summary.rows / summary.seconds
    return summary


def _was_interrupted(output: Path, note: Note) -> bool:
    """Whether a replay has replaced OUT.rows and not OUT."""
    with row_numbers(output) as numbers:
        n_rows = n_added = 0
        for rows in numbers:
            n_rows += rows.batch.num_rows
            n_added += pc.sum(rows.batch.column("added")).as_py() or 0
    n_out = 0
    if not _is_empty(output, note):
        with FileSource([output], note.how_to_read()) as source:
            n_out = sum(rows.batch.num_rows for rows in source) if source.rows is None else source.rows
    if n_out not in (n_rows, n_rows - n_added):
        raise InvalidArgument(
            f"{output} has {n_out} rows, and {beside(output)} has the numbers of {n_rows}: it is not as its run has "
            "left it. Make the dead letters the input of a run with an output of its own instead"
        )
    return n_out != n_rows


def _is_empty(output: Path, note: Note) -> bool:
    """Text without rows may have no columns either, and cannot be read."""
    with contextlib.ExitStack() as here:
        (file,) = input_files([output], note.how_written().format)
        return file.kind.is_text and not opened(file, here, None).read(1)


def _numbers(source: FileSource, interrupted: bool) -> Iterator[pa.RecordBatch]:
    """The batches of OUT.rows, for the rows that OUT has."""
    for rows in source:
        yield rows.batch.filter(pc.invert(rows.batch.column("added"))) if interrupted else rows.batch


def _already_there(letters: Path, output: Path, interrupted: bool, order: Order) -> pa.UInt64Array:
    """The keys of dead letters whose rows the output has."""
    with FileSource([letters]) as source:
        wanted = [order.keys(block.origin) for block in Columns(source.schema).blocks(source)]
    keys = pa.chunked_array(wanted, pa.uint64()).combine_chunks()
    there = []
    with row_numbers(output) as numbers:
        for batch in _numbers(numbers, interrupted):
            batch_keys = order.keys(batch)
            there.append(batch_keys.filter(pc.is_in(batch_keys, value_set=keys)))
    return pa.chunked_array(there, pa.uint64()).combine_chunks()


def _without(there: pa.UInt64Array, order: Order, summary: Replayed) -> Admit:
    """Leaves out the rows that the output has."""

    def fresh(block: Block) -> Block | None:
        if len(there):
            new = pc.invert(pc.is_in(order.keys(block.origin), value_set=there))
            summary.already_there += new.false_count
            block = block.filter(new)
        return block if len(block) else None

    return fresh


def _merge(
    output: Path, added: Path, origins: Sequence[pa.RecordBatch], note: Note, order: Order, interrupted: bool
) -> None:
    """Replaces OUT.rows, then OUT, by those with the added rows."""
    reading, writing = note.how_to_read(), note.how_written()
    old = added if _is_empty(output, note) else output
    with (
        FileSource([old], reading) as source,
        FileSource([added if origins else old], reading) as more,
        row_numbers(output) as numbers,
    ):
        if source.schema.names != more.schema.names:
            raise InvalidArgument(
                f"{output} has the columns {', '.join(source.schema.names)}, and the replay makes "
                f"{', '.join(more.schema.names)}"
            )
        rows = pa.Table.from_batches([rows.batch for rows in more] if origins else [], more.schema)
        try:
            rows = rows.cast(source.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InvalidArgument(f"the replay's columns do not fit those of {output}: {error}") from error
        joining = _Joining(rows, origins, order)
        places = _Places(_numbers(numbers, interrupted))
        with FileSink(output, source.schema, writing) as sink, RowNumbers(output, note) as new_numbers:

            def write(joined: pa.Table, where: pa.Table) -> None:
                for batch in joined.combine_chunks().to_batches():
                    sink.write(batch)
                for batch in where.combine_chunks().to_batches():
                    new_numbers.write_columns(*batch.columns)

            for rows_there in source if old == output else []:
                write(*joining.together(rows_there.batch, places.next(rows_there.batch.num_rows)))
            write(*joining.rest())
            sink.finish()


class _Joining:
    """The added rows in their order, on their way into the output. Where a row comes from: the columns of OUT.rows."""

    def __init__(self, rows: pa.Table, origins: Sequence[pa.RecordBatch], order: Order) -> None:
        keys = pa.chunked_array([order.keys(origin) for origin in origins], pa.uint64()).combine_chunks()
        where = pa.Table.from_batches(origins, ORIGIN).select(["file", "row"])
        where = where.append_column("added", pa.repeat(True, len(where)))
        if not pc.all(pc.less(keys[:-1], keys[1:])).as_py():  # of an unordered function
            by_key = pc.sort_indices(keys)
            keys, rows, where = keys.take(by_key), rows.take(by_key), where.take(by_key)
        self._keys, self._rows, self._where, self._order = keys, rows, where, order
        self._start = 0  # of the rows that have not joined
        self._highest = 0  # key of the output's rows so far

    def together(self, rows: pa.RecordBatch, where: pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
        """Rows of the output, and the added rows that come before the last of them."""
        old = pa.Table.from_batches([rows])
        old_where = pa.Table.from_arrays(
            [where.column("file"), where.column("row"), pa.repeat(False, len(old))], names=self._where.schema.names
        )
        # An unordered output's keys go up and down. The highest so far rises.
        highest = pc.cumulative_max(self._order.keys(where), start=self._highest)
        self._highest = highest[-1].as_py()
        waiting = self._keys[self._start :]
        n_due = pc.sum(pc.less(waiting, self._highest)).as_py() or 0
        if not n_due:
            return old, old_where
        new, new_where = (table.slice(self._start, n_due) for table in (self._rows, self._where))
        self._start += n_due
        by_key = pc.sort_indices(pa.concat_arrays([highest, waiting[:n_due]]))  # stable
        return pa.concat_tables([old, new]).take(by_key), pa.concat_tables([old_where, new_where]).take(by_key)

    def rest(self) -> tuple[pa.Table, pa.Table]:
        """The added rows that come after all others."""
        return self._rows.slice(self._start), self._where.slice(self._start)


class _Places:
    """OUT.rows in pieces of any size."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def next(self, n_rows: int) -> pa.RecordBatch:
        pieces = []
        while n_rows:
            if not self._left:
                self._left = next(self._batches)
            pieces.append(self._left.slice(0, n_rows))
            self._left = self._left.slice(len(pieces[-1]))
            n_rows -= len(pieces[-1])
        return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
