"""`arroyo-udf run`: reader, plugin, writer; one function over one file.

    Reader ──batch──► function ──results──► policy (fail | null | drop) ──► result column last ──► Writer

Guarantees: every input row is answered once and counted in the `Summary`; rows leave in input order, unless the
function's author declared it unordered; nothing is written under the output's name unless the whole run succeeded.
Assumes that a row's number, counted from 1, fits the row ids of the contract; it is used as such.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ._errors import InvalidArgument, RowError, WouldBlock
from .host import Function
from .runtime import Runtime
from .tables import Reader, Writer, ending

Policy = Literal["fail", "null", "drop"]
ERROR, TIMED_OUT, CANCELLED = 1, 2, 3  # outcomes; see arroyo_udf.h


@dataclasses.dataclass
class Summary:
    """What became of the rows. `rows` were read, all but the `dropped` ones written; `seconds` is wall time."""

    function: str
    input: str
    output: str
    rows: int = 0
    values: int = 0
    errors: int = 0
    timed_out: int = 0
    dropped: int = 0
    seconds: float = 0.0
    rows_per_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class Answered:
    """Input rows, their numbers, and their results: columns value and, where not every row is a value, outcome, error.

    in_flight: how many further rows have been sent and not answered.
    """

    numbers: Sequence[int]
    rows: pa.RecordBatch
    results: pa.RecordBatch
    in_flight: int


def run(
    function: Function,
    source: Path,
    target: Path,
    columns: list[str],
    *,
    name: str | None = None,
    on_error: Policy = "fail",
    on_timeout: Policy = "fail",
    progress: Callable[[Summary, int | None, int], None] = lambda summary, total, in_flight: None,
) -> Summary:
    """Calls `function` for each row of `source`; writes its rows with the result as last column to `target`.

    columns: the names of the argument columns, in the order of the arguments. name: the result column's, default the
    function's. progress: called after each step with the summary so far, the number of input rows (None: the file does
    not say) and the number of rows in flight.
    Raises InvalidArgument for files, columns and types that do not fit, and RowError where the policy is "fail".
    """
    name = name or function.name
    fields = list(function.arguments)
    if len(columns) != len(fields):
        takes = ", ".join(f"{field.name}: {field.type}" for field in fields)
        raise InvalidArgument(f"{function.name} takes {len(fields)} arguments ({takes}); {len(columns)} columns given")
    if not source.is_file():
        raise InvalidArgument(f"{source}: there is no such file")
    if not target.parent.is_dir():
        raise InvalidArgument(f"{target}: the folder {target.parent} does not exist")

    start = time.perf_counter()
    summary = Summary(function.name, str(source), str(target))
    policies: dict[int, Policy] = {ERROR: on_error, CANCELLED: on_error, TIMED_OUT: on_timeout}
    with Reader(source, columns, [field.type for field in fields], ending(target) == ".csv") as reader:
        if name in reader.schema.names:
            raise InvalidArgument(f"{source} has a column {name!r} already: choose the result's name with --name")
        schema = reader.schema.append(pa.field(name, function.returns))
        with Writer(target, schema) as writer:
            steps = _run_async(function, reader) if function.kind == "async" else _run_sync(function, reader)
            for step in steps:
                rows = _with_results(step, schema, policies, function.name)
                writer.write(rows)
                _count(summary, step, rows.num_rows)
                progress(summary, reader.rows, step.in_flight)
    summary.seconds = time.perf_counter() - start
    summary.rows_per_s = summary.rows / summary.seconds
    return summary


def _run_sync(function: Function, reader: Reader) -> Iterator[Answered]:
    first = 1
    for rows, arguments in reader:
        results = pa.RecordBatch.from_struct_array(function.outcomes(*arguments))
        yield Answered(range(first, first + rows.num_rows), rows, results, 0)
        first += rows.num_rows


def _run_async(function: Function, reader: Reader) -> Iterator[Answered]:
    waiting = _Waiting()
    first = 1
    with function.start() as runtime:
        for rows, arguments in reader:
            while not _taken(runtime, first, arguments):
                runtime.wait()
                yield from waiting.answered(runtime.drain_results())
            waiting.add(first, rows)
            first += rows.num_rows
            yield from waiting.answered(runtime.drain_results())
        while waiting.n_rows:
            runtime.wait()
            yield from waiting.answered(runtime.drain_results())
        runtime.stop()


def _taken(runtime: Runtime, first: int, arguments: list[pa.Array]) -> bool:
    try:
        runtime.send_nowait(first, *arguments)
    except WouldBlock:
        return False
    return True


class _Waiting:
    """Input batches whose rows have not all been answered, by the number of their first row."""

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

    def answered(self, results: pa.RecordBatch | None) -> Iterator[Answered]:
        """`results` beside their input rows, cut where input batches end. Unordered results are sorted by number."""
        if results is None:
            return
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
            yield Answered(numbers, rows, results.slice(start, stop - start), self.n_rows)
            start = stop


def _with_results(step: Answered, schema: pa.Schema, policies: dict[int, Policy], function: str) -> pa.RecordBatch:
    """The step's rows with their values as last column, after the policy; RowError where it is "fail"."""
    values = step.results.column("value")
    rows = pa.RecordBatch.from_arrays([*step.rows.columns, values], schema=schema)
    if "outcome" not in step.results.schema.names:
        return rows
    outcomes = step.results.column("outcome")
    for outcome in pc.unique(outcomes).to_pylist():
        policy = policies.get(outcome, "null")  # a value that is null stays null
        if policy == "fail":
            index = outcomes.index(outcome).as_py()
            text = step.results.column("error")[index].as_py()
            number = step.numbers[index]
            raise RowError(f"row {number}: {function}: {text}", {number: text})
    dropped = [outcome for outcome, policy in policies.items() if policy == "drop"]
    return rows.filter(pc.invert(pc.is_in(outcomes, value_set=pa.array(dropped, outcomes.type))))


def _count(summary: Summary, step: Answered, written: int) -> None:
    n_rows, failed = step.rows.num_rows, {ERROR: 0, TIMED_OUT: 0, CANCELLED: 0}
    if "outcome" in step.results.schema.names:
        outcomes = step.results.column("outcome")
        failed = {outcome: pc.sum(pc.equal(outcomes, outcome)).as_py() for outcome in failed}
    summary.rows += n_rows
    summary.values += n_rows - sum(failed.values())
    summary.errors += failed[ERROR] + failed[CANCELLED]
    summary.timed_out += failed[TIMED_OUT]
    summary.dropped += n_rows - written
