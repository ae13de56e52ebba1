"""Blocks through one function: in go rows, out come the same rows with their results.

Guarantees: every row comes out once, in order, unless the function is unordered. A row whose argument was refused is an
error, in its place; the function is not called for it. Few rows are in hand while they take long or have large results.
Assumes that blocks have at least one row.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ..errors import UserCodeError
from ..host.answers import Answered, schema_of, with_refused
from ..host.arguments import Piece
from ..host.statistics import Statistics
from ..operator.blocks import Block
from ..operator.calls import Stage
from ..operator.pace import Pace

Answers = Generator[Answered[Block], None, None]


@dataclasses.dataclass
class End:
    """What an async function has told of itself. close_error: of its Context's close, after all rows had ended."""

    statistics: Statistics | None = None
    close_error: str | None = None


def answers(stage: Stage, blocks: Iterator[Block], options: Mapping[str, Any], end: End) -> Answers:
    """Calls the stage's function for all rows. options: of an async function. end: filled in.

    The results have values and, where not every row is a value, outcomes, errors and attempts.
    """
    if stage.call.function.kind == "async":
        return _async(stage, blocks, options, end)
    return _sync(stage, blocks)


def _sync(stage: Stage, blocks: Iterator[Block]) -> Answers:
    pace, function = Pace(), stage.call.function
    schema = schema_of(function.returns).remove(0)  # without ids

    def called(piece: Piece) -> pa.RecordBatch:
        return pa.RecordBatch.from_struct_array(function.outcomes(*piece.arrays))

    for block in blocks:
        rows, whole = stage.prepare(block)
        start = 0
        while start < len(rows):
            piece = whole.slice(start, pace.rows)
            begun = time.perf_counter()
            if piece.refused:
                kept = piece.kept()
                at = pa.array(kept, pa.int64())
                results = called(Piece([array.take(at) for array in piece.arrays], {})) if kept else None
                results = with_refused(results, kept, piece.refused, schema)
            else:
                results = called(piece)
            pace.took(piece.n_rows, time.perf_counter() - begun, results.nbytes)
            yield Answered(rows.slice(start, piece.n_rows), results)
            start += piece.n_rows


def _async(stage: Stage, blocks: Iterator[Block], options: Mapping[str, Any], end: End) -> Answers:
    n_sent = n_answered = 0
    all_sent = False

    def prepared() -> Iterator[tuple[Block, Piece]]:
        nonlocal n_sent, all_sent
        for block in blocks:
            n_sent += len(block)
            yield stage.prepare(block)
        all_sent = True

    with stage.call.function.start(**options) as runtime:
        try:
            for answered in runtime.answers(prepared(), first_id=1):
                n_answered += len(answered.rows)
                end.statistics = runtime.statistics()
                yield answered
        except UserCodeError as error:
            if not all_sent or n_answered < n_sent:
                raise
            end.close_error = str(error)  # what else could fail now?
        end.statistics = runtime.statistics()
