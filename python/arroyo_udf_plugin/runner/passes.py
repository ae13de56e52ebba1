"""One pass of rows through all functions of a run: call, apply the policy, count, and on to the next function.

Guarantees: every row is counted, and ends in one place: among the blocks that leave, dropped, or as a dead letter. Rows
that a function's policy leaves out are not given to the next function. The generators end with the pass: functions are
stopped also after an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..dead_letters import DeadLetters
from ..host.answers import Answered
from ..host.policy import Decided, Policy
from ..host.statistics import Statistics
from ..operator.blocks import Block, Columns
from ..operator.calls import Call, Plan, Stage
from .answers import End, answers
from .notes import Note


@dataclasses.dataclass
class Counts:
    """One function's results by outcome. statistics: of an async function, up to its stop; None for a sync one."""

    function: str
    values: int = 0
    errors: int = 0
    timed_out: int = 0
    statistics: Statistics | None = None


@dataclasses.dataclass
class Summary:
    """Counts of a run. rows: rows read. seconds: wall time.

    values, errors, timed_out: results by outcome, of all functions together; `calls` has those of each.
    nulled: failed results that are null. dropped, dead_letters: rows that are not in the output.
    statistics: of a run's only function. warnings: what went wrong without touching a row.
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
    calls: list[Counts] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    @property
    def written(self) -> int:
        """The rows in the output."""
        return self.rows - self.dropped - self.dead_letters


Progress = Callable[[Summary, int | None], None]


@dataclasses.dataclass(frozen=True)
class Pass:
    """columns, total: of the source, and the number of its rows. letters: open, if the policy has dead letters.

    progress: called after each step with the summary so far and the number of input rows (None: unknown).
    """

    columns: Columns
    total: int | None
    plan: Plan
    policy: Policy
    options: Mapping[str, Any]
    letters: DeadLetters | None
    summary: Summary
    progress: Progress

    @contextlib.contextmanager
    def through(self, blocks: Iterator[Block]) -> Iterator[Iterator[Block]]:
        """The rows that remain, with all results. blocks: of the source."""
        with contextlib.ExitStack() as ends:
            for stage in self.plan.stages:
                counts = Counts(stage.call.function.name)
                self.summary.calls.append(counts)
                blocks = ends.enter_context(contextlib.closing(self._stage(stage, blocks, counts)))
            yield blocks

    def _stage(self, stage: Stage, blocks: Iterator[Block], counts: Counts) -> Generator[Block, None, None]:
        function, end = stage.call.function, End()
        with contextlib.closing(answers(stage, blocks, self.options, end)) as steps:
            for step in steps:
                decided = self.policy.apply(step.results, function, origin=step.rows.origin)
                if self.letters is not None and len(decided.dead_at):
                    self.letters.write(*self.columns.letters(step.rows.take(decided.dead_at), decided.dead))
                counts.statistics = end.statistics
                self._count(counts, step, decided)
                self.progress(self.summary, self.total)
                kept = step.rows if decided.kept is None else step.rows.filter(decided.kept)
                if len(kept):
                    yield stage.answered(kept, decided.results.column("value"))
        counts.statistics = end.statistics
        if end.close_error is not None:
            self.summary.warnings.append(f"all rows have ended, but then close failed: {end.close_error}")

    def _count(self, counts: Counts, step: Answered[Block], decided: Decided) -> None:
        n_rows, failed, timed_out = len(step.rows), decided.failed, decided.timed_out
        for counted in (counts, self.summary):
            counted.values += n_rows - failed
            counted.errors += failed - timed_out
            counted.timed_out += timed_out
        self.summary.rows += n_rows if counts is self.summary.calls[0] else 0
        self.summary.nulled += decided.nulled
        self.summary.dropped += decided.dropped
        self.summary.dead_letters += len(decided.dead_at)


def names_of(calls: Sequence[Call]) -> str:
    return ", ".join(call.function.name for call in calls)


def open_letters(path: Path, columns: Columns, note: Note, inputs: Sequence[Path] = ()) -> DeadLetters:
    """A file for dead letters of a source's rows. inputs: files that it must not be."""
    return DeadLetters(path, columns.letter_fields(), note.metadata(), inputs)
