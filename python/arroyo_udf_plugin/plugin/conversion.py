"""Values that go through pyarrow inside a plugin: types that the native core does not convert itself, and the arrays of
vectorised functions (vectorized.py calls those). The native core calls this with addresses of Arrow C structs.

Schemas are constants of a plugin, so their types are imported once. Arrays come as views: see pyarrow.rs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from .._native import note_interrupt
from .._native import schema as schema_capsule
from .vectorized import BatchCalls, Result, VectorRows, settled

__all__ = ["column_to_list", "list_to_column", "vectorized"]


@functools.cache
def _type(schema: int) -> pa.DataType:
    return pa.Field._import_from_c_capsule(schema_capsule(schema)).type


@functools.cache
def _result(schema: int) -> Result:
    return Result(_type(schema), schema)


def column_to_list(array: int, schema: int) -> list[Any]:
    """The values of a column as Python objects."""
    values: list[Any] = pa.Array._import_from_c(array, _type(schema)).to_pylist()
    return values


def list_to_column(values: list[Any], schema: int, out: int) -> list[tuple[int, str]]:
    """Exports values as an array of the schema's type to the address `out`. Returns rows that do not fit, with why."""
    type_ = _type(schema)
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
    if isinstance(column, pa.ChunkedArray):
        raise OverflowError(
            f"the results of this batch are too large for one array of {type_}; send smaller batches, or return a type "
            "with 64-bit offsets, such as large_utf8, large_binary or large_list"
        )
    column, broken = settled(column, _result(schema))  # a value may be one of pyarrow's, with any content
    column._export_to_c(out)
    return refused + broken


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
    batch = pa.Array._import_from_c(array, _type(schema))
    length = len(batch)
    if not length:
        batch = pa.nulls(0, batch.type)  # the columns may have rows beyond the batch, which nobody has checked
    if not unreadable:
        values, errors = BatchCalls(function, _result(returns)).run(VectorRows(batch.flatten(), length), split)
        values._export_to_c(out)
        return errors
    batch = _without(batch, unreadable)
    values, errors = pa.nulls(0, _type(returns)), []
    if len(batch):
        values, errors = BatchCalls(function, _result(returns)).run(VectorRows(batch.flatten(), len(batch)), split)
    _with_nulls(values, unreadable, length)._export_to_c(out)
    left_out = set(unreadable)
    rows = [row for row in range(length) if row not in left_out]
    return [(rows[row], why) for row, why in errors]


def _without(array: pa.Array, rows: list[int]) -> pa.Array:
    """The array without these rows, which are ascending. Nothing of them is read."""
    starts, ends = [0, *(row + 1 for row in rows)], [*rows, len(array)]
    runs = [array.slice(start, end - start) for start, end in zip(starts, ends, strict=True) if start < end]
    return pa.concat_arrays(runs or [array[:0]])


def _with_nulls(array: pa.Array, rows: list[int], length: int) -> pa.Array:
    """The reverse of `_without`, with null for each of the rows."""
    left_out, places = set(rows), iter(range(len(array)))
    return array.take(pa.array([None if row in left_out else next(places) for row in range(length)], pa.int64()))
