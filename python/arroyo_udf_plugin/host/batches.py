"""Arrays across the ABI: arguments out to a plugin, results back in. The hot path of the host.

Guarantees: arguments that a plugin did not take are released here. A result's fields and length are checked before use.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .._native import batch as _new_batch
from .._native import free_batch as free_batch
from ..abi import YES, ffi, new_error, take_error
from ..errors import AbiError, ArroyoUdfError, InvalidArgument, by_status
from .fields import field_of

_ARRAY_SIZE = ffi.sizeof("struct ArrowArray")


class Arguments:
    """The arguments of one function: checks and exports arrays for it."""

    def __init__(self, where: str, schema: pa.Schema) -> None:
        self._where = where
        self._schema = schema
        self._types: list[pa.DataType] = schema.types
        self._count = len(self._types)

    def export(self, arrays: Sequence[pa.Array]) -> int:
        """Exports arrays as one struct ArrowArray; returns its address. Call free_batch after the call, in any case."""
        if len(arrays) != self._count or not arrays:
            self._check_count(arrays)
        length = len(arrays[0])
        arrays = arrays if self._count else ()
        for array, wanted in zip(arrays, self._types, strict=True):
            if len(array) != length or (array.type is not wanted and array.type != wanted):
                self._check(arrays)
                break
        batch, child = _new_batch(length, self._count)
        try:
            for array in arrays:
                array._export_to_c(child)
                child += _ARRAY_SIZE  # the children lie one behind the other
        except BaseException:
            free_batch(batch)
            raise
        return batch

    def arrays(self, given: Sequence[Any]) -> list[pa.Array | pa.ChunkedArray]:
        """The caller's values as pyarrow arrays: objects with the Arrow PyCapsule protocol, or one RecordBatch."""
        if len(given) == 1 and isinstance(given[0], pa.RecordBatch | pa.Table):
            given = given[0].columns or [pa.nulls(given[0].num_rows)]
        self._check_count(given)
        return [self._array(i, value) for i, value in enumerate(given)]

    def chunks(self, given: Sequence[Any]) -> list[list[pa.Array]]:
        """Converts the caller's values to arrays, cut at the chunks of all chunked arrays."""
        arrays = self.arrays(given)
        if not any(isinstance(array, pa.ChunkedArray) for array in arrays):
            return [arrays]
        self._check(arrays)
        table = pa.table(arrays, names=[str(i) for i in range(self._count)])
        return [batch.columns for batch in table.to_batches()]

    def _array(self, i: int, value: Any) -> pa.Array | pa.ChunkedArray:
        if isinstance(value, pa.Array | pa.ChunkedArray):
            return value
        if hasattr(value, "__arrow_c_array__"):
            return pa.array(value)
        if hasattr(value, "__arrow_c_stream__"):
            return pa.chunked_array(value)
        wanted = self._schema.field(i)
        raise self._wrong(i, f"is a {type(value).__name__}; pass an Arrow array: pa.array(..., pa.{wanted.type}())")

    def _check(self, arrays: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        for i, array in enumerate(arrays):
            wanted = self._types[i]
            if not _same_layout(array.type, wanted):
                raise self._wrong(i, f"is {array.type}, not {wanted}; cast it with array.cast")
            if len(array) != len(arrays[0]):
                raise self._wrong(i, f"has {len(array)} rows, but the first has {len(arrays[0])}; pass equal lengths")

    def _wrong(self, i: int, what: str) -> InvalidArgument:
        return InvalidArgument(f"{self._where}: argument {i + 1}, {self._schema.field(i).name!r}, {what}")

    def _check_count(self, given: Sequence[Any]) -> None:
        """A function without arguments gets one array of nulls, one per row."""
        if self._count == 0:
            if len(given) != 1 or not isinstance(given[0], pa.NullArray):
                raise InvalidArgument(f"{self._where}: takes no arguments; pass pa.nulls(n) to call it for n rows")
        elif len(given) != self._count:
            names = ", ".join(self._schema.names)
            wrong = f"{self._where}: takes {self._count} arguments ({names}), but got {len(given)}"
            raise InvalidArgument(wrong)


def _same_layout(one: pa.DataType, other: pa.DataType) -> bool:
    """Equal except for the names of list items and for inner nullability, which data from elsewhere rarely declares."""
    if one == other:
        return True
    if one.id != other.id or not pa.types.is_nested(one) or one.num_fields != other.num_fields:
        return False
    fields = [(one.field(i), other.field(i)) for i in range(one.num_fields)]
    named = not pa.types.is_struct(one) or all(a.name == b.name for a, b in fields)
    return named and all(_same_layout(a.type, b.type) for a, b in fields)


array_pointer = functools.partial(ffi.cast, ffi.typeof("struct ArrowArray *"))
"""Casts the address of an ArrowArray to cffi's pointer."""


class Outputs:
    """The out-parameters of one call; reused by later calls."""

    __slots__ = ("address", "array", "error", "schema")

    def __init__(self) -> None:
        self.array = ffi.new("struct ArrowArray *")
        self.address = int(ffi.cast("uintptr_t", self.array))
        self.schema = ffi.new("const struct ArrowSchema *[1]")
        self.error = new_error()


# Unused outputs. Each call takes one and gives it back, so calls may nest and come from any thread.
_free: list[Outputs] = []
give_back = _free.append


def take_outputs() -> Outputs:
    try:
        return _free.pop()
    except IndexError:
        return Outputs()


@dataclass(frozen=True)
class Shape:
    """The struct type of a result, and where in it the value and the outcome are."""

    type: pa.DataType
    schema: pa.Schema
    value: int
    outcome: int | None
    error: int | None


class Shapes(dict[Any, Shape]):
    """The types of a function's results, by the address of their constant schema; each is read once."""

    def __init__(self, where: str, value: pa.DataType) -> None:
        self._where = where
        self._value = value

    def __missing__(self, pointer: Any) -> Shape:
        self[pointer] = shape = self._read(pointer)
        return shape

    def _read(self, pointer: Any) -> Shape:
        struct = field_of(pointer, f"{self._where}: results").type
        if not pa.types.is_struct(struct):
            raise AbiError(f"{self._where}: results are {struct}, not a struct")
        fields = {struct.field(i).name: i for i in range(struct.num_fields)}
        if "value" not in fields or not _same_layout(struct.field(fields["value"]).type, self._value):
            raise AbiError(f"{self._where}: results are {struct}, without a value of type {self._value}")
        if ("outcome" in fields) != ("error" in fields):
            raise AbiError(f"{self._where}: results are {struct}; outcome and error must both be there")
        return Shape(struct, pa.schema(list(struct)), fields["value"], fields.get("outcome"), fields.get("error"))


def failure(status: int, error: Any) -> ArroyoUdfError:
    """The exception for a call that answered an error. Reads and releases the text."""
    retryable = error.retryable == YES
    return by_status(status, take_error(error), retryable)
