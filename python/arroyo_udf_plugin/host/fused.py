"""Calls of native functions that take each other's values, in one pass over a batch (docs/native.md).

    fused = Fused([FusedCall(mph, (0, 1), is_wanted=False), FusedCall(band, (-1,), is_wanted=True)])
    passed = fused.run([distance, air_time])

Guarantees: a row that is not deferred has the values that the calls give it one after the other. A row that one of them
defers has none: call the functions for it, one after the other. So it is counted once, and fails as it always does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from .._native import batch as _new_batch
from .._native import free_batch
from ..abi import YES, address, ffi, new_error
from ..errors import InvalidArgument
from .batches import array_pointer, failure
from .function import Function

_ARRAY_SIZE = ffi.sizeof("struct ArrowArray")


class FusedCall(NamedTuple):
    """A call. arguments: for each, n is column number n, and -1 - n are the values of call number n, which stands
    before this one and has the argument's type. is_wanted: its values are not for later calls alone. condition: the
    number of a column of bools: where it is not true, the value is null; None: there is none."""

    function: Function
    arguments: Sequence[int]
    is_wanted: bool
    condition: int | None = None


class FusedResults(NamedTuple):
    """values: of each wanted call, null where a row is deferred. deferred: which are; None: none. nulls: for each call,
    how many of the other rows have a null."""

    values: Sequence[pa.Array]
    deferred: pa.BooleanArray | None
    nulls: Sequence[int]


def can_be_fused(function: Function, first: Function | None = None) -> bool:
    """Whether calls of it can be in one pass; first: with calls of this function."""
    own, other = function.fusing, function.fusing if first is None else first.fusing
    return own is not None and other is not None and own.slot == other.slot


class Fused:
    """calls: of functions that can be fused with each other. Raises InvalidArgument for others."""

    def __init__(self, calls: Sequence[FusedCall]) -> None:
        if not calls or not all(can_be_fused(call.function, calls[0].function) for call in calls):
            raise InvalidArgument("calls in one pass must be of native functions of one library")
        fusing = [call.function.fusing for call in calls]
        self._where = calls[-1].function.where
        self._shapes = [own.shape for own, call in zip(fusing, calls, strict=True) if own and call.is_wanted]
        self._slot = next(own.slot for own in fusing if own)
        self._calls = ffi.new("arroyo_udf_fused_call[]", len(calls))
        self._arguments = [ffi.new("int32_t[]", list(call.arguments)) for call in calls]
        for written, own, call, arguments in zip(self._calls, fusing, calls, self._arguments, strict=True):
            assert own is not None
            written.function, written.arguments = own.number, arguments
            written.is_wanted = YES if call.is_wanted else 0
            written.condition = -1 if call.condition is None else call.condition

    def run(self, columns: Sequence[pa.Array]) -> FusedResults | None:
        """columns: of one length, and of the types of the arguments that take them. None: all rows are deferred,
        perhaps because most of them would be."""
        n_rows = len(columns[0])
        deferred = ffi.new("uint64_t[]", (n_rows + 63) // 64)
        counts, results = ffi.new("uint64_t[]", 1 + len(self._calls)), ffi.new("struct ArrowArray[]", len(self._shapes))
        error = new_error()
        batch = _exported(columns)
        try:
            status = self._slot(
                self._calls,
                len(self._calls),
                array_pointer(batch),
                results,
                deferred,
                counts,
                error,
            )
        finally:
            free_batch(batch)
        if status:
            raise failure(status, error, self._where, "run_fused")
        n_deferred, *nulls = counts
        if n_deferred == n_rows:
            return None
        first = address(results)
        values = [shape.take_at(first + i * _ARRAY_SIZE, n_rows)[0] for i, shape in enumerate(self._shapes)]
        return FusedResults(values, _mask(deferred, n_rows) if n_deferred else None, nulls)


def _mask(bits: Any, n_rows: int) -> pa.BooleanArray:
    return pa.BooleanArray.from_buffers(pa.bool_(), n_rows, [None, pa.py_buffer(bytes(ffi.buffer(bits)))], 0)


def _exported(columns: Sequence[pa.Array]) -> int:
    """The address of one struct ArrowArray, whose children are the columns."""
    batch, child = _new_batch(len(columns[0]), len(columns))
    try:
        for column in columns:
            column._export_to_c(child)
            child += _ARRAY_SIZE
    except BaseException:
        free_batch(batch)
        raise
    return batch
