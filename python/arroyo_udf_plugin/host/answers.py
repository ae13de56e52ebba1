"""Input rows beside their results: the mechanism of `Runtime.map`, and of calls with rows that are refused.

Guarantees: each row comes out once. Rows that are not called, because an argument of theirs was refused, are errors in
their place.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa

from ..abi import ERROR, VALUE
from ..errors import InvalidState

HELD_ROWS = 16_384  # the default `max_rows` of a runtime
HELD_BYTES = 64 << 20  # of the results of all rows that a runtime holds
STEP_ROWS = 8192
STEP_BYTES = 8 << 20  # of results that are drained together
_GROWTH = 8  # at most, from step to step


class Rows(Protocol):
    """Rows that a batch of arguments belongs to: a RecordBatch, or what its caller makes of one."""

    def __len__(self) -> int: ...
    def slice(self, offset: int, length: int) -> Self: ...
    def take(self, indices: pa.Array) -> Self: ...


T = TypeVar("T", bound=Rows)


class Answered(NamedTuple, Generic[T]):
    """Rows, and a result for each: {id, value, outcome, attempts, error}."""

    rows: T
    results: pa.RecordBatch


def with_refused(
    results: pa.RecordBatch | None, rows: Sequence[int], refused: Mapping[int, str], schema: pa.Schema, first: int = 0
) -> pa.RecordBatch:
    """The results of `rows` (rising), with an error for each of the refused rows: all in the order of the rows.

    schema: of the outcome. first: the id of row 0.
    """
    errors = sorted(refused)
    columns = {
        "id": [first + row for row in errors],
        "outcome": [ERROR] * len(errors),
        "attempts": [0] * len(errors),
        "error": [refused[row] for row in errors],
    }
    made = [pa.array(columns.get(field.name, [None] * len(errors)), field.type) for field in schema]
    if results is not None:
        others = {"outcome": [VALUE] * len(rows), "attempts": [1] * len(rows), "error": [None] * len(rows)}
        names = results.schema.names
        for i, field in enumerate(schema):
            found = field.name in names
            column = results.column(field.name) if found else pa.array(others[field.name], field.type)
            made[i] = pa.concat_arrays([made[i], column if column.type == field.type else column.cast(field.type)])
    order = sorted(range(len(errors) + len(rows)), key=[*errors, *rows].__getitem__)
    return pa.RecordBatch.from_arrays(made, schema=schema).take(pa.array(order, pa.int64()))


def schema_of(returns: pa.DataType) -> pa.Schema:
    """The columns of drained results."""
    fields = {"id": pa.uint64(), "value": returns, "outcome": pa.uint8(), "attempts": pa.uint16(), "error": pa.utf8()}
    return pa.schema(fields.items())


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
    """Rows from id `first` on. refused: those that are not called and still wait for their turn. open: unanswered."""

    first: int
    rows: T
    refused: dict[int, str]
    open: int


class Waiting(Generic[T]):
    """Rows without an answer, by the id of their first row.

    where: "plugin.function". returns: its result's type. ordered: results come in the order of their ids.
    """

    def __init__(self, where: str, returns: pa.DataType, ordered: bool) -> None:
        self.open = 0
        """Rows that are called and not answered."""
        self._where = where
        self._ordered = ordered
        self._schema = schema_of(returns)
        self._held: list[_Held[T]] = []  # `first` rises

    def add(self, first: int, rows: T, refused: Mapping[int, str]) -> None:
        texts = {row: f"{self._where}, row {first + row}: {text}" for row, text in refused.items()}
        called = len(rows) - len(refused)
        self._held.append(_Held(first, rows, texts, called))
        self.open += called

    def answered(self, results: pa.RecordBatch) -> Iterator[Answered[T]]:
        """`results` beside their rows, cut where batches end. Unordered results are sorted by id."""
        if not len(results):
            return
        ids, results = _rising(results, self._ordered)
        start = 0
        while start < len(ids):
            yield from self.uncalled()
            index = bisect.bisect_right(self._held, ids[start], key=lambda one: one.first) - 1
            held = self._held[index] if index >= 0 else None
            stop = start if held is None else bisect.bisect_left(ids, held.first + len(held.rows), start)
            if held is None or stop == start:
                raise InvalidState(
                    f"{self._where}: row {ids[start]} comes out, which map has not sent; first drain the rows that "
                    "were sent before"
                )
            rows = _less(ids[start:stop], held.first)
            self.open -= len(rows)
            held.open -= len(rows)
            if not held.open:
                del self._held[index]
            due = {row: text for row, text in held.refused.items() if not held.open or row < rows[-1]}
            yield self._together(held, rows, results.slice(start, stop - start), due)
            start = stop
        yield from self.uncalled()

    def uncalled(self) -> Iterator[Answered[T]]:
        """Batches of refused rows only, if nothing before them waits."""
        while self._held and not self._held[0].open:
            held = self._held.pop(0)
            if held.refused:
                yield self._together(held, [], None, held.refused)

    def _together(
        self, held: _Held[T], rows: Sequence[int], results: pa.RecordBatch | None, due: Mapping[int, str]
    ) -> Answered[T]:
        if due:
            results = with_refused(results, rows, due, self._schema, held.first)
            held.refused = {row: text for row, text in held.refused.items() if row not in due}
            rows = sorted([*rows, *due])
        assert results is not None
        if rows[-1] - rows[0] + 1 == len(rows):
            return Answered(held.rows.slice(rows[0], len(rows)), results)
        return Answered(held.rows.take(pa.array(rows, pa.int64())), results)


def _rising(results: pa.RecordBatch, ordered: bool) -> tuple[Sequence[int], pa.RecordBatch]:
    """The results in the order of their ids, and these: a range without gaps, where that is cheap to see."""
    column = results.column("id")
    if ordered and column[-1].as_py() - column[0].as_py() + 1 == len(column):
        return range(column[0].as_py(), column[-1].as_py() + 1), results
    ids = column.to_pylist()
    if any(later < earlier for earlier, later in itertools.pairwise(ids)):
        return sorted(ids), results.sort_by("id")
    return ids, results


def _less(ids: Sequence[int], first: int) -> Sequence[int]:
    if isinstance(ids, range):
        return range(ids.start - first, ids.stop - first)
    return [number - first for number in ids]
