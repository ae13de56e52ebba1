"""`arroyo-udf run`: reader, plugin, writer; one function over one file.

    Reader ──batch──► function ──results──► policy (fail | null | drop | dead_letter) ──► result column last ──► Writer

Guarantees: every input row is answered once and counted in the `Summary`. Rows leave in input order, unless the
function is unordered. Output and dead letters appear only if the whole run succeeds; the dead letters first, so that no
output ever lacks its dead letters.
Row ids are the rows' numbers, counted from 1.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .abi import TIMED_OUT, VALUE
from .connectors.cells import argument
from .connectors.sink import FileSink
from .connectors.source import FileSource
from .dead_letters import DeadLetters
from .errors import InvalidArgument, WouldBlock
from .host.batches import contract_broken
from .host.function import Function
from .host.policy import Action, Decided, Policy
from .host.runtime import Runtime
from .host.statistics import Statistics


@dataclasses.dataclass
class Summary:
    """Counts of a run. rows: rows read. seconds: wall time.

    values, errors, timed_out: rows by outcome. nulled, dropped, dead_letters: failed rows by policy; the last two are
    not in the output. statistics: of an async function, up to its stop; None for a sync one.
    """

    function: str
    input: str
    output: str
    rows: int = 0
    values: int = 0
    errors: int = 0
    timed_out: int = 0
    nulled: int = 0
    dropped: int = 0
    dead_letters: int = 0
    seconds: float = 0.0
    rows_per_s: float = 0.0
    statistics: Statistics | None = None


@dataclasses.dataclass(frozen=True)
class Answered:
    """Input rows, their numbers, and their results: value and, where not every row is a value, outcome and error."""

    numbers: Sequence[int]
    rows: pa.RecordBatch
    results: pa.RecordBatch


def run(
    function: Function,
    source: Path,
    target: Path,
    columns: list[str],
    *,
    name: str | None = None,
    on_error: Action = "fail",
    on_timeout: Action = "fail",
    dead_letter: Path | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    progress: Callable[[Summary, int | None], None] = lambda summary, total: None,
) -> Summary:
    """Calls `function` for each row of `source`; writes the rows with the result as last column to `target`.

    columns: the names of the argument columns, in the order of the arguments.
    name: the result column's; default: the function's.
    on_error, on_timeout: the `Policy`. dead_letter: the file for rows with the policy "dead_letter". It can be the
        source of another run with the same columns.
    options: of an async function, see `Function.start`.
    progress: called after each step with the summary so far and the number of input rows (None: unknown).
    Raises InvalidArgument for files, columns, types or options that do not fit, RowError if a row fails whose policy
    is "fail".
    """
    if function.kind not in ("sync", "async"):
        function.outcomes()  # refuses: UnsupportedCall
    name = name or function.name
    fields = list(function.arguments)
    if len(columns) != len(fields):
        takes = ", ".join(f"{field.name}: {field.type}" for field in fields)
        raise InvalidArgument(f"{function.name} takes {len(fields)} arguments ({takes}); {len(columns)} columns given")
    if options and function.kind != "async":
        raise InvalidArgument(f"{function.name} is sync, and {', '.join(options)} are options of async functions")
    policy = Policy(error=on_error, timeout=on_timeout)
    if policy.has_dead_letters and dead_letter is None:
        raise InvalidArgument("the policy dead_letter needs a file: name one with --dead-letter")
    if dead_letter is not None and not policy.has_dead_letters:
        raise InvalidArgument(
            f"no policy sends rows to {dead_letter}: add --on-error dead_letter or --on-timeout dead_letter"
        )
    for path in (target, dead_letter):
        if path is not None and not path.parent.is_dir():
            raise InvalidArgument(f"{path}: the folder {path.parent} does not exist")
    if dead_letter is not None and dead_letter.resolve() == target.resolve():
        raise InvalidArgument(f"{target}: the output and the dead letters need two files")

    start = time.perf_counter()
    summary = Summary(function.name, str(source), str(target))
    with FileSource([source]) as files:
        reader = _Reader(files, columns, fields)
        if name in reader.schema.names:
            raise InvalidArgument(f"{source} has a column {name!r} already: choose the result's name with --name")
        schema = reader.schema.append(pa.field(name, function.returns))
        with FileSink(target, schema, inputs=files.files) as writer, contextlib.ExitStack() as beside:
            letters = None
            if dead_letter is not None:
                letters = beside.enter_context(DeadLetters(dead_letter, function, columns))
            if function.kind == "async":
                steps = _run_async(function, reader, options, summary)
            else:
                steps = _run_sync(function, reader)
            for step in steps:
                decided = policy.apply(step.results, function, step.numbers[0])
                if letters is not None and len(decided.dead_at):
                    dead = step.rows.take(decided.dead_at)
                    letters.write(decided.dead, reader.arguments(dead, step.numbers[0]))
                rows = step.rows if decided.kept is None else step.rows.filter(decided.kept)
                values = decided.results.column("value")
                writer.write(pa.RecordBatch.from_arrays([*rows.columns, values], schema=schema))
                _count(summary, step, decided)
                progress(summary, reader.rows)
    summary.seconds = time.perf_counter() - start
    summary.rows_per_s = summary.rows / summary.seconds
    return summary


class _Reader:
    """Batches of the source with their argument columns, which `fields` describe."""

    def __init__(self, source: FileSource, columns: list[str], fields: list[pa.Field]) -> None:
        self._source, self._fields, self._name = source, fields, ""
        self._indices = [source.index(name) for name in columns]
        self.schema, self.rows = source.schema, source.rows

    def __iter__(self) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        for rows in self._source:
            self._name = rows.file
            for at, why in rows.refused.items():
                raise InvalidArgument(f"{rows.file}: row {rows.first + at}: {why}")
            yield rows.batch, self.arguments(rows.batch, rows.first)

    def arguments(self, batch: pa.RecordBatch, first_row: int) -> list[pa.Array]:
        """The argument columns of a batch in the function's types. first_row: its number, for error texts."""
        return [self._argument(batch, at, first_row) for at in range(len(self._fields))]

    def _argument(self, batch: pa.RecordBatch, at: int, first_row: int) -> pa.Array:
        index = self._indices[at]
        try:
            cast = argument(batch.column(index), self._fields[at])
        except InvalidArgument as error:
            raise InvalidArgument(f"{self._name}: column {self.schema.field(index).name!r}: {error}") from error
        for row, why in cast.refused.items():
            where = f"row {first_row + row}, column {self.schema.field(index).name!r}"
            raise InvalidArgument(f"{self._name}: {where}: {why}")
        return cast.array


def _run_sync(function: Function, reader: _Reader) -> Iterator[Answered]:
    first = 1
    for rows, arguments in reader:
        results = pa.RecordBatch.from_struct_array(function.outcomes(*arguments))
        yield Answered(range(first, first + rows.num_rows), rows, results)
        first += rows.num_rows


def _run_async(function: Function, reader: _Reader, options: Mapping[str, Any], summary: Summary) -> Iterator[Answered]:
    waiting = _Waiting()
    first = 1
    with function.start(**options) as runtime:

        def drained() -> Iterator[Answered]:
            results = runtime.drain_results()
            if results is not None:
                summary.statistics = runtime.statistics()
                yield from waiting.answered(results)

        stop: _Stop | None = None

        def awaited() -> Iterator[Answered]:
            while not runtime.wait(_LOOK_AGAIN):
                if stop is not None:
                    stop.check()
            n_rows = waiting.n_rows
            yield from drained()
            if waiting.n_rows == n_rows:
                raise contract_broken(function.where, "wait answers OK, and drain_results has no results")

        for rows, arguments in reader:
            while not _taken(runtime, first, arguments):
                yield from awaited()
            waiting.add(first, rows)
            first += rows.num_rows
            yield from drained()
        # Stopped while rows still run: a plugin that has lost rows then says so, or breaks the contract.
        stop = _Stop(runtime)
        while waiting.n_rows:
            yield from awaited()
        stop.join()
        runtime.drain_results()
        summary.statistics = runtime.statistics()


class _Stop:
    """A stop in a thread of its own, because rows are drained meanwhile, and Ctrl-C must end this one."""

    def __init__(self, runtime: Runtime) -> None:
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(runtime,), name="arroyo-udf-stop", daemon=True)
        self._thread.start()

    def _run(self, runtime: Runtime) -> None:
        try:
            runtime.stop()
        except Exception as error:
            self._error = error

    def join(self) -> None:
        """Waits for the end. Raises the error of the stop."""
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raises the error of the stop, if it has ended with one."""
        if self._error is not None:
            raise self._error


def _taken(runtime: Runtime, first: int, arguments: list[pa.Array]) -> bool:
    try:
        runtime.send_nowait(first, *arguments)
    except WouldBlock:
        return False
    return True


_LOOK_AGAIN = 0.2  # seconds, because a stop that fails does not wake a plugin that breaks the contract


class _Waiting:
    """Input batches with unanswered rows, by the number of their first row."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._firsts: list[int] = []  # rising; row numbers have no gaps
        self._batches: list[pa.RecordBatch] = []
        self._open: list[int] = []  # unanswered rows of each

    def add(self, first: int, rows: pa.RecordBatch) -> None:
        self._firsts.append(first)
        self._batches.append(rows)
        self._open.append(rows.num_rows)
        self.n_rows += rows.num_rows

    def answered(self, results: pa.RecordBatch) -> Iterator[Answered]:
        """`results` beside their input rows, cut where input batches end. Unordered results are sorted by number."""
        ids = results.column("id").to_pylist()
        if any(later < earlier for earlier, later in itertools.pairwise(ids)):
            results = results.sort_by("id")
            ids.sort()
        start = 0
        while start < len(ids):
            index = bisect.bisect_right(self._firsts, ids[start]) - 1
            first, batch = self._firsts[index], self._batches[index]
            stop = bisect.bisect_left(ids, first + batch.num_rows, start)
            numbers = ids[start:stop]
            if numbers[-1] - numbers[0] + 1 == len(numbers):
                rows = batch.slice(numbers[0] - first, len(numbers))
            else:
                rows = batch.take(pa.array([number - first for number in numbers]))
            self.n_rows -= len(numbers)
            self._open[index] -= len(numbers)
            if self._open[index] == 0:
                del self._firsts[index], self._batches[index], self._open[index]
            yield Answered(numbers, rows, results.slice(start, stop - start))
            start = stop


def _count(summary: Summary, step: Answered, decided: Decided) -> None:
    n_rows, failed, timed_out = step.rows.num_rows, 0, 0
    if "outcome" in step.results.schema.names:
        outcomes = step.results.column("outcome")
        failed = pc.sum(pc.not_equal(outcomes, VALUE)).as_py() or 0
        timed_out = pc.sum(pc.equal(outcomes, TIMED_OUT)).as_py() or 0
    summary.rows += n_rows
    summary.values += n_rows - failed
    summary.errors += failed - timed_out
    summary.timed_out += timed_out
    summary.nulled += decided.nulled
    summary.dropped += decided.dropped
    summary.dead_letters += len(decided.dead_at)
