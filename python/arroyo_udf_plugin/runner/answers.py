"""Blocks through one function: in go rows, out come the same rows with their results.

Guarantees: every row comes out once, in order, unless the function is unordered. A row whose argument was refused is an
error, in its place; the function is not called for it. Only so many rows are in hand as pace.py allows.
Assumes that blocks have at least one row.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ..abi import ERROR, VALUE
from ..author.options import Options
from ..errors import UserCodeError, WouldBlock
from ..host.batches import contract_broken
from ..host.runtime import Runtime
from ..host.statistics import Statistics
from .blocks import Block
from .calls import Prepared, Stage
from .pace import Pace, Window


@dataclasses.dataclass(frozen=True)
class Answered:
    """Rows and their results: value and, where not every row is a value, outcome, error and attempts."""

    block: Block
    results: pa.RecordBatch


@dataclasses.dataclass
class End:
    """What an async function has told of itself. close_error: of its Context's close, after all rows had ended."""

    statistics: Statistics | None = None
    close_error: str | None = None


def answers(
    stage: Stage, blocks: Iterator[Block], options: Mapping[str, Any], end: End
) -> Generator[Answered, None, None]:
    """Calls the stage's function for all rows. options: of an async function. end: filled in."""
    prepared = (stage.prepare(block) for block in blocks)
    if stage.call.function.kind == "async":
        return _async(stage, prepared, options, end)
    return _sync(stage, prepared)


def _sync(stage: Stage, blocks: Iterator[Prepared]) -> Generator[Answered, None, None]:
    pace, function = Pace(), stage.call.function
    for whole in blocks:
        start = 0
        while start < len(whole.block):
            part = whole.slice(start, pace.rows)
            n_rows = len(part.block)
            called = [row for row in range(n_rows) if row not in part.refused]
            arguments = part.arguments
            if part.refused:
                arguments = [array.take(pa.array(called, pa.int64())) for array in arguments]
            begun = time.perf_counter()
            results = None
            if called:
                arguments = arguments or [pa.nulls(len(called))]
                results = pa.RecordBatch.from_struct_array(function.outcomes(*arguments))
            seconds = time.perf_counter() - begun
            if part.refused:
                results = _with_refused(results, called, part.refused, function.returns)
            assert results is not None
            pace.took(n_rows, seconds, results.nbytes)
            yield Answered(part.block, results)
            start += n_rows


def _with_refused(
    results: pa.RecordBatch | None, rows: list[int], refused: Mapping[int, str], returns: pa.DataType
) -> pa.RecordBatch:
    """The results of `rows` (rising), with an error at each of the refused rows: all in the order of the rows."""
    schema = pa.schema([("value", returns), ("outcome", pa.uint8()), ("error", pa.string()), ("attempts", pa.uint16())])
    errors = sorted(refused)
    columns = [
        pa.nulls(len(errors), returns),
        pa.repeat(pa.scalar(ERROR, pa.uint8()), len(errors)),
        pa.array([refused[row] for row in errors], pa.string()),
        pa.repeat(pa.scalar(0, pa.uint16()), len(errors)),
    ]
    parts = [pa.RecordBatch.from_arrays(columns, schema=schema)]
    if results is not None:
        others = [
            pa.repeat(pa.scalar(VALUE, pa.uint8()), len(rows)),
            pa.nulls(len(rows), pa.string()),
            pa.repeat(pa.scalar(1, pa.uint16()), len(rows)),
        ]
        names = results.schema.names
        columns = [results.column("value").cast(returns)]
        columns += [
            results.column(name) if name in names else other
            for name, other in zip(schema.names[1:], others, strict=True)
        ]
        parts.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    order = sorted(range(len(errors) + len(rows)), key=[*errors, *rows].__getitem__)
    table = pa.Table.from_batches(parts).take(pa.array(order, pa.int64())).combine_chunks()
    return table.to_batches()[0]


def _async(
    stage: Stage, blocks: Iterator[Prepared], options: Mapping[str, Any], end: End
) -> Generator[Answered, None, None]:
    function = stage.call.function
    waiting = _Waiting(function.returns)
    first = 1
    with function.start(**options) as runtime:
        chosen = Options(**function.chosen | dict(options))
        assert chosen.max_rows is not None
        window = Window(chosen.allowed_in_flight * (chosen.batch_size or 1), chosen.max_rows)

        def drained() -> Iterator[Answered]:
            results = runtime.drain_results(window.step)
            if results is not None:
                window.drained(results.num_rows, results.nbytes)
                end.statistics = runtime.statistics()
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

        for whole in blocks:
            start = 0
            while start < len(whole.block):
                while waiting.n_rows >= window.rows:
                    yield from awaited()
                part = whole.slice(start, window.step)
                waiting.add(first, part)
                for row, length in _runs(part):
                    arguments = [array.slice(row, length) for array in part.arguments] or [pa.nulls(length)]
                    while not _taken(runtime, first + row, arguments):
                        yield from awaited()
                yield from waiting.unsent()
                yield from drained()
                first += len(part.block)
                start += len(part.block)
        # Stopped while rows still run: a plugin that has lost rows then says so, or breaks the contract.
        stop = _Stop(runtime)
        while waiting.n_rows:
            yield from awaited()
        end.close_error = stop.join()
        runtime.drain_results()
        end.statistics = runtime.statistics()


def _runs(part: Prepared) -> Iterator[tuple[int, int]]:
    """The rows between refused ones, as position and length: the ids of rows that are sent together have no gaps."""
    start = 0
    for row in [*sorted(part.refused), len(part.block)]:
        if row > start:
            yield start, row - start
        start = row + 1


class _Stop:
    """A stop in a thread of its own, because rows are drained meanwhile, and Ctrl-C must end this one."""

    def __init__(self, runtime: Runtime) -> None:
        self._error: Exception | None = None
        self._close_error: str | None = None
        self._thread = threading.Thread(target=self._run, args=(runtime,), name="arroyo-udf-stop", daemon=True)
        self._thread.start()

    def _run(self, runtime: Runtime) -> None:
        try:
            runtime.stop()
        except UserCodeError as error:  # of close, which runs when every row has ended
            self._close_error = str(error)
        except Exception as error:
            self._error = error

    def join(self) -> str | None:
        """Waits for the end. Returns the error of the Context's close, raises any other error of the stop."""
        self._thread.join()
        self.check()
        return self._close_error

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


@dataclasses.dataclass(eq=False)
class _Held:
    """Rows from `first` on. refused: those that are not called and still wait for their turn. open: unanswered."""

    first: int
    block: Block
    refused: dict[int, str]
    open: int


class _Waiting:
    """Rows without an answer, by the number of their first row."""

    def __init__(self, returns: pa.DataType) -> None:
        self.n_rows = 0  # called and unanswered
        self._returns = returns
        self._held: list[_Held] = []  # `first` rises; row numbers have no gaps

    def add(self, first: int, rows: Prepared) -> None:
        n_called = len(rows.block) - len(rows.refused)
        self._held.append(_Held(first, rows.block, dict(rows.refused), n_called))
        self.n_rows += n_called

    def answered(self, results: pa.RecordBatch) -> Iterator[Answered]:
        """`results` beside their rows, cut where blocks end. Unordered results are sorted by number."""
        ids = results.column("id").to_pylist()
        if any(later < earlier for earlier, later in itertools.pairwise(ids)):
            results = results.sort_by("id")
            ids.sort()
        start = 0
        while start < len(ids):
            held = self._held[bisect.bisect_right(self._held, ids[start], key=lambda one: one.first) - 1]
            stop = bisect.bisect_left(ids, held.first + len(held.block), start)
            rows = [number - held.first for number in ids[start:stop]]
            self.n_rows -= len(rows)
            held.open -= len(rows)
            due = {row: text for row, text in held.refused.items() if not held.open or row < rows[-1]}
            yield self._together(held, rows, results.slice(start, stop - start), due)
            if not held.open:
                self._held.remove(held)
            start = stop
        yield from self.unsent()

    def unsent(self) -> Iterator[Answered]:
        """Blocks of refused rows only, if nothing before them waits."""
        while self._held and not self._held[0].open:
            held = self._held.pop(0)
            yield self._together(held, [], None, held.refused)

    def _together(
        self, held: _Held, rows: list[int], results: pa.RecordBatch | None, due: Mapping[int, str]
    ) -> Answered:
        if due:
            results = _with_refused(results, rows, due, self._returns)
            held.refused = {row: text for row, text in held.refused.items() if row not in due}
            rows = sorted([*rows, *due])
        assert results is not None
        if rows[-1] - rows[0] + 1 == len(rows):
            return Answered(held.block.slice(rows[0], len(rows)), results)
        return Answered(held.block.take(pa.array(rows, pa.int64())), results)
