"""Values that go through pyarrow inside a plugin: types that the native core does not convert itself, and the arrays of
vectorized functions. The native core calls this with addresses of Arrow C structs.

Schemas are constants of a plugin, so their types are imported once. Arrays come as views: see pyarrow.rs.
"""

from __future__ import annotations

import functools
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from .._native import note_interrupt
from .._native import schema as schema_capsule
from .stacks import describe

__all__ = ["column_to_list", "list_to_column", "vectorized"]

MOST_FURTHER_CALLS = 64
"""Of a batch whose first call has raised."""


@functools.cache
def _field(schema: int) -> pa.Field:
    return pa.Field._import_from_c_capsule(schema_capsule(schema))


def column_to_list(array: int, schema: int) -> list[Any]:
    """The values of a column as Python objects."""
    values: list[Any] = pa.Array._import_from_c(array, _field(schema).type).to_pylist()
    return values


def list_to_column(values: list[Any], schema: int, out: int) -> list[tuple[int, str]]:
    """Exports values as an array of the schema's type to the address `out`. Returns rows that do not fit, with why."""
    type_ = _field(schema).type
    refused = []
    try:
        column = pa.array(values, type_)
    except BaseException as raised:  # a value may raise anything when pyarrow reads it (R2)
        note_interrupt(raised)
        fitting: list[Any] = []
        for row, value in enumerate(values):
            try:
                pa.array([value], type_)
            except BaseException as error:
                note_interrupt(error)
                refused.append((row, f"returned {type(value).__name__}, not {type_}: {error or type(error).__name__}"))
                fitting.append(None)
            else:
                fitting.append(value)
        column = pa.array(fitting, type_)
    column._export_to_c(out)
    return refused


def vectorized(
    function: Callable[..., Any],
    array: int,
    schema: int,
    returns: int,
    out: int,
    unreadable: list[int],
    split: bool,
) -> list[tuple[int, str]]:
    """Calls the function with whole columns, exports its results to `out`. Returns the rows that failed, with why.

    `unreadable`: rows that neither the function nor pyarrow may see; their results are null. `split`: a call that
    raises is repeated with each half of its rows, until the rows at fault are alone (F4).
    """
    batch = pa.Array._import_from_c(array, _field(schema).type)
    length = len(batch)
    if not length:
        batch = pa.array([], batch.type)  # the columns may have rows beyond the batch, which nobody has checked
    calls = _Calls(function, _field(returns).type)
    if unreadable:
        batch = _without(batch, unreadable)
    if len(batch) or not unreadable:
        calls.run(batch, split)
    values, errors = calls.results()
    if unreadable:
        values = _with_nulls(values, unreadable, length)
        left_out = set(unreadable)
        rows = [row for row in range(length) if row not in left_out]
        errors = [(rows[row], why) for row, why in errors]
    values._export_to_c(out)
    return errors


class _Calls:
    """The calls of a vectorised function for one batch."""

    def __init__(self, function: Callable[..., Any], returns: pa.DataType) -> None:
        self.function = function
        self.returns = returns
        self.parts: dict[int, pa.Array] = {}  # results, by their first row
        self.errors: list[tuple[int, str]] = []
        self.raised: deque[tuple[int, pa.Array, str]] = deque()  # calls that have: first row, rows, why; largest first

    def run(self, batch: pa.Array, split: bool) -> None:
        self.call(0, batch)
        left = MOST_FURTHER_CALLS if split else 0
        while self.raised:
            first, rows, why = self.raised.popleft()
            half = len(rows) // 2
            if not half or left < 2:
                why = why if len(rows) == 1 else f"{why}\n  in a call with {len(rows)} rows"
                self.fail(first, len(rows), why)
                continue
            left -= 1
            succeeds = self.call(first, rows[:half])
            if succeeds and len(rows) - half > 1:
                self.raised.append((first + half, rows[half:], why))  # the row at fault is here: saves a call
            else:
                left -= 1
                self.call(first + half, rows[half:])

    def call(self, first: int, rows: pa.Array) -> bool:
        """Calls the function with some rows. False: it has raised."""
        try:
            result = self.function(*rows.flatten())
        except BaseException as error:  # SystemExit, too, is an error of rows (R2)
            if note_interrupt(error):
                raise
            why = describe(error)
            # User code may keep the exception, but not the arrays (R19): this frame has them, too.
            frames = error.__traceback__
            error.__traceback__ = None if frames is None else frames.tb_next
            traceback.clear_frames(error.__traceback__)
            del frames
            self.raised.append((first, rows, why))
            return False
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if (wrong := self.wrong(result, len(rows))) is None:
            self.parts[first] = result
        else:
            self.fail(first, len(rows), wrong)  # a mistake in the function, whatever the rows are
        return True

    def wrong(self, result: Any, rows: int) -> str | None:
        if not isinstance(result, pa.Array):
            return f"returned {type(result).__name__}, not an array of {self.returns}"
        if result.type != self.returns:
            return f"returned an array of {result.type}, not {self.returns}; cast it"
        if len(result) != rows:
            return f"returned {len(result)} rows for {rows}"
        return None

    def fail(self, first: int, rows: int, why: str) -> None:
        self.parts[first] = pa.nulls(rows, self.returns)
        self.errors += [(row, why) for row in range(first, first + rows)]

    def results(self) -> tuple[pa.Array, list[tuple[int, str]]]:
        """The values, and the rows that failed, both in order."""
        parts = [part for _, part in sorted(self.parts.items())]
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [pa.nulls(0, self.returns)])
        return values, sorted(self.errors)


def _without(array: pa.Array, rows: list[int]) -> pa.Array:
    """The array without these rows, which are ascending. Nothing of them is read."""
    starts, ends = [0, *(row + 1 for row in rows)], [*rows, len(array)]
    runs = [array.slice(start, end - start) for start, end in zip(starts, ends, strict=True) if start < end]
    return pa.concat_arrays(runs or [array[:0]])


def _with_nulls(array: pa.Array, rows: list[int], length: int) -> pa.Array:
    """The reverse of `_without`, with null for each of the rows."""
    left_out, places = set(rows), iter(range(len(array)))
    return array.take(pa.array([None if row in left_out else next(places) for row in range(length)], pa.int64()))
