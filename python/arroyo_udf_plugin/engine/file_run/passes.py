"""One pass of rows through all functions of a run, as a pipeline of one operator, and its summary.

Guarantees: every row is counted, and ends in one place: among the rows that are written, dropped, or as a dead letter.
Functions are stopped also after an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from ...host.policy import LETTER, Policy
from ...host.statistics import Statistics
from ..connectors.interface import Sink, Source, Stage
from ..connectors.source import Rows
from ..dead_letters import DeadLetters
from ..execution import runner as engine
from ..operators.blocks import ORIGIN, Block, Columns
from ..operators.calls import Call, CallPlan
from ..operators.failures import FailedRows, Failures
from ..operators.operator import Operator
from ..operators.routes import Routes
from ..operators.stages import AsyncStage, Dead, RunningStage
from .notes import Note


@dataclasses.dataclass
class CallCounts:
    """One function's results by outcome. nulls: the values that are null. failures: why rows failed.

    statistics: of an async function, up to its stop; None for a sync one.
    """

    function: str
    values: int = 0
    nulls: int = 0
    errors: int = 0
    timed_out: int = 0
    failures: tuple[FailedRows, ...] = ()
    statistics: Statistics | None = None


@dataclasses.dataclass
class Summary:
    """Counts of a run. rows: rows read. seconds: wall time.

    values, errors, timed_out: results by outcome, of all functions together; `calls` has those of each, and why rows
    failed. nulls: the values that are null.
    nulled: failed results that are null. dropped, dead_letters: rows that are not in the output.
    statistics: of a run's only function. warnings: what went wrong without touching a row.
    types: of columns that got theirs by the first rows (`Reading.infer_types`).
    """

    function: str
    input: str
    output: str
    rows: int = 0
    values: int = 0
    nulls: int = 0
    errors: int = 0
    timed_out: int = 0
    nulled: int = 0
    dropped: int = 0
    dead_letters: int = 0
    seconds: float = 0.0
    rows_per_s: float = 0.0
    statistics: Statistics | None = None
    calls: list[CallCounts] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    types: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def written(self) -> int:
        """The rows in the output."""
        return self.rows - self.dropped - self.dead_letters


Progress = Callable[[Summary, int | None], None]
Write = Callable[[pa.RecordBatch, pa.RecordBatch], None]
Admit = Callable[[Block], Block | None]

_SECONDS = 0.1  # between two looks at the progress


class Pass:
    """A pipeline of one operator: what the engine runs for `run` and `replay`.

    letters: open, if the policy has dead letters. write: gets the remaining rows, with all results, and their origins.
    admit: chooses among the source's rows.
    """

    name = "run"
    parallelism = 1
    idle_seconds = None
    drifts = ()

    def __init__(
        self,
        source: Source,
        columns: Columns,
        plan: CallPlan,
        policy: Policy,
        options: Mapping[str, Any],
        letters: DeadLetters | None,
        write: Write,
        admit: Admit = lambda block: block,
    ) -> None:
        self.source, self.plan = source, plan
        self.calls = [stage.call for stage in plan.stages]
        self.fingerprint: dict[str, Any] = {}  # it has no checkpoints, and so is never resumed
        self.plugin_hashes: dict[str, str] = {}
        self._columns, self._letters, self._write, self._chosen = columns, letters, write, admit
        self.failures = Failures()  # none: rows that could not be read fail in the first function
        self.routes = Routes.in_a_row(operators=1, sinks=1)
        self._operator = Operator("run", plan.stages, policy, options)

    def hidden(self, text: str) -> str:
        return text

    def run(self, summary: Summary, progress: Progress | None = None) -> None:
        """Runs it to its end, and counts. progress: called ten times a second, with the summary so far and the number
        of the source's rows (None: unknown)."""

        def count(_: object = None) -> None:
            self._count(summary)
            if progress is not None:
                progress(summary, self.source.rows)

        try:
            ended = engine.run(self, progress=count, progress_every=None if progress is None else _SECONDS)
        except BaseException as error:
            error.__notes__ = []  # the engine's are about checkpoints
            raise
        count()
        summary.warnings += [f"all rows have ended, but then close failed: {text}" for text in ended.close_errors]

    def _count(self, summary: Summary) -> None:
        summary.rows = self._operator.stages[0].counts.rows
        summary.calls = [_counted(stage) for stage in self._operator.stages]
        for name in ("values", "nulls", "errors", "timed_out"):
            setattr(summary, name, sum(getattr(counts, name) for counts in summary.calls))
        for name in ("nulled", "dropped", "dead_letters"):
            setattr(summary, name, sum(getattr(stage.counts, name) for stage in self._operator.stages))

    # ---- What the engine asks ----

    @property
    def inputs(self) -> tuple[Self]:
        return (self,)

    def operators(self) -> list[Operator]:
        return [self._operator]

    def event_time(self) -> None:
        return None

    def admit(self, rows: Rows) -> Sequence[Block]:
        block = self._chosen(self._columns.block(rows))
        return [] if block is None else [block]

    def entered(self, block: Block, place: int, input: int) -> Block:
        return block

    def left(self, block: Block, place: int | None) -> Block:
        """What has left the operator: the output's rows, and behind them where they come from."""
        if place is None:
            return block
        rows = self.plan.output(block)
        names = [*rows.schema.names, *ORIGIN.names]
        return Block(pa.RecordBatch.from_arrays([*rows.columns, *block.origin.columns], names=names), block.origin)

    def letter(self, dead: Dead) -> pa.RecordBatch:
        """The columns of a dead letter, then those of its row."""
        letters, own = self._columns.letters(dead.rows, dead.letters)
        names = [*LETTER.names, *(field.name for field in self._columns.letter_fields())]
        return pa.RecordBatch.from_arrays([*letters.columns, *own], names=names)

    def sinks(self, slice: int, stage: Stage | None) -> list[Sink]:
        return [_Into("output", self._write_output)]

    def letters(self, slice: int, stage: Stage | None) -> Sink | None:
        return None if self._letters is None else _Into("dead letters", self._write_letters)

    def _write_output(self, batch: pa.RecordBatch) -> None:
        width = len(self.plan.schema)
        rows = pa.RecordBatch.from_arrays(batch.columns[:width], schema=self.plan.schema)
        self._write(rows, pa.RecordBatch.from_arrays(batch.columns[width:], schema=ORIGIN))

    def _write_letters(self, batch: pa.RecordBatch) -> None:
        assert self._letters is not None
        width = len(LETTER)
        self._letters.write(pa.RecordBatch.from_arrays(batch.columns[:width], schema=LETTER), batch.columns[width:])


class _Into:
    """A sink for rows whose files belong to the run: they appear together, when the run has ended well."""

    def __init__(self, name: str, write: Callable[[pa.RecordBatch], None]) -> None:
        self.name, self.write = name, write

    def finish(self) -> None: ...

    def close(self) -> None: ...


def _counted(stage: RunningStage) -> CallCounts:
    counts = stage.counts
    statistics = stage.statistics() if isinstance(stage, AsyncStage) else None
    return CallCounts(
        stage.identity.function,
        counts.values,
        counts.nulls,
        counts.errors,
        counts.timed_out,
        stage.failures.so_far,
        statistics,
    )


def names_of(calls: Sequence[Call]) -> str:
    return ", ".join(call.function.name for call in calls)


def open_letters(path: Path, columns: Columns, note: Note, inputs: Sequence[Path] = ()) -> DeadLetters:
    """A file for dead letters of a source's rows. inputs: files that it must not be."""
    return DeadLetters(path, columns.letter_fields(), note.metadata(), inputs)
