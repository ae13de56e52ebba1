"""Values that go through pyarrow inside a plugin: types that the native core does not convert itself, and the arrays of
vectorized functions. The native core calls this with addresses of Arrow C structs.

Schemas are constants of a plugin, so their types are imported once. Arrays come as views: see pyarrow.rs.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from .._native import note_interrupt
from .._native import schema as schema_capsule
from .stacks import describe

__all__ = ["column_to_list", "list_to_column", "vectorized"]


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
    function: Callable[..., Any], array: int, schema: int, returns: int, out: int, unreadable: list[int]
) -> str | None:
    """Calls the function with whole columns, exports its result to `out`. Returns why it failed, or None.

    `unreadable`: rows that neither the function nor pyarrow may see; their results are null.
    """
    batch = pa.Array._import_from_c(array, _field(schema).type)
    expected = _field(returns).type
    rows = len(batch)
    if not rows:
        batch = pa.array([], batch.type)  # the columns may have rows beyond the batch, which nobody has checked
    if unreadable:
        if len(unreadable) == rows:
            pa.nulls(rows, expected)._export_to_c(out)
            return None
        batch = _without(batch, unreadable)
    try:
        result = function(*batch.flatten())
    except BaseException as error:  # SystemExit and KeyboardInterrupt are errors of rows, too (R2)
        note_interrupt(error)
        text = describe(error)
        traceback.clear_frames(error.__traceback__)  # user code may keep the exception, but not the arrays (R19)
        return text
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if not isinstance(result, pa.Array):
        return f"returned {type(result).__name__}, not an array of {expected}"
    if result.type != expected:
        return f"returned an array of {result.type}, not {expected}; cast it"
    if len(result) != len(batch):
        return f"returned {len(result)} rows for {len(batch)}"
    if unreadable:
        result = _with_nulls(result, unreadable, rows)
    result._export_to_c(out)
    return None


def _without(array: pa.Array, rows: list[int]) -> pa.Array:
    """The array without these rows, which are ascending. Nothing of them is read."""
    starts, ends = [0, *(row + 1 for row in rows)], [*rows, len(array)]
    runs = [array.slice(start, end - start) for start, end in zip(starts, ends, strict=True) if start < end]
    return pa.concat_arrays(runs)


def _with_nulls(array: pa.Array, rows: list[int], length: int) -> pa.Array:
    """The reverse of `_without`, with null for each of the rows."""
    left_out, places = set(rows), iter(range(len(array)))
    return array.take(pa.array([None if row in left_out else next(places) for row in range(length)], pa.int64()))
