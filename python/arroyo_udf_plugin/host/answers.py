"""Input rows beside their results: the mechanism of `Runtime.map`, and of calls with rows that are refused.

Guarantees: each row comes out once. Rows that are not called, because an argument of theirs was refused, are errors in
their place; those that are not wanted are null.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..abi import ERROR, VALUE
from ..errors import InvalidState
from .batches import Drained
from .ordinals import ordinals

HELD_ROWS = 16_384  # the default `max_rows` of a runtime
HELD_BYTES = 64 << 20  # of the results of all rows that a runtime holds
STEP_ROWS = 8192
STEP_BYTES = 8 << 20  # of results that are drained together
_GROWTH = 8  # at most, from step to step


class ArgumentRows(Protocol):
    """Rows that a batch of arguments belongs to: a RecordBatch, or what its caller makes of one."""

    def __len__(self) -> int: ...
    def slice(self, offset: int, length: int) -> Self: ...
    def take(self, indices: pa.Array) -> Self: ...


T = TypeVar("T", bound=ArgumentRows)


class Answered(NamedTuple, Generic[T]):
    """Rows, and a result for each: {id, value, outcome, attempts, error}."""

    rows: T
    results: pa.RecordBatch


def with_refused(
    results: pa.RecordBatch | None,
    rows: Sequence[int],
    refused: Mapping[int, str | None],
    schema: pa.Schema,
    first: int = 0,
) -> pa.RecordBatch:
    """The results of `rows` (rising), with an error for each of the refused rows, or null for one that is refused
    without a text: all in the order of the rows.

    schema: of the outcome. first: the id of row 0.
    """
    errors = sorted(refused)
    columns = {
        "id": [first + row for row in errors],
        "outcome": [VALUE if refused[row] is None else ERROR for row in errors],
        "attempts": [0] * len(errors),
        "error": [refused[row] for row in errors],
    }
    made = [pa.array(columns.get(field.name, [None] * len(errors)), field.type) for field in schema]
    if results is not None:
        others = {"outcome": [VALUE] * len(rows), "attempts": [1] * len(rows), "error": [None] * len(rows)}
        names = results.schema.names
        for i, field in enumerate(schema):
            is_there = field.name in names
            column = results.column(field.name) if is_there else pa.array(others[field.name], field.type)
            made[i] = pa.concat_arrays([made[i], column if column.type == field.type else column.cast(field.type)])
    order = sorted(range(len(errors) + len(rows)), key=[*errors, *rows].__getitem__)
    return pa.RecordBatch.from_arrays(made, schema=schema).take(pa.array(order, pa.int64()))


def schema_of(returns: pa.DataType) -> pa.Schema:
    """The columns of drained results, as plugins declare them, so that batches of refused rows match the others."""
    return pa.schema(
        [
            pa.field("id", pa.uint64(), nullable=False),
            pa.field("value", returns),
            pa.field("outcome", pa.uint8(), nullable=False),
            pa.field("attempts", pa.uint16(), nullable=False),
            pa.field("error", pa.utf8()),
        ]
    )


class Window:
    """How many rows `map` has in a runtime, so that large results do not fill the memory.

    at_once: rows that may run at once; so many are always held. rows: the limit. step: rows that are sent or drained
    together. Both follow the size of the latest results, and begin small, before there are any.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self.rows = at_once
        self.step = min(at_once, STEP_ROWS)

    def drained(self, rows: int, size: int) -> None:
        """Notes that `rows` rows were drained, with results of `size` bytes."""
        size = max(size, 1)
        self.rows = max(self._at_once, min(rows * HELD_BYTES // size, self.rows * _GROWTH, HELD_ROWS))
        self.step = max(1, min(rows * STEP_BYTES // size, self.step * _GROWTH, STEP_ROWS))


@dataclass(eq=False)
class _Held(Generic[T]):
    """Rows from id `first` on. refused: those that are not called and still wait for their turn. open: called and not
    answered. out: the positions of rows that have left, each a run (start, stop) or an array."""

    first: int
    rows: T
    refused: dict[int, str | None]
    open: int
    out: list[tuple[int, int] | pa.Array]

    @property
    def end(self) -> int:
        return self.first + len(self.rows)


class Waiting(Generic[T]):
    """Rows without an answer, by the id of their first row.

    where: "plugin.function". returns: its result's type.
    """

    def __init__(self, where: str, returns: pa.DataType) -> None:
        self.open = 0
        """Rows that are called and not answered."""
        self.refused = 0
        """Rows that are not called, and have not left."""
        self._where = where
        self._schema = schema_of(returns)
        self._held: list[_Held[T]] = []  # `first` rises

    def add(self, first: int, rows: T, refused: Mapping[int, str | None]) -> None:
        texts = {row: text and f"{self._where}, row {first + row}: {text}" for row, text in refused.items()}
        self.refused += len(refused)
        called = len(rows) - len(refused)
        self._held.append(_Held(first, rows, texts, called, []))
        self.open += called

    @property
    def first(self) -> int | None:
        """An id with which a batch begins that has not left whole, and no earlier batch; None: all have left."""
        return self._held[0].first if self._held else None

    def unanswered(self) -> Iterator[tuple[int, pa.UInt64Array, T]]:
        """Batches of which rows have not left: the id of the first row, these rows' positions, and the batch."""
        for held in self._held:
            positions = ordinals(len(held.rows))
            if held.out:
                gone = [ordinals(part[1] - part[0], part[0]) if isinstance(part, tuple) else part for part in held.out]
                chunked = pa.chunked_array(gone, pa.uint64())
                positions = positions.filter(pc.invert(pc.is_in(positions, value_set=chunked.combine_chunks())))
            if len(positions):
                yield held.first, positions, held.rows

    def answered(self, drained: Drained) -> Iterator[Answered[T]]:
        """Results beside their rows, cut where batches end."""
        results, low, high, is_run, _ = drained
        left = n_rows = results.num_rows
        yield from self.uncalled()
        touched = self._between(low, high)
        for held in touched:
            if held.first <= low and high < held.end:
                part = results
            elif is_run:
                start, stop = max(held.first - low, 0), min(held.end - low, n_rows)
                part = results.slice(start, stop - start)
            else:
                ids = results.column("id")
                own = pc.and_(pc.greater_equal(ids, _u64(held.first)), pc.less(ids, _u64(held.end)))
                part = results.filter(own)
            if not part.num_rows:
                continue
            left -= part.num_rows
            out: tuple[int, int] | pa.Array
            if is_run:
                start = max(low - held.first, 0)
                out = start, start + part.num_rows
            else:
                out = pc.subtract(part.column("id"), _u64(held.first))
            yield self._together(held, out, part)
            yield from self.uncalled()
        if left:
            unknown = next(
                id
                for id in results.column("id").to_pylist()
                if not any(held.first <= id < held.end for held in touched)
            )
            raise InvalidState(
                f"{self._where}: row {unknown} comes out, which was not sent from here; first drain the rows that were "
                "sent before"
            )

    def _between(self, low: int, high: int) -> list[_Held[T]]:
        """The batches with ids from low to high."""
        start = max(bisect.bisect_right(self._held, low, key=lambda batch: batch.first) - 1, 0)
        stop = bisect.bisect_right(self._held, high, key=lambda batch: batch.first)
        return self._held[start:stop]

    def uncalled(self) -> Iterator[Answered[T]]:
        """Batches of refused rows only, if nothing before them waits."""
        while self._held and not self._held[0].open:
            held = self._held.pop(0)
            if held.refused:
                rows = sorted(held.refused)
                self.refused -= len(rows)
                results = with_refused(None, [], held.refused, self._schema, held.first)
                yield Answered(held.rows.take(pa.array(rows, pa.int64())), results)

    def _together(self, held: _Held[T], out: tuple[int, int] | pa.Array, results: pa.RecordBatch) -> Answered[T]:
        self.open -= len(results)
        held.open -= len(results)
        if not held.open:
            del self._held[bisect.bisect_left(self._held, held.first, key=lambda batch: batch.first)]
        if held.refused:
            return self._with_due(held, out, results)
        if held.open:
            held.out.append(out)
        rows = held.rows.slice(out[0], out[1] - out[0]) if isinstance(out, tuple) else held.rows.take(out)
        return Answered(rows, results)

    def _with_due(self, held: _Held[T], out: tuple[int, int] | pa.Array, results: pa.RecordBatch) -> Answered[T]:
        """With the refused rows whose turn it is: those before the last of the results, or all at the batch's end."""
        results = results.sort_by("id")
        rows = list(range(*out)) if isinstance(out, tuple) else sorted(out.to_pylist())
        due = {row: text for row, text in held.refused.items() if not held.open or row < rows[-1]}
        if due:
            self.refused -= len(due)
            results = with_refused(results, rows, due, self._schema, held.first)
            held.refused = {row: text for row, text in held.refused.items() if row not in due}
        positions = pa.array(sorted([*rows, *due]), pa.uint64())
        held.out.append(positions)
        return Answered(held.rows.take(positions), results)


def _u64(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint64())
